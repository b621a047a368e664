/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_OPEN_BINDS_H
#define GPUSHARE_SERVICE_OPEN_BINDS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/clock.h"

/*
 * Binds whose outcome is not known: the answer was lost, and the API server may still carry them
 * out. Their reservation stays until the API shows the pod bound, gone, or still unbound when no
 * request of ours can be under way any more. Guarded by the store's lock.
 */
struct gs_open_binds;

/* No request outlives this on an API server (its --request-timeout is 60 s by default). */
#define GS_OPEN_BIND_NS (65 * GS_NS_PER_S)
/* One that was answered with a failure is done with; what etcd had of it shows in moments. */
#define GS_OPEN_BIND_ANSWERED_NS (5 * GS_NS_PER_S)

struct gs_open_bind {
    char *ns;
    char *name;
    char *uid;
    int64_t until_ns; /* afterwards an unbound pod may be undone */
    int64_t next_look_ns;
    uint32_t repetitions; /* under way: they may succeed too */
};

struct gs_open_binds *gs_open_binds_new(void);
void gs_open_binds_free(struct gs_open_binds *open_binds);

/* Puts it in until then, or later when it was in for longer. -1: out of memory; the reservation
 * then stays until the watch shows the pod's end. */
int gs_open_binds_add(struct gs_open_binds *open_binds, const char *ns, const char *name,
                      const char *uid, int64_t now_ns, int64_t until_ns);

bool gs_open_binds_has(struct gs_open_binds *open_binds, const char *uid);
void gs_open_binds_remove(struct gs_open_binds *open_binds, const char *uid);

/* Around a repetition of the bind, which may be carried out as well. begin: false when nothing is
 * to be repeated; then there is no end. */
bool gs_open_binds_repeat_begin(struct gs_open_binds *open_binds, const char *uid);
void gs_open_binds_repeat_end(struct gs_open_binds *open_binds, const char *uid);

/* No request can bind it any more: its time is over, and no repetition is under way. */
bool gs_open_binds_over(struct gs_open_binds *open_binds, const char *uid, int64_t now_ns);

/* A copy of the entry that is due for a look longest, its next look set back; false when none is.
 * *caller frees* with gs_open_bind_release(). */
bool gs_open_binds_due(struct gs_open_binds *open_binds, int64_t now_ns, struct gs_open_bind *ret);
void gs_open_bind_release(struct gs_open_bind *entry);

/* Needs no lock. */
uint32_t gs_open_binds_count(struct gs_open_binds *open_binds);

#endif
