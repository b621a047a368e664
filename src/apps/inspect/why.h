/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WHY_H
#define GPUSHARE_APPS_INSPECT_WHY_H

#include "inspect/common.h"
#include "inspect/promised.h"
#include "inspect/usage.h"
#include "inspect/waits.h"

/* Why a pod waits, or where it is and beside whom: what was asked, what was found, how it is told.
 */
struct why {
    struct common common;
    const char *name; /* "POD" or "NAMESPACE/POD"; NULL: all that wait */
    char ns[256];
    enum format format;
    bool watch;
    struct snapshot snapshot;
    struct gs_pod pod;
    struct gs_ask ask; /* its */
    enum why_state { WHY_NO_GPU, WHY_ENDED, WHY_BOUND, WHY_WAITING } state;
    struct usage usage; /* of its node, once it has one */
    /* What is found of the last two in the cluster: */
    const char *unit;
    const char *scheduler;           /* snapshot_scheduler() */
    struct verdict verdict;          /* of one that waits, */
    struct promised promised;        /* and what may keep it from nodes that fit */
    bool charged;                    /* of one that is bound: the ledger has it, */
    struct gs_claim own;             /* as this, */
    const struct gs_node_view *view; /* on this node; NULL: there is no such node any more */
    const struct usage_pod *use;     /* what it truly uses; NULL: not known */
    char said[1024];                 /* kube-scheduler's last word */
    char trouble[1024]; /* the kubelet's: why it failed, or what its container waits for */
};

/* kube-scheduler's words say that it could not ask the extender, or got no answer that counts. */
bool why_extender_is_away(const char *said);

/* why_tell.c: about why->pod, from the snapshot. */
void why_tell(const struct why *why);

/* Without the right to see nodes and other pods: what the pod itself tells. */
void why_tell_alone(const struct why *why);

/* The same for programs. -1: the output cannot be written. */
int why_document(const struct why *why);

#endif
