/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_OFFERS_H
#define GPUSHARE_SERVICE_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"

/*
 * Where kube-scheduler stops looking once it has found enough nodes (percentageOfNodesToScore), it
 * may have asked about none that has room: it knows the sum of a node's GPU memory, not its GPUs.
 * A pod so refused is nominated by us (status.nominatedNodeName) to a node of the ledger where it
 * fits, and woken: kube-scheduler 1.22 and newer tries that node first, with all its other filters
 * (pkg/scheduler/schedule_one.go: evaluateNominatedNode). When these refuse it (a taint, CPU, the
 * pod's own affinity), which is not known here, the next refusal brings the next node: each once,
 * and all of them again after GS_OFFERS_AGAIN_NS.
 *
 * While an offer is young nobody is evicted for the pod. A nomination of ours that led nowhere is
 * taken back, one of kube-scheduler's own (it evicted somebody there) never changed.
 */
#define GS_OFFER_YOUNG_NS  (5 * GS_NS_PER_S)
#define GS_OFFERS_AGAIN_NS (300 * GS_NS_PER_S)

struct gs_service;
struct gs_ask;
struct gs_ledger;
struct gs_waiter;

/* Of one waiting pod. */
struct gs_offers {
    bool refused;          /* by filter, of this process: nobody is nominated for a kube-scheduler
                              that does not ask here */
    uint32_t next_slot;    /* the nodes before it were offered */
    uint32_t offered_slot; /* the last offer, while offered_ns is not 0 */
    int64_t offered_ns;    /* when it was made, or taken back last; 0: none may stand in the pod's
                              status */
    int64_t ended_ns;      /* since when no node is left; 0: one may be */
    int64_t young_until_ns;
    uint64_t given_up_at; /* the count of frees when the place of its nomination came free; 0 */
};

/* After filter refused the pod on every node that it was asked about: finds the node that it is
 * offered next. Takes the store's lock. */
void gs_offers_look(struct gs_service *service, const char *uid, const struct gs_ask *ask);

/* An offer to this pod is young. */
bool gs_offers_young(struct gs_service *service, const char *uid);

/* kube-scheduler may nominate the pod itself from now on. */
void gs_offers_leave(struct gs_service *service, const char *uid);

/* The place that was held for the pod's nomination came free: no news to the pod itself. Store
 * locked. */
void gs_offers_given_up(struct gs_service *service, const char *uid);

/* For the waker, with the store locked: whether the pod may be offered waiter->slot, which is then
 * counted as done; … */
bool gs_offers_make(const struct gs_ledger *ledger, struct gs_waiter *waiter, int64_t now_ns);
/* … and whether its last offer led nowhere and is to be taken back, likewise: again each
 * GS_OFFER_YOUNG_NS while the pod is shown with it. */
bool gs_offers_take_back(const struct gs_ledger *ledger, struct gs_waiter *waiter, int64_t now_ns);

#endif
