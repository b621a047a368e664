/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>

#include "gpushare/core/placement.h"

/*
 * The kinds of pods whose choices are remembered at a time. A kind has a row (0 .. GS_KINDS_MAX -
 * 1) as long as it is here, and a number that no other kind ever had. Any thread.
 *
 * A kind belongs to the namespace that brought it. Where there is no row left, the namespace with
 * most of them gives the one that it used longest ago: with N namespaces that bring new kinds, each
 * keeps a share of GS_KINDS_MAX / N, whatever one of them makes up.
 */
enum { GS_KINDS_MAX = 64 };

struct gs_ask_kind_row {
    uint64_t hash;   /* of all that a choice depends on, besides the node and the table */
    uint64_t number; /* 0: no kind here */
    uint64_t owner;  /* hash of the namespace */
    uint64_t used;   /* the last time, by a count of look-ups */
};

struct gs_kinds {
    pthread_mutex_t lock;
    uint64_t looks, numbers;
    struct gs_ask_kind_row rows[GS_KINDS_MAX];
};

/* The ask's number, never 0, and its row. */
uint64_t gs_kinds_find(struct gs_kinds *kinds, bool leaving, const struct gs_ask *ask,
                       uint32_t *ret_row);
