/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_PROMISES_H
#define GPUSHARE_SERVICE_PROMISES_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"
#include "gpushare/model/gpu.h"
#include "gpushare/model/pod.h"

/*
 * Pod groups (gangs). Whoever schedules a group as a whole (kube-scheduler from 1.36 on by its gate
 * GenericWorkload, Coscheduling by a permit) asks filter about all members before the first is
 * bound, and what it assumes meanwhile stands in no request. So filter names one node for a member,
 * the best, and keeps a place for it there, with its GPUs: a promise. The next member, and every
 * other pod of the same or lower priority, is judged beside it, and so is a bind.
 *
 * A member is a pod that names a group (gs_pod.group) and is asked about by names: whole Node
 * objects are how somebody asks what would be.
 *
 * | state of a member | what is there | event, transition: next state |
 * |---|---|---|
 * | unknown | nothing here | filter finds a place, gs_promises_make(): promised |
 * | | | filter refuses it, gs_promises_refused(): refused |
 * | promised | an entry, and in the ledger | its bind, refused or not, or its end: over |
 * | | | GS_PROMISE_NS, the tick: refused, as a retry may find younger places |
 * | | | the group ends: unknown |
 * | refused | an entry that says so | the group ends, or GS_PROMISE_NS: unknown |
 * | over | an entry, nothing in the ledger | its next filter, or the tick: unknown |
 *
 * Its next filter after a refused bind begins a cycle without the others, whose binds may be under
 * way: their places stay. Where they are asked about again as well, theirs end and not its new one.
 *
 * A group ends with a new cycle: filter is asked again about a member that is promised or refused
 * (a retry, the next of several placements that are tried, a dry run; gs_promises_asked()). And
 * once one was refused, GS_PROMISE_REFUSED_NS after it was asked about last, since a group may
 * begin with fewer than all (minCount). And when this replica answers no more.
 *
 * The ledger alone says who is promised what. What ends here frees the place: waiting pods are
 * looked at, but for those of the group that were refused beside it, and the member's own
 * nomination holds its place again.
 *
 * What is promised and never bound holds what the pod asks for, for GS_PROMISE_NS after each time
 * that its scheduler asks. Entries are GS_PROMISES_MAX at most, of all tenants: members beyond that
 * are answered like pods without a group. After a change of the leader there are none.
 */
#define GS_PROMISE_NS         (5 * GS_NS_PER_S)
#define GS_PROMISE_REFUSED_NS (300 * GS_NS_PER_MS)
enum { GS_PROMISES_MAX = 1 << 14 };

struct gs_service;
struct gs_filter_args;

struct gs_promises {
    struct gs_promise_group *groups;
    struct gs_promise_member *members;
};
void gs_promises_release(struct gs_promises *promises);

static inline bool gs_promises_concern(const struct gs_pod *pod)
{
    return pod->group[0] != '\0';
}

/* For filter, about a member. The store is locked for writing. */

/* Before it is judged: ends the group when this is a new cycle of it. */
void gs_promises_asked(struct gs_service *service, const struct gs_pod *pod);

/* After: promises it these GPUs there. False: no promise (no GPUs, it has a claim, or there is no
 * memory), and it is answered like any pod. */
bool gs_promises_make(struct gs_service *service, const struct gs_pod *pod, uint32_t slot,
                      gs_gpu_mask gpus);

/* Its bind was refused. Takes the store's lock. */
void gs_promises_unbound(struct gs_service *service, const char *uid);

/* It was refused on all nodes. Takes the store's lock. */
void gs_promises_refused(struct gs_service *service, const struct gs_filter_args *args);

/* The group, "namespace/name", of a pod that is promised a place, and for how long at most it is
 * still; NULL: it is promised none. The store is locked. */
const char *gs_promises_group(const struct gs_service *service, const char *uid,
                              int64_t *ret_left_ns);

/* Ends the reservations whose time is over. */
void gs_promises_tick(struct gs_service *service, int64_t now_ns);

#endif
