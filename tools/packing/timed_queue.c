/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "timed_internal.h"

/* Who waits, as in kube-scheduler's queue, and who leaves next. */

enum { MS_PER_S = 1000, PAUSE_MAX_MS = 10 * MS_PER_S, FIRST_GROWTH = 64 };

static void *grow(void *all, uint32_t *cap, size_t size)
{
    uint32_t more = *cap ? *cap * 2 : FIRST_GROWTH;
    void *wider = reallocarray(all, more, size);
    if (wider)
        *cap = more;
    return wider;
}

static int add(struct timed_list *list, uint32_t number)
{
    if (list->count == list->cap) {
        uint32_t *wider = grow(list->all, &list->cap, sizeof(*wider));
        if (!wider)
            return -1;
        list->all = wider;
    }
    list->all[list->count++] = number;
    return 0;
}

/* --- the queue --- */

int timed_queue_add(struct timed_queue *queue, uint32_t number)
{
    return add(&queue->waiting, number);
}

void timed_queue_remove(struct timed_queue *queue, uint32_t number)
{
    struct timed_list *list = &queue->waiting;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->all[i] != number)
            list->all[kept++] = list->all[i];
    }
    list->count = kept;
}

/* 1, 2, 4, 8, 10, 10, … s after the last attempt. */
static int64_t pause_end_ms(const struct timed_pod *pod)
{
    enum { DOUBLINGS = 4 };
    uint32_t doubled = pod->attempts - 1 < DOUBLINGS ? pod->attempts - 1 : DOUBLINGS;
    int64_t pause_ms = (int64_t)MS_PER_S << doubled;
    return pod->tried_ms + (pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
}

void timed_queue_pod_left(struct timed_queue *queue, int64_t now_ms)
{
    for (uint32_t i = 0; i < queue->waiting.count; i++) {
        struct timed_pod *pod = &queue->pods[queue->waiting.all[i]];
        if (pod->due_ms != TIMED_NEVER)
            continue;
        int64_t end_ms = pause_end_ms(pod);
        pod->due_ms = end_ms <= now_ms ? now_ms : (end_ms + MS_PER_S - 1) / MS_PER_S * MS_PER_S;
    }
}

int64_t timed_queue_next_ms(const struct timed_queue *queue, int64_t now_ms)
{
    int64_t next_ms = TIMED_NEVER;
    for (uint32_t i = 0; i < queue->waiting.count; i++) {
        int64_t due_ms = queue->pods[queue->waiting.all[i]].due_ms;
        if (due_ms > now_ms && due_ms < next_ms)
            next_ms = due_ms;
    }
    return next_ms;
}

static int in_turn(const void *a, const void *b, void *ctx)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const struct timed_pod *pods = ctx;
    if (pods[left].tried_ms != pods[right].tried_ms)
        return pods[left].tried_ms < pods[right].tried_ms ? -1 : 1;
    return (left > right) - (left < right);
}

int timed_queue_batch(struct timed_queue *queue, int64_t now_ms)
{
    struct timed_list *batch = &queue->batch;
    batch->count = 0;
    for (uint32_t i = 0; i < queue->waiting.count; i++) {
        uint32_t number = queue->waiting.all[i];
        if (queue->pods[number].due_ms <= now_ms && add(batch, number) < 0)
            return -1;
    }
    if (batch->count > 1)
        qsort_r(batch->all, batch->count, sizeof(*batch->all), in_turn, queue->pods);
    return 0;
}

void timed_queue_release(struct timed_queue *queue)
{
    free(queue->waiting.all);
    free(queue->batch.all);
}

/* --- the heap --- */

static bool sooner(const struct timed_leaving *a, const struct timed_leaving *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->number < b->number;
}

int timed_heap_push(struct timed_heap *heap, const struct timed_leaving *leaving)
{
    if (heap->count == heap->cap) {
        struct timed_leaving *wider = grow(heap->all, &heap->cap, sizeof(*wider));
        if (!wider)
            return -1;
        heap->all = wider;
    }
    uint32_t at = heap->count++;
    for (; at && sooner(leaving, &heap->all[(at - 1) / 2]); at = (at - 1) / 2)
        heap->all[at] = heap->all[(at - 1) / 2];
    heap->all[at] = *leaving;
    return 0;
}

/* Puts what is no sooner than what was there at `at`, or below. */
static void sink(struct timed_heap *heap, uint32_t at, struct timed_leaving what)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < heap->count && sooner(&heap->all[child + 1], &heap->all[child]))
            child++;
        if (child >= heap->count || !sooner(&heap->all[child], &what))
            break;
        heap->all[at] = heap->all[child];
        at = child;
    }
    heap->all[at] = what;
}

struct timed_leaving timed_heap_pop(struct timed_heap *heap)
{
    struct timed_leaving top = heap->all[0], last = heap->all[--heap->count];
    sink(heap, 0, last);
    return top;
}

void timed_heap_put_off(struct timed_heap *heap, uint32_t number, int64_t at_ms)
{
    for (uint32_t i = 0; i < heap->count; i++) {
        if (heap->all[i].number == number) {
            sink(heap, i, (struct timed_leaving){at_ms, number});
            return;
        }
    }
}
