/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * Why a pod does not fit a node. A value, not an error. Few and fixed, because kube-scheduler
 * groups equal strings ("3 nodes: …"): no names, no numbers, no percent sign.
 *
 * The place is the meaning. From near to far: of several nodes' reasons the first is reported
 * (gs_reason_nearer()), and from GS_REASON_BAD_COUNT on evicting pods does not help
 * (gs_reason_unresolvable()). A new one goes into its section, and into the table of reason.c.
 */
enum gs_reason {
    GS_FITS,
    /* something has to end */
    GS_REASON_BIND_OPEN,  /* a bind of the pod to another node has no known outcome yet */
    GS_REASON_NOMINATED,  /* or promised to a member of a pod group */
    GS_REASON_NOT_USABLE, /* GPUs with room are unhealthy or cordoned */
    GS_REASON_MAX_PODS,   /* GPUs with room have as many pods as they may have */
    GS_REASON_NO_CORES,   /* GPUs with room have too little compute left */
    /* other pods have to move or go */
    GS_REASON_FRAGMENTED,   /* the node's sum would do, but no single GPU has the room */
    GS_REASON_TOO_FEW_FREE, /* several GPUs asked: fewer have room at the same time */
    GS_REASON_NO_ROOM,      /* the node's sum would not do either */
    /* unresolvable from here on: the pod's own object is wrong */
    GS_REASON_BAD_COUNT,     /* label or annotation gpu-count is broken */
    GS_REASON_NOT_DIVISIBLE, /* a request does not divide by gpu-count */
    GS_REASON_BAD_PLACEMENT, /* invalid gpu-placement: unknown policy */
    GS_REASON_BAD_MODEL,     /* annotation gpu-model is no comma list, or too long */
    GS_REASON_BAD_MODEL_DENY,
    GS_REASON_BAD_UUID,
    GS_REASON_BAD_UUID_DENY,
    GS_REASON_CORES_ALONE,  /* compute without GPU memory in a container */
    GS_REASON_CORES_ABOVE,  /* more compute than a GPU has */
    GS_REASON_CORES_SPREAD, /* compute, and gpu-count above 1 */
    /* the node's GPUs are not those */
    GS_REASON_NO_MATCH,      /* no GPU matches the pod's model or UUID lists */
    GS_REASON_TOO_FEW_GPUS,  /* fewer GPUs (large enough) than asked */
    GS_REASON_GPU_TOO_SMALL, /* no GPU of the node is that large */
    GS_REASON_NO_GPUS,       /* the node reports no GPU memory */
    GS_REASON_UNKNOWN_NODE,  /* the node is not (or no longer) known: it may be soon */
    GS_REASONS,
};

/* The words for the user; "" for GS_FITS. Static. */
const char *gs_reason_text(enum gs_reason reason);

/* A short label for metrics: "insufficient_memory". Static. */
const char *gs_reason_label(enum gs_reason reason);

/* Evicting pods cannot help: goes into FailedAndUnresolvableNodes as well. */
bool gs_reason_unresolvable(enum gs_reason reason);

/* Nodes refuse a pod for different reasons: the one to report is that of the node that comes
 * nearest to taking it. */
static inline bool gs_reason_nearer(enum gs_reason a, enum gs_reason b)
{
    return a < b;
}
