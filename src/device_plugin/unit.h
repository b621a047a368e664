/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpushare/codec/inventory.h"
#include "gpushare/port/gpu_source.h"

/*
 * Which unit of memory is in force on this node. --memory-unit counts only while no pod holds
 * units: a pod of 8 GiB must not turn into one of 8 MiB. Until then the unit goes on that this
 * plugin recorded (record.h), whatever pods say and whichever GPUs are there. A node without a
 * record was served by the original's plugin, or its record was deleted: what the kubelet wrote
 * down then says into how many units a GPU was divided. States: docs/architecture.md. Pure.
 */
enum unit_state {
    UNIT_UNREAD,  /* record and checkpoint are not known: nothing is told to anybody */
    UNIT_FREE,    /* no pod holds units: --memory-unit */
    UNIT_HELD,    /* pods hold units, of this one */
    UNIT_DOUBTED, /* likewise, by the checkpoint alone, and --memory-unit is another: nothing new is
                     offered */
};

/* A container's answer in the checkpoint: so many units its GPU was divided into. */
struct unit_note {
    char uuid[GS_UUID_BYTES];
    uint32_t mib, units;
    bool original; /* an id of the original's plugin, which knows GiB and MiB */
};

/* The note's unit: the record's, if that offers as many (NULL: there is none); else that of the
 * option, if the set offers as many; else the one that makes about as many. Of notes that
 * contradict each other the largest counts, in which no limit is too small. */
enum gs_unit unit_noted(const struct unit_note *note, const struct gs_inventory *record,
                        const struct gs_gpu_set *set, enum gs_unit wanted);

struct unit_facts {
    enum gs_unit wanted;   /* --memory-unit */
    enum gs_unit recorded; /* unknown: nothing is */
    enum gs_unit noted;    /* by the kubelet; unknown: nothing is */
    bool read;             /* these are known */
    bool held;             /* pods hold units */
    bool doubted;          /* was it, when it was recorded */
};

struct unit_choice {
    enum gs_unit unit;
    enum unit_state state;
};

struct unit_choice unit_choose(const struct unit_facts *facts);
