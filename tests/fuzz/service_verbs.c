/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole requests against a service with a small cluster, between events of its watch. The input is
 * a sequence of steps, each one letter and a text up to a NUL: f(ilter), p(rioritize), b(ind),
 * e(vict: preempt) take a request body; w (pod seen), d (pod gone), n (node seen) take an object; t
 * lets time pass. Capital B: the API's answer to the bind is lost.
 *
 * Whatever comes: an answer is JSON, the accounts agree with the claims, and as long as no event
 * says otherwise no GPU is over its size.
 */
#include "extender/service/service.h"
#include "fuzz.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/codec/scan.h"
#include "service_calls.h"

struct world {
    struct gs_names names;
    struct gs_clock clock;
    int64_t now_ns;
    bool lose;   /* the next bind's answer */
    bool events; /* came, and may say that a GPU is too full */
    struct gs_service *service;
    struct gs_watch_sink sink;
};

static int64_t now(void *ctx)
{
    return ((struct world *)ctx)->now_ns;
}

static int bind(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    struct world *world = ctx;
    return world->lose ? gs_fail(err, GS_ETIMEOUT, "lost") : 0;
}

static int get_pod(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                   struct gs_error *err)
{
    struct world *world = ctx;
    struct gs_buf json = GS_BUF(1 << 16);
    if (!name[0])
        return gs_fail(err, GS_ENOENT, "no such pod");
    gs_buf_puts(&json, "{\"metadata\":{\"namespace\":");
    gs_buf_json_text(&json, ns);
    gs_buf_puts(&json, ",\"name\":");
    gs_buf_json_text(&json, name);
    gs_buf_puts(&json, ",\"uid\":\"u1\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":"
                       "{\"limits\":{\"aliyun.com/gpu-mem\":\"6\"}}}]}}");
    int result =
        gs_buf_failed(&json)
            ? gs_fail(err, GS_ETOOBIG, "too long")
            : gs_codec_pod(&world->names, (struct gs_slice){json.data, json.len}, ret, err);
    gs_buf_release(&json);
    return result;
}

static int patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    return 0;
}

static int create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    return 0;
}

static void see_node(struct world *world, struct gs_slice json)
{
    struct gs_node node = {0};
    if (gs_codec_node(&world->names, json, &node, NULL) == 0)
        world->sink.node(world->sink.ctx, &node);
    gs_node_release(&node);
}

static void see_pod(struct world *world, struct gs_slice json, bool gone)
{
    struct gs_pod pod = {0};
    world->events = true;
    if (gs_codec_pod(&world->names, json, &pod, NULL) == 0)
        (gone ? world->sink.pod_gone : world->sink.pod)(world->sink.ctx, &pod);
    gs_pod_release(&pod);
}

static void start(struct world *world)
{
    static const struct gs_kube_ops ops = {
        .bind = bind, .get_pod = get_pod, .patch_pod = patch_pod, .create_event = create_event};
    static const char *const nodes[] = {
        "{\"metadata\":{\"name\":\"n1\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"32\","
        "\"aliyun.com/gpu-count\":\"2\"}}}",
        "{\"metadata\":{\"name\":\"n2\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"8\","
        "\"aliyun.com/gpu-count\":\"1\"}}}",
    };
    *world = (struct world){.now_ns = 1000000000000};
    world->clock = (struct gs_clock){now, now, world};
    FUZZ_CHECK(gs_names_init(&world->names, "aliyun.com", NULL) == 0);
    const struct gs_service_config config = {.names = &world->names,
                                             .clock = &world->clock,
                                             .kube = {&ops, world},
                                             .policy = GS_PLACEMENT_BINPACK};
    world->service = gs_service_new(&config, NULL);
    FUZZ_CHECK(world->service);
    world->sink = gs_service_sink(world->service);
    for (int kind = GS_KIND_NODE; kind <= GS_KIND_POD; kind++) {
        world->sink.list_begin(world->sink.ctx, (enum gs_kind)kind);
        for (size_t i = 0; kind == GS_KIND_NODE && i < 2; i++)
            see_node(world, gs_slice_of(nodes[i]));
        world->sink.list_end(world->sink.ctx, (enum gs_kind)kind);
    }
}

static void ask(struct world *world, char verb, struct gs_slice body)
{
    struct gs_buf answer = GS_BUF((size_t)64 << 20);
    struct gs_error err = {0};
    int (*const call)(struct gs_service *, const char *, size_t, struct gs_buf *,
                      struct gs_error *) = verb == 'f'   ? gs_service_filter
                                           : verb == 'p' ? gs_service_prioritize
                                           : verb == 'e' ? gs_service_preempt
                                                         : service_bind;
    world->lose = verb == 'B';
    if (call(world->service, body.at, body.len, &answer, &err) == 0) {
        struct gs_scan scan;
        gs_scan_init(&scan, (struct gs_slice){answer.data, answer.len});
        gs_scan_skip(&scan);
        FUZZ_CHECK(gs_scan_finish(&scan, NULL) == 0);
    } else {
        FUZZ_CHECK(err.code != GS_OK);
    }
    gs_buf_release(&answer);
}

static void step(struct world *world, char letter, struct gs_slice text)
{
    switch (letter) {
    case 'w':
    case 'd':
        see_pod(world, text, letter == 'd');
        break;
    case 'n':
        world->events = true;
        see_node(world, text);
        break;
    case 't':
        world->now_ns += 31 * GS_NS_PER_S;
        service_tick(world->service);
        break;
    case 'f':
    case 'p':
    case 'e':
    case 'b':
    case 'B':
        ask(world, letter, text);
        break;
    default:
        break;
    }
}

static void check_metrics(struct world *world)
{
    struct gs_buf text = GS_BUF(16 << 20);
    world->now_ns += 31 * GS_NS_PER_S;
    service_tick(world->service);
    gs_service_metrics(world->service, &text);
    FUZZ_CHECK(!gs_buf_failed(&text));
    FUZZ_CHECK(strstr(text.data, "\ngpushare_ledger_drift 0\n"));
    FUZZ_CHECK(world->events || strstr(text.data, "\ngpushare_overcommitted_gpus 0\n"));
    gs_buf_reset(&text);
    FUZZ_CHECK(gs_service_inspect(world->service, NULL, &text, NULL) == 0);
    gs_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world;
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    start(&world);
    for (int steps = 0; size > 0 && steps < 32; steps++) {
        const uint8_t *end = memchr(data, 0, size);
        size_t len = end ? (size_t)(end - data) : size;
        if (len > 0)
            step(&world, (char)data[0], (struct gs_slice){(const char *)data + 1, len - 1});
        size_t used = len + (end != NULL);
        data += used;
        size -= used;
    }
    check_metrics(&world);
    gs_service_free(world.service);
    return 0;
}
