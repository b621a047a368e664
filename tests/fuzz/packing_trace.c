/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's tables and sequence: what is read is within its bounds, and reads the same again. */
#include "fuzz.h"
#include "gpushare/model/gpu.h"
#include "trace.h"

enum { WRITTEN_MAX = 1 << 22 };

static struct gs_slice text_of(const struct gs_buf *buf)
{
    return (struct gs_slice){buf->data, buf->len};
}

static void check_nodes(struct gs_slice text)
{
    struct gs_trace trace = {0}, again = {0};
    _cleanup_(gs_buf_release) struct gs_buf written = GS_BUF(WRITTEN_MAX);
    if (gs_trace_read_nodes(&trace, text, NULL) == 0) {
        FUZZ_CHECK(trace.node_count > 0);
        for (uint32_t i = 0; i < trace.node_count; i++)
            FUZZ_CHECK(trace.nodes[i].gpus <= GS_GPUS_MAX && trace.nodes[i].cpu_milli >= 0);
        gs_trace_write_nodes(&written, trace.nodes, trace.node_count);
        if (!gs_buf_failed(&written)) {
            FUZZ_CHECK(gs_trace_read_nodes(&again, text_of(&written), NULL) == 0);
            FUZZ_CHECK(again.node_count == trace.node_count);
        }
    }
    gs_trace_release(&trace);
    gs_trace_release(&again);
}

static void check_pods(struct gs_slice text)
{
    struct gs_trace trace = {0};
    if (gs_trace_read_pods(&trace, text, NULL) == 0) {
        FUZZ_CHECK(trace.pod_count > 0);
        for (uint32_t i = 0; i < trace.pod_count; i++) {
            const struct gs_trace_pod *pod = &trace.pods[i];
            FUZZ_CHECK(pod->gpus <= GS_GPUS_MAX && pod->gpu_milli <= GS_TRACE_CARD_MILLI);
            FUZZ_CHECK(!pod->gpus == !pod->gpu_milli);
            FUZZ_CHECK(pod->gpus || !pod->models[0]);
        }
    }
    gs_trace_release(&trace);
}

static void check_sequence(struct gs_slice text)
{
    const struct gs_trace trace = {.node_count = 3, .pod_count = 2};
    struct gs_trace_sequence sequence = {0};
    if (gs_trace_read_sequence(&sequence, &trace, text, NULL) < 0)
        return;
    FUZZ_CHECK(sequence.node_count == 3);
    FUZZ_CHECK(sequence.rank[0] + sequence.rank[1] + sequence.rank[2] == 3);
    for (uint32_t i = 0; i < sequence.arrivals; i++)
        FUZZ_CHECK(sequence.pods[i] < 2);
    gs_trace_sequence_release(&sequence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_slice text = {(const char *)data, size};
    check_nodes(text);
    check_pods(text);
    check_sequence(text);
    return 0;
}
