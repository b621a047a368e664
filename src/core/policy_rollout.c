/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

#include <string.h>

#include "rollout_lanes.h"

/*
 * Rollout: offer a node state the same 64 sequences of 64 pods each, skip what does not fit, and
 * sum up what stays free. The difference that a pod makes to this sum is its loss. Exact integers.
 * rollout_lanes.c does the same faster; what follows here is for sizes that are too large for it.
 */

/* Enough passes over a sequence that the node is full at the end: it is offered at least four times
 * what it has left. Nodes much larger than their pods need more than one. */
static uint32_t passes_for(const struct gs_policy_table *table, uint64_t left_units)
{
    enum { TIMES_OFFERED = 4, PASSES_MAX = 64 };
    if (!table->row_units)
        return 1;
    uint64_t passes = (left_units * TIMES_OFFERED + table->row_units - 1) / table->row_units;
    return passes > PASSES_MAX ? PASSES_MAX : passes ? (uint32_t)passes : 1;
}

struct offer {
    const struct gs_policy_table *table;
    const struct gs_state *start;
    const uint8_t *fits; /* by shape: 1 when it fits the start */
    uint32_t passes;
    uint32_t least_units; /* no shape that fits needs less */
    int32_t least_cpu_milli;
};

/* What fits at the start: nothing else ever will. False when nothing does. */
static bool look_at_shapes(struct offer *offer, uint8_t *ret_fits)
{
    const struct gs_state *start = offer->start;
    uint32_t most_units = start->gpus ? start->free_units[start->gpus - 1] : 0;
    bool any = false;
    offer->fits = ret_fits;
    offer->least_units = UINT32_MAX;
    offer->least_cpu_milli = INT32_MAX;
    for (uint32_t i = 0; i < offer->table->shape_count; i++) {
        const struct gs_shape *shape = &offer->table->shapes[i];
        ret_fits[i] = shape->units && shape->units <= most_units &&
                      shape->cpu_milli <= start->cpu_milli && shape->gpu_count <= start->gpus &&
                      (shape->groups >> start->group & 1);
        if (!ret_fits[i])
            continue;
        any = true;
        if (shape->units < offer->least_units)
            offer->least_units = shape->units;
        if (shape->cpu_milli < offer->least_cpu_milli)
            offer->least_cpu_milli = shape->cpu_milli;
    }
    return any;
}

/* The entries of a sequence whose pods fit the start, as bits. */
static uint64_t worth_trying(const struct offer *offer, const uint16_t *row)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < GS_ROLLOUT_DRAWS; i++)
        bits |= (uint64_t)offer->fits[row[i]] << i;
    return bits;
}

/* Puts one share of units on `want` GPUs from entry `at` on, and restores the order. */
static void place(uint32_t *free_units, uint32_t at, uint32_t want, uint32_t units)
{
    for (uint32_t end = at + want; at < end; at++) {
        uint32_t rest = free_units[at] - units, to = at;
        for (; to && free_units[to - 1] > rest; to--)
            free_units[to] = free_units[to - 1];
        free_units[to] = rest;
    }
}

/* Where the smallest GPU is that has room for a pod, GPUS_MAX when it does not fit. */
static inline uint32_t first_with_room(const struct gs_shape *shape, const uint32_t *free_units,
                                       uint32_t gpus, int32_t cpu)
{
    if (shape->units > free_units[gpus - 1] || shape->cpu_milli > cpu)
        return GS_GPUS_MAX;
    uint32_t at = 0;
    while (free_units[at] < shape->units)
        at++;
    return gpus - at < shape->gpu_count ? GS_GPUS_MAX : at;
}

/* Plays one sequence; returns the units that it placed. What does not fit once never will again:
 * it is not offered in the passes that follow. */
static uint64_t play(const struct offer *offer, const uint16_t *row)
{
    uint32_t free_units[GS_GPUS_MAX];
    uint32_t gpus = offer->start->gpus;
    memcpy(free_units, offer->start->free_units, gpus * sizeof(*free_units));
    int32_t cpu = offer->start->cpu_milli;
    uint64_t placed = 0, placed_before = 0, bits = worth_trying(offer, row);
    for (uint32_t pass = 0; pass < offer->passes; pass++) {
        for (uint64_t left = bits; left; left &= left - 1) {
            const struct gs_shape *shape = &offer->table->shapes[row[__builtin_ctzll(left)]];
            uint32_t at = first_with_room(shape, free_units, gpus, cpu);
            if (at == GS_GPUS_MAX) {
                bits &= ~(left & -left);
                continue;
            }
            place(free_units, at, shape->gpu_count, shape->units);
            placed += (uint64_t)shape->units * shape->gpu_count;
            if (cpu != INT32_MAX)
                cpu -= shape->cpu_milli;
            if (free_units[gpus - 1] < offer->least_units || cpu < offer->least_cpu_milli)
                return placed;
        }
        if (placed == placed_before)
            break;
        placed_before = placed;
    }
    return placed;
}

uint64_t gs_rollout_stranded(const struct gs_policy_table *table, const struct gs_state *state)
{
    uint64_t stranded = state->left_units * GS_ROLLOUTS;
    uint32_t passes = passes_for(table, state->left_units);
    if (gs_lanes_can(table->lanes, state))
        return stranded - gs_lanes_placed(table->lanes, state, passes);
    uint8_t fits[GS_CLASSES_MAX];
    struct offer offer = {.table = table, .start = state, .passes = passes};
    if (!look_at_shapes(&offer, fits))
        return stranded;
    for (uint32_t r = 0; r < GS_ROLLOUTS; r++)
        stranded -= play(&offer, table->draws[r]);
    return stranded;
}

int64_t gs_rollout_loss(uint64_t before_stranded, uint64_t after_stranded, int64_t price,
                        uint64_t taken_units, uint32_t card_units)
{
    const int64_t one = GS_LOSS_MILLI / GS_ROLLOUTS;
    __int128 worse = (__int128)after_stranded - (__int128)before_stranded;
    __int128 loss = worse * one + (__int128)price * (__int128)taken_units;
    return (int64_t)(loss * 1000 / card_units);
}
