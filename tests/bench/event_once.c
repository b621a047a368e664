/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one watch event of a pod costs, in process: its line decoded and taken into the ledger of a
 * cluster of so many nodes, with 20 pods on each. Processor time of this thread, the least of the
 * rounds, in ns. Without sockets, because how many events one wake-up brings is not ours to say,
 * and costs more than all of this.
 *
 *   event_once NODES [ROUNDS]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "extender/service/service.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/pod.h"
#include "gpushare/codec/watch.h"

enum { GPUS = 8, PODS_PER_NODE = 20, EVENTS = 2000 };

struct bench {
    struct gs_names names;
    struct gs_watch_sink sink;
    uint32_t nodes;
    uint64_t version;
    struct gs_pod pod;
};

static int tell_node(const struct bench *bench, uint32_t i)
{
    char name[32];
    struct gs_gpu gpus[GPUS] = {0};
    for (uint32_t g = 0; g < GPUS; g++)
        gpus[g] = (struct gs_gpu){.idx = g, .mem_units = 80, .healthy = true, .schedulable = true};
    snprintf(name, sizeof(name), "node-%05u", i);
    struct gs_node node = {.name = name, .gpus = gpus, .gpu_count = GPUS};
    return bench->sink.node(bench->sink.ctx, &node);
}

static void put_event(struct bench *bench, uint32_t i, struct gs_buf *out)
{
    gs_buf_printf(
        out,
        "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"gpu-%06u\","
        "\"namespace\":\"team\",\"uid\":\"31330720-9f1c-48be-a738-%012x\",\"resourceVersion\":"
        "\"%llu\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"%u\",\"load\":\"%llu\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"main\",\"image\":\"registry.example.org/team/service:v1\","
        "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\",\"cpu\":\"500m\"}}}],"
        "\"nodeName\":\"node-%05u\"},\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"
        "\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2026-11-21T22:07:14Z\"}]}}}",
        i, i, (unsigned long long)bench->version, i % GPUS, (unsigned long long)bench->version,
        i % bench->nodes);
    bench->version++;
}

static int take(struct bench *bench, struct gs_slice line)
{
    struct gs_watch_event event;
    char version[GS_RV_BYTES];
    struct gs_error err = {0};
    if (gs_codec_watch_event(line, &event, &err) < 0 ||
        gs_codec_object_rv(event.object, version, &err) < 0 ||
        gs_codec_pod(&bench->names, event.object, &bench->pod, &err) < 0) {
        fprintf(stderr, "event_once: %s\n", err.msg);
        return -1;
    }
    return bench->sink.pod(bench->sink.ctx, &bench->pod);
}

static int fill(struct bench *bench)
{
    const struct gs_watch_sink *sink = &bench->sink;
    _cleanup_(gs_buf_release) struct gs_buf line = GS_BUF(4096);
    int failed = sink->list_begin(sink->ctx, GS_KIND_NODE);
    for (uint32_t i = 0; i < bench->nodes; i++)
        failed |= tell_node(bench, i);
    failed |= sink->list_end(sink->ctx, GS_KIND_NODE);
    failed |= sink->list_begin(sink->ctx, GS_KIND_POD);
    for (uint32_t i = 0; i < bench->nodes * PODS_PER_NODE && !failed; i++) {
        gs_buf_reset(&line);
        put_event(bench, i, &line);
        failed = take(bench, (struct gs_slice){line.data, line.len});
    }
    return failed | sink->list_end(sink->ctx, GS_KIND_POD);
}

static double processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Events of the same pods in every cluster, as far as it has them. */
static int round_of_events(struct bench *bench, double *ret_ns)
{
    static size_t ends[EVENTS];
    _cleanup_(gs_buf_release) struct gs_buf lines = GS_BUF(64 << 20);
    for (uint32_t i = 0; i < EVENTS; i++) {
        put_event(bench, i % (bench->nodes * PODS_PER_NODE), &lines);
        ends[i] = lines.len;
    }
    int failed = gs_buf_failed(&lines);
    double began = processor_ns();
    for (size_t i = 0, at = 0; i < EVENTS && !failed; at = ends[i++])
        failed = take(bench, (struct gs_slice){lines.data + at, ends[i] - at});
    *ret_ns = (processor_ns() - began) / EVENTS;
    return failed;
}

static int measure(struct bench *bench, uint32_t rounds)
{
    double least_ns = 0, ns;
    if (fill(bench))
        return 1;
    for (uint32_t i = 0; i < rounds; i++) {
        if (round_of_events(bench, &ns))
            return 1;
        least_ns = i == 0 || ns < least_ns ? ns : least_ns;
    }
    printf("%.0f\n", least_ns);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct gs_kube_ops nobody; /* events ask no API */
    struct bench bench = {.version = 1};
    struct gs_error err = {0};
    uint32_t rounds = 20;
    if (argc < 2 || !gs_parse_u32(argv[1], strlen(argv[1]), &bench.nodes) || !bench.nodes ||
        (argc > 2 && !gs_parse_u32(argv[2], strlen(argv[2]), &rounds))) {
        fputs("usage: event_once NODES [ROUNDS]\n", stderr);
        return 2;
    }
    if (gs_names_init(&bench.names, "aliyun.com", &err) < 0)
        return 1;
    const struct gs_service_config config = {.names = &bench.names,
                                             .clock = gs_clock_system(),
                                             .kube = {.ops = &nobody},
                                             .policy = GS_PLACEMENT_BINPACK};
    struct gs_service *service = gs_service_new(&config, &err);
    if (!service)
        return 1;
    bench.sink = gs_service_sink(service);
    int result = measure(&bench, rounds);
    gs_service_free(service);
    gs_pod_release(&bench.pod);
    return result;
}
