/* SPDX-License-Identifier: Apache-2.0 */
#include "rollout_lanes.h"

#include <string.h>

typedef int16_t vec __attribute__((vector_size(16)));
typedef int32_t half __attribute__((vector_size(16)));

/* Asks for more than any GPU has. */
enum { NEVER = INT16_MAX };

/* --- the table's part --- */

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int16_t units_of(const struct gs_lanes *lanes, const struct gs_shape *shape, uint32_t group)
{
    uint32_t units = shape->units / lanes->unit;
    return units < NEVER && (shape->groups >> group & 1) ? (int16_t)units : NEVER;
}

static void put(struct gs_lanes *lanes, const struct gs_shape *shape, uint32_t groups, uint32_t row,
                uint32_t step)
{
    const uint32_t block = row / GS_LANES, lane = row % GS_LANES;
    lanes->cpu_milli[block][step][lane] = shape->cpu_milli;
    if (shape->cpu_milli < lanes->least_cpu_milli)
        lanes->least_cpu_milli = shape->cpu_milli;
    lanes->gpus[block][step][lane] = (int16_t)shape->gpu_count; /* at most GS_GPUS_MAX */
    for (uint32_t group = 0; group < groups; group++) {
        int16_t units = units_of(lanes, shape, group);
        lanes->units[group][block][step][lane] = units;
        if (units < lanes->least_units)
            lanes->least_units = units;
    }
}

struct gs_lanes *gs_lanes_build(struct gs_policy_table *table)
{
    uint32_t groups = 1;
    for (uint32_t m = 0; m < table->models; m++)
        groups = table->model_group[m] >= groups ? table->model_group[m] + 1u : groups;
    struct gs_lanes *lanes = gs_arena_calloc(&table->arena, 1, sizeof(*lanes));
    gs_lanes_i16 *units = gs_arena_calloc(&table->arena, groups, sizeof(*units));
    if (!lanes || !units)
        return NULL;
    lanes->units = units;
    lanes->least_units = NEVER;
    lanes->least_cpu_milli = INT32_MAX;
    for (uint32_t i = 0; i < GS_ROLLOUTS * GS_ROLLOUT_DRAWS; i++)
        lanes->unit = common_divisor(table->shapes[(&table->draws[0][0])[i]].units, lanes->unit);
    for (uint32_t row = 0; row < GS_ROLLOUTS; row++) {
        for (uint32_t step = 0; step < GS_ROLLOUT_DRAWS; step++)
            put(lanes, &table->shapes[table->draws[row][step]], groups, row, step);
    }
    return lanes;
}

/* --- vectors --- */

static inline vec all_are(int16_t value)
{
    return (vec){value, value, value, value, value, value, value, value};
}

static inline vec load(const int16_t *from)
{
    vec result;
    memcpy(&result, from, sizeof(result));
    return result;
}

static inline half load_half(const int32_t *from)
{
    half result;
    memcpy(&result, from, sizeof(result));
    return result;
}

/* Compilers make one instruction of each of these loops. */
static inline vec smaller(vec a, vec b)
{
    vec result;
    for (int i = 0; i < GS_LANES; i++)
        result[i] = a[i] < b[i] ? a[i] : b[i];
    return result;
}

static inline vec larger(vec a, vec b)
{
    vec result;
    for (int i = 0; i < GS_LANES; i++)
        result[i] = a[i] > b[i] ? a[i] : b[i];
    return result;
}

/* Of a mask: all bits of a lane are the same. */
static inline bool any(vec mask)
{
    uint64_t words[2];
    memcpy(words, &mask, sizeof(words));
    return words[0] | words[1];
}

/* --- playing --- */

/*
 * Eight games. room[1] to room[gpus] is free memory, ascending in each lane. Below `low` there is
 * no room for any pod, in any lane; room[0] and room[gpus + 1] are there so that every GPU has
 * neighbours.
 */
struct games {
    vec *room;
    size_t gpus, low;
    bool cpu_counts;
    half cpu[2]; /* left, of the first and of the last four lanes */
};

static inline vec enough_cpu(const struct games *games, const int32_t *cpu)
{
    vec first = (vec)(load_half(cpu) <= games->cpu[0]);
    vec last = (vec)(load_half(cpu + GS_LANES / 2) <= games->cpu[1]);
    return __builtin_shufflevector(first, last, 0, 2, 4, 6, 8, 10, 12, 14);
}

static inline void take_cpu(struct games *games, const int32_t *cpu, vec lanes)
{
    half first = (half)__builtin_shufflevector(lanes, lanes, 0, 0, 1, 1, 2, 2, 3, 3);
    half last = (half)__builtin_shufflevector(lanes, lanes, 4, 4, 5, 5, 6, 6, 7, 7);
    games->cpu[0] -= load_half(cpu) & first;
    games->cpu[1] -= load_half(cpu + GS_LANES / 2) & last;
}

/* The number of the last GPU that a pod would get, beyond `gpus` where there are not enough. */
static inline vec last_gpu(const struct games *games, vec units, vec gpus)
{
    vec last = gpus + (int16_t)(games->low - 1);
    for (size_t at = games->low; at <= games->gpus; at++)
        last -= units > games->room[at]; /* true is -1 */
    return last;
}

/* Puts a pod on the smallest GPU that has room, in each lane where units are not 0: they fit
 * there. It is the one GPU that is not too small and has one below that is. What is left of it
 * sinks to its place in the order. */
static inline void take_one(struct games *games, vec units)
{
    vec *room = games->room;
    size_t at = games->low;
    while (any(units > room[at]))
        at++;
    vec small = units & (units > room[at]), sinking = room[at + 1];
    for (; at >= games->low; at--) {
        vec small_below = units & (units > room[at - 1]);
        vec rest = room[at] - (small_below - small);
        room[at + 1] = larger(rest, sinking);
        sinking = smaller(rest, sinking);
        small = small_below;
    }
    room[at + 1] = sinking;
}

/* The same with the GPU of the number `wanted`. */
static inline void take_at(struct games *games, vec units, vec wanted)
{
    vec *room = games->room;
    size_t at = games->gpus;
    vec number = all_are((int16_t)at), sinking = room[at + 1];
    for (; at >= games->low; at--) {
        vec rest = room[at] - (units & (number == wanted));
        room[at + 1] = larger(rest, sinking);
        sinking = smaller(rest, sinking);
        number -= 1;
    }
    room[at + 1] = sinking;
}

/* The pods' second GPU and so on. What is left of one GPU sinks below the next, which so keeps its
 * number. */
static inline void take_more(struct games *games, vec units, vec gpus, vec last)
{
    vec wanted = last - gpus + 2, more = (units > 0) & (wanted <= last);
    while (any(more)) {
        take_at(games, units & more, wanted);
        wanted += 1;
        more &= wanted <= last;
    }
}

/* Offers each lane its pod; false when none of them fitted. */
static inline bool offer(struct games *games, vec units, vec gpus, const int32_t *cpu)
{
    vec fits = units <= games->room[games->gpus], last = gpus;
    if (games->cpu_counts)
        fits &= enough_cpu(games, cpu);
    const bool several = any(fits & (gpus > 1));
    if (several) {
        last = last_gpu(games, units, gpus);
        fits &= last <= (int16_t)games->gpus;
    }
    if (!any(fits))
        return false;
    take_one(games, units & fits);
    if (several)
        take_more(games, units & fits, gpus, last);
    if (games->cpu_counts)
        take_cpu(games, cpu, fits);
    return true;
}

static inline void pass_by_full_gpus(struct games *games, vec least_units)
{
    while (games->low < games->gpus && !any(games->room[games->low] >= least_units))
        games->low++;
}

static uint64_t sum_of(const vec *room, size_t gpus)
{
    uint64_t sum = 0;
    for (size_t at = 1; at <= gpus; at++) {
        for (int i = 0; i < GS_LANES; i++)
            sum += (uint64_t)room[at][i];
    }
    return sum;
}

/* Plays a block; returns what is left of the room at the end. What fits in no lane never will
 * again. */
static uint64_t play(const struct gs_lanes *lanes, const struct gs_state *state, const vec *start,
                     uint32_t block, uint32_t passes)
{
    enum { LOOK_EVERY = 8 }; /* steps: dearer than what it saves in a few of them */
    vec room[GS_GPUS_MAX + 2];
    const int32_t cpu = state->cpu_milli;
    struct games games = {room, state->gpus, 1, cpu != INT32_MAX, {{cpu, cpu, cpu, cpu}}};
    games.cpu[1] = games.cpu[0];
    memcpy(room, start, (games.gpus + 2) * sizeof(*room));
    uint64_t steps = UINT64_MAX;
    for (uint32_t pass = 0; pass < passes && steps; pass++) {
        for (uint64_t left = steps; left; left &= left - 1) {
            const uint32_t step = (uint32_t)__builtin_ctzll(left);
            if (step % LOOK_EVERY == 0)
                pass_by_full_gpus(&games, all_are(lanes->least_units));
            if (!offer(&games, load(lanes->units[state->group][block][step]),
                       load(lanes->gpus[block][step]), lanes->cpu_milli[block][step]))
                steps &= ~(left & -left);
        }
    }
    return sum_of(room, games.gpus);
}

static uint32_t largest_of(const struct gs_lanes *lanes, const struct gs_state *state)
{
    return state->gpus ? state->free_units[state->gpus - 1] / lanes->unit : 0;
}

bool gs_lanes_can(const struct gs_lanes *lanes, const struct gs_state *state)
{
    return largest_of(lanes, state) < NEVER;
}

uint64_t gs_lanes_placed(const struct gs_lanes *lanes, const struct gs_state *state,
                         uint32_t passes)
{
    if (largest_of(lanes, state) < (uint32_t)lanes->least_units ||
        state->cpu_milli < lanes->least_cpu_milli)
        return 0;
    vec start[GS_GPUS_MAX + 2];
    start[0] = all_are(0);
    for (uint32_t i = 0; i < state->gpus; i++)
        start[i + 1] = all_are((int16_t)(state->free_units[i] / lanes->unit));
    start[state->gpus + 1] = all_are(NEVER);
    uint64_t placed = sum_of(start, state->gpus) * GS_LANE_BLOCKS;
    for (uint32_t block = 0; block < GS_LANE_BLOCKS; block++)
        placed -= play(lanes, state, start, block, passes);
    return placed * lanes->unit;
}
