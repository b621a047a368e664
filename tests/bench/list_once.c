/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the extender does with its two lists, in process and without a server: how much processor
 * time splitting, decoding and taking in cost. docs/performance.md has the figures.
 *
 *   list_once NODES PODS [ROUNDS]
 *
 * The files hold a NodeList and a PodList, as `curl …/api/v1/pods` fetches them. Prints the least
 * time of the rounds: processor time of this thread, so that a busy machine does little harm.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/list.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/service/service.h"

enum stage { SPLIT, DECODE, TAKE_IN, STAGES };

struct run {
    enum stage stage;
    struct gs_names names;
    struct gs_watch_sink sink;
    struct gs_node node;
    struct gs_pod pod;
    uint64_t items;
};

static int on_node(void *ctx, struct gs_scan *scan)
{
    struct run *run = ctx;
    run->items++;
    if (run->stage == SPLIT)
        return gs_scan_skip(scan) ? 0 : -1;
    if (gs_codec_node_take(&run->names, scan, &run->node, NULL) < 0)
        return -1;
    return run->stage == DECODE ? 0 : run->sink.node(run->sink.ctx, &run->node);
}

static int on_pod(void *ctx, struct gs_scan *scan)
{
    struct run *run = ctx;
    run->items++;
    if (run->stage == SPLIT)
        return gs_scan_skip(scan) ? 0 : -1;
    if (gs_codec_pod_take(&run->names, scan, &run->pod, NULL) < 0)
        return -1;
    return run->stage == DECODE ? 0 : run->sink.pod(run->sink.ctx, &run->pod);
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int take(struct run *run, struct gs_slice nodes, struct gs_slice pods, double *ret_nodes_ms,
                double *ret_ms)
{
    struct gs_list_meta meta;
    struct gs_error err = {0};
    const bool tell = run->stage == TAKE_IN;
    double began = processor_ms();
    int result = tell ? run->sink.list_begin(run->sink.ctx, GS_KIND_NODE) : 0;
    if (result == 0)
        result = gs_codec_list_items(nodes, on_node, run, &meta, &err);
    *ret_nodes_ms = processor_ms() - began;
    if (result == 0 && tell)
        result = run->sink.list_end(run->sink.ctx, GS_KIND_NODE) |
                 run->sink.list_begin(run->sink.ctx, GS_KIND_POD);
    run->items = 0;
    began = processor_ms();
    if (result == 0)
        result = gs_codec_list_items(pods, on_pod, run, &meta, &err);
    *ret_ms = processor_ms() - began;
    if (result < 0)
        fprintf(stderr, "list_once: %s\n", err.msg);
    return result;
}

static int once(enum stage stage, struct gs_slice nodes, struct gs_slice pods, double *ret_nodes_ms,
                double *ret_ms, uint64_t *ret_items)
{
    static const struct gs_kube_ops nobody; /* lists ask no API */
    struct run run = {.stage = stage};
    struct gs_error err = {0};
    if (gs_names_init(&run.names, "aliyun.com", &err) < 0)
        return -1;
    const struct gs_service_config config = {.names = &run.names,
                                             .clock = gs_clock_system(),
                                             .kube = {.ops = &nobody},
                                             .policy = GS_PLACEMENT_BINPACK};
    struct gs_service *service = gs_service_new(&config, &err);
    if (!service)
        return -1;
    run.sink = gs_service_sink(service);
    int result = take(&run, nodes, pods, ret_nodes_ms, ret_ms);
    *ret_items = run.items;
    gs_service_free(service);
    gs_node_release(&run.node);
    gs_pod_release(&run.pod);
    return result;
}

static bool map(const char *path, struct gs_slice *ret)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) < 0 || about.st_size == 0)
        return false;
    void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    *ret = (struct gs_slice){bytes, (size_t)about.st_size};
    return true;
}

int main(int argc, char **argv)
{
    static const char *const names[STAGES] = {"split", "and decode", "and take in"};
    struct gs_slice nodes, pods;
    uint32_t rounds = 5;
    if (argc < 3 || (argc > 3 && !gs_parse_u32(argv[3], strlen(argv[3]), &rounds)) ||
        !map(argv[1], &nodes) || !map(argv[2], &pods)) {
        fputs("usage: list_once NODES PODS [ROUNDS]\n", stderr);
        return 2;
    }
    for (enum stage stage = SPLIT; stage < STAGES; stage++) {
        double least_ms = 0, least_nodes_ms = 0, ms, nodes_ms;
        uint64_t items = 0;
        for (uint32_t i = 0; i < rounds; i++) {
            if (once(stage, nodes, pods, &nodes_ms, &ms, &items) < 0)
                return 1;
            least_ms = i == 0 || ms < least_ms ? ms : least_ms;
            least_nodes_ms = i == 0 || nodes_ms < least_nodes_ms ? nodes_ms : least_nodes_ms;
        }
        printf("%-12s nodes %6.1f ms, pods %7.1f ms, %6.0f ns each, %6.0f MB/s\n", names[stage],
               least_nodes_ms, least_ms, least_ms * 1e6 / (double)items,
               (double)pods.len / least_ms / 1e3);
    }
    return 0;
}
