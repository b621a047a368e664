/* SPDX-License-Identifier: Apache-2.0 */
#include "policy_internal.h"

/* What rollout learns from: the pods seen and the GPUs there are; the table it reads. */

struct gs_policy_table *gs_policies_pin(struct gs_policies *policies)
{
    pthread_mutex_lock(&policies->table_lock);
    struct gs_policy_table *table = policies->table;
    if (table)
        table->refs++;
    pthread_mutex_unlock(&policies->table_lock);
    return table;
}

void gs_policies_unpin(struct gs_policies *policies, struct gs_policy_table *table)
{
    pthread_mutex_lock(&policies->table_lock);
    bool last = --table->refs == 0;
    pthread_mutex_unlock(&policies->table_lock);
    if (last)
        gs_policy_table_free(table);
}

/* The share fades over some 256 pods. Hold the lock. */
static void note_coming_or_going(struct gs_policies *policies, bool left)
{
    enum { ONE = 1 << 16, FADES_OVER = 256 };
    if (left)
        policies->left_share += ONE / FADES_OVER;
    policies->left_share -= policies->left_share / FADES_OVER;
    bool leaving = atomic_load_explicit(&policies->leaving, memory_order_relaxed);
    leaving = policies->left_share > (leaving ? ONE / 8 : ONE / 4);
    atomic_store_explicit(&policies->leaving, leaving, memory_order_relaxed);
}

void gs_policies_left(struct gs_policies *policies)
{
    pthread_mutex_lock(&policies->learn_lock);
    note_coming_or_going(policies, true);
    pthread_mutex_unlock(&policies->learn_lock);
}

void gs_policies_learn(struct gs_policies *policies, const struct gs_ask *ask)
{
    if (ask->broken || ask->uuid.len)
        return;
    pthread_mutex_lock(&policies->learn_lock);
    gs_classes_add(&policies->classes, ask);
    policies->learnt += ask->units ? 1 : 0;
    if (ask->units)
        note_coming_or_going(policies, false);
    pthread_mutex_unlock(&policies->learn_lock);
}

/* --- supply --- */

/* GPU memory by model number of the ledger. */
static void count_supply(const struct gs_ledger *ledger, uint64_t units[GS_MODELS_MAX + 1])
{
    for (uint32_t slot = 0; slot < gs_ledger_slots(ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(ledger, slot);
        for (uint32_t i = 0; view && i < view->gpu_count; i++)
            units[view->gpus[i].model] += view->gpus[i].total_units;
    }
}

/* More than an eighth more or less: worth a new price. */
static bool moved(uint64_t then, uint64_t now)
{
    uint64_t change = then > now ? then - now : now - then;
    return change > then / 8;
}

/* True when a number is another model's than it was. */
static bool name_supply(struct gs_supply *supply, const struct gs_ledger *ledger)
{
    bool renamed = false;
    for (uint32_t m = 1; m <= gs_ledger_model_count(ledger); m++) {
        const char *name = gs_ledger_model_name(ledger, (uint16_t)m);
        if (!name[0] || strcmp(supply->names[m], name) == 0)
            continue;
        renamed = renamed || supply->names[m][0];
        memcpy(supply->names[m], name, GS_MODEL_BYTES);
    }
    return renamed;
}

void gs_policies_supply(struct gs_policies *policies, const struct gs_ledger *ledger)
{
    uint64_t units[GS_MODELS_MAX + 1] = {0};
    count_supply(ledger, units);
    const uint32_t models = gs_ledger_model_count(ledger) + 1u;
    struct gs_policy_table *table = gs_policies_pin(policies);
    pthread_mutex_lock(&policies->learn_lock);
    struct gs_supply *supply = &policies->supply;
    bool news = name_supply(supply, ledger) || (table && models > table->models);
    supply->models = models > supply->models ? models : supply->models;
    memcpy(supply->units, units, sizeof(units));
    for (uint32_t m = 0; table && m < table->models; m++)
        news = news || moved(table->model_units[m], units[m]);
    policies->supply_moved |= news && table && table->constrained;
    pthread_mutex_unlock(&policies->learn_lock);
    if (table)
        gs_policies_unpin(policies, table);
}

/* --- refresh --- */

bool gs_policies_refresh_due(struct gs_policies *policies)
{
    pthread_mutex_lock(&policies->learn_lock);
    bool due = policies->learnt >= policies->due_at || policies->supply_moved;
    pthread_mutex_unlock(&policies->learn_lock);
    return due;
}

/* What a table is built from, copied so that learning goes on meanwhile. */
struct snapshot {
    struct gs_arena arena;
    const struct gs_class *classes;
    struct gs_supply supply;
    uint32_t count;
    uint64_t gpu_pods, learnt;
};

static void release_snapshot(struct snapshot *snapshot)
{
    gs_arena_release(&snapshot->arena);
}

static bool take_snapshot(struct gs_policies *policies, struct snapshot *ret)
{
    pthread_mutex_lock(&policies->learn_lock);
    const struct gs_supply *supply = &policies->supply;
    const uint32_t models = supply->models;
    ret->classes = gs_classes_copy(&policies->classes, &ret->arena);
    ret->supply.models = models;
    ret->supply.units =
        gs_arena_extend(&ret->arena, supply->units, models, 1, sizeof(*supply->units));
    ret->supply.names =
        gs_arena_extend(&ret->arena, supply->names, models, 1, sizeof(*supply->names));
    ret->count = policies->classes.count;
    ret->gpu_pods = policies->classes.gpu_pods;
    ret->learnt = policies->learnt;
    pthread_mutex_unlock(&policies->learn_lock);
    return ret->classes && ret->supply.units && ret->supply.names;
}

/* The new table goes into service; the old one goes when its last reader has finished. */
static void put_into_service(struct gs_policies *policies, struct gs_policy_table *table)
{
    table->refs = 1;
    pthread_mutex_lock(&policies->table_lock);
    struct gs_policy_table *old = policies->table;
    table->generation = old ? old->generation + 1 : 1;
    policies->table = table;
    atomic_store_explicit(&policies->generation, table->generation, memory_order_release);
    pthread_mutex_unlock(&policies->table_lock);
    if (old)
        gs_policies_unpin(policies, old);
}

int gs_policies_refresh(struct gs_policies *policies, struct gs_error *err)
{
    _cleanup_(release_snapshot) struct snapshot snapshot = {0};
    if (!take_snapshot(policies, &snapshot))
        return gs_fail_nomem(err);
    if (snapshot.gpu_pods < GS_LEARN_MIN)
        return 0;
    struct gs_policy_table *table =
        gs_policy_table_build(snapshot.classes, snapshot.count, &snapshot.supply);
    if (!table)
        return gs_fail_nomem(err);
    put_into_service(policies, table);
    pthread_mutex_lock(&policies->learn_lock);
    policies->due_at = snapshot.learnt + snapshot.gpu_pods;
    policies->supply_moved = false;
    pthread_mutex_unlock(&policies->learn_lock);
    return 0;
}
