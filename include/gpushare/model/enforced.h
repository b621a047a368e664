/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_MODEL_ENFORCED_H
#define GPUSHARE_MODEL_ENFORCED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What keeps pods to their share of a GPU's memory, and if nothing does why: what the device plugin
 * read back on its host, and what the inventory tells (docs/limits.md, docs/limits.md).
 */
enum gs_enforced {
    GS_ENFORCED_UNKNOWN, /* not said: an older device plugin */
    GS_ENFORCED_DMEM,    /* by the dmem cgroup controller */
    GS_ENFORCED_MPS,     /* by an MPS daemon, each process that keeps to its environment */
    GS_ENFORCED_MIG,     /* by the hardware: no other pod is in this instance of a card */
    GS_ENFORCED_HOOK,    /* by a preloaded library, calls of CUDA that it knows */
    GS_ENFORCED_NOT_ON,  /* it could be, and --enforce is off or observe */
    GS_ENFORCED_NO_MOUNT,
    GS_ENFORCED_NO_CGROUP2,
    GS_ENFORCED_NO_CONTROLLER,
    GS_ENFORCED_NO_PODS,
    GS_ENFORCED_READ_ONLY,
    GS_ENFORCED_DENIED,
    GS_ENFORCED_AMBIGUOUS,
    GS_ENFORCED_SHARED,
    GS_ENFORCED_ABSENT,
    GS_ENFORCED_NO_ADDRESS,
    GS_ENFORCED_INSTANCE,
    GS_ENFORCED_NOT_HELD,
    GS_ENFORCED_MPS_AWAY,
    GS_ENFORCED_HOOK_AWAY,
    GS_ENFORCED_OTHER, /* a reason that this version does not know */
    GS_ENFORCED_COUNT
};

/* "dmem", "mps (per process, cooperative)", "mig", "hook (cooperative)", "none"; "" when it was not
 * said. */
const char *gs_enforced_name(enum gs_enforced enforced);

/* Why it is not, a clause for people; "" for unknown and where something does. Constant. */
const char *gs_enforced_reason(enum gs_enforced enforced);

/* From the two words: a name that is none of these is unknown, as is none at all. */
enum gs_enforced gs_enforced_parse(const char *name, const char *reason);

#endif
