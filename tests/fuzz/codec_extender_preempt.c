/* SPDX-License-Identifier: Apache-2.0 */
/* What a preempt request proposes, echoed, reads as the same proposal. */
#include "fuzz.h"
#include "gpushare/codec/extender.h"

static void check_echo(const struct gs_names *names, const struct gs_preemption_args *args)
{
    struct gs_buf answer = GS_BUF((size_t)1 << 26), body = GS_BUF((size_t)1 << 26);
    struct gs_preemption_args again = {0};
    gs_codec_preemption_result(&answer, args->nodes, args->node_count);
    FUZZ_CHECK(!gs_buf_failed(&answer));
    /* the answer's one member becomes the request's second */
    gs_buf_puts(&body, "{\"Pod\":{},");
    gs_buf_append(&body, answer.data + 1, answer.len - 1);
    FUZZ_CHECK(gs_codec_preemption_args(names, fuzz_written(&body), &again, NULL) == 0);
    FUZZ_CHECK(again.meta && again.node_count == args->node_count);
    for (uint32_t i = 0; i < again.node_count; i++) {
        FUZZ_CHECK(strcmp(again.nodes[i].node, args->nodes[i].node) == 0);
        FUZZ_CHECK(again.nodes[i].pod_count == args->nodes[i].pod_count);
        FUZZ_CHECK(again.nodes[i].pdb_violations == args->nodes[i].pdb_violations);
    }
    gs_preemption_args_release(&again);
    gs_buf_release(&body);
    gs_buf_release(&answer);
}

FUZZ_TEXT(body)
{
    struct gs_names names;
    struct gs_preemption_args args = {0};
    struct gs_error err = {0};
    FUZZ_CHECK(gs_names_init(&names, "aliyun.com", NULL) == 0);
    if (gs_codec_preemption_args(&names, body, &args, &err) == 0)
        check_echo(&names, &args);
    else
        FUZZ_CHECK(err.code != GS_OK && args.node_count == 0);
    gs_preemption_args_release(&args);
}
