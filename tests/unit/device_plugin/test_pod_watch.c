/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/pod_watch.h"

#include "allocate_rig.h"
#include "common/api.h"
#include "gpushare/base/log.h"

/* A pod of that many units on GPU 0. */
static void tell(int (*to)(void *ctx, const struct gs_pod *pod), void *ctx, const char *name,
                 uint32_t units)
{
    struct gs_container containers[3];
    char revision[24];
    const struct gs_pod pod =
        describe_pod(&(struct given_pod){.name = name, .units = {units}, .phase = GS_PHASE_RUNNING},
                     1, containers, revision);
    assert_int_equal(to(ctx, &pod), 0);
}

/* The watch's own thread: a list that breaks off, a whole one, what comes after it. */
void api_watch_until_stopped(struct gs_kube kube, const struct gs_watch_spec *spec,
                             const struct gs_watch_sink *sink, const atomic_bool *stop)
{
    void *ctx = sink->ctx;
    assert_string_equal(spec->node, "n1");
    assert_int_equal(sink->list_begin(ctx, GS_KIND_POD), 0);
    tell(sink->pod, ctx, "of-a-broken-list", 4);
    sink->live(ctx, GS_KIND_POD, false, "cut");
    tell(sink->pod, ctx, "before-the-list", 4);
    assert_int_equal(sink->list_begin(ctx, GS_KIND_POD), 0);
    tell(sink->pod, ctx, "went", 4);
    assert_int_equal(sink->list_end(ctx, GS_KIND_POD), 0);
    assert_int_equal(sink->list_begin(ctx, GS_KIND_POD), 0); /* nobody is there */
    assert_int_equal(sink->list_end(ctx, GS_KIND_POD), 0);
    sink->live(ctx, GS_KIND_POD, true, "");
    tell(sink->pod, ctx, "stays", 4);
    tell(sink->pod, ctx, "goes", 4);
    tell(sink->pod, ctx, "comes", 4);
    tell(sink->pod, ctx, "plain", 0);
    tell(sink->pod_gone, ctx, "goes", 4);
}

static int list_pods(void *ctx, const char *node, int64_t timeout_ns,
                     int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                     struct gs_error *err)
{
    if (!timeout_ns)
        return gs_fail(err, GS_ETIMEOUT, "too late");
    assert_string_equal(node, "n1");
    tell(each, each_ctx, "stays", 4);
    return 0;
}

static void wake(void *ctx)
{
}

static uint32_t pods_of(const struct rig *rig)
{
    struct gs_allocator_stats stats;
    gs_allocator_stats(rig->alloc, &stats);
    assert_int_equal(stats.used_units[0], 4 * stats.pods);
    return stats.pods;
}

static void what_the_api_tells_reaches_the_allocator(void **state)
{
    static const struct gs_kube_ops ops = {.list_pods = list_pods, .wake = wake};
    static struct plugin plugin;
    struct rig rig;
    struct gs_error err = {0};
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    rig_up(&rig);
    plugin.alloc = rig.alloc;
    plugin.kube.ops = &ops;
    plugin.settings.node_name = "n1";
    assert_int_equal(gs_loop_new(gs_clock_system(), &plugin.loop, &err), 0);
    assert_int_equal(pod_watch_start(&plugin, &err), 0);
    pod_watch_stop(&plugin);
    assert_null(plugin.pod_watch);
    assert_false(plugin.pods_listed); /* nothing is told but on the loop */
    while (!plugin.pods_listed || pods_of(&rig) != 2)
        assert_int_equal(gs_loop_step(plugin.loop, GS_NS_PER_S, &err), 0);
    assert_true(plugin.pods_changed);

    /* a quick list */
    assert_null(pod_batch_list(&plugin, 0, &err));
    assert_int_equal(err.code, GS_ETIMEOUT);
    gs_allocator_quick_begin(rig.alloc);
    struct pod_batch *batch = pod_batch_list(&plugin, GS_NS_PER_S, &err);
    assert_non_null(batch);
    gs_allocator_quick_pods(rig.alloc);
    pod_batch_apply(&plugin, batch);
    gs_allocator_list_end(rig.alloc);
    assert_int_equal(pods_of(&rig), 1);
    gs_loop_free(plugin.loop);
    gs_allocator_free(rig.alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_api_tells_reaches_the_allocator),
    };
    return GS_RUN(tests);
}
