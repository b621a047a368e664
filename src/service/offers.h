/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_OFFERS_H
#define GPUSHARE_SERVICE_OFFERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "gpushare/base/clock.h"
#include "gpushare/model/pod.h"

/*
 * Where kube-scheduler stops looking once it has found enough nodes (percentageOfNodesToScore), it
 * may have asked about none that has room: it knows the sum of a node's GPU memory, not its GPUs.
 * A pod so refused is nominated by us (status.nominatedNodeName) to a node of the ledger where it
 * fits and that it may use (model/eligible.h), and requeued: kube-scheduler 1.22 and newer tries
 * that node first, with all its other filters (pkg/scheduler/schedule_one.go:
 * evaluateNominatedNode).
 *
 * | state | what is so | transition |
 * | --- | --- | --- |
 * | none | no offer stands, the pod has no mark | the requeuer finds a node: offered |
 * | offered | the ledger holds its place, also before the patch | bound; gs_offers_tick(): over |
 * | over | no offer stands, the pod has the mark | gs_offers_tick() takes it off: none |
 *
 * An offer is over after GS_OFFER_NS, when kube-scheduler tried the node in vain, when the place is
 * none any more, when somebody else nominated the pod, and when pods are nominated no more. While a
 * bind to its node has no answer the mark stays: that bind may be carried out yet. The mark is an
 * annotation, written in the same patch of pods/status as the nomination; so "over" is read from
 * the pod alone, and whoever leads next takes back what was left. Each patch says which
 * resourceVersion it was decided on: after 409 the next event of the pod decides anew. A nomination
 * that is not the mark's is another's, and never touched.
 *
 * `preempt` names nobody until a node that has room was offered and tried: at most
 * GS_OFFER_QUESTIONS times in a pod's life, none later than GS_OFFER_NS after the first. When that
 * is over, or no node is left, the pod is requeued at once. A node that led nowhere is offered
 * again when its labels, taints, allocatable or free GPU memory are not what they were.
 *
 * A node on which GS_OFFERS_VAIN offers led nowhere, to whomever, is offered to nobody for a while,
 * longer each time (GS_OFFER_NS to GS_OFFERS_PAUSE_NS): other filters than ours may refuse a whole
 * crowd there, and their offers, never all over at once, would keep it from who needs all of it. A
 * bind to it ends that, as does GS_OFFERS_PAUSE_NS without an offer in vain.
 *
 * What victims leave is reserved for the pod that `preempt` named them for, as if it were nominated
 * there: kube-scheduler's own nomination comes later. It begins with the first of them that is
 * deleted, on the node where that was, and lasts GS_OFFER_FREED_NS, or until the watch shows
 * another nomination of the pod, its bind or its end.
 */
#define GS_OFFER_NS        (3 * GS_NS_PER_S)
#define GS_OFFERS_PAUSE_NS (60 * GS_NS_PER_S)
#define GS_OFFER_FREED_NS  (10 * GS_NS_PER_S)
enum { GS_OFFER_QUESTIONS = 2, GS_OFFERS_TRIED_MAX = 256, GS_OFFERS_VAIN = 8 };
enum { GS_OFFERS_WORK = 16384 }; /* of one search under a lock that others wait for: 2 ms */

/* By the ledger's slot; guarded by the store's lock. */
struct gs_offered_nodes {
    struct gs_offered_node {
        uint32_t vain;   /* offers, in a row */
        int64_t vain_ns; /* the last of them ended */
    } * nodes;
    uint32_t cap;
};

struct gs_service;
struct gs_ask;
struct gs_victims;
struct gs_waiter;

/* Of one waiting pod. */
struct gs_offers {
    char *freed;      /* where victims of its preemption went; NULL */
    int64_t freed_ns; /* the first of them */
    char *node;       /* where it is offered a place; NULL: no offer stands */
    int64_t since_ns; /* that was decided */
    bool refused;     /* by filter, of this process: kube-scheduler asks here */
    bool failed;      /* kube-scheduler tried that node, and did not take it */
    bool awaited;     /* it was written, and the watch has not shown it */
    bool left;        /* kube-scheduler may have nominated it to the marked node itself */
    bool evicts;      /* preempt named nodes, and it was not refused since: kube-scheduler is about
                         to nominate it to one of them */
    bool owed;    /* preempt named nobody for the offer's sake: it is requeued when that is over */
    bool cleaned; /* a mark without its nomination was taken off */
    uint32_t questions; /* of preempt, so answered, … */
    int64_t first_ns;   /* … the first of them */
    uint64_t stale;     /* the revision on which a patch was decided in vain; 0: none */
    int64_t retry_ns;   /* no taking back before */
    struct gs_tried {
        uint32_t slot;
        uint64_t print; /* of the node, as it was */
    } * tried;          /* of the nodes that it was offered, the last ones */
    uint32_t tried_count;
};

enum { GS_NODE_NAME_BYTES = 254 };

static inline void gs_offers_release(struct gs_offers *offers)
{
    free(offers->freed);
    free(offers->node);
    free(offers->tried);
}

static inline void gs_offers_forget_freed(struct gs_offers *offers)
{
    free(offers->freed);
    offers->freed = NULL;
}

/* The ledger has a reservation for its sake. */
static inline bool gs_offers_hold(const struct gs_offers *offers)
{
    return offers->freed || offers->node;
}

/* It is to be found by gs_pending_each_offered(). */
static inline bool gs_offers_concern(const struct gs_offers *offers, const struct gs_pod *pod)
{
    return gs_offers_hold(offers) || offers->awaited || pod->offer[0];
}

/* A pod was bound to the node. Store locked for writing. */
void gs_offers_bound(struct gs_service *service, uint32_t slot);

/* For preempt. True: nobody is to be named now. Takes the store's lock. */
bool gs_offers_hold_up(struct gs_service *service, const struct gs_pod *pod);
/* These are named. */
void gs_offers_leave(struct gs_service *service, const char *uid, const struct gs_victims *nodes,
                     uint32_t count);

/* For the requeuer, under the store's and the table's lock: may be offered a node, now; this one;
 * offers it one (lock for writing), false: there is none, or no memory. */
bool gs_offers_wait(const struct gs_waiter *waiter); /* its next event decides */
bool gs_offers_may(const struct gs_service *service, const struct gs_waiter *waiter);
bool gs_offers_take(const struct gs_service *service, const struct gs_waiter *waiter,
                    const struct gs_ask *ask, uint32_t slot);
bool gs_offers_decide(struct gs_service *service, struct gs_waiter *waiter, int64_t now_ns);

/* The first node from *from on that has room and `takes` it; GS_INDEX_NONE: there is none, and
 * *from is 0, or *work is done, and it goes on there. A node costs 1 and the pod's rules. */
typedef bool (*gs_offers_takes_fn)(const struct gs_service *service, const struct gs_waiter *waiter,
                                   const struct gs_ask *ask, uint32_t slot);
uint32_t gs_offers_find(const struct gs_service *service, const struct gs_waiter *waiter,
                        const struct gs_ask *ask, gs_offers_takes_fn takes, uint32_t *from,
                        int64_t *work);
int64_t gs_offers_rules_work(const struct gs_pod *pod);

/* Writes an offer that was decided, in one patch with the annotation that requeues it. */
enum gs_offer_sent {
    GS_OFFER_WRITTEN,
    GS_OFFER_STALE,   /* the pod is not what it was: its next event decides */
    GS_OFFER_REFUSED, /* it may not be written: the offer does not stand */
};
enum gs_offer_sent gs_offers_send(struct gs_service *service, const struct gs_pod *pod,
                                  const char *node, const char *stamp);

/* Ends offers that are over, and queues marks to be taken off (patches.h). */
void gs_offers_tick(struct gs_service *service, int64_t now_ns);

#endif
