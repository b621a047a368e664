/* SPDX-License-Identifier: Apache-2.0 */
#define PLAY_LANES 8
#include "rollout_play.h"

/* Asks for more than any GPU has. */
enum { NEVER = INT16_MAX };

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
    lanes->cpu_milli[step][row % 2][row / 2] = shape->cpu_milli;
    if (shape->cpu_milli < lanes->least_cpu_milli)
        lanes->least_cpu_milli = shape->cpu_milli;
    lanes->gpus[step][row] = (int16_t)shape->gpu_count; /* at most GS_GPUS_MAX */
    for (uint32_t group = 0; group < groups; group++) {
        int16_t units = units_of(lanes, shape, group);
        lanes->units[group][step][row] = units;
        if (units < lanes->least_units)
            lanes->least_units = units;
    }
}

static void put_row(struct gs_lanes *lanes, const struct gs_policy_table *table, uint32_t groups,
                    uint32_t row)
{
    uint64_t cpu_milli = 0;
    for (uint32_t step = 0; step < GS_ROLLOUT_DRAWS; step++) {
        const struct gs_shape *shape = &table->shapes[table->draws[row][step]];
        put(lanes, shape, groups, row, step);
        cpu_milli += (uint64_t)shape->cpu_milli;
    }
    if (cpu_milli > lanes->most_cpu_milli)
        lanes->most_cpu_milli = cpu_milli;
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
    lanes->play = gs_lanes_play_wide();
    if (!lanes->play)
        lanes->play = gs_lanes_play_narrow;
    lanes->units = units;
    lanes->least_units = NEVER;
    lanes->least_cpu_milli = INT32_MAX;
    for (uint32_t i = 0; i < GS_ROLLOUTS * GS_ROLLOUT_DRAWS; i++)
        lanes->unit = common_divisor(table->shapes[(&table->draws[0][0])[i]].units, lanes->unit);
    for (uint32_t row = 0; row < GS_ROLLOUTS; row++)
        put_row(lanes, table, groups, row);
    return lanes;
}

static uint32_t largest_of(const struct gs_lanes *lanes, const struct gs_state *state)
{
    return state->gpus ? state->free_units[state->gpus - 1] / lanes->unit : 0;
}

bool gs_lanes_can(const struct gs_lanes *lanes, const struct gs_state *state)
{
    return largest_of(lanes, state) < NEVER;
}

/* Is there less CPU than a sequence could take, however often it is offered? */
static bool cpu_counts(const struct gs_lanes *lanes, const struct gs_state *state, uint32_t passes)
{
    return state->cpu_milli != INT32_MAX &&
           (uint64_t)state->cpu_milli < lanes->most_cpu_milli * passes;
}

uint64_t gs_lanes_placed(const struct gs_lanes *lanes, const struct gs_state *state,
                         uint32_t passes)
{
    if (largest_of(lanes, state) < (uint32_t)lanes->least_units ||
        state->cpu_milli < lanes->least_cpu_milli)
        return 0;
    struct gs_lanes_start start = {
        .gpus = state->gpus,
        .group = state->group,
        .cpu_counts = cpu_counts(lanes, state, passes),
        .cpu_milli = state->cpu_milli,
        .passes = passes,
    };
    uint64_t units = 0;
    for (uint32_t i = 0; i < state->gpus; i++) {
        start.room[i] = (int16_t)(state->free_units[i] / lanes->unit);
        units += (uint64_t)start.room[i];
    }
    return (units * GS_ROLLOUTS - lanes->play(lanes, &start)) * lanes->unit;
}

uint64_t gs_lanes_play_narrow(const struct gs_lanes *lanes, const struct gs_lanes_start *start)
{
    return play_all(lanes, start);
}
