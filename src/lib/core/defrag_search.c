/* SPDX-License-Identifier: Apache-2.0 */

#include "gpushare/base/array.h"

#include "defrag_internal.h"

/*
 * The search: for 1, 2, 3, … moves all sets of so many pods of one node whose going leaves room for
 * the waiting pod, the youngest first, until one can be carried out.
 *
 * On a node, GPU by GPU: it is one of those that the waiting pod gets, then pods of it go until it
 * has the room, or it is not. A GPU that has the room already is always one of them: taking another
 * needs no fewer moves. Then more go while CPU is short. So every set without a superfluous pod is
 * found.
 */

/* A set of pods of one node. */
struct candidate {
    uint32_t slot;
    uint32_t pods[GS_DEFRAG_MOVES_MAX];
    int64_t age_s; /* of all of them */
};

struct search {
    struct gs_defrag *defrag;
    const struct gs_ask *ask;
    uint32_t moves; /* so many, exactly */

    struct candidate *found;
    uint32_t count, cap;
    bool cut, no_memory; /* not all are in `found` */

    /* of the node being looked at */
    struct gs_node_view now; /* without the chosen */
    struct gs_gpu_state states[GS_GPUS_MAX];
    gs_gpu_mask usable; /* GPUs that the pod may have */
    uint32_t *tenants;  /* those that may go */
    uint32_t tenant_count;
    uint32_t chosen[GS_DEFRAG_MOVES_MAX];
    uint32_t chosen_count;
};

/* --- one node --- */

static bool chosen(const struct search *search, uint32_t pod)
{
    for (uint32_t i = 0; i < search->chosen_count; i++) {
        if (search->chosen[i] == pod)
            return true;
    }
    return false;
}

static bool has_room(const struct gs_gpu_state *gpu, const struct gs_ask *ask)
{
    return gpu->free_units >= ask->units && gpu->free_cores_pct >= ask->cores_pct;
}

static void note(struct search *search)
{
    if (search->chosen_count != search->moves)
        return;
    if (search->count == GS_DEFRAG_SETS_MAX) {
        search->cut = true;
        return;
    }
    if (!gs_array_reach(&search->found, &search->cap, search->count, sizeof(*search->found))) {
        search->no_memory = true;
        return;
    }
    struct candidate *candidate = &search->found[search->count++];
    *candidate = (struct candidate){.slot = search->now.slot};
    memcpy(candidate->pods, search->chosen, search->chosen_count * sizeof(*search->chosen));
    for (uint32_t i = 0; i < search->chosen_count; i++)
        candidate->age_s += search->defrag->pods[search->chosen[i]].age_s;
}

static void choose_gpu(struct search *search, uint32_t gpu, uint32_t ready);

/* GPU `gpu` shall have the room, or where all GPUs have it the CPU shall suffice: pods from `from`
 * on go. */
static void clear(struct search *search, uint32_t gpu, uint32_t ready, uint32_t from)
{
    const bool cpu = ready == search->ask->gpu_count;
    const gs_gpu_mask mask = cpu ? ~(gs_gpu_mask)0 : GS_GPU_BIT(search->now.gpus[gpu].idx);
    if (cpu && gs_view_has_cpu(&search->now, search->ask->cpu_milli)) {
        note(search);
        return;
    }
    if (!cpu && has_room(&search->now.gpus[gpu], search->ask)) {
        choose_gpu(search, gpu + 1, ready + 1);
        return;
    }
    for (uint32_t t = from; t < search->tenant_count && search->chosen_count < search->moves; t++) {
        uint32_t pod = search->tenants[t];
        if (search->cut || search->no_memory)
            return;
        if (!(search->defrag->tenants[pod].gpus & mask) || chosen(search, pod))
            continue;
        defrag_charge(search->defrag, &search->now, pod, -1);
        search->chosen[search->chosen_count++] = pod;
        clear(search, gpu, ready, t + 1);
        search->chosen_count--;
        defrag_charge(search->defrag, &search->now, pod, 1);
    }
}

/* So many GPUs before this one have the room and are among those that the pod gets. */
static void choose_gpu(struct search *search, uint32_t gpu, uint32_t ready)
{
    if (ready == search->ask->gpu_count) {
        clear(search, gpu, ready, 0);
        return;
    }
    if (search->cut || search->no_memory ||
        search->now.gpu_count - gpu < search->ask->gpu_count - ready)
        return;
    const bool usable = search->usable & GS_GPU_BIT(search->now.gpus[gpu].idx);
    if (usable)
        clear(search, gpu, ready, 0);
    if (!usable || !has_room(&search->now.gpus[gpu], search->ask))
        choose_gpu(search, gpu + 1, ready);
}

/* Pods of the node that may go: of no higher priority, with room somewhere. */
static void gather_tenants(struct search *search)
{
    struct gs_defrag *defrag = search->defrag;
    search->tenant_count = 0;
    const uint32_t slot = search->now.slot;
    for (uint32_t i = defrag->first[slot]; i < defrag->first[slot + 1]; i++) {
        uint32_t pod = defrag->by_slot[i];
        if (defrag->pods[pod].movable && !defrag->tenants[pod].gone &&
            defrag->pods[pod].ask.priority <= search->ask->priority &&
            defrag_might_move(defrag, pod))
            search->tenants[search->tenant_count++] = pod;
    }
}

/* Would it help if all of them went? */
static bool worth_a_look(const struct search *search)
{
    struct gs_gpu_state states[GS_GPUS_MAX];
    struct gs_node_view all = gs_view_copy(&search->now, states);
    uint32_t gpus = 0;
    for (uint32_t t = 0; t < search->tenant_count; t++)
        defrag_charge(search->defrag, &all, search->tenants[t], -1);
    for (uint32_t g = 0; g < all.gpu_count; g++)
        gpus += search->usable & GS_GPU_BIT(states[g].idx) && has_room(&states[g], search->ask);
    return gpus >= search->ask->gpu_count && gs_view_has_cpu(&all, search->ask->cpu_milli);
}

static void look_at_node(struct search *search, uint32_t slot)
{
    const struct gs_node_view *view = gs_ledger_view_at(search->defrag->ledger, slot);
    if (!view || gs_place_open(search->defrag->place, search->ask, slot) != GS_OBSTACLE_NONE)
        return;
    search->now = gs_view_copy(view, search->states);
    search->usable = 0;
    const gs_gpu_mask allowed = gs_ask_allowed(search->ask, view);
    for (uint32_t g = 0; g < view->gpu_count; g++) {
        const struct gs_gpu_state *gpu = &view->gpus[g];
        /* one that has all the pods that it may have is left alone: no plan swaps a place for one
         */
        if (gpu->usable && !gs_gpu_is_crowded(gpu, gpu->pods))
            search->usable |= allowed & GS_GPU_BIT(gpu->idx);
    }
    gather_tenants(search);
    if (search->tenant_count >= search->moves && worth_a_look(search))
        choose_gpu(search, 0, 0);
}

/* --- all nodes --- */

static int cheapest_first(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    if (left->age_s != right->age_s)
        return left->age_s < right->age_s ? -1 : 1;
    if (left->slot != right->slot)
        return left->slot < right->slot ? -1 : 1;
    return memcmp(left->pods, right->pods, sizeof(left->pods));
}

static uint64_t size_of(const struct gs_defrag *defrag, uint32_t pod)
{
    return (uint64_t)defrag->pods[pod].ask.units * defrag->pods[pod].ask.gpu_count;
}

/* Small ones find a place later, too. */
static int large_first(const void *a, const void *b, void *defrag)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const uint64_t size = size_of(defrag, left), other = size_of(defrag, right);
    if (size != other)
        return size > other ? -1 : 1;
    return left < right ? -1 : 1;
}

/* 1: done, 0: none of them works, -1: out of memory. */
static int prove(struct search *search, uint32_t *proven, struct gs_defrag_plan *ret)
{
    for (uint32_t i = 0; i < search->count; i++)
        qsort_r(search->found[i].pods, search->moves, sizeof(uint32_t), large_first,
                search->defrag);
    if (search->count)
        qsort(search->found, search->count, sizeof(*search->found), cheapest_first);
    for (uint32_t i = 0; i < search->count; i++) {
        const struct candidate *candidate = &search->found[i];
        if (i && cheapest_first(candidate - 1, candidate) == 0)
            continue;
        if ((*proven)++ == GS_DEFRAG_PROVEN_MAX) {
            search->cut = true;
            return 0;
        }
        for (int cordon = 1; cordon >= 0; cordon--) {
            int result = defrag_carry_out(search->defrag, search->ask, candidate->slot,
                                          candidate->pods, search->moves, cordon, ret);
            if (result != 0)
                return result;
        }
    }
    return 0;
}

/* Plans of exactly search->moves moves. */
static int search_nodes(struct search *search, uint32_t *proven, struct gs_defrag_plan *ret)
{
    search->count = 0;
    for (uint32_t slot = 0; slot < gs_ledger_slots(search->defrag->ledger); slot++)
        look_at_node(search, slot);
    return search->no_memory ? -1 : prove(search, proven, ret);
}

static bool sum_suffices(const struct gs_defrag *defrag, const struct gs_ask *ask)
{
    uint64_t sum = 0;
    for (uint32_t slot = 0; slot < gs_ledger_slots(defrag->ledger); slot++) {
        const struct gs_node_view *view = gs_ledger_view_at(defrag->ledger, slot);
        gs_gpu_mask allowed = 0;
        if (view && gs_place_open(defrag->place, ask, slot) == GS_OBSTACLE_NONE)
            allowed = gs_ask_allowed(ask, view);
        for (uint32_t g = 0; allowed && g < view->gpu_count; g++) {
            if (allowed & GS_GPU_BIT(view->gpus[g].idx) && view->gpus[g].usable)
                sum += view->gpus[g].free_units;
        }
    }
    return sum >= (uint64_t)ask->units * ask->gpu_count;
}

static enum gs_defrag_result place_as_it_is(struct gs_defrag *defrag, const struct gs_ask *ask,
                                            struct gs_defrag_plan *ret)
{
    struct gs_defrag_plan plan = {0};
    if (!defrag_place(defrag, ask, GS_LEDGER_NO_NODE, &plan.slot, &plan.gpus))
        return GS_DEFRAG_NONE;
    if (gs_place_claim(defrag->place, ask, plan.slot, plan.gpus, NULL) < 0)
        return GS_DEFRAG_NO_MEMORY;
    defrag_forget(defrag);
    *ret = plan;
    return GS_DEFRAG_FITS;
}

/* With at least one move. */
static enum gs_defrag_result search_moves(struct gs_defrag *defrag, const struct gs_ask *ask,
                                          uint32_t max_moves, struct gs_defrag_plan *ret)
{
    struct search search = {.defrag = defrag, .ask = ask};
    uint32_t proven = 0;
    int result = 0;
    search.tenants = calloc(defrag->count + 1u, sizeof(*search.tenants));
    if (!search.tenants)
        return GS_DEFRAG_NO_MEMORY;
    for (search.moves = 1; search.moves <= max_moves && result == 0 && !search.cut; search.moves++)
        result = search_nodes(&search, &proven, ret);
    free(search.tenants);
    free(search.found);
    if (result != 0)
        return result < 0 ? GS_DEFRAG_NO_MEMORY : GS_DEFRAG_FOUND;
    return search.cut ? GS_DEFRAG_TOO_MANY : GS_DEFRAG_NONE;
}

enum gs_defrag_result gs_defrag_make_room(struct gs_defrag *defrag,
                                          const struct gs_defrag_pod *waiting, uint32_t max_moves,
                                          struct gs_defrag_plan *ret)
{
    const struct gs_ask *ask = &waiting->ask;
    max_moves = max_moves < GS_DEFRAG_MOVES_MAX ? max_moves : GS_DEFRAG_MOVES_MAX;
    const uint64_t shape = defrag_shape_of(ask);
    /* many that wait are alike: what failed for one fails for the next */
    const enum gs_defrag_result *known = defrag_find_known(defrag, shape, max_moves);
    if (known)
        return *known;
    enum gs_defrag_result result = place_as_it_is(defrag, ask, ret);
    if (result != GS_DEFRAG_NONE)
        return result;
    if (ask->broken != GS_FITS || !sum_suffices(defrag, ask))
        result = GS_DEFRAG_NO_SUM;
    else
        result = search_moves(defrag, ask, max_moves, ret);
    if (result > GS_DEFRAG_FITS)
        defrag_note_known(defrag, shape, max_moves, result);
    return result;
}
