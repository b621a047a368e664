/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdio.h>
#include <string.h>

/* Half of the UIDs are UUIDs as the API server makes them, half are any text. */
const char *m_uid(uint32_t uid)
{
    static char texts[M_UIDS][40];
    char *text = texts[uid];
    if (text[0])
        return text;
    if (uid % 2)
        snprintf(text, sizeof(texts[0]), "pod-%u", uid);
    else
        snprintf(text, sizeof(texts[0]), "6f1b0c9e-5a3d-4c1b-9e2f-%012x", uid * 2654435761u);
    return text;
}

const char *m_node_name(uint32_t node)
{
    static const char *const names[M_NODES] = {"n1", "n10", "n2", "gpu-node-3.example", "N1", "n"};
    return names[node];
}

static bool has_gpus(const struct model *model, uint32_t node)
{
    return model->nodes[node].present && model->nodes[node].gpu_count;
}

/* All of it is there and nowhere else, in equal shares. */
static void put_on(struct m_claim *claim, gs_gpu_mask there)
{
    uint32_t gpus = (uint32_t)__builtin_popcountll(there);
    claim->gpus = there;
    claim->also = 0;
    claim->gpu_count = gpus;
    claim->units = (uint32_t)(((uint64_t)claim->total + gpus - 1) / gpus);
}

/* The device plugin says where a pod is. */
static void follow_moved(struct model *model, uint32_t uid)
{
    struct m_claim *claim = &model->claims[uid];
    gs_gpu_mask moved = model->nodes[claim->node].moved[uid];
    if (!claim->there || !moved)
        return;
    put_on(claim, moved);
    claim->from_moved = true;
}

void m_set_node(struct model *model, uint32_t node, const struct m_node *as)
{
    struct m_node *to = &model->nodes[node];
    struct m_node before = *to;
    *to = *as;
    to->present = to->seen = true;
    to->unread = false;
    if (as->unread)
        memcpy(to->moved, before.moved, sizeof(to->moved));
    for (uint32_t i = 0; i < M_UIDS; i++) {
        if (!model->claims[i].there || model->claims[i].node != node)
            continue;
        follow_moved(model, i);
    }
}

void m_drop_node(struct model *model, uint32_t node)
{
    model->nodes[node] = (struct m_node){0};
}

void m_set_claim(struct model *model, uint32_t uid, const struct m_claim *as)
{
    struct m_claim *to = &model->claims[uid];
    *to = *as;
    to->there = to->seen = true;
    to->age = ++model->age;
    if (!to->total) {
        uint64_t total = (uint64_t)to->units * to->gpu_count;
        to->total = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
    }
    follow_moved(model, uid);
    model->holds[uid].there = false;
    model->others[uid].there = false;
}

void m_place(struct model *model, uint32_t uid, gs_gpu_mask gpus)
{
    struct m_claim *claim = &model->claims[uid];
    if (claim->there && !claim->from_moved && gpus)
        put_on(claim, gpus);
}

bool m_remove(struct model *model, uint32_t uid)
{
    bool was = model->claims[uid].there;
    model->claims[uid].there = model->others[uid].there = model->holds[uid].there = false;
    return was;
}

void m_set_other(struct model *model, uint32_t uid, uint32_t node, int64_t cpu_milli)
{
    if (cpu_milli < 0)
        cpu_milli = 0;
    if (cpu_milli > INT32_MAX)
        cpu_milli = INT32_MAX;
    model->others[uid] = (struct m_other){true, true, node, cpu_milli};
}

void m_set_hold(struct model *model, uint32_t uid, const struct m_hold *as)
{
    struct m_hold *old = &model->holds[uid];
    if (model->claims[uid].there)
        return;
    if (as->nothing) {
        old->there = false;
        return;
    }
    bool same = old->there && old->node == as->node && old->units == as->units &&
                old->gpu_count == as->gpu_count && old->cores == as->cores &&
                old->priority == as->priority && old->model == as->model;
    uint64_t age = same ? old->age : ++model->age;
    *old = *as;
    old->there = old->seen = true;
    old->age = age;
}

void m_begin_pods(struct model *model)
{
    for (uint32_t i = 0; i < M_UIDS; i++) {
        model->claims[i].seen = model->others[i].seen = model->holds[i].seen = false;
        model->claims[i].revision = 0; /* the list counts, whatever was known before */
    }
}

uint32_t m_sweep_pods(struct model *model)
{
    uint32_t gone = 0;
    for (uint32_t i = 0; i < M_UIDS; i++) {
        struct m_claim *claim = &model->claims[i];
        if (claim->there && !claim->seen && !claim->reserved) {
            claim->there = false;
            gone++;
        }
        if (!model->others[i].seen)
            model->others[i].there = false;
        if (!model->holds[i].seen)
            model->holds[i].there = false;
    }
    return gone;
}

void m_sweep_nodes(struct model *model)
{
    for (uint32_t i = 0; i < M_NODES; i++) {
        if (!model->nodes[i].seen)
            m_drop_node(model, i);
    }
}

/* --- what follows from the state --- */

gs_gpu_mask m_charged(const struct model *model, uint32_t uid, bool *unplaced)
{
    const struct m_claim *claim = &model->claims[uid];
    const struct m_node *node = &model->nodes[claim->node];
    bool reported = has_gpus(model, claim->node);
    uint32_t named = (uint32_t)__builtin_popcountll(claim->gpus);
    uint32_t on = claim->gpus_max > claim->gpu_count ? claim->gpus_max : claim->gpu_count;
    uint32_t least = claim->total / on;
    gs_gpu_mask there = 0, large = 0, could_hold = 0;
    least = least < claim->units ? least : claim->units; /* if it is spread over as many */
    for (uint32_t i = 0; reported && i < node->gpu_count; i++) {
        gs_gpu_mask bit = (gs_gpu_mask)1 << node->gpus[i].idx;
        there |= bit;
        large |= node->gpus[i].mem_units >= claim->units ? bit : 0;
        could_hold |= node->gpus[i].mem_units >= least ? bit : 0;
    }
    bool right_number = named == claim->gpu_count;
    gs_gpu_mask may = claim->from_moved ? there : large; /* the plugin knows; others can lie */
    bool believed = right_number && (claim->gpus & may) == claim->gpus;
    gs_gpu_mask elsewhere = claim->also & there & ~claim->gpus;
    *unplaced = reported ? !believed || elsewhere : !right_number;
    if (!reported)
        return 0;
    if (believed)
        return claim->gpus | elsewhere;
    gs_gpu_mask wherever = could_hold | (claim->gpus & there) | elsewhere;
    return wherever ? wherever : there;
}

static bool has_all_its_pods(const struct gs_gpu_state *gpu, uint64_t pods)
{
    return gpu->max_pods > 0 && pods >= gpu->max_pods;
}

static void summarise(struct gs_node_view *view)
{
    view->max_free_units = view->max_total_units = 0;
    view->sum_free_units = view->sum_total_units = view->sum_used_units = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        uint32_t offered = gpu->usable ? gpu->free_units : 0;
        if (offered > view->max_free_units)
            view->max_free_units = offered;
        if (gpu->total_units > view->max_total_units)
            view->max_total_units = gpu->total_units;
        view->sum_free_units += offered;
        view->sum_total_units += gpu->total_units;
        view->sum_used_units += gpu->used_units;
    }
}

/* Of a whole GPU's hundred. */
static uint8_t cores_beside(uint32_t used)
{
    return used > 100 ? 0 : (uint8_t)(100 - used);
}

static void add_claim(const struct model *model, uint32_t uid, struct gs_node_view *view)
{
    bool unplaced;
    gs_gpu_mask charged = m_charged(model, uid, &unplaced);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (charged >> view->gpus[i].idx & 1)
            view->gpus[i].used_units += model->claims[uid].units;
        view->gpus[i].pods += (uint32_t)(charged >> view->gpus[i].idx & 1);
        if (charged >> view->gpus[i].idx & 1)
            view->gpus[i].used_cores_pct += model->claims[uid].cores;
    }
    view->cpu_used_milli += model->claims[uid].cpu_milli;
}

bool m_view(const struct model *model, uint32_t node, struct gs_node_view *view,
            struct gs_gpu_state *states)
{
    const struct m_node *from = &model->nodes[node];
    if (!from->present)
        return false;
    *view = (struct gs_node_view){
        .gpu_count = from->gpu_count, .gpus = states, .cpu_milli = from->cpu_milli};
    for (uint32_t i = 0; i < from->gpu_count; i++) {
        const struct gs_gpu *gpu = &from->gpus[i];
        states[i] = (struct gs_gpu_state){.total_units = gpu->mem_units,
                                          .idx = (uint8_t)gpu->idx,
                                          .usable = gpu->healthy && gpu->schedulable,
                                          .max_pods = gpu->max_pods,
                                          .numa = gpu->numa};
    }
    for (uint32_t i = 0; i < M_UIDS; i++) {
        if (model->claims[i].there && model->claims[i].node == node)
            add_claim(model, i, view);
        if (model->others[i].there && model->others[i].node == node)
            view->cpu_used_milli += model->others[i].cpu_milli;
        if (model->holds[i].there && model->holds[i].node == node)
            view->nominated++;
    }
    for (uint32_t i = 0; i < from->gpu_count; i++) {
        uint64_t used = states[i].used_units;
        uint32_t total = states[i].total_units;
        states[i].free_units = used > total || has_all_its_pods(&states[i], states[i].pods)
                                   ? 0
                                   : total - (uint32_t)used;
        states[i].free_cores_pct = cores_beside(states[i].used_cores_pct);
    }
    summarise(view);
    return true;
}

void m_stats(const struct model *model, struct gs_ledger_stats *ret)
{
    *ret = (struct gs_ledger_stats){0};
    for (uint32_t n = 0; n < M_NODES; n++) {
        struct gs_node_view view;
        struct gs_gpu_state states[M_GPUS];
        if (!m_view(model, n, &view, states))
            continue;
        ret->nodes++;
        ret->gpu_nodes += view.gpu_count > 0;
        ret->gpus += view.gpu_count;
        for (uint32_t i = 0; i < view.gpu_count; i++)
            ret->overfull_gpus += states[i].used_units > states[i].total_units;
    }
    for (uint32_t i = 0; i < M_UIDS; i++) {
        bool unplaced;
        ret->others += model->others[i].there;
        ret->held += model->holds[i].there;
        if (!model->claims[i].there)
            continue;
        m_charged(model, i, &unplaced);
        ret->claims++;
        ret->reserved += model->claims[i].reserved;
        ret->unplaced_claims += unplaced;
    }
}

uint32_t m_claims_of(const struct model *model, uint32_t node, uint32_t uids[M_UIDS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < M_UIDS; i++) {
        if (!model->claims[i].there || model->claims[i].node != node)
            continue;
        uint32_t at = count++;
        for (; at && model->claims[uids[at - 1]].age < model->claims[i].age; at--)
            uids[at] = uids[at - 1];
        uids[at] = i;
    }
    return count;
}

static bool stands_before(const struct m_hold *a, const struct m_hold *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->age < b->age;
}

uint32_t m_holds_of(const struct model *model, uint32_t node, uint32_t uids[M_UIDS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < M_UIDS; i++) {
        if (!model->holds[i].there || model->holds[i].node != node)
            continue;
        uint32_t at = count++;
        for (; at && stands_before(&model->holds[i], &model->holds[uids[at - 1]]); at--)
            uids[at] = uids[at - 1];
        uids[at] = i;
    }
    return count;
}

/* --- answers --- */

gs_gpu_mask m_allowed(const struct m_node *node, const struct gs_ask *ask)
{
    gs_gpu_mask allowed = 0;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        /* the test's selectors are single words in the inventory's own spelling */
        char word[64];
        snprintf(word, sizeof(word), "%.*s", (int)ask->model.len,
                 ask->model.at ? ask->model.at : "");
        if (!ask->selects || strstr(node->gpus[i].model, word))
            allowed |= (gs_gpu_mask)1 << node->gpus[i].idx;
    }
    return allowed;
}

struct sets {
    uint32_t all, allowed, large, roomy, usable_roomy, with_cores, roomy_but_for_pods;
    uint64_t allowed_free;
};

static struct sets count_sets(const struct m_node *node, const struct gs_node_view *view,
                              const struct gs_ask *ask)
{
    struct sets sets = {.all = view->gpu_count};
    gs_gpu_mask allowed = m_allowed(node, ask);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        if (!(allowed >> gpu->idx & 1))
            continue;
        sets.allowed++;
        sets.large += gpu->total_units >= ask->units;
        sets.roomy += gpu->free_units >= ask->units;
        sets.usable_roomy += gpu->free_units >= ask->units && gpu->usable;
        sets.with_cores +=
            gpu->free_units >= ask->units && gpu->usable && ask->cores_pct <= gpu->free_cores_pct;
        sets.roomy_but_for_pods +=
            gpu->free_units >= ask->units ||
            (has_all_its_pods(gpu, gpu->pods) && gpu->used_units + ask->units <= gpu->total_units);
        sets.allowed_free += gpu->usable ? gpu->free_units : 0;
    }
    return sets;
}

enum gs_reason m_fit(const struct m_node *node, const struct gs_node_view *view,
                     const struct gs_ask *ask)
{
    if (ask->broken != GS_FITS)
        return ask->broken;
    if (!ask->units)
        return GS_FITS;
    if (view->sum_total_units == 0)
        return GS_REASON_NO_GPUS;
    struct sets sets = count_sets(node, view, ask);
    uint32_t want = ask->gpu_count;
    if (sets.with_cores >= want)
        return GS_FITS;
    if (sets.all >= want && sets.allowed < want)
        return GS_REASON_NO_MATCH;
    if (sets.allowed > 0 && sets.large == 0)
        return GS_REASON_GPU_TOO_SMALL;
    if (sets.large < want)
        return GS_REASON_TOO_FEW_GPUS;
    if (sets.usable_roomy >= want)
        return GS_REASON_NO_CORES;
    if (sets.roomy >= want)
        return GS_REASON_NOT_USABLE;
    if (sets.roomy_but_for_pods >= want)
        return GS_REASON_MAX_PODS;
    if (want > 1 && sets.usable_roomy > 0)
        return GS_REASON_TOO_FEW_FREE;
    if (want == 1 && sets.allowed_free >= ask->units)
        return GS_REASON_FRAGMENTED;
    return GS_REASON_NO_ROOM;
}

struct choice {
    gs_gpu_mask gpus;
    bool one_numa;
    uint64_t free_sum;
    uint32_t cores; /* free there, where the ask is about them; else all are alike */
};

/* The set of GPUs at these positions, if a pod could have it. */
static bool try_positions(const struct gs_node_view *view, gs_gpu_mask allowed,
                          const struct gs_ask *ask, uint32_t positions, struct choice *ret)
{
    *ret = (struct choice){.one_numa = true};
    int numa = -2;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        if (!(positions >> i & 1))
            continue;
        if (!gpu->usable || gpu->free_units < ask->units || !(allowed >> gpu->idx & 1) ||
            gpu->free_cores_pct < ask->cores_pct)
            return false;
        if (gpu->numa == GS_NUMA_NONE || (numa != -2 && numa != gpu->numa))
            ret->one_numa = false;
        numa = gpu->numa;
        ret->free_sum += gpu->free_units;
        ret->cores += ask->cores_pct ? gpu->free_cores_pct : 0;
        ret->gpus |= (gs_gpu_mask)1 << gpu->idx;
    }
    return true;
}

/* Lowest index on ties: the set that has the lowest GPU that the other has not. */
static bool lower_index(gs_gpu_mask a, gs_gpu_mask b)
{
    for (uint32_t idx = 0; idx < GS_GPUS_MAX; idx++) {
        if ((a >> idx & 1) != (b >> idx & 1))
            return a >> idx & 1;
    }
    return false;
}

static bool better_choice(const struct choice *a, const struct choice *b, bool several,
                          bool tightest)
{
    if (several && a->one_numa != b->one_numa)
        return a->one_numa;
    if (a->free_sum != b->free_sum)
        return tightest ? a->free_sum < b->free_sum : a->free_sum > b->free_sum;
    if (a->cores != b->cores)
        return tightest ? a->cores < b->cores : a->cores > b->cores;
    return lower_index(a->gpus, b->gpus);
}

gs_gpu_mask m_pick(const struct m_node *node, const struct gs_node_view *view,
                   const struct gs_ask *ask, bool tightest)
{
    gs_gpu_mask allowed = m_allowed(node, ask);
    struct choice best = {0}, next;
    for (uint32_t positions = 1; positions < 1u << view->gpu_count; positions++) {
        if ((uint32_t)__builtin_popcount(positions) != ask->gpu_count ||
            !try_positions(view, allowed, ask, positions, &next))
            continue;
        if (!best.gpus || better_choice(&next, &best, ask->gpu_count > 1, tightest))
            best = next;
    }
    return best.gpus;
}

/* Of what is used on a GPU, the units of pods that are being deleted, and how many pods. */
static uint64_t leaving_from(const struct model *model, uint32_t node, uint32_t idx,
                             uint32_t *ret_pods, uint32_t *ret_cores)
{
    uint64_t sum = 0;
    *ret_pods = *ret_cores = 0;
    for (uint32_t uid = 0; uid < M_UIDS; uid++) {
        const struct m_claim *claim = &model->claims[uid];
        bool unplaced;
        if (claim->there && claim->leaving && claim->node == node &&
            m_charged(model, uid, &unplaced) >> idx & 1) {
            sum += claim->units;
            *ret_cores += claim->cores;
            ++*ret_pods;
        }
    }
    return sum;
}

static uint32_t free_when_gone(const struct model *model, uint32_t node,
                               const struct gs_gpu_state *gpu)
{
    uint32_t pods, cores;
    uint64_t going = leaving_from(model, node, gpu->idx, &pods, &cores);
    uint64_t stays = gpu->used_units > going ? gpu->used_units - going : 0;
    if (has_all_its_pods(gpu, gpu->pods - pods))
        return 0;
    return stays < gpu->total_units ? (uint32_t)(gpu->total_units - stays) : 0;
}

static uint8_t cores_when_gone(const struct model *model, uint32_t node,
                               const struct gs_gpu_state *gpu)
{
    uint32_t pods, cores;
    leaving_from(model, node, gpu->idx, &pods, &cores);
    return cores_beside(gpu->used_cores_pct - cores);
}

/* A nominated pod takes its place: among what is free; else among what will be once those that are
 * being deleted have gone, and then nobody gets more of that GPU than it leaves. */
static void sit_down(const struct model *model, uint32_t node, struct gs_node_view *view,
                     const struct m_hold *hold)
{
    struct gs_gpu_state later[M_GPUS];
    struct gs_node_view then = *view;
    struct gs_ask as = {
        .units = hold->units, .gpu_count = hold->gpu_count, .cores_pct = hold->cores};
    if (hold->model) {
        as.selects = true;
        as.model = gs_slice_of(hold->model);
    }
    gs_gpu_mask now = m_pick(&model->nodes[node], view, &as, true), gpus = now;
    then.gpus = later;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        later[i] = view->gpus[i];
        later[i].free_units = free_when_gone(model, node, &view->gpus[i]);
        later[i].free_cores_pct = cores_when_gone(model, node, &view->gpus[i]);
    }
    if (!now)
        gpus = m_pick(&model->nodes[node], &then, &as, true);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        struct gs_gpu_state *gpu = &view->gpus[i];
        if (!(gpus >> gpu->idx & 1))
            continue;
        gpu->used_units += hold->units;
        gpu->pods++;
        gpu->used_cores_pct += hold->cores;
        uint32_t then_free = later[i].free_units - hold->units, gone, cores;
        uint8_t then_cores = (uint8_t)(later[i].free_cores_pct - hold->cores);
        leaving_from(model, node, gpu->idx, &gone, &cores);
        if (has_all_its_pods(gpu, gpu->pods - gone))
            then_free = 0;
        if (now)
            gpu->free_cores_pct = (uint8_t)(gpu->free_cores_pct - hold->cores);
        else if (gpu->free_cores_pct > then_cores)
            gpu->free_cores_pct = then_cores;
        if (now)
            gpu->free_units -= hold->units;
        else if (gpu->free_units > then_free)
            gpu->free_units = then_free;
        if (now && has_all_its_pods(gpu, gpu->pods))
            gpu->free_units = 0;
    }
}

enum gs_reason m_fit_beside_holds(const struct model *model, uint32_t node,
                                  struct gs_node_view *view, const struct gs_ask *ask)
{
    enum gs_reason alone = m_fit(&model->nodes[node], view, ask);
    if (alone != GS_FITS || !ask->units)
        return alone;
    uint32_t uids[M_UIDS], count = m_holds_of(model, node, uids);
    for (uint32_t h = 0; h < count; h++) {
        const struct m_hold *hold = &model->holds[uids[h]];
        if (hold->priority < ask->priority || (ask->uid && strcmp(ask->uid, m_uid(uids[h])) == 0))
            continue;
        sit_down(model, node, view, hold);
    }
    summarise(view);
    return m_fit(&model->nodes[node], view, ask) == GS_FITS ? GS_FITS : GS_REASON_NOMINATED;
}
