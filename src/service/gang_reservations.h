/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_GANG_RESERVATIONS_H
#define GPUSHARE_SERVICE_GANG_RESERVATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"
#include "gpushare/model/gpu.h"
#include "gpushare/model/pod.h"

/*
 * Reservations for members of pod groups (gangs). A scheduler that places a group as a whole
 * (kube-scheduler from 1.36 on by its gate GenericWorkload, Coscheduling by a permit) calls filter
 * for all members before it binds the first, and no request says what it assumes meanwhile. So
 * filter names one node for a member, the best, and reserves GPUs there. The next member, every
 * other pod of the same or lower priority, and binds are judged beside that.
 *
 * A member is a pod that names a group (gs_pod.group) and is asked about by names: whole Node
 * objects are how somebody asks what would be.
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

struct gs_service;
struct gs_filter_args;

struct gs_gang_reservations {
    struct gs_gang *groups;
    struct gs_gang_member *members;
};
void gs_gang_reservations_release(struct gs_gang_reservations *gangs);

static inline bool gs_gang_reservations_concern(const struct gs_pod *pod)
{
    return pod->group[0] != '\0';
}

/* For filter, about a member. The store is locked for writing. */

/* Before it is judged: ends the group when this is a new cycle of it. */
void gs_gang_reservations_asked(struct gs_service *service, const struct gs_pod *pod);

/* After: reserves these GPUs there. False: no reservation (no GPUs, it has a claim, or there is no
 * memory), and it is answered like any pod. */
bool gs_gang_reservations_make(struct gs_service *service, const struct gs_pod *pod, uint32_t slot,
                               gs_gpu_mask gpus);

/* Its bind was refused. Takes the store's lock. */
void gs_gang_reservations_unbound(struct gs_service *service, const char *uid);

/* It was refused on all nodes. Takes the store's lock. */
void gs_gang_reservations_refused(struct gs_service *service, const struct gs_filter_args *args);

/* The group, "namespace/name", of a pod with a reservation, and for how long at most it has that
 * still; NULL: it has none. The store is locked. */
const char *gs_gang_reservations_group(const struct gs_service *service, const char *uid,
                                       int64_t *ret_left_ns);

/* Ends the reservations whose time is over. */
void gs_gang_reservations_tick(struct gs_service *service, int64_t now_ns);

#endif
