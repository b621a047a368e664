/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include "gpushare/base/splitmix.h"

#include "rollout_lanes.h"

/* Building a table: sort the classes, price scarce
 * models, number their groups, draw the sequences. Integers wherever a choice depends on it. */

/* Models that found no group of their own: only what runs everywhere runs there. */
enum { GROUP_REST = GS_GROUPS_MAX - 1 };

/* nu = 0.4 of the scarcity price, and the price's unit. */
#define PRICE_WEIGHT 0.4
#define PRICE_ONE    65536.0

static int by_frequency(const void *left, const void *right)
{
    const struct gs_class *a = left, *b = right;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    if (a->cpu_milli != b->cpu_milli)
        return a->cpu_milli > b->cpu_milli ? -1 : 1;
    if (a->units != b->units)
        return a->units > b->units ? -1 : 1;
    if (a->gpu_count != b->gpu_count)
        return a->gpu_count > b->gpu_count ? -1 : 1;
    int order = strcmp(b->model, a->model);
    return order ? order : strcmp(b->model_deny, a->model_deny);
}

/* --- models --- */

/* Asks the one function that knows the lists' meaning, about a node with one GPU of that model. */
static bool runs_on(const struct gs_class *class, const char *model)
{
    if (!class->model[0] && !class->model_deny[0])
        return true;
    struct gs_gpu gpu = {0};
    memcpy(gpu.model, model, strnlen(model, sizeof(gpu.model) - 1));
    struct gs_gpu_state state = {0};
    struct gs_node_view view = {.gpu_count = 1, .gpus = &state, .inventory = &gpu};
    struct gs_ask ask = {
        .selects = true,
        .model = gs_slice_of(class->model),
        .model_deny = gs_slice_of(class->model_deny),
    };
    return gs_ask_allowed(&ask, &view) != 0;
}

/* Node states differ by group, not by model: one where every class runs on every model. */
static void group_models(struct gs_policy_table *table, const bool *runs)
{
    for (uint32_t m = 0; table->constrained && m < table->models; m++) {
        table->model_group[m] = (uint8_t)(m < GROUP_REST ? m : GROUP_REST);
        for (uint32_t i = 0; m < GROUP_REST && i < table->shape_count; i++)
            table->shapes[i].groups |= (uint64_t)runs[(size_t)m * table->shape_count + i] << m;
    }
}

/* What is asked for of a shape, in units, over all pods seen. */
static double demand_of(const struct gs_class *shape)
{
    return (double)shape->count * (double)shape->gpu_count * (double)shape->units;
}

/*
 * The price of a model: demand that is tied to it, each pod's spread over all that it may run on,
 * relative to demand over supply as a whole. All models equal for all pods: 0.
 */
static void price_models(struct gs_policy_table *table, const bool *runs)
{
    double demand = 0, supply = 0;
    for (uint32_t m = 0; m < table->models; m++)
        supply += (double)table->model_units[m];
    for (uint32_t i = 0; i < table->shape_count; i++)
        demand += demand_of(&table->shapes[i]);
    for (uint32_t i = 0; i < table->shape_count; i++) {
        struct gs_class *shape = &table->shapes[i];
        if (!shape->model[0] && !shape->model_deny[0]) {
            shape->groups = UINT64_MAX;
            continue;
        }
        table->constrained = true;
        double allowed = 0;
        for (uint32_t m = 0; m < table->models; m++)
            allowed += runs[(size_t)m * table->shape_count + i] ? (double)table->model_units[m] : 0;
        if (allowed <= 0)
            continue;
        double price = PRICE_WEIGHT * PRICE_ONE * demand_of(shape) / allowed * supply / demand;
        for (uint32_t m = 0; m < table->models; m++)
            table->model_price[m] +=
                runs[(size_t)m * table->shape_count + i] ? (int64_t)(price + 0.5) : 0;
    }
}

static int judge_models(struct gs_policy_table *table, const struct gs_supply *supply)
{
    table->models = supply->models ? supply->models : 1;
    table->model_group = gs_arena_calloc(&table->arena, table->models, sizeof(uint8_t));
    table->model_price = gs_arena_calloc(&table->arena, table->models, sizeof(int64_t));
    table->model_units = gs_arena_calloc(&table->arena, table->models, sizeof(uint64_t));
    _cleanup_free_ bool *runs = calloc(table->models, table->shape_count);
    if (!table->model_group || !table->model_price || !table->model_units || !runs)
        return -1;
    for (uint32_t m = 0; m < table->models; m++) {
        const char *name = supply->models ? supply->names[m] : "";
        table->model_units[m] = supply->models ? supply->units[m] : 0;
        for (uint32_t i = 0; i < table->shape_count; i++)
            runs[(size_t)m * table->shape_count + i] = runs_on(&table->shapes[i], name);
    }
    price_models(table, runs);
    group_models(table, runs);
    return 0;
}

/* --- draws --- */

static uint64_t root(uint64_t square)
{
    uint64_t result = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit; bit >>= 1) {
        if ((result | bit) * (result | bit) <= square)
            result |= bit;
    }
    return result;
}

/* count × gpu_count^1.5, in 2^-20: large pods weigh more than their number, so that whole nodes
 * are kept for them. At most 2^17 × 2^29. */
static uint64_t weight_of(const struct gs_class *shape)
{
    uint64_t gpus = shape->gpu_count;
    return shape->units ? shape->count * root(gpus * gpus * gpus << 40) : 0;
}

/*
 * All sequences together hold each shape in proportion to its weight (element i of all gets the
 * shape at (i + 0.5) / n of the cumulative weight), in an order that is the same in every run.
 * False: no class has GPU memory.
 */
static bool draw(struct gs_policy_table *table)
{
    const uint32_t elements = GS_ROLLOUTS * GS_ROLLOUT_DRAWS;
    uint16_t *all = &table->draws[0][0];
    uint64_t total = 0, units = 0;
    for (uint32_t i = 0; i < table->shape_count; i++)
        total += weight_of(&table->shapes[i]);
    if (!total)
        return false;
    uint32_t shape = 0;
    uint64_t reached = weight_of(&table->shapes[0]);
    for (uint32_t i = 0; i < elements; i++) {
        unsigned __int128 middle = (unsigned __int128)(2 * i + 1) * total;
        while ((unsigned __int128)2 * elements * reached < middle)
            reached += weight_of(&table->shapes[++shape]);
        all[i] = (uint16_t)shape;
        units += (uint64_t)table->shapes[shape].units * table->shapes[shape].gpu_count;
    }
    uint64_t random = 1;
    for (uint32_t i = elements - 1; i > 0; i--) {
        uint32_t other = (uint32_t)gs_splitmix_below(&random, i + 1);
        uint16_t held = all[i];
        all[i] = all[other];
        all[other] = held;
    }
    table->row_units = units / GS_ROLLOUTS;
    return true;
}

struct gs_policy_table *gs_policy_table_build(const struct gs_class *classes, uint32_t count,
                                              const struct gs_supply *supply)
{
    _cleanup_(gs_policy_table_freep) struct gs_policy_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->shapes = gs_arena_extend(&table->arena, classes, count, 0, sizeof(*classes));
    table->shape_count = count;
    if (!table->shapes)
        return NULL;
    qsort(table->shapes, count, sizeof(*table->shapes), by_frequency);
    if (judge_models(table, supply) < 0)
        return NULL;
    if (!draw(table))
        return NULL;
    table->lanes = gs_lanes_build(table);
    return table->lanes ? gs_steal(&table) : NULL;
}

void gs_policy_table_free(struct gs_policy_table *table)
{
    if (!table)
        return;
    gs_arena_release(&table->arena);
    free(table);
}
