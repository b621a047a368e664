/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/extender.h"

#define OPEN "[[[[[[[[[[[[[[[["
#define SHUT "]]]]]]]]]]]]]]]]"
/* as deep as their owner likes */
#define DEEP "'managedFields':" OPEN OPEN OPEN OPEN SHUT SHUT SHUT SHUT

static int decode(const char *json, struct gs_preemption_args *args, struct gs_error *err)
{
    int result = gs_codec_preemption_args(default_names(), json_of(json), args, err);
    /* raw pods borrow from the body */
    for (uint32_t i = 0; result == 0 && i < args->node_count; i++) {
        for (uint32_t k = 0; k < args->nodes[i].pod_count; k++) {
            struct gs_slice pod = args->nodes[i].pods[k].pod;
            assert_int_equal(pod.len != 0, !args->meta);
            if (pod.len)
                assert_true(pod.at[0] == '{' && pod.at[pod.len - 1] == '}');
        }
    }
    return result;
}

static void both_forms_are_read_in_any_key_case(void **state)
{
    static const struct {
        const char *row;
        const char *body;
        bool meta;
        const char *nodes;
    } rows[] = {
        {"UIDs only",
         "{'Pod':{},'NodeNameToVictims':null,'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'a'},"
         "{'UID':'b'}],'NumPDBViolations':1},'n2':{'Pods':[{'UID':'c'}],'NumPDBViolations':0}}}",
         true,
         "'n1':{'Pods':[{'UID':'a'},{'UID':'b'}],'NumPDBViolations':1},'n2':{'Pods':[{'UID':'c'}],'"
         "NumPDBViolations':0}"},
        {"no counts, as 1.20 sends it",
         "{'Pod':{},'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'a'}]}}}", true,
         "'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':0}"},
        {"whole pods",
         "{'Pod':{},'NodeNameToMetaVictims':null,'NodeNameToVictims':{'n1':{'Pods':["
         "{'metadata':{'name':'x','uid':'a'," DEEP "},'spec':{}},{'spec':{}}],"
         "'NumPDBViolations':-1}}}",
         false, "'n1':{'Pods':[{'UID':'a'},{'UID':''}],'NumPDBViolations':-1}"},
        {"both: UIDs count",
         "{'Pod':{},'NodeNameToMetaVictims':{'m':{'Pods':[{'UID':'a'}]}},"
         "'NodeNameToVictims':{'n':{'Pods':[]}}}",
         true, "'m':{'Pods':[{'UID':'a'}],'NumPDBViolations':0}"},
        {"more victims than the first room",
         "{'Pod':{},'NodeNameToMetaVictims':{'n':{'Pods':["
         "{'UID':'0'},{'UID':'1'},{'UID':'2'},{'UID':'3'},{'UID':'4'},{'UID':'5'},{'UID':'6'},"
         "{'UID':'7'},{'UID':'8'}]}}}",
         true,
         "'n':{'Pods':[{'UID':'0'},{'UID':'1'},{'UID':'2'},{'UID':'3'},{'UID':'4'},{'UID':'5'},{'"
         "UID':'6'},{'UID':'7'},{'UID':'8'}],'NumPDBViolations':0}"},
        {"escaped node",
         "{'Pod':{},'NodeNameToMetaVictims':{'n\\u0031':{'Pods':[{'UID':'\\u0061'}]}}}", true,
         "'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':0}"},
        {"twice: the last map counts",
         "{'Pod':{},'NodeNameToMetaVictims':{'a':{}},'nodeNameToMetaVictims':{'b':{}}}", true,
         "'b':{'Pods':[],'NumPDBViolations':0}"},
    };
    struct gs_preemption_args args = {0};
    GS_FOR_EACH_ROW (r, rows) {
        char expected[512];
        struct gs_buf out = GS_BUF(1024);
        struct gs_error err = {0};
        row_equal(r->row, decode(r->body, &args, &err), 0);
        row_text(r->row, err.msg, "");
        row_equal(r->row, args.meta, r->meta);
        gs_codec_preemption_result(&out, args.nodes, args.node_count);
        snprintf(expected, sizeof(expected), "{'NodeNameToMetaVictims':{%s}}", r->nodes);
        row_json(r->row, &out, expected);
    }
    gs_preemption_args_release(&args);
}

static void what_is_no_request_is_refused_and_leaves_nothing(void **state)
{
    static const struct {
        const char *row;
        const char *body;
        enum gs_code code;
        const char *why;
    } rows[] = {
        {"no pod", "{'NodeNameToMetaVictims':{}}", GS_EINVAL, "Pod is missing"},
        {"no nodes", "{'Pod':{}}", GS_EINVAL,
         "NodeNameToVictims and NodeNameToMetaVictims are missing"},
        {"a victim is null", "{'Pod':{},'NodeNameToMetaVictims':{'n':{'Pods':[null]}}}", GS_EPROTO,
         "NodeNameToMetaVictims.Pods[] is not an object at byte 48"},
        {"a count with a fraction",
         "{'Pod':{},'NodeNameToMetaVictims':{'n':{'NumPDBViolations':0.5}}}", GS_EPROTO,
         "NodeNameToMetaVictims.NumPDBViolations is not an integer in range at byte 62"},
        {"a broken pod", "{'Pod':{'spec':1},'NodeNameToMetaVictims':{}}", GS_EPROTO,
         "Pod: spec is not an object at byte 8"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_preemption_args args = {0};
        struct gs_error err = {0};
        row_equal(r->row, decode("{'Pod':{},'NodeNameToMetaVictims':{'old':{}}}", &args, NULL), 0);
        row_equal(r->row, decode(r->body, &args, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_text(r->row, err.msg, r->why);
        row_true(r->row, args.node_count == 0 && args.nodes == NULL && !args.meta);
        gs_preemption_args_release(&args);
    }
}

static void there_is_a_ceiling_of_nodes(void **state)
{
    for (int more = 0; more <= 1; more++) {
        _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 24);
        struct gs_preemption_args args = {0};
        struct gs_error err = {0};
        gs_buf_puts(&body, "{\"Pod\":{},\"NodeNameToMetaVictims\":{\"n\":null");
        for (int i = 1; i < GS_EXTENDER_NODES_MAX + more; i++)
            gs_buf_puts(&body, ",\"n\":null");
        gs_buf_puts(&body, "}}");
        struct gs_slice text = {body.data, body.len};
        assert_int_equal(gs_codec_preemption_args(default_names(), text, &args, &err),
                         more ? -1 : 0);
        assert_int_equal(err.code, more ? GS_ETOOBIG : GS_OK);
        assert_int_equal(args.node_count, more ? 0 : GS_EXTENDER_NODES_MAX);
        gs_preemption_args_release(&args);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_are_read_in_any_key_case),
        cmocka_unit_test(what_is_no_request_is_refused_and_leaves_nothing),
        cmocka_unit_test(there_is_a_ceiling_of_nodes),
    };
    return GS_RUN(tests);
}
