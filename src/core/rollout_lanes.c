/* SPDX-License-Identifier: Apache-2.0 */
#include "rollout_lanes.h"

#include <stdbool.h>
#include <string.h>

/*
 * One source for all processors. On x86-64 the compiler makes a second copy of the function that
 * has this attribute, for AVX2, and libc chooses when the program starts: before the thread
 * sanitizer is ready for that.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define ALSO_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define ALSO_FOR_AVX2
#endif

#ifdef __x86_64__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

enum { NEVER = 1 << 30 }; /* units that no GPU has free */

typedef uint32_t vec __attribute__((vector_size(4 * LANES)));
typedef int32_t signed_vec __attribute__((vector_size(4 * LANES)));

/* By step and sequence. */
typedef uint32_t numbers[GS_ROLLOUT_DRAWS][GS_ROLLOUTS];

struct gs_lanes {
    uint32_t least_units; /* no pod requests less */
    int32_t least_cpu_milli;
    uint64_t most_cpu_milli; /* no sequence requests more, in one pass */
    uint64_t several;        /* steps at which some pod requests several GPUs, as bits */
    numbers cpu_milli, gpus;
    numbers *units; /* by model group; NEVER: too large, or may not run there */
};

/* --- building --- */

static void put(struct gs_lanes *lanes, const struct gs_shape *shape, uint32_t groups, uint32_t row,
                uint32_t step)
{
    lanes->cpu_milli[step][row] = (uint32_t)shape->cpu_milli;
    if (shape->cpu_milli < lanes->least_cpu_milli)
        lanes->least_cpu_milli = shape->cpu_milli;
    lanes->gpus[step][row] = shape->gpu_count;
    lanes->several |= (uint64_t)(shape->gpu_count > 1) << step;
    for (uint32_t group = 0; group < groups; group++) {
        bool fits = shape->units < NEVER && (shape->groups >> group & 1);
        lanes->units[group][step][row] = fits ? shape->units : NEVER;
        if (fits && shape->units < lanes->least_units)
            lanes->least_units = shape->units;
    }
}

struct gs_lanes *gs_lanes_build(struct gs_policy_table *table)
{
    uint32_t groups = 1;
    for (uint32_t m = 0; m < table->models; m++)
        groups = table->model_group[m] >= groups ? table->model_group[m] + 1u : groups;
    struct gs_lanes *lanes = gs_arena_calloc(&table->arena, 1, sizeof(*lanes));
    numbers *units = gs_arena_calloc(&table->arena, groups, sizeof(*units));
    if (!lanes || !units)
        return NULL;
    lanes->units = units;
    lanes->least_units = NEVER;
    lanes->least_cpu_milli = INT32_MAX;
    for (uint32_t row = 0; row < GS_ROLLOUTS; row++) {
        uint64_t cpu_milli = 0;
        for (uint32_t step = 0; step < GS_ROLLOUT_DRAWS; step++) {
            const struct gs_shape *shape = &table->shapes[table->draws[row][step]];
            put(lanes, shape, groups, row, step);
            cpu_milli += (uint64_t)shape->cpu_milli;
        }
        if (cpu_milli > lanes->most_cpu_milli)
            lanes->most_cpu_milli = cpu_milli;
    }
    return lanes;
}

/* --- vectors --- */

/* Functions with vectors are inlined, into each copy, and get pointers: how a vector itself is
 * passed depends on the processor. */
#define INLINE static inline __attribute__((always_inline))

/* A mask of the lanes whose highest bit is set. */
#define NEGATIVE(vector) ((vec)((signed_vec)(vector) >> 31))

INLINE bool any(const vec *mask)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    pair parts[sizeof(vec) / sizeof(pair)], all = {0};
    memcpy(parts, mask, sizeof(parts));
    for (size_t i = 0; i < sizeof(parts) / sizeof(pair); i++)
        all |= parts[i];
    return all[0] | all[1];
}

/* --- placing --- */

/* As many sequences as there are lanes. */
struct games {
    vec free_units[GS_GPUS_MAX]; /* in any order */
    size_t gpus;
    bool cpu_counts;
    vec cpu; /* free milli-CPU */
};

struct pods {
    vec units;
    const uint32_t *gpus, *cpu_milli; /* by lane */
    bool several;                     /* some request more than one GPU */
};

/* What the tightest GPU would have left; negative where none has enough. */
INLINE void find_tightest(const struct games *games, const vec *units, vec *ret)
{
    vec least = (vec){0} + UINT32_MAX;
    for (size_t gpu = 0; gpu < games->gpus; gpu++) {
        vec rest = games->free_units[gpu] - *units;
        for (int i = 0; i < LANES; i++) /* compilers make one instruction of it */
            least[i] = rest[i] < least[i] ? rest[i] : least[i];
    }
    *ret = least;
}

/* Lanes in which too few GPUs have enough become 0. */
INLINE void require_gpus(const struct games *games, const struct pods *pods, vec *fits)
{
    vec missing;
    memcpy(&missing, pods->gpus, sizeof(missing));
    for (size_t gpu = 0; gpu < games->gpus; gpu++)
        missing += ~NEGATIVE(games->free_units[gpu] - pods->units); /* a mask is -1 */
    *fits &= ~NEGATIVE(-missing);
}

/* Takes units (0: nothing) from one GPU that has `from`, and sets its bits `mark`. */
INLINE void take(struct games *games, vec *units, const vec *from, uint32_t mark)
{
    for (size_t gpu = 0; gpu < games->gpus; gpu++) {
        vec *at = &games->free_units[gpu];
        vec taken = *units & (vec)(*at == *from);
        *at = (*at - taken) | (NEGATIVE(-taken) & mark);
        *units -= taken;
    }
}

/* The same for all GPUs of each pod that fits. A GPU with a mark seems larger than any other, and
 * is chosen no second time. */
INLINE void take_several(struct games *games, const struct pods *pods, const vec *fits, vec *least)
{
    const uint32_t mark = 1u << 31;
    vec gpus, more = *fits;
    memcpy(&gpus, pods->gpus, sizeof(gpus));
    while (any(&more)) {
        vec units = pods->units & more, from = pods->units + *least;
        take(games, &units, &from, mark);
        gpus += more;
        more &= NEGATIVE(-gpus);
        find_tightest(games, &pods->units, least);
    }
    for (size_t gpu = 0; gpu < games->gpus; gpu++)
        games->free_units[gpu] &= ~mark;
}

/* Offers each lane its pod; false when none of them fits. */
INLINE bool offer(struct games *games, const struct pods *pods)
{
    vec least;
    find_tightest(games, &pods->units, &least);
    vec fits = ~NEGATIVE(least);
    vec cpu = {0};
    if (games->cpu_counts) {
        memcpy(&cpu, pods->cpu_milli, sizeof(cpu));
        fits &= ~NEGATIVE(games->cpu - cpu);
    }
    if (pods->several)
        require_gpus(games, pods, &fits);
    if (!any(&fits))
        return false;
    games->cpu -= cpu & fits;
    if (pods->several) {
        take_several(games, pods, &fits, &least);
    } else {
        vec units = pods->units & fits, from = pods->units + least;
        take(games, &units, &from, 0);
    }
    return true;
}

INLINE uint64_t sum_of_free(const struct games *games)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < games->gpus; i++) {
        for (int lane = 0; lane < LANES; lane++)
            sum += games->free_units[i][lane];
    }
    return sum;
}

/* Units that are left at the end, over all sequences. What fits in no lane never will again. */
ALSO_FOR_AVX2
static uint64_t play(const struct gs_lanes *lanes, const struct gs_state *start, uint32_t passes,
                     bool cpu_counts)
{
    uint64_t sum = 0;
    struct games games = {.gpus = start->gpus, .cpu_counts = cpu_counts};
    for (uint32_t row = 0; row < GS_ROLLOUTS; row += LANES) {
        games.cpu = (vec){0} + (uint32_t)start->cpu_milli;
        for (size_t i = 0; i < games.gpus; i++)
            games.free_units[i] = (vec){0} + start->free_units[i];
        uint64_t steps = UINT64_MAX;
        for (uint32_t pass = 0; pass < passes && steps; pass++) {
            for (uint64_t left = steps; left; left &= left - 1) {
                const uint32_t step = (uint32_t)__builtin_ctzll(left);
                struct pods pods = {.gpus = &lanes->gpus[step][row],
                                    .cpu_milli = &lanes->cpu_milli[step][row],
                                    .several = lanes->several >> step & 1};
                memcpy(&pods.units, &lanes->units[start->group][step][row], sizeof(vec));
                if (!offer(&games, &pods))
                    steps &= ~(left & -left);
            }
        }
        sum += sum_of_free(&games);
    }
    return sum;
}

/* Is there less CPU than a sequence could take, however often it is offered? */
static bool is_cpu_scarce(const struct gs_lanes *lanes, const struct gs_state *state,
                          uint32_t passes)
{
    return state->cpu_milli != INT32_MAX &&
           (uint64_t)state->cpu_milli < lanes->most_cpu_milli * passes;
}

uint64_t gs_lanes_placed(const struct gs_lanes *lanes, const struct gs_state *state,
                         uint32_t passes)
{
    struct gs_state start = {.cpu_milli = state->cpu_milli, .group = state->group};
    for (uint32_t i = 0; i < state->gpus; i++) {
        uint32_t units = state->free_units[i] < NEVER ? state->free_units[i] : NEVER - 1;
        if (units < lanes->least_units)
            continue;
        start.free_units[start.gpus++] = units;
        start.left_units += units;
    }
    if (!start.gpus || start.cpu_milli < lanes->least_cpu_milli)
        return 0;
    return start.left_units * GS_ROLLOUTS -
           play(lanes, &start, passes, is_cpu_scarce(lanes, state, passes));
}
