/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "gains.h"
#include "gpushare/base/clock.h"
#include "gpushare/codec/extender.h"
#include "gpushare/core/eviction.h"

/*
 * Memory that is reserved for a pod before the API shows it bound. Node, GPUs and size are in the
 * ledger, by the pod's UID: of a bind as a reserved claim, of the others as a hold. Here is which
 * kind it is, and what ends it.
 *
 * | kind | begins when | ends with |
 * | --- | --- | --- |
 * | queued bind | its request was read | its turn; GS_BIND_QUEUE_NS |
 * | bind | its turn comes | the API's answer; the watch |
 * | unresolved bind | there was no answer | the pod shown bound or gone; unbound at its end |
 * | gang member | filter named its node | its bind or end; its group's cycle; the tick |
 * | nomination | the requeuer found a node | its bind; a vain try; GS_NOMINATION_NS |
 * | another's nomination | the watch shows it | the watch shows another, or none |
 * | freed memory | the first victim goes | its bind; another nomination; GS_NOMINATION_FREED_NS |
 *
 * Of several for one pod counts the bind, then the gang's, then freed memory, then the nomination
 * that the pod shows, then ours. The service is locked for writing where nothing else is said.
 */
struct gs_service;
struct gs_waiter;
struct gs_ask;

/* --- pods that are not bound --- */

/* ctx: the service. Where memory was freed for it, or as the pod shows it, or at the node that it
 * is nominated to and does not show yet. */
int gs_reservations_follow(void *ctx, const struct gs_pod *pod, struct gs_error *err);

/* The same for a pod that had none meanwhile, if it is known. */
void gs_reservations_again(struct gs_service *service, const char *uid);

/* At this node, and with gpus of these (a gang reservation); NULL: at none any more. */
int gs_reservations_set(struct gs_service *service, const struct gs_pod *pod, const char *node,
                        gs_gpu_mask gpus, struct gs_error *err);

/* The nomination is over. What the pod shows stays reserved until that is taken back.
 * The table is locked. */
void gs_reservations_end_nomination(struct gs_service *service, struct gs_waiter *waiter);

/* Of the pod of this UID a victim goes there, before its memory comes free. False: the watch has
 * not shown the pod. */
bool gs_reservations_freed(struct gs_service *service, const char *uid, const char *node);

/* --- binds --- */

/*
 * Binds whose reservation has to end, by their pods' UIDs.
 * - Queued: read, and waiting for a worker, and in the first seconds of a process for what the one
 *   before may have sent. kube-scheduler goes on with the next pods meanwhile.
 * - Unresolved: the answer was lost, and the API server may still carry it out.
 */
struct gs_bind_reservation {
    uint64_t ns;      /* hash of the namespace */
    int64_t until_ns; /* afterwards an unbound pod may be undone */
    int64_t next_look_ns;
    uint32_t repetitions; /* under way: they may succeed too */
    bool queued;          /* else it is unresolved */
    UT_hash_handle hh;
    char uid[];
};
struct gs_bind_reservations {
    struct gs_bind_reservation *all; /* the oldest first */
    uint64_t turn;                   /* the least hash of a namespace that is next */
    atomic_uint unresolved;          /* so many; needs no lock */
};

/* No request outlives this on an API server (its --request-timeout is 60 s by default). */
#define GS_UNRESOLVED_BIND_NS (65 * GS_NS_PER_S)
/* One that was answered with a failure is done with; what etcd had of it shows in moments. */
#define GS_UNRESOLVED_BIND_ANSWERED_NS (5 * GS_NS_PER_S)
/* No turn comes for a bind that the server's queue has no room for. */
#define GS_BIND_QUEUE_NS (30 * GS_NS_PER_S)

/* NULL: there is none. */
struct gs_bind_reservation *gs_bind_reservations_find(const struct gs_service *service,
                                                      const char *uid);
bool gs_bind_is_unresolved(const struct gs_service *service, const char *uid);

/* Puts it in until then, or later when it was in for longer; the first look at it is at look_ns.
 * False: out of memory; the reservation then stays until the watch shows the pod's end. */
bool gs_bind_reservations_add(struct gs_service *service, const struct gs_binding_args *args,
                              bool queued, int64_t look_ns, int64_t until_ns);

void gs_bind_reservations_remove(struct gs_service *service, const char *uid);

/* What the API says of a pod that was to be bound. */
enum gs_bind_found {
    GS_BIND_UNKNOWN, /* no answer */
    GS_BIND_UNBOUND,
    GS_BIND_BOUND,     /* to the node asked for; the ledger has its GPUs now */
    GS_BIND_ELSEWHERE, /* to another node; the ledger has it there now */
    GS_BIND_POD_GONE,  /* gone, ended, or another pod has its name */
};

/* Reads the pod of args and takes a bound one into the ledger. args->node NULL: any node is the
 * right one. Call without the lock. */
enum gs_bind_found gs_bind_read_back(struct gs_service *service,
                                     const struct gs_binding_args *args);

/* The pod is bound: its claim counts for good. gpus: our own bind it was, and whatever the pod's
 * record says by now, it was bound to these; 0: as the ledger has it. Call without the lock. */
void gs_bind_confirm(struct gs_service *service, const struct gs_binding_args *args,
                     gs_gpu_mask gpus);

/* Gives a reservation back, and the bind is under way no more; a confirmed claim stays.
 * gs_bind_undo takes the lock. */
void gs_bind_undo_locked(struct gs_service *service, const char *uid);
void gs_bind_undo(struct gs_service *service, const char *uid);

/* Asks the API what became of a bind without an answer, if one is due. Call without the lock. */
void gs_bind_settle(struct gs_service *service, int64_t now_ns);

/* Ends what was reserved for binds whose turn never came. Call without the lock. */
void gs_bind_expire_queue(struct gs_service *service, int64_t now_ns);

/* --- members of pod groups --- */

/*
 * Reservations for members of pod groups (gangs). A scheduler that places a group as a whole
 * (kube-scheduler from 1.36 on by its gate GenericWorkload, Coscheduling by a permit) calls filter
 * for all members before it binds the first, and no request says what it assumes meanwhile. So
 * filter names one node for a member, the best, and reserves GPUs there. The next member, every
 * other pod of the same or lower priority, and binds are judged beside that.
 *
 * A member is a pod that names a group (gs_pod.group) and is asked about by names: whole Node
 * objects are how somebody asks what would be. With gs_service_config.names_one each pod without
 * preferences is the only member of a group of its own, which is never refused.
 *
 * | state of a member | what is there | event, transition: next state |
 * |---|---|---|
 * | unknown | nothing here | filter finds a node, _make(): reserved |
 * | | | filter rejects it, _refused(): refused |
 * | reserved | an entry, and in the ledger | its bind, rejected or not, or its end: over |
 * | | | GS_GANG_RESERVATION_NS, the tick: refused, as a retry may find younger reservations |
 * | | | the group ends: unknown |
 * | refused | an entry that says so | the group ends, or GS_GANG_RESERVATION_NS: unknown |
 * | over | an entry, nothing in the ledger | its next filter, or the tick: unknown |
 *
 * - The filter of a member after its rejected bind begins a cycle without the others, whose binds
 *   may be under way: their reservations stay. Where they are asked about again as well, theirs end
 *   and not its new one.
 * - A group ends with a new cycle: filter is asked again about a member that is reserved or refused
 *   (a retry, the next of several placements that are tried, a dry run; _asked()). And once one was
 *   refused, GS_GANG_RESERVATION_REFUSED_NS after the last filter, since a group may begin with
 *   fewer than all (minCount). And when this replica answers no more.
 * - The ledger alone says which pod has what reserved. What ends here frees memory: pending pods
 *   are compared, but for those of the group that were refused beside it, and the member's own
 *   nomination has its reservation again.
 * - What is reserved and never bound stays for GS_GANG_RESERVATION_NS after each filter. Entries
 *   are GS_GANG_RESERVATIONS_MAX at most, of all tenants: members beyond that are answered like
 *   pods without a group. After a change of the leader there are none.
 */
#define GS_GANG_RESERVATION_NS         (5 * GS_NS_PER_S)
#define GS_GANG_RESERVATION_REFUSED_NS (300 * GS_NS_PER_MS)
enum { GS_GANG_RESERVATIONS_MAX = 1 << 14 };

struct gs_gang_reservations {
    struct gs_gang *groups;
    struct gs_gang_member *members;
};
void gs_gang_reservations_release(struct gs_gang_reservations *gangs);

static inline bool gs_gang_reservations_concern(const struct gs_pod *pod)
{
    return pod->group[0] != '\0';
}

/* For filter, about a member. The service is locked for writing. */

/* Before it is judged: ends the group when this is a new cycle of it. */
void gs_gang_reservations_asked(struct gs_service *service, const struct gs_pod *pod);

/* After: reserves these GPUs there. False: no reservation (no GPUs, it has a claim, or there is no
 * memory), and it is answered like any pod. */
bool gs_gang_reservations_make(struct gs_service *service, const struct gs_pod *pod, uint32_t slot,
                               gs_gpu_mask gpus);

/* Its bind was refused. Takes the service's lock. */
void gs_gang_reservations_unbound(struct gs_service *service, const char *uid);

/* It was refused on all nodes. Takes the service's lock. */
void gs_gang_reservations_refused(struct gs_service *service, const struct gs_filter_args *args);

/* The group, "namespace/name", of a pod with a reservation, and for how long at most it has that
 * still; NULL: it has none. The service is locked. */
const char *gs_gang_reservations_group(const struct gs_service *service, const char *uid,
                                       int64_t *ret_left_ns);

/* Ends the reservations whose time is over. */
void gs_gang_reservations_tick(struct gs_service *service, int64_t now_ns);

/* --- what victims leave --- */

/*
 * Nodes where evictions were approved for a pod, lately. kube-scheduler's caches may see a victim
 * go before our watch does, and releases from 1.32 on ask about the pod in the same moment:
 * refused, it would evict others on another node, for nothing. So filter gives the watch a moment
 * when it would refuse such a pod on such a node, and what the victims leave is reserved.
 *
 * Which victim went for which pod: kube-scheduler chooses one node of each answer and does not say
 * which; it may evict for several pods at a time, in any order. A pod is given the first of its
 * victims that goes. Of several that were approved the same one it is the last: what was chosen for
 * a pod before is not proposed again, unless all of them go to one node. A later victim, nomination
 * or bind may show that one was given to the wrong pod; then they are assigned again.
 */
enum {
    GS_EVICTION_WAITS_MAX = 64,
    GS_EVICTION_WAITERS_MAX = 4,   /* at a time */
    GS_EVICTION_MERGED_MAX = 4096, /* victims of approvals in a row */
};
#define GS_EVICTION_WAIT_NS        ((int64_t)250 * 1000000)  /* of one filter */
#define GS_EVICTION_WAIT_BUDGET_NS ((int64_t)1000 * 1000000) /* of all after one approval */
#define GS_EVICTION_BEGINS_NS      (10 * GS_NS_PER_S)        /* after an approval, at most */

struct gs_eviction_waits {
    int64_t each_ns, budget_ns; /* as above */
    struct gs_eviction_wait {
        char *uid;
        uint64_t ns; /* hash of its namespace */
        struct gs_eviction_victim {
            uint64_t node, pod; /* hashes of name and UID; pod 0: the node has no victims */
        } * victims, went;      /* ascending; the one that went for it, ... */
        char *node;             /* ... on this node; NULL: none did yet */
        bool settled;           /* the API showed that it goes there */
        uint32_t count;
        int64_t left_ns, since_ns;
        uint64_t order;             /* of the approvals */
    } items[GS_EVICTION_WAITS_MAX]; /* the oldest of the namespace that has most makes room */
    uint64_t approvals;
    uint32_t waiters; /* now */
    uint64_t waits;   /* begun ever */
};
void gs_eviction_waits_release(struct gs_eviction_waits *waits);

/* In place of what was approved for this pod before, or beside it while no victim went. Without
 * memory nothing is remembered. Takes the service's lock. */
void gs_eviction_waits_add(struct gs_service *service, const struct gs_pod *pod,
                           const struct gs_victims *nodes, uint32_t count);

/* A bound pod goes. */
void gs_eviction_waits_go(struct gs_service *service, const struct gs_pod *victim);
/* A pod was nominated or bound there; NULL: it ended. */
void gs_eviction_waits_settle(struct gs_service *service, const char *uid, const char *node);

/* One of the names is a node cleared for this pod: how long filter may wait for memory there; 0:
 * not at all. Takes the service's lock. */
int64_t gs_eviction_waits_left_ns(struct gs_service *service, const char *uid,
                                  const struct gs_slice *names, uint32_t count);

/* Waits until memory came free after `epoch`, or for so long as the last function says, or for
 * *left_ns, which becomes what is left of it. True when memory came free: judge again. False at
 * once when there is no time, or GS_EVICTION_WAITERS_MAX wait already. No lock held. */
bool gs_eviction_waits_wait(struct gs_service *service, const char *uid, int64_t longest_ns,
                            uint64_t epoch, int64_t *left_ns);
