/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_POLICY_KINDS_H
#define GPUSHARE_CORE_POLICY_KINDS_H

#include <pthread.h>

#include "gpushare/core/placement.h"

/*
 * The kinds of pods whose choices are remembered at a time: each is the ask itself, compared word
 * by word, so that no text of a tenant's can be taken for another's. A kind has a row (0 ..
 * GS_KINDS_MAX - 1) as long as it is here, and a number that no other kind ever had.
 *
 * A kind belongs to the namespace that brought it. Where there is no row left, the namespace with
 * most of them gives the one that it used longest ago: with N namespaces that bring new kinds, each
 * keeps a share of GS_KINDS_MAX / N, whatever one of them makes up. Any thread.
 */
enum { GS_KINDS_MAX = 64, GS_KIND_TEXT_MAX = 4 * GS_LIST_BYTES_MAX };

/* All that a choice depends on, besides the node and the table: what is not in here must not be
 * looked at by a policy. Of the lists, lengths; their bytes one after the other in the text. */
struct gs_ask_kind {
    int64_t cpu_milli;
    uint32_t units, gpu_count, cores_pct;
    uint32_t leaving;
    uint32_t list_bytes[4]; /* no byte is padding: kinds are compared as bytes */
};

struct gs_ask_kind_row {
    struct gs_ask_kind kind;
    uint64_t number; /* 0: no kind here */
    uint64_t owner;  /* hash of the namespace */
    uint64_t used;   /* the last time, by a count of look-ups */
    char text[GS_KIND_TEXT_MAX];
};

struct gs_kinds {
    pthread_mutex_t lock;
    uint64_t looks, numbers;
    uint64_t hashes[GS_KINDS_MAX]; /* of what is compared then; side by side, to be quick */
    struct gs_ask_kind_row rows[GS_KINDS_MAX];
};

/* The ask's number, never 0, and its row; 0: its lists are longer than any that is not broken, and
 * nothing is to be remembered. */
uint64_t gs_kinds_find(struct gs_kinds *kinds, bool leaving, const struct gs_ask *ask,
                       uint32_t *ret_row);

#endif
