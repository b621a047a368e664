/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/extender.h"

static void requests_are_read_in_any_key_case(void **state)
{
    static const struct {
        const char *row;
        const char *body;
    } rows[] = {
        {"usual", "{'PodName':'p','PodNamespace':'d','PodUID':'u','Node':'n'}"},
        {"lower case", "{'podname':'p','podnamespace':'d','poduid':'u','node':'n'}"},
        {"other order", "{'node':'n','podUid':'u','podNamespace':'d','podName':'p'}"},
        {"escapes", "{'PodN\\u0061me':'\\u0070','PodNamespace':'d','PodUID':'u','Node':'n'}"},
        {"unknown keys", "{'PodName':'p','PodNamespace':'d','PodUID':'u','Node':'n','Nodes':[]}"},
        {"twice: the last one counts",
         "{'PodName':'x','podname':'p','PodNamespace':'d','PodUID':'u','Node':'n'}"},
    };
    struct gs_binding_args args = {0};
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_free_ char *body = quoted(r->body);
        row_equal(r->row, gs_codec_binding_args(gs_slice_of(body), &args, NULL), 0);
        row_text(r->row, args.name, "p");
        row_text(r->row, args.ns, "d");
        row_text(r->row, args.uid, "u");
        row_text(r->row, args.node, "n");
    }
    gs_binding_args_release(&args);
}

static void results_are_written_without_percent_signs(void **state)
{
    struct gs_buf out = GS_BUF(256);
    gs_codec_binding_result(&out, "");
    row_json("success", &out, "{'Error':''}");
    gs_codec_binding_result(&out, "%d of 100%%");
    row_json("failure", &out, "{'Error':'d of 100'}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read_in_any_key_case),
        cmocka_unit_test(results_are_written_without_percent_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
