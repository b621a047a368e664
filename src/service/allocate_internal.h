/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_ALLOCATE_INTERNAL_H
#define GPUSHARE_SERVICE_ALLOCATE_INTERNAL_H

#include "gpushare/core/ledger.h"
#include "gpushare/core/placement.h"
#include "gpushare/service/allocate.h"

/*
 * What allocate*.c share.
 *
 * A claimant is a pod of this node that asks for GPU memory. Its truth is where its environment
 * points (or will point): set by the first Allocate, changed only by a swap. The record is what its
 * annotations say; when the two differ, a write is queued.
 */

/* An answered call: its ids by the hash of the smallest one (the kubelet names the whole set again
 * at start), and what it was given. */
struct call {
    uint64_t key;
    gs_gpu_mask gpus;
    bool started; /* PodResources confirmed whose it is */
};

struct claimant {
    struct claimant *next; /* in the order they came: the order of their binds */
    struct gs_pod pod;
    struct gs_charge charge;
    uint32_t *requests; /* units of each container that asks, in the kubelet's order */
    uint32_t request_count;
    uint32_t done;      /* of these, allocated */
    struct call *calls; /* request_count of them, `done` in use */
    gs_gpu_mask truth;  /* 0: not decided */
    bool seen;          /* in this list round */
};

/* A call that no pod claimed (charged, until its pod is found), or one whose pod ended before the
 * kubelet said whose it was (not charged). */
struct orphan {
    struct orphan *next;
    struct call call;
    uint32_t units;
    char uid[40]; /* of its claim in the ledger; "" when not charged */
};

enum write_kind { WRITE_RECORD, WRITE_ASSIGNED, WRITE_EVENT };

struct queued_write {
    struct queued_write *next;
    uint64_t number;
    uint64_t after; /* not before this one is done; 0: none */
    enum write_kind kind;
    bool under_way;
    char *ns, *name, *uid;
    char *partner;      /* WRITE_RECORD: UID for swap-with, or NULL */
    const char *reason; /* WRITE_EVENT: constant */
    char *message;
    struct gs_arena arena; /* of the annotations, made when it is taken */
};

struct gs_allocator {
    struct gs_allocator_config config;
    struct gs_ledger *ledger; /* this node alone, truth instead of records */
    struct claimant *first;
    struct claimant *current; /* begun and not finished: the kubelet is inside this pod */
    struct orphan *orphans;
    uint32_t orphan_count;
    bool last_was_orphan;
    uint64_t orphan_number;
    struct queued_write *writes;
    uint64_t write_number;
    struct gs_allocator_stats stats; /* the counters only */
};

/* allocate.c */
struct claimant *gs_claimant_find(struct gs_allocator *alloc, const char *uid);
struct claimant *gs_claimant_named(struct gs_allocator *alloc, const char *ns, const char *name);
/* Brings the ledger's claim in line with truth, or the record while truth is open. */
int gs_claimant_charge(struct gs_allocator *alloc, const struct claimant *claimant,
                       struct gs_error *err);
const struct gs_node_view *gs_allocator_view(const struct gs_allocator *alloc);
/* One of these GPUs is charged with more than it has. */
bool gs_allocator_overfull(const struct gs_allocator *alloc, gs_gpu_mask gpus);
/* Size of (the first of) these GPUs, in units. */
uint32_t gs_allocator_gpu_size(const struct gs_allocator *alloc, gs_gpu_mask gpus);
/* The record, when it can be believed on this node; else 0. */
gs_gpu_mask gs_claimant_record(const struct gs_allocator *alloc, const struct claimant *claimant);
uint64_t gs_call_key(const char *const *ids, size_t count);
/* Remembers a call without a pod; charged says whether it takes memory. */
struct orphan *gs_orphan_add(struct gs_allocator *alloc, struct call call, uint32_t units,
                             bool charged, struct gs_error *err);
void gs_orphan_drop(struct gs_allocator *alloc, struct orphan *orphan);

/* allocate_writes.c: each returns the write's number, 0 when out of memory */
uint64_t gs_write_record(struct gs_allocator *alloc, const struct claimant *claimant,
                         const char *partner, uint64_t after);
uint64_t gs_write_assigned(struct gs_allocator *alloc, const struct claimant *claimant);
uint64_t gs_write_event(struct gs_allocator *alloc, const struct claimant *claimant,
                        const char *reason, const char *message);
void gs_writes_free(struct gs_allocator *alloc);
uint32_t gs_writes_count(const struct gs_allocator *alloc);

#endif
