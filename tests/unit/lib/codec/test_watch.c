/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/watch.h"

static void every_type_of_event_is_read(void **state)
{
    static const struct {
        const char *row;
        const char *line;
        enum gs_watch_type type;
        const char *object;
    } rows[] = {
        {"added", "{'type':'ADDED','object':{'a':1}}\n", GS_WATCH_ADDED, "{'a':1}"},
        {"deleted, other order", " {'object': {'b':[]} ,'type':'DELETED'}\r\n", GS_WATCH_DELETED,
         "{'b':[]}"},
        {"bookmark", "{'type':'BOOKMARK','object':{'metadata':{'resourceVersion':'5'}}}",
         GS_WATCH_BOOKMARK, "{'metadata':{'resourceVersion':'5'}}"},
        {"twice: the last one counts",
         "{'type':'ADDED','object':{},'type':'DELETED','object':{'c':2}}", GS_WATCH_DELETED,
         "{'c':2}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_watch_event event;
        const struct gs_slice line = json_of(r->line);
        row_equal(r->row, gs_codec_watch_event(line, &event, NULL), 0);
        row_equal(r->row, event.type, r->type);
        row_true(r->row, gs_slice_eq(event.object, json_of(r->object)));
        row_true(r->row, event.object.at > line.at && event.object.at < line.at + line.len);
        row_equal(r->row, event.status.code, 0);
    }
}

static void an_error_event_brings_its_status(void **state)
{
    struct gs_watch_event event;
    const struct gs_slice line =
        json_of("{'type':'ERROR','object':{'kind':'Status','code':410,'reason':'Expired',"
                "'message':'too old'}}");
    assert_int_equal(gs_codec_watch_event(line, &event, NULL), 0);
    assert_int_equal(event.type, GS_WATCH_ERROR);
    assert_int_equal(event.status.code, 410);
    assert_string_equal(event.status.reason, "Expired");
    assert_string_equal(event.status.message, "too old");
}

static void the_version_of_an_object_is_found(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *version; /* NULL: refused */
    } rows[] = {
        {"escaped", "{'metadata':{'resourceVersion':'\\u0031'}}", "1"},
        {"empty", "{'metadata':{'resourceVersion':''}}", NULL},
        {"elsewhere", "{'spec':{'resourceVersion':'1'}}", NULL},
        {"no object", "'12'", NULL},
        {"cut", "{'metadata':{'resourceVersion':'12'}", NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char version[GS_RV_BYTES] = "untouched";
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_object_rv(json_of(r->json), version, &err), r->version ? 0 : -1);
        row_equal(r->row, err.code, r->version ? GS_OK : GS_EPROTO);
        row_text(r->row, version, r->version ? r->version : "untouched");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_event_is_read),
        cmocka_unit_test(an_error_event_brings_its_status),
        cmocka_unit_test(the_version_of_an_object_is_found),
    };
    return GS_RUN(tests);
}
