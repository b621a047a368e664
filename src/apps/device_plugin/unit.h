/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_DEVICE_PLUGIN_UNIT_H
#define GPUSHARE_APPS_DEVICE_PLUGIN_UNIT_H

#include <stdbool.h>

#include "gpushare/port/gpu_source.h"

/*
 * Which unit of memory is in force on this node. --memory-unit counts only while no pod holds
 * units: a pod of 8 GiB must not turn into one of 8 MiB. Until then the unit goes on that the
 * node's inventory names; a node without one was served by the original's plugin, which knows GiB
 * (its default) and MiB. Pure.
 */
struct unit_facts {
    enum gs_unit wanted;    /* --memory-unit */
    enum gs_unit inventory; /* unknown: the node has none */
    bool node_read;         /* inventory is known */
    bool in_use;            /* pods hold units */
    uint32_t largest_share; /* units that the largest pod that runs here has on one GPU: a unit in
                               which no GPU is that large is not the one its author meant */
};

enum gs_unit unit_in_force(const struct unit_facts *facts, const struct gs_gpu_set *set);

#endif
