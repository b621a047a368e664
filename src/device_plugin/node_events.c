/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/node_events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device_plugin/plugin.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"

#define REFILL_NS (60 * GS_NS_PER_S)
enum { PODS_BYTES = 1024 }; /* three names of pods */

static bool allowed(struct plugin *plugin)
{
    struct node_events *events = &plugin->node_events;
    struct gs_allocator_stats stats;
    int64_t refills = (plugin_now_ns(plugin) - events->refilled_ns) / REFILL_NS;
    gs_allocator_stats(plugin->alloc, &stats);
    events->refilled_ns += refills * REFILL_NS;
    events->burst_used -= refills < events->burst_used ? (uint32_t)refills : events->burst_used;
    if (stats.node_events >= NODE_EVENTS || events->burst_used == NODE_EVENTS)
        return false;
    events->burst_used++;
    return true;
}

void node_events_add(struct plugin *plugin, bool warning, const char *reason, const char *fmt, ...)
{
    char message[NODE_EVENT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    gs_log(warning ? GS_LOG_WARN : GS_LOG_INFO, "node event", GS_STR("reason", reason),
           GS_STR("message", message));
    if (allowed(plugin))
        gs_allocator_tell_node(plugin->alloc, warning, reason, message);
}

/* The pods' containers ask for it by its UUID, and cannot start again without it. */
static void tell_gone(struct plugin *plugin, const struct gs_gpu *gpu)
{
    _cleanup_(gs_buf_release) struct gs_buf pods = GS_BUF(PODS_BYTES);
    gs_allocator_name_placed(plugin->alloc, GS_GPU_BIT(gpu->idx), &pods);
    if (!pods.len || gs_buf_failed(&pods))
        node_events_add(plugin, true, "GpuRemoved",
                        "GPU %u (%s) was removed: it accepts no new pods", gpu->idx, gpu->uuid);
    else
        node_events_add(plugin, true, "GpuRemoved",
                        "GPU %u (%s) was removed, and these pods are still allocated to it: delete "
                        "them if the GPU does not return: %s",
                        gpu->idx, gpu->uuid, pods.data);
}

static void tell_sick(struct plugin *plugin, const struct gs_gpu *gpu)
{
    char why[64] = "";
    if (gpu->xid)
        snprintf(why, sizeof(why), " since XID %u, until its driver is reloaded", gpu->xid);
    node_events_add(plugin, true, "GpuUnhealthy",
                    "GPU %u (%s) is unhealthy%s: its pods keep running, it accepts no new pods",
                    gpu->idx, gpu->uuid, why);
}

void node_events_of_gpus(struct plugin *plugin, const struct gs_gpu_set *before,
                         const struct gs_gpu_set *now)
{
    for (uint32_t i = 0; i < now->count; i++) {
        const struct gs_gpu *gpu = &now->gpus[i];
        const struct gs_gpu *old = gs_gpu_find(before->gpus, before->count, gpu->idx);
        gs_gpu_mask bit = GS_GPU_BIT(gpu->idx);
        if (old && strcmp(old->uuid, gpu->uuid) != 0)
            old = NULL;
        bool was_gone = old && (before->gone & bit), is_gone = now->gone & bit;
        bool was_well = !old || (old->healthy && !was_gone), is_well = gpu->healthy && !is_gone;
        if (is_gone && !was_gone)
            tell_gone(plugin, gpu);
        else if (!is_well && was_well)
            tell_sick(plugin, gpu);
        else if (is_well && !was_well)
            node_events_add(plugin, false, "GpuHealthy",
                            "GPU %u (%s) is healthy again and accepts new pods", gpu->idx,
                            gpu->uuid);
    }
}
