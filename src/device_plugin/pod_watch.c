/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/pod_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/api.h"
#include "gpushare/base/array.h"
#include "gpushare/base/log.h"

struct pod_entry {
    struct gs_pod pod;
    bool gone;
};

struct pod_batch {
    struct gs_loop_task task;
    struct plugin *plugin;
    struct pod_entry *entries;
    uint32_t count, room;
    bool whole; /* a full list: who is not in it is gone */
};

struct pod_watch {
    struct plugin *plugin;
    struct pod_batch *list; /* being listed; the watch thread's own */
    atomic_bool stop;
    pthread_t thread;
};

static struct pod_batch *batch_new(struct plugin *plugin, bool whole)
{
    struct pod_batch *batch = calloc(1, sizeof(*batch));
    if (batch) {
        batch->plugin = plugin;
        batch->whole = whole;
    }
    return batch;
}

static void batch_free(struct pod_batch *batch)
{
    if (!batch)
        return;
    for (uint32_t i = 0; i < batch->count; i++)
        gs_pod_release(&batch->entries[i].pod);
    free(batch->entries);
    free(batch);
}

/* A pod without GPU memory is nothing to the allocator, and no pod has its node rules here: their
 * authors may make these as large as the API server lets them. */
static int batch_add(struct pod_batch *batch, const struct gs_pod *pod, bool gone)
{
    struct gs_pod plain = *pod;
    plain.rules = (struct gs_pod_rules){0};
    if (!gs_pod_wants_gpu(pod))
        return 0;
    if (!gs_array_reach(&batch->entries, &batch->room, batch->count, sizeof(*batch->entries)))
        return -1;
    struct pod_entry *entry = &batch->entries[batch->count++];
    entry->gone = gone;
    return gs_pod_copy(&entry->pod, &plain);
}

void pod_batch_apply(struct plugin *plugin, struct pod_batch *batch)
{
    struct gs_error err = {0};
    if (batch->whole)
        gs_allocator_list_begin(plugin->alloc);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pod_entry *entry = &batch->entries[i];
        if (entry->gone)
            gs_allocator_pod_gone(plugin->alloc, entry->pod.uid);
        else
            gs_allocator_pod(plugin->alloc, &entry->pod, &err);
        gs_pod_release(&entry->pod); /* no pod is there twice */
    }
    if (batch->whole)
        gs_allocator_list_end(plugin->alloc);
    if (err.code != GS_OK)
        gs_log(GS_LOG_ERROR, "cannot record a pod", GS_STR("error", err.msg));
    plugin->pods_listed = plugin->pods_listed || batch->whole;
    plugin->pods_changed = true;
    batch_free(batch);
}

static void apply_task(void *ctx)
{
    struct pod_batch *batch = ctx;
    pod_batch_apply(batch->plugin, batch);
}

static void post(struct pod_batch *batch)
{
    batch->task = (struct gs_loop_task){.fn = apply_task, .ctx = batch};
    gs_loop_post(batch->plugin->loop, &batch->task);
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct pod_watch *watch = ctx;
    batch_free(watch->list);
    watch->list = batch_new(watch->plugin, true);
    return watch->list ? 0 : -1;
}

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct pod_watch *watch = ctx;
    post(gs_steal(&watch->list));
    return 0;
}

static int take(struct pod_watch *watch, const struct gs_pod *pod, bool gone)
{
    if (watch->list)
        return batch_add(watch->list, pod, gone);
    struct pod_batch *batch = batch_new(watch->plugin, false);
    if (!batch || batch_add(batch, pod, gone) < 0) {
        batch_free(batch);
        return -1;
    }
    post(batch);
    return 0;
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    return take(ctx, pod, false);
}

static int on_pod_gone(void *ctx, const struct gs_pod *last)
{
    return take(ctx, last, true);
}

static int on_node(void *ctx, const struct gs_node *node)
{
    return 0; /* not watched */
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    struct pod_watch *watch = ctx;
    if (live) {
        gs_log(GS_LOG_INFO, "watching this node's pods");
        return;
    }
    batch_free(watch->list);
    watch->list = NULL;
    gs_log(GS_LOG_WARN, "watch of this node's pods interrupted", GS_STR("reason", why));
}

static void *run(void *arg)
{
    struct pod_watch *watch = arg;
    struct plugin *plugin = watch->plugin;
    const struct gs_watch_spec spec = {.kind = GS_KIND_POD, .node = plugin->settings.node_name};
    const struct gs_watch_sink sink = {.ctx = watch,
                                       .list_begin = on_list_begin,
                                       .list_end = on_list_end,
                                       .node = on_node,
                                       .node_gone = on_node,
                                       .pod = on_pod,
                                       .pod_gone = on_pod_gone,
                                       .live = on_live};
    api_watch_until_stopped(plugin->kube, &spec, &sink, &watch->stop);
    return NULL;
}

int pod_watch_start(struct plugin *plugin, struct gs_error *err)
{
    struct pod_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->plugin = plugin;
    int error = pthread_create(&watch->thread, NULL, run, watch);
    if (error) {
        free(watch);
        return gs_fail_errno(err, GS_ENOMEM, error, "thread");
    }
    plugin->pod_watch = watch;
    return 0;
}

void pod_watch_stop(struct plugin *plugin)
{
    struct pod_watch *watch = gs_steal(&plugin->pod_watch);
    if (!watch)
        return;
    atomic_store(&watch->stop, true);
    plugin->kube.ops->wake(plugin->kube.ctx);
    pthread_join(watch->thread, NULL);
    batch_free(watch->list);
    free(watch);
}

static int on_listed(void *ctx, const struct gs_pod *pod)
{
    return batch_add(ctx, pod, false);
}

struct pod_batch *pod_batch_list(const struct plugin *plugin, int64_t timeout_ns,
                                 struct gs_error *err)
{
    struct pod_batch *batch = batch_new((struct plugin *)plugin, false);
    if (!batch) {
        gs_fail_nomem(err);
        return NULL;
    }
    if (plugin->kube.ops->list_pods(plugin->kube.ctx, plugin->settings.node_name, timeout_ns,
                                    on_listed, batch, err) < 0) {
        batch_free(batch);
        return NULL;
    }
    return batch;
}
