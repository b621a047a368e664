/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_WRITES_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_WRITES_H

#include "device_plugin/plugin.h"

/*
 * What has to be written to the API, one after the other on the writer's thread, again and again
 * until it is: the node's inventory and number of GPUs, and what the allocator asks for.
 */

/* Sends the next thing, if there is one and none is under way. */
void writes_round(struct plugin *plugin);

#endif
