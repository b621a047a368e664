/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_LIMBO_H
#define GPUSHARE_SERVICE_LIMBO_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Binds whose outcome is not known: the answer was lost, and the API server may still carry them
 * out. Their reservation stays until the API shows the pod bound, gone, or still unbound when no
 * request of ours can be under way any more. Has its own lock, taken last.
 */
struct gs_limbo;

/* No request outlives this on an API server (its --request-timeout is 60 s by default). */
#define GS_LIMBO_NS ((int64_t)65 * 1000000000)

struct gs_limbo_entry {
    char *ns;
    char *name;
    char *uid;
    int64_t until_ns; /* afterwards an unbound pod may be undone */
    int64_t next_look_ns;
    uint32_t repetitions; /* under way: they may succeed too */
};

struct gs_limbo *gs_limbo_new(void);
void gs_limbo_free(struct gs_limbo *limbo);

/* Puts it in, or counts its time from now on. -1: out of memory; the reservation then stays until
 * the watch shows the pod's end. */
int gs_limbo_add(struct gs_limbo *limbo, const char *ns, const char *name, const char *uid,
                 int64_t now_ns);

bool gs_limbo_has(struct gs_limbo *limbo, const char *uid);
void gs_limbo_remove(struct gs_limbo *limbo, const char *uid);

/* Around a repetition of the bind, which may be carried out as well. begin: false when nothing is
 * to be repeated; then there is no end. */
bool gs_limbo_repeat_begin(struct gs_limbo *limbo, const char *uid);
void gs_limbo_repeat_end(struct gs_limbo *limbo, const char *uid);

/* No request can bind it any more: its time is over, and no repetition is under way. */
bool gs_limbo_over(struct gs_limbo *limbo, const char *uid, int64_t now_ns);

/* A copy of the entry that is due for a look longest, its next look set back; false when none is.
 * *caller frees* with gs_limbo_entry_release(). */
bool gs_limbo_due(struct gs_limbo *limbo, int64_t now_ns, struct gs_limbo_entry *ret);
void gs_limbo_entry_release(struct gs_limbo_entry *entry);

uint32_t gs_limbo_count(struct gs_limbo *limbo);

#endif
