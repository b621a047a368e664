/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/columns.h"
#include "inspect/verdict.h"

/*
 * Every pod that asks for GPU memory and has no node, and why: the reason of the node that comes
 * nearest to taking it. The same for `why` without a pod, doctor, -o wide, json and the page.
 * Everything borrows from the snapshot.
 */
struct wait {
    const struct gs_pod *pod;
    struct gs_ask ask;
    uint64_t pods;              /* of its owner, request and reason; 0: an older one counts them */
    uint32_t fits;              /* nodes that could take it now */
    const char *key;            /* pods of one have one verdict */
    bool broken;                /* the pod itself is wrong, whatever the cluster has */
    bool never;                 /* no GPU of this cluster could ever take it */
    struct verdict_group group; /* the nodes of that reason, and the nearest unless it is broken */
    bool other_scheduler;       /* it names another scheduler than all that have their GPU */
    const char *request;        /* waits_request() */
    const char *message;        /* the reason, one sentence */
    const char *words;          /* with the closest candidate */
};

struct waits {
    struct wait *all; /* who waits longest first */
    size_t count;
    uint64_t units; /* of all GPUs they ask for */
    uint32_t never;
    const char *unit;
    const char *scheduler; /* who places pods with GPU memory here; NULL: nobody has yet */
    struct gs_arena texts;
};

enum { WAIT_TEXT_BYTES = 1280 };

/* How many, and their sum, in that unit; none of them by itself. ns NULL: of all namespaces. */
void waits_count(const struct snapshot *snapshot, const char *ns, const char *unit,
                 struct waits *ret);

/* All of them. GS_ENOMEM. Release it also then. */
int waits_find(const struct snapshot *snapshot, const char *ns, struct waits *ret,
               struct gs_error *err);
void waits_release(struct waits *waits);

/* Those of them that are meant, with sums of their own. -1: GS_ENOMEM; release it also then. */
int waits_narrow(const struct waits *waits, bool (*means)(const void *ctx, const struct wait *wait),
                 const void *ctx, struct waits *ret);

/* The order of creation, then by name. */
int waits_order(const struct gs_pod *a, const struct gs_pod *b);

/* "35", "15 x2", "8, 50%", "30 total" of one that requests what there cannot be. NULL: no memory.
 */
const char *waits_request(struct gs_arena *arena, const struct gs_pod *pod);

/* "5m", since Unix second from; NULL when that is 0. */
const char *waits_age(struct gs_arena *arena, int64_t from_s, int64_t now_s);

/* "5 pods wait for 560 GiB, 2 of them fit no GPU of this cluster" */
void waits_sum(const struct waits *waits, char to[WAIT_TEXT_BYTES]);

/* Exits (bad usage) where output names no column. */
void waits_check(const char *command, const struct output *output);

/* The table with its sum, or CSV, on standard output; nothing when nobody waits. One row for each
 * group, for each pod if all is set. -1: out of memory. */
int waits_print(const struct waits *waits, const struct output *output, bool all,
                const struct terminal *terminal, int64_t now_s);

/* The same for the page, whose columns then name none; the oldest first. */
void waits_table(struct doc *doc, const struct table *table, const struct waits *waits, bool all,
                 int64_t now_s);

/* The member "pending"; output NULL: all of it. */
void waits_document(struct doc *doc, const struct waits *waits, const struct output *output);
