/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/base/recent.h"
#include "gpushare/core/place.h"
#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"
#include "gpushare/port/kube.h"

/*
 * What the API showed, taken in once: lists and events of nodes and pods become claims, holds and
 * facts. The extender and the CLI have one each; what either has more (pods that wait, waking,
 * ages) hangs on it by gs_cluster_owner. No time, no locks, no I/O: its owner's lock guards it.
 *
 * | a pod that | becomes |
 * |---|---|
 * | has ended, or whose object is gone | nothing; late events about it change nothing |
 * | is bound and has GPU memory | a claim (core/ledger.h: gs_claim_of_pod(), gs_claim_follow()) |
 * | is bound and has none | CPU that is taken on its node |
 * | waits and wants GPU memory | the owner's, and a hold where it is nominated |
 */

/* They are called in the middle of what is taken in, and may not take
 * in anything themselves. */
struct gs_cluster_owner {
    /* The pod is bound; known: it was before. 1: the watch showed it unbound until now, 0: not; -1
     * GS_ENOMEM. */
    int (*bound)(void *ctx, const struct gs_pod *pod, bool known);
    /* The pod waits. 1: that is news, 0: not; -1. */
    int (*waits)(void *ctx, const struct gs_pod *pod, struct gs_error *err);
    /* Its place on the node where it is nominated; may be NULL: as its object says. */
    int (*holds)(void *ctx, const struct gs_pod *pod, struct gs_error *err);
    void (*ended)(void *ctx, const struct gs_pod *pod);
    /* Memory came free there; may be NULL. */
    void (*freed)(void *ctx, uint32_t slot);
};

struct gs_cluster {
    struct gs_ledger *ledger;
    struct gs_policies *policies;    /* has its own synchronisation */
    struct gs_node_facts facts;      /* by slot of the ledger */
    struct gs_recent ended;          /* since the last list of pods began */
    struct gs_recent ended_before;   /* and between the one before and that */
    struct gs_recent ended_by_phase; /* as the watch showed it, and the objects are there: such a
                                        pod may run again */
    bool lists_pods;                 /* what comes is of a list, not the watch's own event */
    const struct gs_cluster_owner *owner;
    void *ctx;
};

/* owner and ctx are borrowed. GS_ENOMEM; release it also then. */
int gs_cluster_init(struct gs_cluster *cluster, const struct gs_cluster_owner *owner, void *ctx,
                    struct gs_error *err);
void gs_cluster_release(struct gs_cluster *cluster);

/* For pods to be placed on it, in memory. Borrows from the cluster. */
struct gs_place gs_cluster_place(const struct gs_cluster *cluster, enum gs_placement policy);

/* GS_ENOMEM. */
int gs_cluster_node(struct gs_cluster *cluster, const struct gs_node *node, struct gs_error *err);
void gs_cluster_node_gone(struct gs_cluster *cluster, const char *name);

/* read: it does not come from the watch, and may be older than what the watch showed. GS_ENOMEM. */
int gs_cluster_pod(struct gs_cluster *cluster, const struct gs_pod *pod, bool read,
                   struct gs_error *err);
void gs_cluster_pod_gone(struct gs_cluster *cluster, const struct gs_pod *last);

/* A full list: it is believed about pods that ended before it, and what was read earlier is not. */
void gs_cluster_list_begin(struct gs_cluster *cluster, enum gs_kind kind);
/* Returns how many claims went, because nothing mentioned them. */
uint32_t gs_cluster_list_end(struct gs_cluster *cluster, enum gs_kind kind);

/* It ended, as far as this source can tell. */
bool gs_cluster_has_ended(const struct gs_cluster *cluster, const char *uid, bool read);

/* gs_ledger_set_claim(); the place that the pod held on another node until now came free. */
int gs_cluster_claim(struct gs_cluster *cluster, const struct gs_claim *claim,
                     struct gs_error *err);
