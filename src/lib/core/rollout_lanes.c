/* SPDX-License-Identifier: Apache-2.0 */
#include "rollout_lanes.h"

/*
 * One source for all processors. On x86-64 the compiler makes a second copy of the function that
 * has this attribute, for AVX2, and libc chooses when the program starts: before the thread
 * sanitizer is ready for that. Functions with vectors are inlined, into each copy, and get
 * pointers: how a vector itself is passed depends on the processor.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#define ALSO_FOR_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define ALSO_FOR_AVX2
#endif
#define INLINE static inline __attribute__((always_inline))

enum {
    LANES = 8,
    NEVER = 1 << 30, /* units that no GPU has free */
};

/* By step and sequence. */
typedef uint32_t numbers[GS_ROLLOUT_DRAWS][GS_ROLLOUTS];

struct gs_lanes {
    uint32_t least_units; /* no pod requests less */
    int32_t least_cpu_milli;
    uint64_t several; /* steps at which some pod requests several GPUs, as bits */
    numbers cpu_milli, gpus;
    numbers *units; /* by model group; NEVER: too large, or may not run there */
};

/* --- building --- */

static void put(struct gs_lanes *lanes, const struct gs_class *shape, uint32_t groups, uint32_t row,
                uint32_t step)
{
    lanes->cpu_milli[step][row] = (uint32_t)shape->cpu_milli;
    lanes->gpus[step][row] = shape->gpu_count;
    lanes->several |= (uint64_t)(shape->gpu_count > 1) << step;
    if (shape->cpu_milli < lanes->least_cpu_milli)
        lanes->least_cpu_milli = shape->cpu_milli;
    if (shape->units < lanes->least_units)
        lanes->least_units = shape->units;
    for (uint32_t group = 0; group < groups; group++)
        lanes->units[group][step][row] =
            shape->units < NEVER && (shape->groups >> group & 1) ? shape->units : (uint32_t)NEVER;
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
        for (uint32_t step = 0; step < GS_ROLLOUT_DRAWS; step++)
            put(lanes, &table->shapes[table->draws[row][step]], groups, row, step);
    }
    return lanes;
}

/* --- placing --- */

typedef uint32_t vec __attribute__((vector_size(4 * LANES)));
typedef int32_t signed_vec __attribute__((vector_size(4 * LANES)));

/* A mask of the lanes whose highest bit is set. */
#define NEGATIVE(vector) ((vec)((signed_vec)(vector) >> 31))

/* As many sequences as there are lanes. */
struct games {
    vec free_units[GS_GPUS_MAX]; /* in any order */
    vec cpu;                     /* free milli-CPU */
    size_t gpus;
    bool cpu_counts;
};

INLINE bool any(const vec *mask)
{
    typedef uint64_t pair __attribute__((vector_size(16)));
    pair parts[sizeof(vec) / sizeof(pair)], all = {0};
    memcpy(parts, mask, sizeof(parts));
    for (size_t i = 0; i < sizeof(parts) / sizeof(pair); i++)
        all |= parts[i];
    return all[0] | all[1];
}

/* What the tightest GPU would have left; negative where none has enough. */
INLINE void find_tightest(const struct games *games, const vec *units, vec *ret)
{
    vec least = (vec){0} + UINT32_MAX;
    for (size_t gpu = 0; gpu < games->gpus; gpu++) {
        const vec rest = games->free_units[gpu] - *units;
        for (int i = 0; i < LANES; i++) /* compilers make one instruction of it */
            least[i] = rest[i] < least[i] ? rest[i] : least[i];
    }
    *ret = least;
}

/* Offers each lane a pod, which takes the tightest GPUs; false when none of them fits. several:
 * some request more than one; a GPU that is taken seems larger than any other then, and is taken no
 * second time. */
INLINE bool offer(struct games *games, const struct gs_lanes *lanes, uint32_t group, uint32_t row,
                  uint32_t step, bool several)
{
    const uint32_t mark = several ? 1u << 31 : 0;
    vec units, gpus, least, cpu = {0};
    memcpy(&units, &lanes->units[group][step][row], sizeof(units));
    memcpy(&gpus, &lanes->gpus[step][row], sizeof(gpus));
    if (games->cpu_counts)
        memcpy(&cpu, &lanes->cpu_milli[step][row], sizeof(cpu));
    find_tightest(games, &units, &least);
    vec more = ~NEGATIVE(least) & ~NEGATIVE(games->cpu - cpu), missing = gpus;
    for (size_t gpu = 0; several && gpu < games->gpus; gpu++)
        missing += ~NEGATIVE(games->free_units[gpu] - units); /* a mask is -1 */
    if (several)
        more &= ~NEGATIVE(-missing);
    if (!any(&more))
        return false;
    games->cpu -= cpu & more;
    do {
        vec left = units & more;
        for (size_t gpu = 0; gpu < games->gpus; gpu++) {
            vec *at = &games->free_units[gpu];
            const vec taken = left & (vec)(*at == units + least);
            *at = (*at - taken) | (NEGATIVE(-taken) & mark);
            left -= taken;
        }
        if (!several)
            return true;
        gpus += more;
        more &= NEGATIVE(-gpus);
        find_tightest(games, &units, &least);
    } while (any(&more));
    for (size_t gpu = 0; gpu < games->gpus; gpu++)
        games->free_units[gpu] &= ~mark;
    return true;
}

/* Units that are left at the end, over all sequences. What fits in no lane never will again. */
ALSO_FOR_AVX2
static uint64_t play(const struct gs_lanes *lanes, const struct gs_state *start, uint32_t passes)
{
    uint64_t sum = 0;
    struct games games = {.gpus = start->gpus, .cpu_counts = start->cpu_milli != INT32_MAX};
    for (uint32_t row = 0; row < GS_ROLLOUTS; row += LANES) {
        games.cpu = (vec){0} + (uint32_t)start->cpu_milli;
        for (size_t gpu = 0; gpu < games.gpus; gpu++)
            games.free_units[gpu] = (vec){0} + start->free_units[gpu];
        uint64_t steps = UINT64_MAX;
        for (uint32_t pass = 0; pass < passes && steps; pass++) {
            for (uint64_t left = steps; left; left &= left - 1) {
                const uint32_t step = (uint32_t)__builtin_ctzll(left);
                /* inlined twice: where none requests several, that costs nothing */
                if (!(lanes->several >> step & 1
                          ? offer(&games, lanes, start->group, row, step, true)
                          : offer(&games, lanes, start->group, row, step, false)))
                    steps &= ~(left & -left);
            }
        }
        for (size_t gpu = 0; gpu < games.gpus; gpu++) {
            for (int i = 0; i < LANES; i++)
                sum += games.free_units[gpu][i];
        }
    }
    return sum;
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
    return start.left_units * GS_ROLLOUTS - play(lanes, &start, passes);
}
