/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences side by side come to the same sums as one sequence after the other, pod by pod. */
#include "policy_rig.h"

#include "gpushare/base/splitmix.h"

#include "core/policy_internal.h"
#include "core/rollout_lanes.h"

static uint32_t below(uint64_t *seed, uint32_t bound)
{
    return (uint32_t)gs_splitmix_below(seed, bound);
}

/* --- the same, plainly --- */

struct node {
    uint32_t room[GS_GPUS_MAX];
    uint32_t gpus;
    int64_t cpu;
};

/* The GPU with the least room that suffices and is not taken, or -1. */
static int tightest(const struct node *node, uint32_t units, const bool *taken)
{
    int best = -1;
    for (uint32_t i = 0; i < node->gpus; i++) {
        if (!taken[i] && node->room[i] >= units && (best < 0 || node->room[i] < node->room[best]))
            best = (int)i;
    }
    return best;
}

static bool place_plainly(struct node *node, const struct gs_class *shape, uint8_t group)
{
    bool taken[GS_GPUS_MAX] = {0};
    if (shape->cpu_milli > node->cpu || !(shape->groups >> group & 1))
        return false;
    for (uint32_t n = 0; n < shape->gpu_count; n++) {
        int at = tightest(node, shape->units, taken);
        if (at < 0)
            return false;
        taken[at] = true;
    }
    for (uint32_t i = 0; i < node->gpus; i++)
        node->room[i] -= taken[i] ? shape->units : 0;
    node->cpu -= shape->cpu_milli;
    return true;
}

static uint64_t sum_of_room(const struct node *node)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < node->gpus; i++)
        sum += node->room[i];
    return sum;
}

static uint64_t stranded_plainly(const struct gs_policy_table *table, const struct gs_state *state)
{
    uint64_t sum = 0;
    uint64_t passes = (state->left_units * 4 + table->row_units - 1) / table->row_units;
    passes = passes > 64 ? 64 : passes < 1 ? 1 : passes;
    for (int r = 0; r < GS_ROLLOUTS; r++) {
        struct node node = {.gpus = state->gpus, .cpu = state->cpu_milli};
        if (state->cpu_milli == INT32_MAX) /* as much as anybody wants */
            node.cpu = INT64_MAX;
        memcpy(node.room, state->free_units, sizeof(node.room));
        bool placed = true;
        for (uint64_t pass = 0; pass < passes && placed; pass++) {
            placed = false;
            for (int i = 0; i < GS_ROLLOUT_DRAWS; i++)
                placed |= place_plainly(&node, &table->shapes[table->draws[r][i]], state->group);
        }
        sum += sum_of_room(&node);
    }
    return sum;
}

/* --- random tables and states --- */

enum { KINDS_MOST = 300, MODELS = 4 };

struct world {
    const char *row;
    uint32_t card_units;
    uint32_t step; /* pods ask for multiples of it */
    uint32_t most_steps;
    uint32_t gpus_most;      /* of a node */
    uint32_t pod_gpus_most;  /* of a pod */
    uint32_t kinds;          /* of pods, at most */
    uint32_t cpu_most_milli; /* of a pod */
};

static struct gs_policy_table *random_table(const struct world *world, uint64_t *seed)
{
    static char names[MODELS][GS_MODEL_BYTES] = {"", "T4", "V100", "A100"};
    static const char *const lists[] = {"", "", "", "T4", "V100,A100", "H100"};
    static struct gs_class classes[KINDS_MOST];
    uint64_t supply_units[MODELS] = {0, 800, 1000, 200};
    struct gs_supply supply = {MODELS, supply_units, names};
    uint32_t count = 1 + below(seed, world->kinds);
    for (uint32_t i = 0; i < count; i++) {
        bool without_gpu = i && below(seed, 10) == 0;
        uint32_t steps = 1 + below(seed, world->most_steps);
        uint32_t gpus = below(seed, 3) ? 1 : 1 + below(seed, world->pod_gpus_most);
        classes[i] = (struct gs_class){
            .count = 1 + below(seed, 100),
            .units = without_gpu ? 0 : steps * world->step,
            .gpu_count = without_gpu ? 1 : gpus,
            .cpu_milli = (int32_t)below(seed, world->cpu_most_milli + 1),
            .model = i ? lists[below(seed, GS_COUNT_OF(lists))] : "",
            .model_deny = below(seed, 10) ? "" : "T4",
        };
    }
    struct gs_policy_table *table = gs_policy_table_build(classes, count, &supply);
    assert_non_null(table);
    return table;
}

static int by_size(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static struct gs_state random_state(const struct world *world, const struct gs_policy_table *table,
                                    uint64_t *seed)
{
    struct gs_state state = {
        .gpus = below(seed, world->gpus_most + 1),
        .model = (uint16_t)below(seed, MODELS),
        .cpu_milli = gs_class_cpu((int64_t)below(seed, 40) * (world->cpu_most_milli / 2)),
    };
    if (below(seed, 3) == 0)
        state.cpu_milli = INT32_MAX; /* not known, or more than can be counted */
    state.group = gs_table_group(table, state.model);
    for (uint32_t i = 0; i < state.gpus; i++) {
        state.free_units[i] = below(seed, 3) ? 1 + below(seed, world->card_units) : 0;
        if (!state.free_units[i])
            state.free_units[i] = world->card_units;
        state.left_units += state.free_units[i];
    }
    qsort(state.free_units, state.gpus, sizeof(state.free_units[0]), by_size);
    return state;
}

static void sums_are_those_of_a_plain_simulation(void **unused)
{
    enum { TABLES = 16, STATES = 12 };
    static const struct world worlds[] = {
        {"GiB", 80, 1, 16, 8, 4, 12, 8000},
        {"many GPUs", 80, 1, 16, 16, 16, 12, 2000},
        {"as many as there can be", 24, 1, 24, 64, 64, 6, 100},
        {"thousandths", 1000, 10, 100, 8, 8, 12, 30000},
        {"one GPU", 141, 1, 141, 1, 2, 12, 4000},
        {"pods larger than the GPUs", 16, 1, 40, 4, 2, 12, 1000},
        {"many kinds", 1000, 1, 1000, 8, 8, KINDS_MOST, 16000},
        {"MiB in five hundreds", 81559, 500, 60, 8, 4, 12, 8000},
        {"odd MiB", 81559, 1, 81559, 8, 4, 40, 8000},
        {"pods of as many units as count", (1 << 30) - 1, 1, (1 << 30) - 1, 8, 4, 40, 8000},
        {"a thousand times fewer", (1 << 30) - 1, 1, 1 << 20, 8, 4, 12, 8000},
        {"hardly any CPU", 80, 1, 8, 8, 2, 12, 64000},
        {"pods of any CPU", 80, 1, 8, 8, 2, 12, INT32_MAX},
        {"one unit", 2, 1, 1, 8, 3, 2, 2},
    };
    uint64_t seed = 7;
    GS_FOR_EACH_ROW (world, worlds) {
        for (int t = 0; t < TABLES; t++) {
            _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
                random_table(world, &seed);
            for (int s = 0; s < STATES; s++) {
                struct gs_state state = random_state(world, table, &seed);
                row_equal(world->row, gs_rollout_stranded(table, &state),
                          stranded_plainly(table, &state));
            }
        }
    }
}

/* GPUs of 2^30 units and more count as 2^30 - 1; pods of as many fit nowhere. */
static void units_beyond_the_largest_are_left(void **unused)
{
    enum { MOST = (1 << 30) - 1 };
    static const struct gs_class classes[] = {{10, MOST, 1, 500, "", ""},
                                              {10, MOST + 1, 1, 500, "", ""}};
    static const struct gs_state state = {
        .cpu_milli = INT32_MAX,
        .gpus = 2,
        .left_units = (uint64_t)MOST + 1 + UINT32_MAX,
        .free_units = {MOST + 1, UINT32_MAX},
    };
    struct gs_supply supply = {0};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(classes, GS_COUNT_OF(classes), &supply);
    assert_int_equal(gs_rollout_stranded(table, &state),
                     (state.left_units - 2 * (uint64_t)MOST) * GS_ROLLOUTS);
}

static void what_fits_nowhere_is_not_played(void **unused)
{
    static const struct gs_class classes[] = {{10, 4, 1, 500, "", ""}, {10, 6, 2, 500, "", ""}};
    static const struct {
        const char *row;
        struct gs_state state;
        uint64_t placed; /* by each sequence */
    } rows[] = {
        {"no GPU", {.cpu_milli = 9000}, 0},
        {"too small", {.cpu_milli = 9000, .gpus = 1, .left_units = 3, .free_units = {3}}, 0},
        {"no CPU", {.cpu_milli = 499, .gpus = 1, .left_units = 16, .free_units = {16}}, 0},
        {"CPU for one", {.cpu_milli = 500, .gpus = 1, .left_units = 16, .free_units = {16}}, 4},
        {"just large enough", {.cpu_milli = 500, .gpus = 1, .left_units = 5, .free_units = {5}}, 4},
    };
    struct gs_supply supply = {0};
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table =
        gs_policy_table_build(classes, GS_COUNT_OF(classes), &supply);
    GS_FOR_EACH_ROW (r, rows) {
        row_equal(r->row, gs_lanes_placed(table->lanes, &r->state, 1), r->placed * GS_ROLLOUTS);
        row_equal(r->row, gs_rollout_stranded(table, &r->state),
                  (r->state.left_units - r->placed) * GS_ROLLOUTS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_a_plain_simulation),
        cmocka_unit_test(units_beyond_the_largest_are_left),
        cmocka_unit_test(what_fits_nowhere_is_not_played),
    };
    return GS_RUN(tests);
}
