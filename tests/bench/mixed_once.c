/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kube-scheduler makes the extender do for pods of so many kinds, in process: filter of 1,000
 * nodes of 8 GPUs of 80 units, prioritize of those that fit, bind to the best (one of the best at
 * random, as kube-scheduler does), the event of the watch, ten ticks a second. All pods wait at the
 * beginning; what they ask for is drawn at random, 1 to KINDS units; KINDS 0: 20 units each. Prints
 * microseconds of processor per pod, part by part, and a sum over where the pods went: a change
 * that only makes it faster prints the same sum. Time is pretended, 5 ms per pod, and stands still
 * during a request: so no choice is put off (service/rating.c), and the work is the same in
 * every run:
 *
 *   mixed_once KINDS [PODS]
 *   valgrind --tool=callgrind --toggle-collect=gs_service_prioritize mixed_once KINDS [PODS]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../support/service_calls.h"
#include "extender/service/service.h"
#include "gpushare/base/log.h"
#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"
#include "gpushare/codec/pod.h"
#include "gpushare/codec/watch.h"

enum { NODES = 1000, GPUS = 8, GPU_UNITS = 80, EQUAL_UNITS = 20, PODS_MAX = 20000, TEXT = 1 << 20 };

enum part { FILTER, PRIORITIZE, BIND, EVENT, TICK, PARTS };
static const char *const part_names[] = {"filter", "prioritize", "bind", "event", "tick"};

struct bench {
    struct gs_names names;
    struct gs_service *service;
    struct gs_watch_sink sink;
    int64_t now_ns;
    uint64_t random;
    uint32_t units[PODS_MAX];
    struct gs_buf request, names_text, answer, line;
    struct gs_pod pod;
    char node[64], gpu[8]; /* of the last binding */
    uint64_t placed;
    double ns[PARTS];
};

static int64_t pretended_ns(void *ctx)
{
    return ((const struct bench *)ctx)->now_ns;
}

static double processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* --- the cluster --- */

static int take_binding(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    struct bench *bench = ctx;
    snprintf(bench->node, sizeof(bench->node), "%s", binding->node);
    for (uint32_t i = 0; i < binding->annotation_count; i++) {
        if (strcmp(binding->annotations[i].key, "ALIYUN_COM_GPU_MEM_IDX") == 0)
            snprintf(bench->gpu, sizeof(bench->gpu), "%s", binding->annotations[i].value);
    }
    *binding->ret_answered = true;
    return 0;
}

/* A pod that waits is woken: nobody looks. */
static int take_patch(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    return 0;
}

static const struct gs_kube_ops kube_ops = {.bind = take_binding, .patch_pod = take_patch};

static int tell_node(const struct bench *bench, uint32_t i)
{
    char name[32];
    struct gs_gpu gpus[GPUS] = {0};
    for (uint32_t g = 0; g < GPUS; g++)
        gpus[g] =
            (struct gs_gpu){.idx = g, .mem_units = GPU_UNITS, .healthy = true, .schedulable = true};
    snprintf(name, sizeof(name), "node-%05u", i);
    struct gs_node node = {.name = name, .gpus = gpus, .gpu_count = GPUS, .cpu_milli = 64000};
    return bench->sink.node(bench->sink.ctx, &node);
}

/* As the API server has it: node "" while it waits. */
static void put_pod(const struct bench *bench, uint32_t i, const char *node, struct gs_buf *out)
{
    gs_buf_printf(out,
                  "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"pod-%06u\",\"namespace\":\"team\","
                  "\"uid\":\"31330720-9f1c-48be-a738-%012x\",\"resourceVersion\":\"%u\","
                  "\"creationTimestamp\":\"2026-11-21T22:07:14Z\",\"annotations\":{",
                  i, i, node[0] ? 1000000 + i : i + 1);
    if (node[0])
        gs_buf_printf(out, "\"ALIYUN_COM_GPU_MEM_IDX\":\"%s\"", bench->gpu);
    gs_buf_printf(out,
                  "}},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
                  "\"registry.example.org/team/service:v1\",\"resources\":{\"limits\":"
                  "{\"aliyun.com/gpu-mem\":\"%u\"},\"requests\":{\"aliyun.com/gpu-mem\":\"%u\"}}}],"
                  "\"restartPolicy\":\"Always\",\"schedulerName\":\"default-scheduler\"%s%s%s},"
                  "\"status\":{\"phase\":\"Pending\",\"qosClass\":\"BestEffort\"}}",
                  bench->units[i], bench->units[i], node[0] ? ",\"nodeName\":\"" : "", node,
                  node[0] ? "\"" : "");
}

static int take_event(struct bench *bench)
{
    struct gs_watch_event event;
    struct gs_error err = {0};
    const struct gs_slice line = {bench->line.data, bench->line.len};
    if (gs_codec_watch_event(line, &event, &err) < 0 ||
        gs_codec_pod(&bench->names, event.object, &bench->pod, &err) < 0) {
        fprintf(stderr, "mixed_once: %s\n", err.msg);
        return -1;
    }
    return bench->sink.pod(bench->sink.ctx, &bench->pod);
}

static void put_event(struct bench *bench, const char *type, uint32_t i, const char *node)
{
    gs_buf_reset(&bench->line);
    gs_buf_printf(&bench->line, "{\"type\":\"%s\",\"object\":", type);
    put_pod(bench, i, node, &bench->line);
    gs_buf_puts(&bench->line, "}");
}

static int fill(struct bench *bench, uint32_t kinds, uint32_t pods)
{
    const struct gs_watch_sink *sink = &bench->sink;
    int failed = sink->list_begin(sink->ctx, GS_KIND_NODE);
    for (uint32_t i = 0; i < NODES; i++)
        failed |= tell_node(bench, i);
    failed |= sink->list_end(sink->ctx, GS_KIND_NODE);
    failed |= sink->list_begin(sink->ctx, GS_KIND_POD);
    failed |= sink->list_end(sink->ctx, GS_KIND_POD);
    sink->live(sink->ctx, GS_KIND_NODE, true, NULL);
    sink->live(sink->ctx, GS_KIND_POD, true, NULL);
    for (uint32_t i = 0; i < pods && !failed; i++) {
        bench->units[i] =
            kinds ? 1 + (uint32_t)gs_splitmix_below(&bench->random, kinds) : EQUAL_UNITS;
        put_event(bench, "ADDED", i, "");
        failed = take_event(bench);
    }
    bench->now_ns += GS_NS_PER_S;
    service_tick(bench->service); /* the tables of all pods */
    gs_buf_puts(&bench->names_text, "[");
    for (uint32_t i = 0; i < NODES; i++)
        gs_buf_printf(&bench->names_text, "%s\"node-%05u\"", i ? "," : "", i);
    gs_buf_puts(&bench->names_text, "]");
    return failed;
}

/* --- kube-scheduler --- */

static void put_request(struct bench *bench, uint32_t i, struct gs_slice names)
{
    gs_buf_reset(&bench->request);
    gs_buf_puts(&bench->request, "{\"Pod\":");
    put_pod(bench, i, "", &bench->request);
    gs_buf_puts(&bench->request, ",\"Nodes\":null,\"NodeNames\":");
    gs_buf_append(&bench->request, names.at, names.len);
    gs_buf_puts(&bench->request, "}");
}

typedef int verb(struct gs_service *, const char *, size_t, struct gs_buf *, struct gs_error *);

static int ask(struct bench *bench, enum part part, verb *call)
{
    struct gs_error err = {0};
    gs_buf_reset(&bench->answer);
    double began_ns = processor_ns();
    int result =
        call(bench->service, bench->request.data, bench->request.len, &bench->answer, &err);
    bench->ns[part] += processor_ns() - began_ns;
    if (result < 0)
        fprintf(stderr, "mixed_once: %s: %s\n", part_names[part], err.msg);
    return result;
}

/* The text between the brackets of NodeNames, with them. Empty: no node fits. */
static struct gs_slice names_that_fit(const struct bench *bench)
{
    static const char key[] = "\"NodeNames\":[\"";
    const char *begin = strstr(bench->answer.data, key);
    if (!begin)
        return (struct gs_slice){0};
    begin += sizeof(key) - 3; /* at the bracket */
    return (struct gs_slice){begin, (size_t)(strchr(begin, ']') + 1 - begin)};
}

/* One of the nodes of the highest score, each as likely as the others; nodes that are not named
 * have 0. */
static int choose_node(struct bench *bench, struct gs_slice names, char *ret, size_t size)
{
    const char *best = NULL;
    unsigned best_score = 0, score, equals = 0;
    for (const char *at = strstr(bench->answer.data, "\"Host\":\""); at;
         at = strstr(at, "\"Host\":\"")) {
        at += strlen("\"Host\":\"");
        const char *number = strstr(at, "\"Score\":");
        if (!number || sscanf(number, "\"Score\":%u", &score) != 1)
            return -1;
        if (score > best_score)
            equals = 0;
        if (score >= best_score && gs_splitmix_below(&bench->random, ++equals) == 0)
            best = at;
        best_score = score > best_score ? score : best_score;
    }
    for (const char *at = names.at; !best_score && at < names.at + names.len - 1; at++) {
        if ((at[0] == '[' || at[0] == ',') && gs_splitmix_below(&bench->random, ++equals) == 0)
            best = at + 2;
    }
    if (!best)
        return -1;
    snprintf(ret, size, "%.*s", (int)strcspn(best, "\""), best);
    return 0;
}

static int schedule(struct bench *bench, uint32_t i)
{
    char node[64];
    _cleanup_(gs_buf_release) struct gs_buf fitting = GS_BUF(TEXT);
    put_request(bench, i, (struct gs_slice){bench->names_text.data, bench->names_text.len});
    if (ask(bench, FILTER, gs_service_filter) < 0)
        return -1;
    struct gs_slice names = names_that_fit(bench);
    gs_buf_append(&fitting, names.at, names.len);
    names.at = fitting.data;
    put_request(bench, i, names);
    if (!names.len || ask(bench, PRIORITIZE, gs_service_prioritize) < 0 ||
        choose_node(bench, names, node, sizeof(node)) < 0)
        return -1;
    gs_buf_reset(&bench->request);
    gs_buf_printf(&bench->request,
                  "{\"PodName\":\"pod-%06u\",\"PodNamespace\":\"team\",\"PodUID\":"
                  "\"31330720-9f1c-48be-a738-%012x\",\"Node\":\"%s\"}",
                  i, i, node);
    bench->node[0] = '\0';
    if (ask(bench, BIND, service_bind) < 0 || !bench->node[0])
        return -1;
    put_event(bench, "MODIFIED", i, bench->node);
    double began_ns = processor_ns();
    int result = take_event(bench);
    bench->ns[EVENT] += processor_ns() - began_ns;
    for (const char *at = bench->node; *at; at++)
        bench->placed = bench->placed * 31 + (unsigned char)*at;
    bench->placed = bench->placed * 31 + (unsigned char)bench->gpu[0];
    return result;
}

static void pass_time(struct bench *bench, uint32_t i)
{
    enum { PER_POD_MS = 5, PODS_PER_TICK = 20 };
    bench->now_ns += PER_POD_MS * GS_NS_PER_MS;
    if (i % PODS_PER_TICK)
        return;
    double began_ns = processor_ns();
    service_tick(bench->service);
    bench->ns[TICK] += processor_ns() - began_ns;
}

static int run(struct bench *bench, uint32_t kinds, uint32_t pods)
{
    if (fill(bench, kinds, pods))
        return 1;
    for (uint32_t i = 0; i < pods; i++) {
        if (schedule(bench, i) < 0) {
            fprintf(stderr, "mixed_once: pod %u was not bound: %s\n", i, bench->answer.data);
            return 1;
        }
        pass_time(bench, i);
    }
    for (int part = 0; part < PARTS; part++)
        printf("%s %.1f us, ", part_names[part], bench->ns[part] / 1000 / pods);
    printf("placed %016llx\n", (unsigned long long)bench->placed);
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench bench = {.now_ns = 1000 * GS_NS_PER_S,
                                 .random = 1,
                                 .request = GS_BUF(TEXT),
                                 .names_text = GS_BUF(TEXT),
                                 .answer = GS_BUF(TEXT),
                                 .line = GS_BUF(TEXT)};
    uint32_t kinds, pods = 1000;
    struct gs_error err = {0};
    if (argc < 2 || !gs_parse_u32(argv[1], strlen(argv[1]), &kinds) || kinds > GPU_UNITS ||
        (argc > 2 && !gs_parse_u32(argv[2], strlen(argv[2]), &pods)) || pods > PODS_MAX) {
        fputs("usage: mixed_once KINDS [PODS]\n", stderr);
        return 2;
    }
    if (gs_names_init(&bench.names, "aliyun.com", &err) < 0)
        return 1;
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    const struct gs_clock clock = {pretended_ns, pretended_ns, &bench};
    const struct gs_service_config config = {.names = &bench.names,
                                             .clock = &clock,
                                             .kube = {.ops = &kube_ops, .ctx = &bench},
                                             .policy = GS_PLACEMENT_ROLLOUT,
                                             .reconcile_ns = 86400 * GS_NS_PER_S};
    bench.service = gs_service_new(&config, &err);
    if (!bench.service)
        return 1;
    bench.sink = gs_service_sink(bench.service);
    int result = run(&bench, kinds, pods);
    gs_service_free(bench.service);
    gs_pod_release(&bench.pod);
    gs_buf_release(&bench.request);
    gs_buf_release(&bench.names_text);
    gs_buf_release(&bench.answer);
    gs_buf_release(&bench.line);
    return result;
}
