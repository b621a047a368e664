/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/event.h"

static void events_tell_about_pods_and_nodes(void **state)
{
    static const struct {
        const char *row;
        struct gs_event event;
        const char *json;
    } rows[] = {
        {"pod",
         {.kind = "Pod",
          .ns = "d",
          .name = "p",
          .uid = "u",
          .warning = true,
          .reason = "Overfull",
          .message = "a \"b\"",
          .component = "gpushare-extender"},
         "{'apiVersion':'v1','kind':'Event','metadata':{'name':'p.0000000000000001',"
         "'namespace':'d'},'involvedObject':{'apiVersion':'v1','kind':'Pod','namespace':'d',"
         "'name':'p','uid':'u'},'reason':'Overfull','message':'a \\'b\\'','type':'Warning',"
         "'source':{'component':'gpushare-extender'},'firstTimestamp':'1970-01-01T00:00:00Z',"
         "'lastTimestamp':'1970-01-01T00:00:00Z','count':1}"},
        {"of another group",
         {.api = "apps/v1",
          .kind = "ReplicaSet",
          .ns = "d",
          .name = "r",
          .uid = "u",
          .reason = "R",
          .message = ""},
         "{'apiVersion':'v1','kind':'Event','metadata':{'name':'r.0000000000000001',"
         "'namespace':'d'},'involvedObject':{'apiVersion':'apps/v1','kind':'ReplicaSet',"
         "'namespace':'d','name':'r','uid':'u'},'reason':'R','message':'','type':'Normal',"
         "'source':{},'firstTimestamp':'1970-01-01T00:00:00Z',"
         "'lastTimestamp':'1970-01-01T00:00:00Z','count':1}"},
        {"node",
         {.kind = "Node", .name = "n", .reason = "R", .message = ""},
         "{'apiVersion':'v1','kind':'Event','metadata':{'name':'n.0000000000000001',"
         "'namespace':'default'},'involvedObject':{'apiVersion':'v1','kind':'Node','name':'n'},"
         "'reason':'R','message':'','type':'Normal','source':{},"
         "'firstTimestamp':'1970-01-01T00:00:00Z','lastTimestamp':'1970-01-01T00:00:00Z',"
         "'count':1}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_buf out = GS_BUF(4096);
        gs_codec_event(&out, &r->event, 1);
        row_json(r->row, &out, r->json);
    }
}

static void long_names_and_messages_are_cut(void **state)
{
    char name[254], message[GS_EVENT_MESSAGE_MAX + 10];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memset(message, 'm', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    memcpy(message + GS_EVENT_MESSAGE_MAX - 1, "\xC3\xA9", 2);
    struct gs_event event = {
        .kind = "Pod", .ns = "d", .name = name, .reason = "R", .message = message};
    _cleanup_(gs_buf_release) struct gs_buf out = GS_BUF(8192);
    gs_codec_event(&out, &event, INT64_MAX);
    assert_false(gs_buf_failed(&out));
    const char *start = strstr(out.data, "\"name\":\"") + 8;
    assert_int_equal(strcspn(start, "\""), 253);
    assert_int_equal(strncmp(start + 253 - 17, ".7fffffffffffffff\"", 18), 0);
    start = strstr(out.data, "\"message\":\"") + 11;
    assert_int_equal(strcspn(start, "\""), GS_EVENT_MESSAGE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_tell_about_pods_and_nodes),
        cmocka_unit_test(long_names_and_messages_are_cut),
    };
    return GS_RUN(tests);
}
