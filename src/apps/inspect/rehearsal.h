/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_REHEARSAL_H
#define GPUSHARE_APPS_INSPECT_REHEARSAL_H

#include "gpushare/service/service.h"
#include "inspect/snapshot.h"

/*
 * The scheduler's cycle on a cluster in memory: the shipped service (filter, prioritize, bind),
 * fed with what the real API showed, binds pods that exist only here. Nothing reaches the real
 * cluster. One thread.
 *
 *   struct rehearsal *rehearsal;
 *   rehearsal_new(&names, GS_PLACEMENT_BINPACK, &rehearsal, err);
 *   fetch_cluster(..., rehearsal_sink(rehearsal), ...);
 *   rehearsal_node(rehearsal, "n1");                 per node that may be used
 *   rehearsal_begin(rehearsal, err);                 replicas of one kind after the other
 *   while (rehearsal_place(rehearsal, &ask, &pod, err) > 0) ...
 */
struct rehearsal;

/* What one replica asks for; texts may be NULL or "". */
struct rehearsal_ask {
    uint32_t units; /* per GPU */
    uint32_t gpu_count;
    uint32_t cores_pct; /* 0: none */
    int64_t cpu_milli;
    const char *model, *model_deny, *uuid, *uuid_deny;
};

/* names is borrowed. *ret: *caller frees*. */
int rehearsal_new(const struct gs_names *names, enum gs_placement policy, struct rehearsal **ret,
                  struct gs_error *err);
void rehearsal_free(struct rehearsal *rehearsal);

struct gs_watch_sink rehearsal_sink(struct rehearsal *rehearsal);

/* Adds a node to those that are asked about. GS_ENOMEM. */
int rehearsal_node(struct rehearsal *rehearsal, const char *name, struct gs_error *err);

/* All nodes are asked about again: what follows is another kind of pod. GS_ENOMEM. */
int rehearsal_begin(struct rehearsal *rehearsal, struct gs_error *err);

/* 1: one more replica is bound, *pod (zeroed or used before) is it, bound. 0: none fits any more;
 * all replicas since rehearsal_begin() are alike. -1: error. */
int rehearsal_place(struct rehearsal *rehearsal, const struct rehearsal_ask *ask,
                    struct gs_pod *pod, struct gs_error *err);

#endif
