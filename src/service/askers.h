/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_ASKERS_H
#define GPUSHARE_SERVICE_ASKERS_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Which schedulers (spec.schedulerName) work with this service: those of --scheduler-name, or else
 * those that asked filter here, and those whose pods were bound with a record of ours. Nobody is
 * woken for others. Until one asked, all count. Any thread.
 */
enum { GS_ASKERS_MAX = 16 };
struct gs_askers {
    /* hashes; each list ends with 0. The two fill apart: tenants can write records. */
    atomic_ullong asked[GS_ASKERS_MAX], bound[GS_ASKERS_MAX];
};

/* In one of the two lists. */
void gs_askers_note(atomic_ullong *names, const char *name);

/* list: of --scheduler-name, NULL: not given. */
bool gs_askers_know(struct gs_askers *askers, const char *list, const char *name);

/* A comma list has this name. */
bool gs_askers_among(const char *list, const char *name);

#endif
