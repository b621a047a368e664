/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

void put_claim(struct world *world, uint32_t uid, const struct m_claim *claim)
{
    struct gs_claim as = {
        .uid = m_uid(uid),
        .ns = "ns",
        .name = m_uid(uid),
        .node = m_node_name(claim->node),
        .gpus = claim->gpus,
        .also = claim->also,
        .from_moved = claim->from_moved,
        .units = claim->units,
        .gpu_count = claim->gpu_count,
        .gpus_max = claim->gpus_max,
        .cores_pct = claim->cores,
        .total_units = claim->total,
        .priority = claim->priority,
        .cpu_milli = claim->cpu_milli,
        .revision = claim->revision,
        .state = claim->reserved ? GS_CLAIM_RESERVED : GS_CLAIM_CONFIRMED,
        .leaving = claim->leaving,
    };
    struct gs_error err = {0};
    while (runs_out(world, gs_ledger_set_claim(world->ledger, &as, &err), &err))
        err = (struct gs_error){0};
    if (world->model.claims[uid].there)
        world->past[uid] = world->model.claims[uid];
    m_set_claim(&world->model, uid, claim);
    world->uid = uid;
    world->node = claim->node;
    tell(world, "%s on %s: %u units x %u, GPUs %#llx%s", as.uid, as.node, as.units, as.gpu_count,
         (unsigned long long)as.gpus,
         claim->reserved  ? ", reserved"
         : claim->leaving ? ", leaving"
                          : "");
}

void put_other(struct world *world, uint32_t uid, uint32_t node, int64_t cpu_milli)
{
    struct gs_error err = {0};
    while (runs_out(
        world, gs_ledger_set_other(world->ledger, m_uid(uid), m_node_name(node), cpu_milli, &err),
        &err))
        err = (struct gs_error){0};
    m_set_other(&world->model, uid, node, cpu_milli);
    world->uid = uid;
    world->node = node;
    tell(world, "%s on %s: cpu %lld", m_uid(uid), m_node_name(node), (long long)cpu_milli);
}

void put_hold(struct world *world, uint32_t uid, const struct m_hold *hold)
{
    struct gs_hold as = {.ask = {.uid = m_uid(uid),
                                 .units = hold->nothing == M_NO_UNITS ? 0 : hold->units,
                                 .gpu_count = hold->gpu_count,
                                 .cores_pct = hold->cores,
                                 .priority = hold->priority,
                                 .selects = hold->model,
                                 .broken = hold->nothing == M_BROKEN ? GS_REASON_BAD_UUID : GS_FITS,
                                 .model = gs_slice_of(hold->model ? hold->model : "")},
                         .node = hold->nothing == M_NO_NODE      ? NULL
                                 : hold->nothing == M_EMPTY_NODE ? ""
                                                                 : m_node_name(hold->node)};
    struct gs_error err = {0};
    while (runs_out(world, gs_ledger_hold(world->ledger, &as, &err), &err))
        err = (struct gs_error){0};
    m_set_hold(&world->model, uid, hold);
    world->uid = uid;
    world->node = hold->node;
    tell(world, "%s on %s: %u units x %u, priority %d, model %s", as.ask.uid,
         m_node_name(hold->node), as.ask.units, as.ask.gpu_count, as.ask.priority,
         hold->model ? hold->model : "any");
}

static uint32_t random_units(struct rng *rng)
{
    static const uint32_t units[] = {1, 2, 4, 8, 8, 12, 16, 24, 80, UINT32_MAX};
    return units[rng_below(rng, rng_once_in(rng, 30) ? 10 : 8)];
}

/* Recorded on GPUs that the node has, if it has so many, sizes and room do not matter; now and then
 * on any. */
struct m_claim random_claim(struct world *world, struct rng *rng)
{
    static const gs_gpu_mask broken[] = {
        0, 3, 7, (gs_gpu_mask)1 << 40, (gs_gpu_mask)1 << 63, ~(gs_gpu_mask)0};
    const struct m_node *node = &world->model.nodes[world->node];
    struct m_claim claim = {.node = world->node,
                            .units = random_units(rng),
                            .gpu_count = 1,
                            .cores = random_cores(rng),
                            .cpu_milli = 100 * rng_below(rng, 20),
                            .priority = (int32_t)rng_below(rng, 3),
                            .revision = rng_next(rng)};
    if (rng_once_in(rng, 4))
        claim.gpu_count = 2 + rng_below(rng, 2);
    if (rng_once_in(rng, 8))
        claim.total = 1 + rng_below(rng, 40);
    if (rng_once_in(rng, 4))
        claim.gpus_max = rng_below(rng, 5);
    for (uint32_t tries = 0; tries < 20; tries++) {
        if ((uint32_t)__builtin_popcountll(claim.gpus) == claim.gpu_count)
            break;
        uint32_t idx = node->gpu_count ? node->gpus[rng_below(rng, node->gpu_count)].idx
                                       : rng_below(rng, M_GPUS);
        claim.gpus |= (gs_gpu_mask)1 << idx;
    }
    if (rng_once_in(rng, 4))
        claim.gpus = broken[rng_below(rng, 6)];
    return claim;
}

/* The next claim at or behind a UID; false when there is none at all. */
static bool find_claim(const struct world *world, uint32_t *uid)
{
    for (uint32_t i = 0; i < world->uid_count; i++) {
        uint32_t at = (*uid + i) % world->uid_count;
        if (world->model.claims[at].there) {
            *uid = at;
            return true;
        }
    }
    return false;
}

/* --- binds --- */

/* One of the GPUs has as many pods as it may have. */
static bool has_last_pod(const struct gs_node_view *view, gs_gpu_mask gpus)
{
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (gpus >> view->gpus[i].idx & 1 && view->gpus[i].max_pods &&
            view->gpus[i].pods >= view->gpus[i].max_pods)
            return true;
    }
    return false;
}

/* What bind does: choose by best fit, put the claim in. */
static void bind(struct world *world, struct rng *rng, bool reserved)
{
    struct gs_ask ask;
    random_ask(world, rng, &ask);
    const struct gs_node_view *view = gs_ledger_view(world->ledger, m_node_name(world->node));
    gs_gpu_mask gpus = view && ask.units ? gs_pick_tightest(view, &ask) : 0;
    world->acted = false; /* asking is not binding */
    if (!gpus || world->model.claims[world->uid].there)
        return;
    const struct gs_node_view before = *view;
    struct m_claim claim = {.node = world->node,
                            .gpus = gpus,
                            .units = ask.units,
                            .gpu_count = ask.gpu_count,
                            .cores = ask.cores_pct,
                            .priority = ask.priority,
                            .cpu_milli = 500,
                            .reserved = reserved};
    put_claim(world, world->uid, &claim);
    if (world->model.nodes[world->node].moved[world->uid])
        return; /* it is told to be elsewhere, before it is bound */
    view = gs_ledger_view(world->ledger, m_node_name(world->node));
    uint64_t taken = (uint64_t)ask.units * ask.gpu_count;
    bool last = has_last_pod(view, gpus); /* then what is left over is nobody's */
    if (view->sum_used_units != before.sum_used_units + taken ||
        view->sum_free_units > before.sum_free_units - taken ||
        (!last && view->sum_free_units != before.sum_free_units - taken))
        differ(world, "a fitting bind took %llu units, not %llu",
               (unsigned long long)(view->sum_used_units - before.sum_used_units),
               (unsigned long long)taken);
}

void op_bind_reserves(struct world *world, struct rng *rng)
{
    bind(world, rng, true);
}

void op_bind_confirmed(struct world *world, struct rng *rng)
{
    if (!rng_once_in(rng, 8))
        find_claim(world, &world->uid);
    struct m_claim *claim = &world->model.claims[world->uid];
    if (gs_ledger_confirm(world->ledger, m_uid(world->uid)) != claim->there)
        differ(world, "confirm of %s", m_uid(world->uid));
    claim->reserved = false;
    claim->seen = true;
    world->node = claim->node;
    tell(world, "%s", m_uid(world->uid));
}

void op_bind_undone(struct world *world, struct rng *rng)
{
    if (!rng_once_in(rng, 8))
        find_claim(world, &world->uid);
    struct m_claim *claim = &world->model.claims[world->uid];
    bool goes = claim->there && claim->reserved;
    if (gs_ledger_undo(world->ledger, m_uid(world->uid)) != goes)
        differ(world, "undo of %s", m_uid(world->uid));
    if (goes)
        claim->there = false;
    world->node = claim->node;
    tell(world, "%s", m_uid(world->uid));
}

/* --- events --- */

/* Bound by another replica, which chose well, or by a stranger, who did not. */
void op_watch_bound(struct world *world, struct rng *rng)
{
    if (world->tidy) {
        bind(world, rng, false);
        return;
    }
    struct m_claim claim = random_claim(world, rng);
    put_claim(world, world->uid, &claim);
}

/* Of one that is known: it is on another node, leaves, has another record, may be beside its
 * record, is as it was before, or comes again under another UID. */
void op_watch_changed(struct world *world, struct rng *rng)
{
    if (!find_claim(world, &world->uid))
        return;
    struct m_claim claim = world->model.claims[world->uid];
    const uint32_t node = world->node;
    world->node = claim.node;
    const gs_gpu_mask gpus = random_claim(world, rng).gpus;
    switch (rng_below(rng, 6)) {
    case 0:
        if (!world->tidy || rng_once_in(rng, 10))
            claim.node = node;
        break;
    case 1:
        claim.leaving = !claim.reserved && (!claim.leaving || !rng_once_in(rng, 4));
        break;
    case 2:
        claim.gpus = gpus;
        if (gpus)
            claim.gpu_count = (uint32_t)__builtin_popcountll(gpus);
        break;
    case 3:
        claim.also |= claim.gpus;
        claim.gpus = gpus;
        break;
    case 4:
        if (world->past[world->uid].there)
            claim = world->past[world->uid];
        break;
    default:
        world->uid = (world->uid + 1) % world->uid_count;
    }
    put_claim(world, world->uid, &claim);
}

static void remove_pod(struct world *world, uint32_t uid)
{
    const struct m_claim *claim = &world->model.claims[uid];
    uint32_t slot = 4711, expected = 4711;
    world->node = claim->node;
    if (claim->there) {
        const struct gs_node_view *view = gs_ledger_view(world->ledger, m_node_name(claim->node));
        expected = view ? view->slot : GS_INDEX_NONE;
    }
    bool went = gs_ledger_remove(world->ledger, m_uid(uid), &slot);
    if (m_remove(&world->model, uid) != went || (expected != GS_INDEX_NONE && slot != expected))
        differ(world, "remove of %s: %d, slot %u instead of %u", m_uid(uid), went, slot, expected);
    tell(world, "%s", m_uid(uid));
}

void op_pod_removed(struct world *world, struct rng *rng)
{
    if (rng_once_in(rng, 2))
        find_claim(world, &world->uid);
    remove_pod(world, world->uid);
}

/* The answer to our own bind. */
void op_bind_placed(struct world *world, struct rng *rng)
{
    if (!rng_once_in(rng, 8))
        find_claim(world, &world->uid);
    const struct m_claim *claim = &world->model.claims[world->uid];
    world->node = claim->node;
    gs_gpu_mask gpus = random_claim(world, rng).gpus;
    gs_ledger_place(world->ledger, m_uid(world->uid), gpus);
    m_place(&world->model, world->uid, gpus);
    tell(world, "%s on GPUs %#llx", m_uid(world->uid), (unsigned long long)gpus);
}

/* --- other pods --- */

void op_other_set(struct world *world, struct rng *rng)
{
    static const int64_t cpus[] = {0,  1,         100,       250,       4000,
                                   -1, INT64_MIN, INT64_MAX, INT32_MAX, (int64_t)INT32_MAX + 1};
    if (!world->model.claims[world->uid].there) /* a pod has GPU memory or it has none */
        put_other(world, world->uid, world->node,
                  cpus[rng_below(rng, rng_once_in(rng, 10) ? 10 : 5)]);
}

/* --- nominated pods --- */

static struct m_hold random_hold(const struct world *world, struct rng *rng)
{
    struct m_hold hold = {.node = world->node,
                          .units = random_units(rng),
                          .gpu_count = 1,
                          .priority = (int32_t)rng_below(rng, 4) - 1};
    static const char *const models[] = {"T4", "A100", "A1", "H100"};
    if (rng_once_in(rng, 5))
        hold.gpu_count = 2;
    if (rng_once_in(rng, 3))
        hold.model = models[rng_below(rng, 4)];
    if (rng_once_in(rng, 16))
        hold.nothing = 1 + rng_below(rng, M_BROKEN);
    if (hold.gpu_count == 1)
        hold.cores = random_cores(rng);
    return hold;
}

void op_hold_set(struct world *world, struct rng *rng)
{
    struct m_hold hold = random_hold(world, rng);
    put_hold(world, world->uid, &hold);
}

static bool find_hold(const struct world *world, uint32_t *uid)
{
    for (uint32_t i = 0; i < world->uid_count; i++) {
        uint32_t at = (*uid + i) % world->uid_count;
        if (world->model.holds[at].there) {
            *uid = at;
            return true;
        }
    }
    return false;
}

/* Only its lists are others: what it may sit on changes, and its age with it. */
void op_hold_lists_changed(struct world *world, struct rng *rng)
{
    static const char *const lists[] = {NULL, "T4", "A100", "H100"};
    if (!find_hold(world, &world->uid))
        return;
    struct m_hold hold = world->model.holds[world->uid];
    world->node = hold.node;
    hold.model = lists[rng_below(rng, 4)];
    put_hold(world, world->uid, &hold);
}

void op_hold_released(struct world *world, struct rng *rng)
{
    if (!rng_once_in(rng, 8))
        find_hold(world, &world->uid);
    struct m_hold *hold = &world->model.holds[world->uid];
    if (gs_ledger_release_hold(world->ledger, m_uid(world->uid)) != hold->there)
        differ(world, "release of %s", m_uid(world->uid));
    hold->there = false;
    world->node = hold->node;
    tell(world, "%s", m_uid(world->uid));
}

/* A preemption: the node is full, its pods are told to go, and the pod that they make room for is
 * nominated. */
void op_hold_for_leaving(struct world *world, struct rng *rng)
{
    uint32_t uids[M_UIDS], count = m_claims_of(&world->model, world->node, uids);
    for (uint32_t i = 0; i < count; i++) {
        struct m_claim claim = world->model.claims[uids[i]];
        if (claim.reserved || rng_once_in(rng, 3))
            continue;
        claim.leaving = true;
        uint32_t node = world->node;
        put_claim(world, uids[i], &claim);
        world->node = node;
    }
    struct m_hold hold = random_hold(world, rng);
    hold.priority = 3;
    put_hold(world, rng_below(rng, world->uid_count), &hold);
}

/* --- rounds --- */

/* A list from the API: most pods are mentioned, a few with news, and binds end meanwhile. */
void op_pod_list_round(struct world *world, struct rng *rng)
{
    struct model *model = &world->model;
    gs_ledger_begin_pods(world->ledger);
    m_begin_pods(model);
    for (uint32_t uid = 0; uid < world->uid_count; uid++) {
        world->uid = uid;
        world->node = rng_below(rng, world->node_count);
        if (rng_once_in(rng, 6))
            op_bind_confirmed(world, rng);
        if (rng_once_in(rng, 5))
            continue; /* gone */
        if (model->claims[uid].there) {
            struct m_claim claim = model->claims[uid];
            put_claim(world, uid, &claim);
        } else if (model->others[uid].there) {
            put_other(world, uid, model->others[uid].node, model->others[uid].cpu_milli);
        } else if (model->holds[uid].there) {
            struct m_hold hold = model->holds[uid];
            put_hold(world, uid, &hold);
        }
    }
    uint32_t gone = gs_ledger_sweep_pods(world->ledger);
    uint32_t expected = m_sweep_pods(model);
    if (gone != expected)
        differ(world, "sweep took %u claims instead of %u", gone, expected);
    tell(world, "%u gone", gone);
    compare_all(world);
}
