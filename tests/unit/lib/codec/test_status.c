/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/status.h"

static void what_is_no_status_is_refused(void **state)
{
    static const struct {
        const char *row;
        const char *json;
    } rows[] = {
        {"text", "not found"},
        {"another kind", "{'kind':'Pod'}"},
        {"code does not fit", "{'code':2147483648}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_api_status status = {.code = 77};
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_status(json_of(r->json), &status, &err), -1);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_status_is_refused),
        cmocka_unit_test(a_status_is_written),
    };
    return GS_RUN(tests);
}
