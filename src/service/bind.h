/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_BIND_H
#define GPUSHARE_SERVICE_BIND_H

#include "gpushare/codec/extender.h"
#include "service_internal.h"

/* What the API says of a pod that was to be bound. */
enum gs_bind_found {
    GS_BIND_UNKNOWN, /* no answer */
    GS_BIND_UNBOUND,
    GS_BIND_BOUND,     /* to the node asked for; the ledger has its GPUs now */
    GS_BIND_ELSEWHERE, /* to another node; the ledger has it there now */
    GS_BIND_POD_GONE,  /* gone, ended, or another pod has its name */
};

/* Reads the pod and takes a bound one into the ledger. node NULL: any node is the right one. Call
 * without the lock. */
enum gs_bind_found gs_bind_read_back(struct gs_service *service, const char *ns, const char *name,
                                     const char *uid, const char *node, struct gs_error *err);

/* The pod is bound: its claim counts for good. gpus: our own bind it was, and whatever the pod's
 * record says by now, it was bound to these; 0: as the ledger has it. Call without the lock. */
void gs_bind_confirm(struct gs_service *service, const struct gs_binding_args *args,
                     gs_gpu_mask gpus);

/* Gives a reservation back and ends its stay in unresolved_binds; a confirmed claim stays. */
void gs_bind_undo(struct gs_service *service, const char *uid);

/* The same for a bind without an answer whose pod is not bound, once no request can bind it any
 * more. */
void gs_bind_expire(struct gs_service *service, const char *uid, int64_t now_ns);

/* What was reserved for binds whose turn never came. */
void gs_bind_expire_queue(struct gs_service *service, int64_t now_ns);

#endif
