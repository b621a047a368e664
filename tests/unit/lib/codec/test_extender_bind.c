/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/extender.h"

static void requests_are_read_in_any_key_case(void **state)
{
    static const struct {
        const char *row;
        const char *body;
    } rows[] = {
        {"usual", "{'PodName':'p','PodNamespace':'d','PodUID':'u','Node':'n'}"},
        {"other order", "{'node':'n','podUid':'u','podNamespace':'d','podName':'p'}"},
        {"escapes", "{'PodN\\u0061me':'\\u0070','PodNamespace':'d','PodUID':'u','Node':'n'}"},
        {"twice: the last one counts",
         "{'PodName':'x','podname':'p','PodNamespace':'d','PodUID':'u','Node':'n'}"},
    };
    struct gs_binding_args args = {0};
    GS_FOR_EACH_ROW (r, rows) {
        row_equal(r->row, gs_codec_binding_args(json_of(r->body), &args, NULL), 0);
        row_text(r->row, args.name, "p");
        row_text(r->row, args.ns, "d");
        row_text(r->row, args.uid, "u");
        row_text(r->row, args.node, "n");
    }
    gs_binding_args_release(&args);
}

static void what_is_no_request_is_refused_and_leaves_nothing(void **state)
{
    static const struct {
        const char *row;
        const char *body;
        enum gs_code code;
        const char *why;
    } rows[] = {
        {"empty", "", GS_EPROTO, "JSON: unexpected end of input at byte 0"},
        {"empty name", "{'PodName':'','PodNamespace':'d','PodUID':'u','Node':'n'}", GS_EINVAL,
         "PodName is missing"},
        {"no namespace", "{'PodName':'p','PodUID':'u','Node':'n'}", GS_EINVAL,
         "PodNamespace is missing"},
        {"null UID", "{'PodName':'p','PodNamespace':'d','PodUID':null,'Node':'n'}", GS_EINVAL,
         "PodUID is missing"},
        {"no node", "{'PodName':'p','PodNamespace':'d','PodUID':'u'}", GS_EINVAL,
         "Node is missing"},
        {"number", "{'PodName':1}", GS_EPROTO, "PodName is not a string at byte 11"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_binding_args args = {0};
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_binding_args(json_of(r->body), &args, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_text(r->row, err.msg, r->why);
        row_true(r->row, !args.name[0] && !args.ns[0] && !args.uid[0] && !args.node[0]);
        gs_binding_args_release(&args);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read_in_any_key_case),
        cmocka_unit_test(what_is_no_request_is_refused_and_leaves_nothing),
    };
    return GS_RUN(tests);
}
