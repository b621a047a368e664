/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_ROLLOUT_PLAY_H
#define GPUSHARE_CORE_ROLLOUT_PLAY_H

#include <string.h>

#include "rollout_lanes.h"

/*
 * How the lanes play, in vectors of PLAY_LANES, which who includes this has defined: 8 or 16. A
 * compiler makes poor code of vectors that its machine does not have, so that this text is compiled
 * once for each size (rollout_lanes.c, rollout_play_avx2.c).
 */
typedef int16_t vec __attribute__((vector_size(2 * PLAY_LANES)));
typedef int32_t half __attribute__((vector_size(2 * PLAY_LANES)));

/* --- vectors --- */

static inline vec all_are(int16_t value)
{
    return (vec){0} + value;
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
    for (int i = 0; i < PLAY_LANES; i++)
        result[i] = a[i] < b[i] ? a[i] : b[i];
    return result;
}

static inline vec larger(vec a, vec b)
{
    vec result;
    for (int i = 0; i < PLAY_LANES; i++)
        result[i] = a[i] > b[i] ? a[i] : b[i];
    return result;
}

/* Of a mask: all bits of a lane are the same. */
static inline bool any(vec mask)
{
#ifdef __AVX2__
    typedef long long words __attribute__((vector_size(sizeof(vec))));
    return !__builtin_ia32_ptestz256((words)mask, (words)mask);
#else
    uint64_t words[sizeof(vec) / 8];
    memcpy(words, &mask, sizeof(words));
    return words[0] | words[1];
#endif
}

/* The lanes 0, 2, 4 … and the lanes 1, 3, 5 …, 32 bits each, and back. Which of them lie in the
 * lower half of 32 bits is the machine's affair. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lane 0 is in the lower half");

static inline half even(vec lanes)
{
    return (half)((half)lanes << 16) >> 16;
}

static inline half odd(vec lanes)
{
    return (half)lanes >> 16;
}

static inline vec merge_masks(half even_lanes, half odd_lanes)
{
    return (vec)((even_lanes & 0xffff) | (odd_lanes & ~0xffff));
}

/* --- playing --- */

/*
 * PLAY_LANES games. room[1] to room[gpus] is free memory, ascending in each lane. Below `low` there
 * is no room for any pod, in any lane; room[0] and room[gpus + 1] are there so that every GPU has
 * neighbours.
 */
struct games {
    vec *room;
    size_t gpus, low;
    bool cpu_counts;
    half cpu[2]; /* left, of the even and of the odd lanes */
};

/* What the games of one block are offered in one step. */
struct pods {
    vec units, gpus;
    const int32_t *cpu[2];
};

static inline vec enough_cpu(const struct games *games, const struct pods *pods)
{
    return merge_masks(load_half(pods->cpu[0]) <= games->cpu[0],
                       load_half(pods->cpu[1]) <= games->cpu[1]);
}

static inline void take_cpu(struct games *games, const struct pods *pods, vec lanes)
{
    games->cpu[0] -= load_half(pods->cpu[0]) & even(lanes);
    games->cpu[1] -= load_half(pods->cpu[1]) & odd(lanes);
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
    vec *const low = games->room + games->low, *at = low;
    while (any(units > *at))
        at++;
    vec small = {0}, sinking = at[1];
    for (; at >= low; at--) {
        vec small_below = units & (units > at[-1]);
        vec rest = at[0] - (small_below - small);
        at[1] = larger(rest, sinking);
        sinking = smaller(rest, sinking);
        small = small_below;
    }
    at[1] = sinking;
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
static inline bool offer(struct games *games, const struct pods *pods)
{
    const vec units = pods->units, gpus = pods->gpus;
    vec fits = units <= games->room[games->gpus], last = gpus;
    if (games->cpu_counts)
        fits &= enough_cpu(games, pods);
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
        take_cpu(games, pods, fits);
    return true;
}

static inline void pass_by_full_gpus(struct games *games, vec least_units)
{
    while (games->low < games->gpus && !any(games->room[games->low] >= least_units))
        games->low++;
}

static uint64_t sum_of(const vec *room, size_t gpus)
{
    half sums = {0}; /* of 2 × GS_GPUS_MAX numbers of 15 bits, each */
    uint64_t sum = 0;
    for (size_t at = 1; at <= gpus; at++)
        sums += even(room[at]) + odd(room[at]);
    for (int i = 0; i < PLAY_LANES / 2; i++)
        sum += (uint64_t)sums[i];
    return sum;
}

/* Plays the sequences from `row` on; returns what is left of the room at the end. What fits in no
 * lane never will again. */
static uint64_t play(const struct gs_lanes *lanes, const struct gs_lanes_start *start, uint32_t row,
                     vec room[GS_GPUS_MAX + 2])
{
    enum { LOOK_EVERY = 8 }; /* steps: dearer than what it saves in a few of them */
    struct games games = {room, start->gpus, 1, start->cpu_counts, {{0}}};
    games.cpu[0] += start->cpu_milli;
    games.cpu[1] += start->cpu_milli;
    room[0] = all_are(0);
    for (size_t i = 0; i < games.gpus; i++)
        room[i + 1] = all_are(start->room[i]);
    room[games.gpus + 1] = all_are(INT16_MAX);
    uint64_t steps = UINT64_MAX;
    for (uint32_t pass = 0; pass < start->passes && steps; pass++) {
        for (uint64_t left = steps; left; left &= left - 1) {
            const uint32_t step = (uint32_t)__builtin_ctzll(left);
            const struct pods pods = {
                load(&lanes->units[start->group][step][row]),
                load(&lanes->gpus[step][row]),
                {&lanes->cpu_milli[step][0][row / 2], &lanes->cpu_milli[step][1][row / 2]},
            };
            if (step % LOOK_EVERY == 0)
                pass_by_full_gpus(&games, all_are(lanes->least_units));
            if (!offer(&games, &pods))
                steps &= ~(left & -left);
        }
    }
    return sum_of(room, games.gpus);
}

static uint64_t play_all(const struct gs_lanes *lanes, const struct gs_lanes_start *start)
{
    vec room[GS_GPUS_MAX + 2]; /* one for all: compilers that harden clear it each time */
    uint64_t left = 0;
    for (uint32_t row = 0; row < GS_ROLLOUTS; row += PLAY_LANES)
        left += play(lanes, start, row, room);
    return left;
}

#endif
