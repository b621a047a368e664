/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_NOMINATIONS_H
#define GPUSHARE_SERVICE_NOMINATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "gpushare/base/clock.h"
#include "gpushare/model/pod.h"

/*
 * Nominations. Where kube-scheduler stops looking once it has found enough nodes
 * (percentageOfNodesToScore), its sample may have no node with enough free memory: it knows the sum
 * of a node's GPU memory, not its GPUs. A pod so rejected gets status.nominatedNodeName of a node
 * of the ledger where it fits and that it may use (model/eligible.h), and is requeued:
 * kube-scheduler 1.22 and newer tries that node first, with all its other filters
 * (pkg/scheduler/schedule_one.go: evaluateNominatedNode).
 *
 * | state | what is so | transition |
 * | --- | --- | --- |
 * | none | no nomination, the pod has no mark | the requeuer finds a node: nominated |
 * | nominated | the ledger has its reservation, also before the PATCH | bound; the tick: over |
 * | over | no nomination, the pod has the mark | the tick takes it off: none |
 *
 * - A nomination is over after GS_NOMINATION_NS; when kube-scheduler tried the node in vain, the
 *   pod does not fit there any more, or somebody else nominated it; when pods are nominated no
 *   more. While a bind to its node has no answer the mark stays.
 * - The mark is an annotation, written in the same PATCH of pods/status. So "over" is read from the
 *   pod alone, and the next leader takes back what was left. A nomination that is not the mark's is
 *   another's, and never touched.
 * - Each PATCH names the resourceVersion that it was decided on: after 409 the pod's next event
 *   decides again.
 * - `preempt` names no victims until a node that fits was nominated and tried: at most
 *   GS_NOMINATION_QUESTIONS times in a pod's life, none later than GS_NOMINATION_NS after the
 *   first. When that is over, or no node is left, the pod is requeued at once.
 * - A node that was tried in vain is taken again when its labels, taints, allocatable or free GPU
 *   memory have changed. After GS_NOMINATIONS_VAIN in vain, of any pods, a node is left alone for a
 *   while, longer each time (GS_NOMINATION_NS to GS_NOMINATIONS_PAUSE_NS): other filters may reject
 *   a crowd there, whose reservations would keep it from a pod that needs all of it. A bind there
 *   ends that, as does GS_NOMINATIONS_PAUSE_NS without one in vain.
 * - What victims leave is reserved for the pod that `preempt` named them for, as if it were
 *   nominated there: from the first of them that is deleted, for GS_NOMINATION_FREED_NS, or until
 *   the watch shows another nomination of the pod, its bind or its end.
 */
#define GS_NOMINATION_NS        (3 * GS_NS_PER_S)
#define GS_NOMINATIONS_PAUSE_NS (60 * GS_NS_PER_S)
#define GS_NOMINATION_FREED_NS  (10 * GS_NS_PER_S)
enum { GS_NOMINATION_QUESTIONS = 2, GS_NOMINATIONS_TRIED_MAX = 256, GS_NOMINATIONS_VAIN = 8 };
enum { GS_NOMINATIONS_WORK = 16384 }; /* of one search under a lock that others wait for: 2 ms */

/* By the ledger's slot; guarded by the store's lock. */
struct gs_nominated_nodes {
    struct gs_nominated_node {
        uint32_t vain;   /* nominations, in a row */
        int64_t vain_ns; /* the last of them ended */
    } * nodes;
    uint32_t cap;
};

struct gs_service;
struct gs_ask;
struct gs_victims;
struct gs_waiter;

/* Of one waiting pod. */
struct gs_nominations {
    char *freed;      /* where victims of its preemption went; NULL */
    int64_t freed_ns; /* the first of them */
    char *node;       /* where it is nominated; NULL: nowhere */
    int64_t since_ns; /* that was decided */
    bool refused;     /* by filter, of this process: kube-scheduler asks here */
    bool failed;      /* kube-scheduler tried that node, and did not take it */
    bool awaited;     /* it was written, and the watch has not shown it */
    bool left;        /* kube-scheduler may have nominated it to the marked node itself */
    bool evicts;      /* preempt named nodes, and it was not refused since: kube-scheduler is about
                         to nominate it to one of them */
    bool owed;        /* preempt named nobody for its sake: requeued when it is over */
    bool cleaned;     /* a mark without its nomination was taken off */
    uint32_t questions; /* of preempt, so answered, … */
    int64_t first_ns;   /* … the first of them */
    uint64_t stale;     /* the revision on which a patch was decided in vain; 0: none */
    int64_t retry_ns;   /* no taking back before */
    struct gs_tried {
        uint32_t slot;
        uint64_t print; /* of the node, as it was */
    } * tried;          /* of the nodes that it was nominated to, the last ones */
    uint32_t tried_count;
};

enum { GS_NODE_NAME_BYTES = 254 };

static inline void gs_nominations_release(struct gs_nominations *nominations)
{
    free(nominations->freed);
    free(nominations->node);
    free(nominations->tried);
}

static inline void gs_nominations_forget_freed(struct gs_nominations *nominations)
{
    free(nominations->freed);
    nominations->freed = NULL;
}

/* The ledger has a reservation for its sake. */
static inline bool gs_nominations_hold(const struct gs_nominations *nominations)
{
    return nominations->freed || nominations->node;
}

/* It is to be found by gs_pending_each_nominated(). */
static inline bool gs_nominations_concern(const struct gs_nominations *nominations,
                                          const struct gs_pod *pod)
{
    return gs_nominations_hold(nominations) || nominations->awaited || pod->offer[0];
}

/* A pod was bound to the node. Store locked for writing. */
void gs_nominations_bound(struct gs_service *service, uint32_t slot);

/* For preempt. True: nobody is to be named now. Takes the store's lock. */
bool gs_nominations_hold_up(struct gs_service *service, const struct gs_pod *pod);
/* These are named. */
void gs_nominations_leave(struct gs_service *service, const char *uid,
                          const struct gs_victims *nodes, uint32_t count);

/* For the requeuer, under the store's and the table's lock: may be nominated, now; to this node;
 * nominates it (lock for writing), false: there is no node, or no memory. */
bool gs_nominations_wait(const struct gs_waiter *waiter); /* its next event decides */
bool gs_nominations_may(const struct gs_service *service, const struct gs_waiter *waiter);
bool gs_nominations_take(const struct gs_service *service, const struct gs_waiter *waiter,
                         const struct gs_ask *ask, uint32_t slot);
bool gs_nominations_decide(struct gs_service *service, struct gs_waiter *waiter, int64_t now_ns);

/* The first node from *from on that has room and `takes` it; GS_INDEX_NONE: there is none, and
 * *from is 0, or *work is done, and it goes on there. A node costs 1 and the pod's rules. */
typedef bool (*gs_nominations_takes_fn)(const struct gs_service *service,
                                        const struct gs_waiter *waiter, const struct gs_ask *ask,
                                        uint32_t slot);
uint32_t gs_nominations_find(const struct gs_service *service, const struct gs_waiter *waiter,
                             const struct gs_ask *ask, gs_nominations_takes_fn takes,
                             uint32_t *from, int64_t *work);
int64_t gs_nominations_rules_work(const struct gs_pod *pod);

/* Writes a nomination that was decided, in one patch with the annotation that requeues it. */
enum gs_nomination_sent {
    GS_NOMINATION_WRITTEN,
    GS_NOMINATION_STALE,   /* the pod is not what it was: its next event decides */
    GS_NOMINATION_REFUSED, /* it may not be written: the nomination is over */
};
enum gs_nomination_sent gs_nominations_send(struct gs_service *service, const struct gs_pod *pod,
                                            const char *node, const char *stamp);

/* Ends nominations that are over, and queues marks to be taken off (patches.h). */
void gs_nominations_tick(struct gs_service *service, int64_t now_ns);

#endif
