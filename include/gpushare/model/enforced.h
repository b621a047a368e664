/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * What limits pods to their request of a GPU's memory, and if nothing does why: what the device
 * plugin read back on its host, and what the inventory tells (docs/limits.md, docs/limits.md).
 */
enum gs_enforced {
    GS_ENFORCED_UNKNOWN, /* not said: the original's device plugin */
    /* from here to HOOK something limits them, below nothing does */
    GS_ENFORCED_DMEM,   /* by the dmem cgroup controller */
    GS_ENFORCED_DRIVER, /* by the GPU's driver, for a cgroup */
    GS_ENFORCED_MPS,    /* by an MPS daemon, each process that keeps to its environment */
    GS_ENFORCED_MIG,    /* by the hardware: no other pod is in this instance of a card */
    GS_ENFORCED_HOOK,   /* by a preloaded library, calls of CUDA that it knows */
    GS_ENFORCED_NOT_ON, /* it could be, and --enforce is off or observe */
    /* of the host, so of all its GPUs: */
    GS_ENFORCED_NO_MOUNT,      /* nothing is at the mount's path, or it cannot be read */
    GS_ENFORCED_NO_CGROUP2,    /* cgroup v1, or hybrid */
    GS_ENFORCED_NO_CONTROLLER, /* the kernel has no dmem controller, or it is off */
    GS_ENFORCED_NO_DRIVER,     /* the driver has no limits of its own */
    GS_ENFORCED_NO_ADMIN,      /* it has, and refuses us */
    GS_ENFORCED_NO_PODS,       /* no kubelet keeps pods below this mount (yet) */
    GS_ENFORCED_READ_ONLY,     /* use can be read, limits can be written in none of */
    GS_ENFORCED_DENIED,        /* the pods' folders */
    /* of a GPU: */
    GS_ENFORCED_AMBIGUOUS,  /* several regions have its address: a card of several tiles */
    GS_ENFORCED_SHARED,     /* another GPU has the same address: instances of one card (MIG) */
    GS_ENFORCED_ABSENT,     /* no region: the driver registers none, or not yet */
    GS_ENFORCED_NO_ADDRESS, /* its PCI address is not known */
    GS_ENFORCED_INSTANCE,   /* a part of a card that its driver has divided */
    GS_ENFORCED_NOT_HELD,
    GS_ENFORCED_MPS_AWAY,
    GS_ENFORCED_HOOK_AWAY,
    GS_ENFORCED_OTHER, /* a reason that this version does not know */
    GS_ENFORCED_COUNT
};

/* A limit of the pod, whatever its programs do. */
static inline bool gs_enforced_hard(enum gs_enforced enforced)
{
    return enforced == GS_ENFORCED_DMEM || enforced == GS_ENFORCED_DRIVER;
}

/* Something limits pods; it was said that nothing does. Neither of what is unknown.
 */
bool gs_enforced_holds(enum gs_enforced enforced);
bool gs_enforced_lacks(enum gs_enforced enforced);

/* The words on the wire, which stay: what does it ("dmem", "mps", "mig", "hook", "none"; "" when it
 * was not said), and if nothing does why ("not-enabled", "no-controller", …; else ""). Constant. */
const char *gs_enforced_by(enum gs_enforced enforced);
const char *gs_enforced_why(enum gs_enforced enforced);
/* From these two: what is none of them is unknown, as is none at all. */
enum gs_enforced gs_enforced_parse(const char *by, const char *why);

/* The same for people: "dmem", "mps (per process, cooperative)", "mig", "hook (cooperative)",
 * "none"; "" when it was not said. And why nothing does, a clause. Constant. */
const char *gs_enforced_name(enum gs_enforced enforced);
const char *gs_enforced_reason(enum gs_enforced enforced);
