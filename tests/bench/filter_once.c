/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter(1,000) in process, ten times: what callgrind.sh counts the instructions of. Half of the
 * nodes have no room, so that both maps of the answer are written. No request has its names in the
 * order of the one before: equal ones would be recognised.
 */
#include <stdio.h>
#include <string.h>

#include "../support/service_calls.h"

enum { NODES = 1000, GPUS = 8, CALLS = 10 };

static int tell_node(const struct gs_watch_sink *sink, uint32_t i)
{
    char name[32];
    struct gs_gpu gpus[GPUS] = {0};
    for (uint32_t g = 0; g < GPUS; g++)
        gpus[g] = (struct gs_gpu){
            .idx = g, .mem_units = i % 2 ? 80 : 4, .healthy = true, .schedulable = true};
    snprintf(name, sizeof(name), "node-%05u", i);
    struct gs_node node = {.name = name, .gpus = gpus, .gpu_count = GPUS};
    return sink->node(sink->ctx, &node);
}

static int fill(struct gs_service *service)
{
    struct gs_watch_sink sink = gs_service_sink(service);
    int failed = sink.list_begin(sink.ctx, GS_KIND_NODE);
    for (uint32_t i = 0; i < NODES; i++)
        failed |= tell_node(&sink, i);
    failed |= sink.list_end(sink.ctx, GS_KIND_NODE);
    failed |= sink.list_begin(sink.ctx, GS_KIND_POD);
    failed |= sink.list_end(sink.ctx, GS_KIND_POD);
    return failed;
}

static void put_request(struct gs_buf *out, uint32_t turn)
{
    gs_buf_reset(out);
    gs_buf_puts(out,
                "{\"Pod\":{\"metadata\":{\"name\":\"web\",\"namespace\":\"team\",\"uid\":\"u\"},"
                "\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":"
                "{\"aliyun.com/gpu-mem\":\"8\"}}}]}},\"Nodes\":null,\"NodeNames\":[");
    for (uint32_t i = 0; i < NODES; i++)
        gs_buf_printf(out, "%s\"node-%05u\"", i ? "," : "", (i + turn) % NODES);
    gs_buf_puts(out, "]}");
}

static bool right(const struct gs_buf *answer)
{
    return !gs_buf_failed(answer) &&
           strstr(answer->data, "\"NodeNames\":[\"node-00009\",\"node-00011") &&
           strstr(answer->data, "\"FailedNodes\":{\"node-00010\":\"");
}

int main(void)
{
    struct gs_names names;
    struct gs_error err = {0};
    static const struct gs_kube_ops nobody; /* filter asks no API */
    int result = 1;
    if (gs_names_init(&names, "aliyun.com", &err) < 0)
        return 1;
    const struct gs_service_config config = {.names = &names,
                                             .clock = gs_clock_system(),
                                             .kube = {.ops = &nobody},
                                             .policy = GS_PLACEMENT_BINPACK};
    _cleanup_(gs_buf_release) struct gs_buf request = GS_BUF(1 << 20);
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(1 << 20);
    struct gs_service *service = gs_service_new(&config, &err);
    if (service && fill(service) == 0) {
        for (uint32_t turn = 0; turn < CALLS; turn++) {
            put_request(&request, turn);
            gs_buf_reset(&answer);
            result = gs_service_filter(service, request.data, request.len, &answer, &err);
        }
        result = result == 0 && right(&answer) ? 0 : 1;
    }
    if (result)
        fprintf(stderr, "filter_once: %s\n", err.msg[0] ? err.msg : "wrong answer");
    gs_service_free(service);
    return result;
}
