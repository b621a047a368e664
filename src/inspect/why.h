/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/common.h"
#include "inspect/view.h"

/* Why a pod waits, or where it is and beside which pods: what was asked, what was found, how it is
 * told.
 *
 *   struct why why = {.common = &common};
 *   if (why_fetch(&why, "team-a", "train-0", 0, err) == 0) {
 *       why_find(&why, &view);
 *       why_tell(&why, stdout);
 *   }
 *   why_release(&why);
 */
struct why {
    const struct common *common;
    struct gs_pod pod;
    struct gs_ask ask; /* its */
    enum why_state { WHY_NO_GPU, WHY_ENDED, WHY_BOUND, WHY_WAITING } state;
    char trouble[1024]; /* the kubelet's: why it failed, or what its container waits for */
    /* What is found of the last two states in the cluster: */
    const struct view *view;
    const char *unit;             /* "units" without a view */
    const char *scheduler;        /* snapshot_scheduler() */
    bool elsewhere;               /* snapshot_is_elsewhere() */
    struct verdict verdict;       /* of one that waits */
    bool charged;                 /* of one that is bound: the ledger has it, */
    struct gs_claim own;          /* as this, */
    const struct view_node *node; /* on this node; NULL: there is no such node any more */
};

/* The pod as the API has it; timeout_ns 0: --request-timeout. GS_ENOENT: there is none. Release
 * it also then. */
int why_fetch(struct why *why, const char *ns, const char *name, int64_t timeout_ns,
              struct gs_error *err);
void why_release(struct why *why);

/* What the cluster has of it, which is borrowed. Asks nobody. */
void why_find(struct why *why, const struct view *view);

/* kube-scheduler's words say that it could not ask the extender, or got no answer that counts. */
bool why_extender_is_away(const char *said);

/* Without why_find(), which an account may have no right to: what the pod itself tells. */
void why_tell(const struct why *why, FILE *out);

/* The same for programs. -1: the output cannot be written. */
int why_document(const struct why *why, bool yaml);
