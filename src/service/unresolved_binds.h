/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_UNRESOLVED_BINDS_H
#define GPUSHARE_SERVICE_UNRESOLVED_BINDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"

/*
 * Binds by their pods' UIDs, each with a reservation in the ledger that has to end. Guarded by the
 * store's lock. There are two tables.
 *
 * Unresolved ones: their outcome is not known. The answer was lost, and the API server may still
 * carry them out. Their reservation stays until the API shows the pod bound, gone, or still unbound
 * when no request of ours can be under way any more.
 *
 * The bind queue: binds that were read and wait for their turn: for a worker, and in the first
 * seconds of a process for what the one before may have sent. Their memory is reserved from when
 * they were read: kube-scheduler goes on with the next pods meanwhile, and filter would know
 * nothing of these.
 */
struct gs_unresolved_binds {
    struct gs_unresolved_bind *all; /* the oldest first */
    uint64_t turn;                  /* the least hash of a namespace that is next */
    atomic_uint count;              /* needs no lock */
};

/* No request outlives this on an API server (its --request-timeout is 60 s by default). */
#define GS_UNRESOLVED_BIND_NS (65 * GS_NS_PER_S)
/* One that was answered with a failure is done with; what etcd had of it shows in moments. */
#define GS_UNRESOLVED_BIND_ANSWERED_NS (5 * GS_NS_PER_S)
/* No turn comes for a bind that the server's queue has no room for. */
#define GS_BIND_QUEUE_NS (30 * GS_NS_PER_S)

void gs_unresolved_binds_release(struct gs_unresolved_binds *binds);

/* Puts it in until then, or later when it was in for longer; the first look at it is at look_ns.
 * False: out of memory; the reservation then stays until the watch shows the pod's end. */
bool gs_unresolved_binds_add(struct gs_unresolved_binds *binds, const char *ns, const char *uid,
                             int64_t look_ns, int64_t until_ns);

bool gs_unresolved_binds_has(const struct gs_unresolved_binds *binds, const char *uid);
/* Whether it was there. uid may be the entry's own. */
bool gs_unresolved_binds_remove(struct gs_unresolved_binds *binds, const char *uid);

/* Around a repetition of the bind, which may be carried out as well. begin: false when nothing is
 * to be repeated; then there is no end. */
bool gs_unresolved_binds_repeat_begin(struct gs_unresolved_binds *binds, const char *uid);
void gs_unresolved_binds_repeat_end(struct gs_unresolved_binds *binds, const char *uid);

/* No request can bind it any more: its time is over, and no repetition is under way. */
bool gs_unresolved_binds_over(const struct gs_unresolved_binds *binds, const char *uid,
                              int64_t now_ns);

/* The UID of one that is due for a look, namespaces in turn, and has its next a second later; NULL
 * when none is. *Borrowed until* it is removed. */
const char *gs_unresolved_binds_due(struct gs_unresolved_binds *binds, int64_t now_ns);

#endif
