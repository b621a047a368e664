/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/slice_watch.h"

#include <stdlib.h>

#include "common/gpu_slices.h"
#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"

struct slice_watch {
    struct worker worker;
    bool asking;      /* what follows is the worker's */
    int64_t again_ns; /* when it is asked again */
    bool failed;      /* and said so */
    struct plugin *plugin;
    struct list_watch list;
    struct gs_arena arena;
    struct gs_sliced_gpu *sliced;
    uint32_t count;
    int result;
    struct gs_error err;
};

/* Worker's thread. */
static void ask(void *ctx)
{
    struct slice_watch *watch = ctx;
    watch->err = (struct gs_error){0};
    watch->list.ask = list_watch_ask;
    watch->list.ctx = watch->plugin->client;
    watch->result = gpu_slices_next(&watch->list, watch->plugin->settings.node_name, &watch->arena,
                                    &watch->sliced, &watch->count, &watch->err);
}

static void tell(struct slice_watch *watch)
{
    bool failed = watch->result < 0;
    if (failed && !watch->failed)
        gs_log(GS_LOG_WARN, "cannot list ResourceSlices: GPUs of a DRA driver are not recognized",
               GS_STR("node", watch->plugin->settings.node_name), GS_STR("error", watch->err.msg));
    watch->failed = failed;
}

static void answered(void *ctx)
{
    struct slice_watch *watch = ctx;
    struct plugin *plugin = watch->plugin;
    watch->asking = false;
    watch->again_ns = plugin_now_ns(plugin) + list_watch_pause_ns(&watch->list);
    tell(watch);
    if (watch->err.code == GS_EDENIED) /* who has no right to read them is never told */
        plugin->ownership.asked = true;
    if (watch->result == 0 && !plugin->round.stopping)
        ownership_take_slices(plugin, watch->sliced, watch->count);
    gs_arena_release(&watch->arena);
}

void slice_watch_round(struct plugin *plugin)
{
    struct slice_watch *watch = plugin->ownership.watch;
    if (!watch || watch->asking || plugin->round.stopping)
        return;
    if (plugin_now_ns(plugin) < watch->again_ns) {
        plugin_wake_at(plugin, watch->again_ns);
        return;
    }
    watch->asking = true;
    worker_submit(&watch->worker, plugin->loop, &(struct worker_job){ask, answered, watch});
}

int slice_watch_start(struct plugin *plugin, struct gs_error *err)
{
    if (plugin->settings.share_with_others)
        return 0;
    struct slice_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->plugin = plugin;
    plugin->ownership.watch = watch;
    return 0;
}

void slice_watch_stop(struct plugin *plugin)
{
    if (plugin->ownership.watch)
        worker_stop(&plugin->ownership.watch->worker);
}

void slice_watch_free(struct slice_watch *watch)
{
    if (!watch)
        return;
    gs_arena_release(&watch->arena);
    free(watch);
}
