/* SPDX-License-Identifier: Apache-2.0 */
/* What every part may want of the rounds; apart from plugin.c, which calls the parts. */
#include "device_plugin/plugin.h"

/* How long the end waits for the answers that the kubelet is owed. */
#define ANSWERS_NS (1 * GS_NS_PER_S)

bool plugin_knows(const struct plugin *plugin)
{
    return plugin->devices.have_gpus && !plugin->round.stopping && devices_known(&plugin->devices);
}

void plugin_wake_at(struct plugin *plugin, int64_t at_ns)
{
    if (at_ns < plugin->round.wake_ns)
        plugin->round.wake_ns = at_ns;
}

void plugin_stop(struct plugin *plugin, int result)
{
    struct round *round = &plugin->round;
    if (round->stopping)
        return;
    round->stopping = true;
    round->result = result;
    round->give_up_ns = plugin_now_ns(plugin) + ANSWERS_NS;
}
