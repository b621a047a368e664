/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

static void same(struct world *world, const char *what, const char *of, uint64_t got,
                 uint64_t expected)
{
    if (got != expected)
        differ(world, "%s of %s is %llu instead of %llu", what, of, (unsigned long long)got,
               (unsigned long long)expected);
}

static bool same_gpu(const struct gs_gpu *a, const struct gs_gpu *b)
{
    return a->idx == b->idx && a->mem_units == b->mem_units && a->mem_mib == b->mem_mib &&
           a->xid == b->xid && a->xid_boot == b->xid_boot && a->max_pods == b->max_pods &&
           a->numa == b->numa && a->node == b->node && a->healthy == b->healthy &&
           a->schedulable == b->schedulable && a->enforced == b->enforced &&
           strcmp(a->uuid, b->uuid) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->pci, b->pci) == 0;
}

static void compare_gpu(struct world *world, const char *name, const struct gs_node_view *view,
                        uint32_t i, const struct gs_gpu_state *expected, const struct gs_gpu *gpu)
{
    const struct gs_gpu_state *got = &view->gpus[i];
    same(world, "GPU index", name, got->idx, expected->idx);
    same(world, "GPU total", name, got->total_units, expected->total_units);
    same(world, "GPU used", name, got->used_units, expected->used_units);
    same(world, "GPU free", name, got->free_units, expected->free_units);
    same(world, "GPU pods", name, got->pods, expected->pods);
    same(world, "GPU most pods", name, got->max_pods, expected->max_pods);
    same(world, "GPU used cores", name, got->used_cores_pct, expected->used_cores_pct);
    same(world, "GPU free cores", name, got->free_cores_pct, expected->free_cores_pct);
    same(world, "GPU usable", name, got->usable, expected->usable);
    same(world, "GPU NUMA", name, (uint16_t)got->numa, (uint16_t)expected->numa);
    if (strcmp(gs_ledger_model_name(world->ledger, got->model), gpu->model) != 0)
        differ(world, "GPU %u of %s has another model", got->idx, name);
    if (!same_gpu(&view->inventory[i], gpu))
        differ(world, "GPU %u of %s has another inventory", got->idx, name);
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return (digest ^ value) * 0x9E3779B97F4A7C15u + (digest >> 29);
}

/* Everything that a score or an answer about a node may depend on. */
static uint64_t digest_of(const struct model *model, uint32_t node, const struct gs_node_view *view)
{
    uint64_t digest = mix(view->nominated, (uint64_t)view->cpu_milli);
    digest = mix(digest, (uint64_t)view->cpu_used_milli);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        digest =
            mix(digest, (uint64_t)gpu->idx << 40 | (uint64_t)gpu->usable << 33 | gpu->total_units);
        digest = mix(digest, gpu->used_units);
        digest = mix(digest, gpu->used_cores_pct);
        digest = mix(digest, (uint64_t)gpu->pods << 32 | gpu->max_pods);
        digest = mix(digest, (uint64_t)(uint16_t)gpu->numa << 32 | gpu->model);
    }
    uint32_t uids[M_UIDS], holds = m_holds_of(model, node, uids);
    for (uint32_t i = 0; i < holds; i++) {
        const struct m_hold *hold = &model->holds[uids[i]];
        digest = mix(digest, (uint64_t)uids[i] << 48 | (uint64_t)hold->gpu_count << 40 |
                                 (uint32_t)hold->priority);
        digest = mix(digest, hold->units);
        digest = mix(digest, hold->cores);
        digest = mix(digest, (uintptr_t)hold->model);
    }
    return digest | 1; /* 0: never seen */
}

static void compare_version(struct world *world, uint32_t node, const struct gs_node_view *view)
{
    struct snapshot now = {digest_of(&world->model, node, view), view->version};
    struct snapshot *before = &world->seen[node];
    if (before->digest && before->digest != now.digest && before->version == now.version)
        differ(world, "%s changed without a new version", m_node_name(node));
    for (uint32_t i = 0; i < world->node_count; i++) {
        if (i != node && world->seen[i].digest && world->seen[i].version == now.version)
            differ(world, "%s and %s have the same version", m_node_name(node), m_node_name(i));
    }
    *before = now;
}

static void compare_summary(struct world *world, const char *name, const struct gs_node_view *got,
                            const struct gs_node_view *expected)
{
    same(world, "largest free", name, got->max_free_units, expected->max_free_units);
    same(world, "largest total", name, got->max_total_units, expected->max_total_units);
    same(world, "free sum", name, got->sum_free_units, expected->sum_free_units);
    same(world, "total sum", name, got->sum_total_units, expected->sum_total_units);
    same(world, "used sum", name, got->sum_used_units, expected->sum_used_units);
    same(world, "nominated", name, got->nominated, expected->nominated);
    same(world, "cpu", name, (uint64_t)got->cpu_milli, (uint64_t)expected->cpu_milli);
    same(world, "used cpu", name, (uint64_t)got->cpu_used_milli,
         (uint64_t)expected->cpu_used_milli);
}

static void compare_node(struct world *world, uint32_t node)
{
    const char *name = m_node_name(node);
    struct gs_node_view expected;
    struct gs_gpu_state states[M_GPUS];
    const struct gs_node_view *view = gs_ledger_view(world->ledger, name);
    bool present = m_view(&world->model, node, &expected, states);
    if (present != (view != NULL)) {
        differ(world, "%s is %sthere", name, view ? "" : "not ");
        return;
    }
    if (!view) {
        world->seen[node] = (struct snapshot){0};
        return;
    }
    same(world, "GPU count", name, view->gpu_count, expected.gpu_count);
    for (uint32_t i = 0; !world->wrong && i < expected.gpu_count; i++)
        compare_gpu(world, name, view, i, &expected.gpus[i], &world->model.nodes[node].gpus[i]);
    compare_summary(world, name, view, &expected);
    if (gs_ledger_view_at(world->ledger, view->slot) != view ||
        strcmp(gs_ledger_node_name(world->ledger, view->slot), name) != 0)
        differ(world, "slot %u is not %s", view->slot, name);
    same(world, "unit", name, view->unit, world->model.nodes[node].unit);
    same(world, "word about moved pods", name, view->tells_moved,
         world->model.nodes[node].tells_moved);
    compare_version(world, node, view);
}

static void compare_claim_fields(struct world *world, uint32_t uid, const struct gs_claim *got)
{
    const struct m_claim *expected = &world->model.claims[uid];
    const char *name = m_uid(uid);
    bool unplaced;
    if (strcmp(got->uid, name) != 0 || strcmp(got->node, m_node_name(expected->node)) != 0 ||
        strcmp(got->ns, "ns") != 0 || strcmp(got->name, name) != 0)
        differ(world, "claim %s says %s/%s on %s", name, got->ns, got->name, got->node);
    same(world, "recorded GPUs", name, got->gpus, expected->gpus);
    same(world, "charged GPUs", name, got->charged, m_charged(&world->model, uid, &unplaced));
    same(world, "unplaced", name, got->unplaced, unplaced);
    same(world, "other GPUs", name, got->also, expected->also);
    same(world, "told", name, got->from_moved, expected->from_moved);
    same(world, "total units", name, got->total_units, expected->total);
    same(world, "units", name, got->units, expected->units);
    same(world, "gpu_count", name, got->gpu_count, expected->gpu_count);
    same(world, "cores", name, got->cores_pct, expected->cores);
    same(world, "priority", name, (uint32_t)got->priority, (uint32_t)expected->priority);
    same(world, "cpu", name, got->cpu_milli, expected->cpu_milli);
    same(world, "revision", name, got->revision, expected->revision);
    same(world, "reserved", name, got->state == GS_CLAIM_RESERVED, expected->reserved);
    same(world, "leaving", name, got->leaving, expected->leaving);
}

static void compare_uid(struct world *world, uint32_t uid)
{
    struct gs_claim got;
    bool there = gs_ledger_find_claim(world->ledger, m_uid(uid), &got);
    if (there != world->model.claims[uid].there)
        differ(world, "claim %s is %sthere", m_uid(uid), there ? "" : "not ");
    else if (there)
        compare_claim_fields(world, uid, &got);
}

static void compare_stats(struct world *world)
{
    struct gs_ledger_stats got, expected;
    gs_ledger_stats(world->ledger, &got);
    m_stats(&world->model, &expected);
    same(world, "nodes", "all", got.nodes, expected.nodes);
    same(world, "GPU nodes", "all", got.gpu_nodes, expected.gpu_nodes);
    same(world, "GPUs", "all", got.gpus, expected.gpus);
    same(world, "claims", "all", got.claims, expected.claims);
    same(world, "reserved", "all", got.reserved, expected.reserved);
    same(world, "unplaced claims", "all", got.unplaced_claims, expected.unplaced_claims);
    same(world, "overfull GPUs", "all", got.overfull_gpus, expected.overfull_gpus);
    same(world, "others", "all", got.others, expected.others);
    same(world, "held", "all", got.held, expected.held);
    for (uint32_t slot = 0; slot < gs_ledger_slots(world->ledger); slot++)
        same(world, "audit", "all", gs_ledger_audit(world->ledger, slot), 0);
}

/* A walk that must see the pods of a list, in its order. */
struct walk {
    struct world *world;
    uint32_t uids[M_UIDS];
    uint32_t count, at;
};

static bool expect_uid(struct walk *walk, const char *uid)
{
    if (walk->at >= walk->count || strcmp(uid, m_uid(walk->uids[walk->at])) != 0) {
        differ(walk->world, "a walk meets %s as number %u of %u", uid, walk->at + 1, walk->count);
        return false;
    }
    walk->at++;
    return true;
}

static bool meet_claim(void *ctx, const struct gs_claim *claim)
{
    struct walk *walk = ctx;
    if (!expect_uid(walk, claim->uid))
        return false;
    compare_claim_fields(walk->world, walk->uids[walk->at - 1], claim);
    return true;
}

static bool meet_hold(void *ctx, const struct gs_hold *hold)
{
    struct walk *walk = ctx;
    const struct gs_ask *ask = &hold->ask;
    if (!expect_uid(walk, ask->uid))
        return false;
    const struct m_hold *expected = &walk->world->model.holds[walk->uids[walk->at - 1]];
    same(walk->world, "held units", ask->uid, ask->units, expected->units);
    same(walk->world, "held cores", ask->uid, ask->cores_pct, expected->cores);
    same(walk->world, "held GPUs", ask->uid, ask->gpu_count, expected->gpu_count);
    same(walk->world, "held priority", ask->uid, (uint32_t)ask->priority,
         (uint32_t)expected->priority);
    if (!gs_slice_eq(ask->model, gs_slice_of(expected->model ? expected->model : "")) ||
        ask->model_deny.len || ask->uuid.len || ask->uuid_deny.len)
        differ(walk->world, "hold %s has another model", ask->uid);
    return true;
}

static bool count_claim(void *ctx, const struct gs_claim *claim)
{
    ++*(uint32_t *)ctx;
    return true;
}

static void compare_walks(struct world *world, uint32_t node)
{
    const struct gs_node_view *view = gs_ledger_view(world->ledger, m_node_name(node));
    if (!view)
        return;
    struct walk walk = {.world = world};
    walk.count = m_claims_of(&world->model, node, walk.uids);
    gs_ledger_each_claim(world->ledger, view->slot, meet_claim, &walk);
    same(world, "claims met", m_node_name(node), walk.at, walk.count);
    walk = (struct walk){.world = world};
    walk.count = m_holds_of(&world->model, node, walk.uids);
    gs_ledger_each_hold(world->ledger, view->slot, meet_hold, &walk);
    same(world, "holds met", m_node_name(node), walk.at, walk.count);
}

void compare_touched(struct world *world)
{
    compare_node(world, world->node);
    compare_uid(world, world->uid);
}

void compare_all(struct world *world)
{
    for (uint32_t i = 0; i < world->node_count; i++) {
        compare_node(world, i);
        compare_walks(world, i);
    }
    uint32_t claims = 0, met = 0;
    for (uint32_t i = 0; i < world->uid_count; i++) {
        compare_uid(world, i);
        claims += world->model.claims[i].there;
    }
    gs_ledger_each(world->ledger, count_claim, &met);
    same(world, "claims met", "all", met, claims);
    compare_stats(world);
    /* records of nodes that nothing refers to are used again */
    if (gs_ledger_slots(world->ledger) > M_NODES)
        differ(world, "%u slots for %u nodes", gs_ledger_slots(world->ledger), M_NODES);
}
