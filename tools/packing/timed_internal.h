/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "replay_internal.h"
#include "timed.h"

/* What timed*.c share. Pods are known by the number of their arrival. */

enum { TIMED_WAITS = -1 };

struct timed_pod {
    int64_t started_ms; /* TIMED_WAITS: not yet */
    int64_t tried_ms;   /* the last attempt, or the arrival */
    int64_t due_ms;     /* when it is tried; TIMED_NEVER: not before a pod leaves */
    int64_t slot;       /* of its node */
    uint32_t attempts;  /* that failed */
};

/* --- lists of pods --- */
struct timed_list {
    uint32_t *all;
    uint32_t count, cap;
};

/* --- who waits --- */

#define TIMED_NEVER INT64_MAX

struct timed_queue {
    struct timed_pod *pods;
    struct timed_list waiting; /* in the order in which they came */
    struct timed_list batch;   /* to be tried now, in this order */
};

int timed_queue_add(struct timed_queue *queue, uint32_t number); /* -1: out of memory */
void timed_queue_remove(struct timed_queue *queue, uint32_t number);
void timed_queue_pod_left(struct timed_queue *queue, int64_t now_ms);
/* When the next pauses end, TIMED_NEVER for never. */
int64_t timed_queue_next_ms(const struct timed_queue *queue, int64_t now_ms);
/* Fills the batch; -1: out of memory. */
int timed_queue_batch(struct timed_queue *queue, int64_t now_ms);
void timed_queue_release(struct timed_queue *queue);

/* --- who runs: a heap, the one that leaves first on top --- */
struct timed_leaving {
    int64_t at_ms;
    uint32_t number;
};

struct timed_heap {
    struct timed_leaving *all;
    uint32_t count, cap;
};
int timed_heap_push(struct timed_heap *heap, const struct timed_leaving *leaving);
struct timed_leaving timed_heap_pop(struct timed_heap *heap);
void timed_heap_put_off(struct timed_heap *heap, uint32_t number, int64_t at_ms); /* later only */

/* --- what is measured --- */

/* Pods that ask for the same. */
struct timed_shape {
    const struct gs_trace_pod *pod; /* one of them */
    uint64_t demand_milli;
    uint32_t waiting;
    uint64_t failed_at;  /* the state of the cluster (1, 2, …) that has no room for it */
    uint64_t planned_at; /* the one for which moves were looked for */
};

struct timed_measures {
    struct timed_shape *shapes;
    uint32_t shape_count;
    uint32_t *shape_of; /* by row of the pod file */
    const struct replay *replay;
    uint64_t all_free_milli, capacity_milli;
    int64_t from_ms, now_ms;
    uint64_t lost_milli; /* right now */
    unsigned __int128 used_sum, lost_sum;
    uint32_t waiting;
    struct gs_arena arena;
};

int timed_measures_init(struct timed_measures *measures, const struct replay *replay,
                        int64_t from_ms);
void timed_measures_release(struct timed_measures *measures);

/* Time passes; nothing has changed since the last call. */
void timed_measures_advance(struct timed_measures *measures, int64_t now_ms);
/* A pod of this row takes its GPUs (sign 1), or gives them back (-1). */
void timed_measures_charge(struct timed_measures *measures, uint32_t row, int sign);
void timed_measures_wait(struct timed_measures *measures, uint32_t row, int sign);
/* All changes of this moment are made. */
void timed_measures_settle(struct timed_measures *measures);
void timed_measures_finish(const struct timed_measures *measures, const struct gs_trace *trace,
                           const struct gs_timed_workload *workload, const struct timed_pod *pods,
                           struct gs_timed_result *ret);

/* --- the whole --- */

struct timed {
    struct replay replay;
    const struct gs_timed_workload *workload;
    const struct gs_timed_spec *spec;
    struct timed_pod *pods; /* by number of their arrival */
    struct timed_queue queue;
    struct timed_heap running;
    struct timed_measures measures;
    uint64_t state;   /* grows when a pod leaves: what had no room before may have now */
    uint32_t arrived; /* so many have */
    int64_t moved_ms; /* when moves were last made */
    uint32_t moves;   /* so many were */
};

struct timed_shape *timed_shape_of(const struct timed *timed, uint32_t number);
/* On the GPUs that replay.gpus has for the slot. GS_ENOMEM. */
int timed_start(struct timed *timed, uint32_t number, int64_t slot, int64_t now_ms,
                struct gs_error *err);
/* The hour's moves (timed_moves.c). GS_ENOMEM. */
int timed_moves_make(struct timed *timed, int64_t now_ms, struct gs_error *err);

/* A pod's list of models, "A|B", has this one; an empty list has all. */
bool timed_models_allow(const char *models, const char *model);
