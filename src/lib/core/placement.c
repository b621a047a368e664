/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/placement.h"

/* How many GPUs satisfy each step on the way to a fit. */
struct tally {
    uint32_t allowed;      /* by the pod's lists */
    uint32_t large;        /* and of sufficient size */
    uint32_t roomy;        /* and with room */
    uint32_t usable_roomy; /* and taking new pods */
    uint32_t fitting;      /* and with the compute */
    uint32_t crowded;  /* allowed, and with room if they had not as many pods as they may have */
    uint64_t free_sum; /* of allowed, usable GPUs */
};

static bool candidate(const struct gs_gpu_state *gpu, gs_gpu_mask allowed, const struct gs_ask *ask)
{
    return gpu->usable && gpu->free_units >= ask->units && gpu->free_cores_pct >= ask->cores_pct &&
           (allowed & GS_GPU_BIT(gpu->idx));
}

gs_gpu_mask gs_fit_candidates(const struct gs_node_view *view, const struct gs_ask *ask)
{
    if (ask->broken)
        return 0;
    gs_gpu_mask allowed = gs_ask_allowed(ask, view), mask = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (candidate(&view->gpus[i], allowed, ask))
            mask |= GS_GPU_BIT(view->gpus[i].idx);
    }
    return mask;
}

static struct tally tally_of(const struct gs_node_view *view, const struct gs_ask *ask)
{
    gs_gpu_mask allowed = gs_ask_allowed(ask, view);
    struct tally tally = {0};
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        if (!(allowed & GS_GPU_BIT(gpu->idx)))
            continue;
        tally.allowed++;
        tally.large += gpu->total_units >= ask->units;
        tally.free_sum += gpu->usable ? gpu->free_units : 0;
        if (gpu->free_units < ask->units) {
            tally.crowded += gpu->max_pods && gs_gpu_is_crowded(gpu, gpu->pods) &&
                             gpu->used_units + ask->units <= gpu->total_units;
            continue;
        }
        tally.roomy++;
        tally.usable_roomy += gpu->usable;
        tally.fitting += gpu->usable && gpu->free_cores_pct >= ask->cores_pct;
    }
    return tally;
}

static enum gs_reason explain(const struct gs_node_view *view, const struct gs_ask *ask)
{
    struct tally tally = tally_of(view, ask);
    uint32_t want = ask->gpu_count;
    if (tally.fitting >= want)
        return GS_FITS;
    if (tally.allowed < want && view->gpu_count >= want)
        return GS_REASON_NO_MATCH;
    if (tally.allowed && !tally.large)
        return GS_REASON_GPU_TOO_SMALL;
    if (tally.large < want)
        return GS_REASON_TOO_FEW_GPUS;
    if (tally.usable_roomy >= want)
        return GS_REASON_NO_CORES;
    if (tally.roomy >= want)
        return GS_REASON_NOT_USABLE;
    if (tally.crowded && tally.roomy + tally.crowded >= want)
        return GS_REASON_MAX_PODS;
    if (want > 1)
        return tally.usable_roomy ? GS_REASON_TOO_FEW_FREE : GS_REASON_NO_ROOM;
    return tally.free_sum >= ask->units ? GS_REASON_FRAGMENTED : GS_REASON_NO_ROOM;
}

enum gs_reason gs_fit(const struct gs_node_view *view, const struct gs_ask *ask)
{
    if (ask->broken)
        return ask->broken;
    if (!ask->units)
        return GS_FITS;
    if (!view->gpu_count || !view->sum_total_units)
        return GS_REASON_NO_GPUS;
    if (ask->gpu_count == 1 && !ask->selects && !ask->cores_pct &&
        view->max_free_units >= ask->units)
        return GS_FITS; /* the common case reads the summary only */
    return explain(view, ask);
}

/* --- choosing GPUs --- */

enum order { TIGHTEST, EMPTIEST };

/* Compute counts for those alone who ask for it: for all others equals are equal. */
static bool better(const struct gs_gpu_state *a, const struct gs_gpu_state *b,
                   const struct gs_ask *ask, enum order order)
{
    if (a->free_units == b->free_units && ask->cores_pct)
        return order == TIGHTEST ? a->free_cores_pct < b->free_cores_pct
                                 : a->free_cores_pct > b->free_cores_pct;
    return order == TIGHTEST ? a->free_units < b->free_units : a->free_units > b->free_units;
}

/* The best candidates of one NUMA node, as many as are asked for, or of all (numa NULL); 0 when
 * there are fewer. *ret_free is their free memory. */
static gs_gpu_mask best_of(const struct gs_node_view *view, const struct gs_ask *ask,
                           gs_gpu_mask candidates, const int16_t *numa, enum order order,
                           uint64_t *ret_free)
{
    const uint32_t want = ask->gpu_count;
    gs_gpu_mask chosen = 0;
    uint64_t free_sum = 0;
    for (uint32_t n = 0; n < want; n++) {
        const struct gs_gpu_state *best = NULL;
        for (uint32_t i = 0; i < view->gpu_count; i++) {
            const struct gs_gpu_state *gpu = &view->gpus[i];
            if (!(candidates & ~chosen & GS_GPU_BIT(gpu->idx)) || (numa && gpu->numa != *numa))
                continue;
            if (!best || better(gpu, best, ask, order))
                best = gpu;
        }
        if (!best)
            return 0;
        chosen |= GS_GPU_BIT(best->idx);
        free_sum += best->free_units;
    }
    *ret_free = free_sum;
    return chosen;
}

/* The best set that lies on one NUMA node; 0 when no NUMA node has enough candidates. */
static gs_gpu_mask best_on_one_numa(const struct gs_node_view *view, const struct gs_ask *ask,
                                    gs_gpu_mask candidates, enum order order)
{
    gs_gpu_mask best = 0;
    uint64_t best_free = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const int16_t *numa = &view->gpus[i].numa;
        bool first = *numa != GS_NUMA_NONE;
        for (uint32_t k = 0; first && k < i; k++)
            first = view->gpus[k].numa != *numa;
        uint64_t free_sum;
        gs_gpu_mask set = first ? best_of(view, ask, candidates, numa, order, &free_sum) : 0;
        if (!set)
            continue;
        bool equal = best && free_sum == best_free;
        bool wins = order == TIGHTEST ? free_sum < best_free : free_sum > best_free;
        if (!best || wins || (equal && __builtin_ctzll(set) < __builtin_ctzll(best))) {
            best = set;
            best_free = free_sum;
        }
    }
    return best;
}

static gs_gpu_mask pick(const struct gs_node_view *view, const struct gs_ask *ask, enum order order)
{
    gs_gpu_mask candidates = gs_fit_candidates(view, ask);
    if (ask->gpu_count > 1) {
        gs_gpu_mask together = best_on_one_numa(view, ask, candidates, order);
        if (together)
            return together;
    }
    uint64_t free_sum;
    return best_of(view, ask, candidates, NULL, order, &free_sum);
}

gs_gpu_mask gs_pick_tightest(const struct gs_node_view *view, const struct gs_ask *ask)
{
    return pick(view, ask, TIGHTEST);
}

gs_gpu_mask gs_pick_emptiest(const struct gs_node_view *view, const struct gs_ask *ask)
{
    return pick(view, ask, EMPTIEST);
}

/* --- beside nominated pods --- */

struct seating {
    struct gs_node_view all;   /* with all seats taken */
    struct gs_gpu_state *room; /* same order: without the pod's own, which is free for it */
    const struct gs_ask *ask;
    const struct gs_leaving *leaving; /* by GPU index */
    bool seated;
};

/* What the GPU has free then. */
static struct gs_gpu_state once_they_left(const struct gs_gpu_state *gpu,
                                          const struct gs_leaving *leaving)
{
    const struct gs_leaving *going = &leaving[gpu->idx];
    const uint32_t pods = gpu->pods > going->pods ? gpu->pods - going->pods : 0;
    struct gs_gpu_state later = *gpu;
    later.free_units = gs_gpu_offers(
        gpu, gpu->used_units > going->units ? gpu->used_units - going->units : 0, pods);
    later.free_cores_pct = gs_gpu_cores_left(
        gpu->used_cores_pct > going->cores_pct ? gpu->used_cores_pct - going->cores_pct : 0);
    return later;
}

/* Where the pod will sit once the victims that it waits for have gone. */
static gs_gpu_mask pick_for_later(const struct gs_node_view *view, const struct gs_ask *ask,
                                  const struct gs_leaving *leaving)
{
    struct gs_gpu_state later[GS_GPUS_MAX];
    struct gs_node_view copy = gs_view_copy(view, later);
    for (uint32_t i = 0; i < view->gpu_count; i++)
        later[i] = once_they_left(&view->gpus[i], leaving);
    return gs_pick_tightest(&copy, ask);
}

/* A seat leaves to others no more than is free now, that much less when it sits in that (`now`),
 * nor than will be free when it sits there. */
static void occupy(struct gs_gpu_state *gpu, struct gs_amount each, bool now,
                   const struct gs_leaving *leaving)
{
    gpu->used_units += each.units;
    gpu->used_cores_pct += each.cores_pct;
    gpu->pods++;
    if (now) {
        gpu->free_units -= each.units;
        gpu->free_cores_pct = (uint8_t)(gpu->free_cores_pct - each.cores_pct);
        if (gs_gpu_is_crowded(gpu, gpu->pods))
            gpu->free_units = 0;
    }
    const struct gs_gpu_state later = once_they_left(gpu, leaving);
    if (later.free_units < gpu->free_units)
        gpu->free_units = later.free_units;
    if (later.free_cores_pct < gpu->free_cores_pct)
        gpu->free_cores_pct = later.free_cores_pct;
}

static const struct gs_leaving nobody[GS_GPUS_MAX];

static bool seat(void *ctx, const struct gs_hold *hold)
{
    struct seating *seating = ctx;
    const uint64_t group = seating->ask->group;
    if (hold->ask.priority < seating->ask->priority &&
        !(group && hold->gpus && hold->ask.group == group))
        return group != 0; /* sorted: the rest is lower still, and of its group at most */
    const bool own = seating->ask->uid && strcmp(hold->ask.uid, seating->ask->uid) == 0;
    gs_gpu_mask gpus = hold->gpus, now = 0;
    if (own && !gpus)
        return true;
    if (!gpus) {
        now = gs_pick_tightest(&seating->all, &hold->ask);
        gpus = now ? now : pick_for_later(&seating->all, &hold->ask, seating->leaving);
    }
    for (uint32_t i = 0; i < seating->all.gpu_count; i++) {
        if (!(gpus & GS_GPU_BIT(seating->room[i].idx)))
            continue;
        const struct gs_leaving *leaving = hold->gpus ? nobody : seating->leaving;
        occupy(&seating->all.gpus[i], hold->ask.each, now, leaving);
        if (!own)
            occupy(&seating->room[i], hold->ask.each, now, leaving);
        seating->seated = true;
    }
    return true;
}

void gs_leaving_add(struct gs_leaving *leaving, gs_gpu_mask gpus, struct gs_amount each)
{
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, gpus) {
        leaving[idx].units += each.units;
        leaving[idx].cores_pct += each.cores_pct;
        leaving[idx].pods++;
    }
}

static bool note_leaving(void *ctx, const struct gs_claim *claim)
{
    if (claim->leaving)
        gs_leaving_add(ctx, claim->charged, claim->each);
    return true;
}

enum gs_reason gs_fit_beside_holds(const struct gs_ledger *ledger, const struct gs_node_view *view,
                                   const struct gs_ask *ask, struct gs_beside *ret)
{
    if (!view->nominated) { /* nearly always; and then nobody's place is to be worked out */
        if (ret)
            ret->view = *view;
        return gs_fit(view, ask);
    }
    struct gs_leaving leaving[GS_GPUS_MAX] = {0};
    gs_ledger_each_claim(ledger, view->slot, note_leaving, leaving);
    return gs_fit_beside_holds_when(ledger, view, ask, leaving, ret);
}

uint32_t gs_fit_first(const struct gs_ledger *ledger, const struct gs_ask *ask, uint32_t from)
{
    for (uint32_t slot = from; slot < gs_ledger_slots(ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(ledger, slot);
        if (view && gs_fit_beside_holds(ledger, view, ask, NULL) == GS_FITS)
            return slot;
    }
    return GS_INDEX_NONE;
}

enum gs_reason gs_fit_beside_holds_when(const struct gs_ledger *ledger,
                                        const struct gs_node_view *view, const struct gs_ask *ask,
                                        const struct gs_leaving *leaving, struct gs_beside *ret)
{
    enum gs_reason reason = gs_fit(view, ask);
    if (reason || !ask->units || !view->nominated) {
        if (ret)
            ret->view = *view;
        return reason;
    }
    struct gs_gpu_state all[GS_GPUS_MAX], room[GS_GPUS_MAX];
    struct gs_node_view copy = gs_view_copy(view, ret ? ret->gpus : room);
    struct seating seating = {gs_view_copy(view, all), copy.gpus, ask, leaving, false};
    gs_ledger_each_hold(ledger, view->slot, seat, &seating);
    if (seating.seated)
        gs_view_summarise(&copy);
    if (ret)
        ret->view = seating.seated ? copy : *view;
    return gs_fit(&copy, ask) ? GS_REASON_NOMINATED : GS_FITS;
}

enum gs_reason gs_fit_chosen(const struct gs_ledger *ledger, const struct gs_node_view *view,
                             const struct gs_ask *ask, gs_gpu_mask gpus, const struct gs_claim *own)
{
    struct gs_gpu_state without[GS_GPUS_MAX];
    struct gs_node_view copy = *view;
    struct gs_beside now;
    if (own) {
        copy = gs_view_copy(view, without);
        gs_view_charge(&copy, own->charged, own->each, -1);
        gs_view_summarise(&copy);
    }
    const enum gs_reason reason = gs_fit_beside_holds(ledger, &copy, ask, &now);
    if (reason != GS_FITS)
        return reason;
    const bool fits =
        gs_gpu_mask_count(gpus) == ask->gpu_count && !(gpus & ~gs_fit_candidates(&now.view, ask));
    return fits ? GS_FITS : GS_REASON_NO_ROOM;
}
