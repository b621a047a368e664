/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/gpu_indices.h"
#include "device_plugin/ids_in_use.h"
#include "device_plugin/node_object.h"
#include "device_plugin/record.h"
#include "device_plugin/unit.h"
#include "gpushare/port/gpu_source.h"

struct plugin;

/* How long the API server is waited for at a start. */
#define DEVICES_PATIENCE_NS (5 * GS_NS_PER_S)

/*
 * The list of devices, made of the GPUs, the unit of memory and the ids that pods hold, and brought
 * to the kubelet, the allocator and the node's object whenever one of them changes. Loop thread.
 */
struct devices {
    struct gs_gpu_set found;    /* as read, without units, by the source's indices */
    struct gpu_indices indices; /* which are ours */
    struct gs_gpu_set set;      /* as told: mem_units are set, in the unit in force */
    struct gs_gpu_set reported; /* what node events were about last */
    bool have_gpus;             /* they were read, and there are some */
    int64_t since_ns;           /* since then */
    bool tell_gpus;             /* the set has changed since */
    struct record record;       /* of the node: what was so, and is */
    bool remembered;            /* indices come from it, or it is known that there is none */
    bool node_read;             /* the node's object */
    bool noted_read;            /* the kubelet's checkpoint, or the record needs none */
    int64_t notes_again_ns;     /* it is read again then */
    enum gs_unit noted;         /* by that */
    enum gs_unit unit;          /* in force (unit.h) */
    enum unit_state unit_state;
    gs_gpu_mask overfull; /* more is promised of them than they offer, as told last */
    size_t above;         /* see struct ids_in_use */
    bool waits_told;      /* what has to be read before anything is said */
    gs_gpu_mask cordoned; /* by an administrator, when the node was last read */
    struct ids_in_use in_use;
    bool ids_observed; /* in_use was observed */
    int64_t ids_at_ns; /* they are read again then; INT64_MAX: nobody wants it */
    size_t foreign;    /* ids in use that are not ours, in place of as many of ours */
    size_t dropped;    /* see struct advertised */
    uint32_t pods;     /* seen last */
    bool unit_waits;
    struct unit_choice tried; /* that of the last list that was made, or could not be */
    bool due;                 /* the list is to be made anew */
    bool log_due;             /* the GPUs are to be logged */
};

/* GPUs were read. -1: they cannot be advertised, the old ones stay; see err. */
int devices_take_gpus(struct plugin *plugin, const struct gs_gpu_set *found, struct gs_error *err);
/* The node's object was read for the first time. */
void devices_take_node(struct plugin *plugin, const struct gs_node *node);
/* GPUs that an administrator takes pods from. */
void devices_take_cordon(struct plugin *plugin, gs_gpu_mask cordoned);
/* The kubelet's checkpoint is to be read again then at the latest. */
void devices_read_ids_in(struct plugin *plugin, int64_t pause_ns);
/* Ids were given out, or may have been freed: if it matters, it is read soon. */
void devices_read_ids_soon(struct plugin *plugin);

/* Makes the list anew when something that it is made of has changed. */
void devices_round(struct plugin *plugin);

/* Record and unit are known: what was read before decides, and nobody is moved. Until then nothing
 * is written, and the kubelet is told nothing. */
static inline bool devices_known(const struct devices *devices)
{
    return devices->unit_state != UNIT_UNREAD;
}

/* Enough is observed for a list that the kubelet can be given for the first time. */
bool devices_synced(const struct plugin *plugin);

void devices_start(struct plugin *plugin);
void devices_release(struct devices *devices);
