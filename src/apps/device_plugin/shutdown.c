/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/shutdown.h"

#include "device_plugin/plugin.h"
#include "device_plugin/writes.h"
#include "gpushare/base/log.h"

/* A bind that was on its way when the extender learned of it has reached the kubelet by then. */
#define QUIET_NS (1 * GS_NS_PER_S)
/* With what the end itself takes (a call that is broken off, a driver that hangs) far below the 30
 * s after which the kubelet kills. */
#define LONGEST_NS (6500 * GS_NS_PER_MS)
#define LOOK_NS    (100 * GS_NS_PER_MS)

/* Pods that were bound here wait for their devices, or their records are not written yet. What was
 * refused before is not waited for: the next plugin reads it in the kubelet's checkpoint. */
static bool busy(struct plugin *plugin)
{
    struct gs_allocator_stats stats;
    gs_allocator_stats(plugin->alloc, &stats);
    bool news = stats.allocated != plugin->leave.allocations;
    plugin->leave.allocations = stats.allocated;
    return news || plugin->asks || plugin->writing || stats.waiting || stats.writes_untried;
}

static void look(void *ctx)
{
    struct plugin *plugin = ctx;
    struct shutdown *leave = &plugin->leave;
    int64_t now_ns = gs_loop_now_ns(plugin->loop);
    if (plugin->stopping)
        return;
    if (busy(plugin) || !leave->told)
        leave->quiet_ns = now_ns;
    if (now_ns - leave->quiet_ns >= QUIET_NS || now_ns >= leave->until_ns)
        plugin_stop(plugin, 0);
    else
        gs_loop_timer_arm(plugin->loop, &leave->timer, now_ns + LOOK_NS);
}

void shutdown_begin(struct plugin *plugin)
{
    struct shutdown *leave = &plugin->leave;
    bool somebody = plugin->have_gpus && plugin->node.written && gs_dp_streams(plugin->dp) > 0;
    if (leave->begun || !somebody) {
        plugin_stop(plugin, 0);
        return;
    }
    int64_t now_ns = gs_loop_now_ns(plugin->loop);
    leave->begun = true;
    leave->quiet_ns = now_ns;
    leave->until_ns = now_ns + LONGEST_NS;
    leave->timer = (struct gs_loop_timer){.fn = look, .ctx = plugin};
    gs_loop_timer_arm(plugin->loop, &leave->timer, now_ns + LOOK_NS);
    plugin->node.leaving = plugin->node.due = true;
    writes_pump(plugin);
}

void shutdown_told(struct plugin *plugin, bool written)
{
    plugin->leave.told = written;
    if (written)
        gs_log(GS_LOG_INFO, "this node's GPUs are unschedulable until the next plugin serves");
    else
        plugin_stop(plugin, 0);
}
