/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/shutdown.h"

#include "device_plugin/plugin.h"
#include "gpushare/base/log.h"

/* A bind that was on its way when the extender learned of it has reached the kubelet by then. */
#define QUIET_NS (1 * GS_NS_PER_S)
/* With what the end itself takes (a call that is broken off, a driver that hangs) far below the 30
 * s after which the kubelet kills. */
#define LONGEST_NS (6500 * GS_NS_PER_MS)

/* Pods that were bound here wait for their devices, or their records are not written yet. What was
 * refused before is not waited for: the next plugin reads it in the kubelet's checkpoint. */
static bool is_busy(const struct plugin *plugin, const struct gs_allocator_stats *stats)
{
    return !plugin->leave.written || plugin->calls.pending || plugin->writes.writing ||
           stats->waiting || stats->writes_untried;
}

void shutdown_round(struct plugin *plugin)
{
    struct shutdown *leave = &plugin->leave;
    int64_t now_ns = plugin_now_ns(plugin), end_ns = leave->until_ns;
    struct gs_allocator_stats stats;
    if (!leave->begun || plugin->round.stopping)
        return;
    gs_allocator_stats(plugin->alloc, &stats);
    if (is_busy(plugin, &stats))
        leave->quiet_ns = 0;
    else if (!leave->quiet_ns || stats.allocated != leave->allocations)
        leave->quiet_ns = now_ns;
    leave->allocations = stats.allocated;
    if (leave->quiet_ns && leave->quiet_ns + QUIET_NS < end_ns)
        end_ns = leave->quiet_ns + QUIET_NS;
    if (now_ns >= end_ns)
        plugin_stop(plugin, 0);
    else
        plugin_wake_at(plugin, end_ns);
}

void shutdown_begin(struct plugin *plugin)
{
    struct shutdown *leave = &plugin->leave;
    bool somebody =
        plugin->devices.have_gpus && plugin->node.written && gs_dp_streams(plugin->dp) > 0;
    if (leave->begun || !somebody) {
        plugin_stop(plugin, 0);
        return;
    }
    leave->begun = true;
    leave->until_ns = plugin_now_ns(plugin) + LONGEST_NS;
    plugin->node.leaving = plugin->node.due = true;
}

void shutdown_node_written(struct plugin *plugin, bool written)
{
    plugin->leave.written = written;
    if (written)
        gs_log(GS_LOG_INFO,
               "this node's GPUs are unschedulable until a device plugin serves again");
    else
        plugin_stop(plugin, 0);
}
