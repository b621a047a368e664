/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/status.h"

static void a_status_is_read(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        struct gs_api_status status;
    } rows[] = {
        {"usual",
         "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure',"
         "'message':'pods \\'a\\' not found','reason':'NotFound',"
         "'details':{'name':'a','kind':'pods'},'code':404}",
         {.code = 404, .reason = "NotFound", .message = "pods \"a\" not found"}},
        {"come back later",
         "{'kind':'Status','details':{'retryAfterSeconds':3},'code':429}",
         {.code = 429, .retry_after_s = 3}},
        {"no kind", "{'message':'x'}", {.message = "x"}},
        {"nothing", "{}", {0}},
        {"nulls", "{'kind':null,'message':null,'reason':null,'details':null,'code':null}", {0}},
        {"a reason longer than any",
         "{'reason':'0123456789012345678901234567890123456789012345678901234567890123'}",
         {0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_api_status status;
        _cleanup_free_ char *json = quoted(r->json);
        row_equal(r->row, gs_codec_status(gs_slice_of(json), &status, NULL), 0);
        row_equal(r->row, status.code, r->status.code);
        row_equal(r->row, status.retry_after_s, r->status.retry_after_s);
        row_text(r->row, status.reason, r->status.reason);
        row_text(r->row, status.message, r->status.message);
    }
}

static void a_long_message_is_cut_at_a_character(void **state)
{
    char json[1200] = "{\"message\":\"x";
    for (int i = 0; i < 400; i++)
        strncat(json, "\xC3\xA9", 3);
    strncat(json, "\"}", 3);
    struct gs_api_status status;
    assert_int_equal(gs_codec_status(gs_slice_of(json), &status, NULL), 0);
    assert_int_equal(strlen(status.message), 511);
    json[12] = ' '; /* one byte less before the characters of two */
    memmove(json + 12, json + 13, strlen(json + 13) + 1);
    assert_int_equal(gs_codec_status(gs_slice_of(json), &status, NULL), 0);
    assert_int_equal(strlen(status.message), 510);
}

static void what_is_no_status_is_refused(void **state)
{
    static const struct {
        const char *row;
        const char *json;
    } rows[] = {
        {"empty", ""},
        {"text", "not found"},
        {"another kind", "{'kind':'Pod'}"},
        {"code is no number", "{'code':'404'}"},
        {"code does not fit", "{'code':2147483648}"},
        {"details are no object", "{'details':[]}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_api_status status = {.code = 77};
        struct gs_error err = {0};
        _cleanup_free_ char *json = quoted(r->json);
        row_equal(r->row, gs_codec_status(gs_slice_of(json), &status, &err), -1);
        row_equal(r->row, err.code, GS_EPROTO);
        row_equal(r->row, status.code, 77);
    }
}

static void a_status_is_written(void **state)
{
    struct gs_buf out = GS_BUF(1024);
    struct gs_api_status status = {.code = 409, .reason = "Conflict", .message = "a \"b\""};
    gs_codec_status_encode(&out, &status);
    row_json("plain", &out,
             "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure',"
             "'message':'a \\'b\\'','reason':'Conflict','code':409}");
    status = (struct gs_api_status){.code = 429, .retry_after_s = 1};
    gs_codec_status_encode(&out, &status);
    row_json("retry", &out,
             "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure',"
             "'message':'','reason':'','details':{'retryAfterSeconds':1},'code':429}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_read),
        cmocka_unit_test(a_long_message_is_cut_at_a_character),
        cmocka_unit_test(what_is_no_status_is_refused),
        cmocka_unit_test(a_status_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
