/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_SCHEDULER_ACTIVITY_H
#define GPUSHARE_SERVICE_SCHEDULER_ACTIVITY_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Which schedulers (spec.schedulerName) work with this service: those of --scheduler-name, or else
 * those that asked filter here, and those whose pods were bound with a record of ours. Nobody is
 * requeued for others. Until one asked, all count. Any thread.
 */
enum { GS_SCHEDULERS_MAX = 16 };
struct gs_scheduler_activity {
    /* hashes; each list ends with 0. The two fill apart: tenants can write records. */
    atomic_ullong asked[GS_SCHEDULERS_MAX], bound[GS_SCHEDULERS_MAX];
};

/* In one of the two lists. */
void gs_scheduler_activity_note(atomic_ullong *names, const char *name);

/* list: of --scheduler-name, NULL: not given. */
bool gs_scheduler_activity_knows(struct gs_scheduler_activity *schedulers, const char *list,
                                 const char *name);

/* A comma list has this name. */
bool gs_scheduler_activity_lists(const char *list, const char *name);

#endif
