/* SPDX-License-Identifier: Apache-2.0 */
#include "fgd.h"

#include <string.h>

#include "core/policy_internal.h"

/*
 * Fragmentation gradient descent: Weng, Yang, Yu, et al., "Beware of Fragmentation: Scheduling
 * GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023. The sums are made
 * in the order of the authors' simulator (hkust-adsl/kubernetes-scheduler-simulator,
 * pkg/utils/frag.go), because its 101 levels turn the last bit of a sum into another node.
 */

/* Why a typical pod cannot use what a node has left. The order is the order of summation. */
enum fragment {
    LACKS_BOTH,
    LACKS_GPU,
    LACKS_CPU,
    CPU_POD,
    CPU_POD_LACKS_CPU,
    WRONG_MODEL,
    FRAGMENTS,
};

struct counts {
    uint64_t pods;         /* that were counted */
    uint64_t typical_pods; /* that the typical shapes stand for */
    uint32_t typical;      /* the shapes before this one are the typical pods */
};

/* The shortest head of the list that stands for 95 of 100 pods. */
static struct counts count_typical(const struct gs_policy_table *table)
{
    enum { TYPICAL_PCT = 95 };
    struct counts counts = {0};
    for (uint32_t i = 0; i < table->shape_count; i++)
        counts.pods += table->shapes[i].count;
    while (counts.typical < table->shape_count &&
           counts.typical_pods * 100 < counts.pods * TYPICAL_PCT)
        counts.typical_pods += table->shapes[counts.typical++].count;
    return counts;
}

double gs_fgd_unusable(const struct gs_policy_table *table, const struct gs_state *state)
{
    double sums[FRAGMENTS] = {0};
    const struct counts counts = count_typical(table);
    /* Rounded twice, as there: shares of all pods, then of the typical ones. */
    double all = (double)counts.pods, typical = (double)counts.typical_pods / all;
    for (uint32_t t = 0; t < counts.typical; t++) {
        const struct gs_class *shape = &table->shapes[t];
        double share = (double)shape->count / all / typical;
        bool cpu_lacks = shape->cpu_milli > state->cpu_milli;
        uint64_t unusable = state->left_units;
        enum fragment why;
        if (!shape->units) {
            why = cpu_lacks ? CPU_POD_LACKS_CPU : CPU_POD;
        } else if (!(shape->groups >> state->group & 1)) {
            why = WRONG_MODEL;
        } else {
            uint64_t too_small = 0;
            uint32_t at = 0;
            while (at < state->gpus && state->free_units[at] < shape->units)
                too_small += state->free_units[at++];
            bool gpu_lacks = state->gpus - at < shape->gpu_count;
            why = gpu_lacks ? (cpu_lacks ? LACKS_BOTH : LACKS_GPU) : LACKS_CPU;
            if (!gpu_lacks && !cpu_lacks) {
                why = LACKS_GPU;
                unusable = too_small;
            }
        }
        sums[why] += share * (double)unusable;
    }
    double sum = 0;
    for (int i = 0; i < FRAGMENTS; i++)
        sum += sums[i];
    return sum;
}

/*
 * level_from[k] is the least x with trunc(100 / (1 + exp(-x))) > k in IEEE doubles: a table, so
 * that no mathematical library's last bit decides. The middle is not 0 but a few times 2^-53 below
 * it: there exp(-x) is still so close to 1 that the sum rounds to 2.
 */
enum { LEVELS = 100 };
/* clang-format off */
static const double level_from[LEVELS] = {
    -0x1.2616719161d2bp+2, -0x1.f2272ae325a57p+1, -0x1.bcf0cd474166bp+1, -0x1.96ca77c922cf8p+1,
    -0x1.78e360604b32cp+1, -0x1.60324f23a6f31p+1, -0x1.4b18a2ece7fb3p+1, -0x1.389ed3e132574p+1,
    -0x1.28253079db672p+1, -0x1.193ea7aad030ap+1, -0x1.0b9d677dddea0p+1, -0x1.fe0fe73ce8885p+0,
    -0x1.e6a53bbe5e6a6p+0, -0x1.d0b6d7df77dcbp+0, -0x1.bc0ed0947fbe9p+0, -0x1.a881a29e52373p+0,
    -0x1.95ebab1969313p+0, -0x1.842f595c35286p+0, -0x1.7333ddeaaa5d2p+0, -0x1.62e42fefa39efp+0,
    -0x1.532e4fddf686ap+0, -0x1.4402b6211ad15p+0, -0x1.3553e218d610fp+0, -0x1.2716011df4657p+0,
    -0x1.193ea7aad030bp+0, -0x1.0bc49861276d8p+0, -0x1.fd3f2b9036cf2p-1, -0x1.e39078d49916cp-1,
    -0x1.ca6fc71eebdccp-1, -0x1.b1d10670aae9ap-1, -0x1.99a93ca5c286dp-1, -0x1.81ee60afb501ap-1,
    -0x1.6a973b5e9a627p-1, -0x1.539b4cb6ce55fp-1, -0x1.3cf2b50617c96p-1, -0x1.269621134db93p-1,
    -0x1.107eb8e2da1e5p-1, -0x1.f54c21463c171p-2, -0x1.ca0c36ce6521fp-2, -0x1.9f323ecbf984fp-2,
    -0x1.74b356ffd351ep-2, -0x1.4a851baf27b6fp-2, -0x1.209d96a324508p-2, -0x1.ede65f58845bep-3,
    -0x1.9af93cd23441ep-3, -0x1.4861ba31d0a04p-3, -0x1.ec1c712297e9ep-4, -0x1.47dadcbbdba94p-4,
    -0x1.47b9447a9aa07p-5, -0x1.7fffffffffffep-52, 0x1.47b9447a9a9f6p-5, 0x1.47dadcbbdba7bp-4,
    0x1.ec1c712297e7cp-4, 0x1.4861ba31d09fbp-3, 0x1.9af93cd234413p-3, 0x1.ede65f58845b6p-3,
    0x1.209d96a324507p-2, 0x1.4a851baf27b6dp-2, 0x1.74b356ffd351cp-2, 0x1.9f323ecbf9849p-2,
    0x1.ca0c36ce65216p-2, 0x1.f54c21463c16bp-2, 0x1.107eb8e2da1e5p-1, 0x1.269621134db90p-1,
    0x1.3cf2b50617c93p-1, 0x1.539b4cb6ce55bp-1, 0x1.6a973b5e9a624p-1, 0x1.81ee60afb5015p-1,
    0x1.99a93ca5c286cp-1, 0x1.b1d10670aae98p-1, 0x1.ca6fc71eebdc9p-1, 0x1.e39078d499169p-1,
    0x1.fd3f2b9036cf2p-1, 0x1.0bc49861276d8p+0, 0x1.193ea7aad030bp+0, 0x1.2716011df4654p+0,
    0x1.3553e218d610dp+0, 0x1.4402b6211ad13p+0, 0x1.532e4fddf6867p+0, 0x1.62e42fefa39edp+0,
    0x1.7333ddeaaa5d1p+0, 0x1.842f595c35285p+0, 0x1.95ebab1969313p+0, 0x1.a881a29e52371p+0,
    0x1.bc0ed0947fbe6p+0, 0x1.d0b6d7df77dc7p+0, 0x1.e6a53bbe5e6a5p+0, 0x1.fe0fe73ce8885p+0,
    0x1.0b9d677ddde9ep+1, 0x1.193ea7aad0308p+1, 0x1.28253079db673p+1, 0x1.389ed3e132573p+1,
    0x1.4b18a2ece7fb3p+1, 0x1.60324f23a6f2ep+1, 0x1.78e360604b32bp+1, 0x1.96ca77c922cefp+1,
    0x1.bcf0cd474166bp+1, 0x1.f2272ae325a49p+1, 0x1.2616719161d18p+2, 0x1.25e4f7b2737fbp+5,
};
/* clang-format on */

int gs_fgd_level(double gain_cards)
{
    int low = 0, high = LEVELS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (level_from[middle] <= gain_cards)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Around the middle, where nearly all decisions are made, a level is 40 thousandths of a card. */
int64_t gs_fgd_loss(double before_units, double after_units, uint32_t card_units)
{
    enum { LEVEL_MILLI = 40 };
    double gain = (before_units - after_units) / (double)card_units;
    return (LEVELS - gs_fgd_level(gain)) * LEVEL_MILLI * GS_LOSS_MILLI;
}

/* --- the choice --- */

struct judge {
    struct gs_policies *policies;
    const struct gs_policy_table *table;
    const struct gs_node_view *view;
    const struct gs_ask *ask;
    struct gs_state before;
    double unusable_before;
};

/* Remembered where rollout remembers its own: a gs_policies object serves one of the two. */
static double remembered_unusable(const struct judge *judge, const struct gs_state *state)
{
    struct gs_memo *states = &judge->policies->states;
    uint64_t key = gs_state_key(state, judge->table->generation);
    struct gs_memo_value value;
    double unusable;
    if (gs_memo_get(states, key, key, &value)) {
        memcpy(&unusable, &value.first, sizeof(unusable));
        return unusable;
    }
    unusable = gs_fgd_unusable(judge->table, state);
    value = (struct gs_memo_value){0};
    memcpy(&value.first, &unusable, sizeof(unusable));
    gs_memo_put(states, key, key, value);
    return unusable;
}

static int64_t loss_of(const struct judge *judge, const struct gs_state *after)
{
    return gs_fgd_loss(judge->unusable_before, remembered_unusable(judge, after),
                       judge->view->max_total_units);
}

static struct gs_state take_cpu(const struct judge *judge)
{
    struct gs_state after = judge->before;
    if (after.cpu_milli != INT32_MAX)
        after.cpu_milli = gs_class_cpu(after.cpu_milli - judge->ask->cpu_milli);
    return after;
}

/* The first of the best GPUs; those with the same room are the same. */
static void choose_one(const struct judge *judge, struct gs_choice *ret)
{
    gs_gpu_mask candidates = gs_fit_candidates(judge->view, judge->ask);
    uint32_t tried[GS_GPUS_MAX], tries = 0;
    for (uint32_t i = 0; i < judge->view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &judge->view->gpus[i];
        uint32_t seen = 0;
        while (seen < tries && tried[seen] != gpu->free_units)
            seen++;
        if (!(candidates & GS_GPU_BIT(gpu->idx)) || seen < tries)
            continue;
        tried[tries++] = gpu->free_units;
        struct gs_state after = take_cpu(judge);
        gs_state_take(&after, gpu->free_units, judge->ask->units);
        int64_t loss = loss_of(judge, &after);
        if (!ret->gpus || loss < ret->loss)
            *ret = (struct gs_choice){loss, GS_GPU_BIT(gpu->idx)};
    }
}

/* Several GPUs: the tightest ones. */
static void choose_several(const struct judge *judge, struct gs_choice *ret)
{
    gs_gpu_mask gpus = gs_pick_tightest(judge->view, judge->ask);
    if (!gpus)
        return;
    struct gs_state after = take_cpu(judge);
    for (uint32_t i = 0; i < judge->view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &judge->view->gpus[i];
        if (gpus & GS_GPU_BIT(gpu->idx))
            gs_state_take(&after, gpu->free_units, judge->ask->units);
    }
    *ret = (struct gs_choice){loss_of(judge, &after), gpus};
}

static void choose(struct judge *judge, struct gs_choice *ret)
{
    gs_state_of_view(&judge->before, judge->table, judge->view);
    judge->unusable_before = remembered_unusable(judge, &judge->before);
    if (!judge->ask->units) {
        struct gs_state after = take_cpu(judge);
        ret->loss = loss_of(judge, &after);
    } else if (judge->ask->gpu_count == 1) {
        choose_one(judge, ret);
    } else {
        choose_several(judge, ret);
    }
}

/* A node that did not change since the same kind of pod was last placed costs one look-up. */
static void choose_remembered(struct judge *judge, struct gs_choice *ret)
{
    enum { ROW_BITS = 13 }; /* a row for each of the kinds in 2^19 entries */
    struct gs_memo *choices = &judge->policies->choices;
    uint32_t row = 0;
    uint64_t kind = gs_kinds_find(&judge->policies->kinds, false, judge->ask, &row);
    uint64_t place = ((uint64_t)row << ROW_BITS) + judge->view->slot;
    uint64_t key = gs_mix_end(
        gs_mix(gs_mix(gs_mix(GS_MIX_START, kind), judge->table->generation), judge->view->version));
    struct gs_memo_value value;
    bool keyed = judge->view->version;
    if (keyed && gs_memo_get(choices, place, key, &value)) {
        *ret = (struct gs_choice){(int64_t)value.first, value.second};
        return;
    }
    choose(judge, ret);
    if (keyed)
        gs_memo_put(choices, place, key, (struct gs_memo_value){(uint64_t)ret->loss, ret->gpus});
}

bool gs_fgd_choose(struct gs_policies *policies, const struct gs_node_view *view,
                   const struct gs_ask *ask, struct gs_choice *ret)
{
    struct gs_choice choice = {0};
    if (ask->units && gs_fit(view, ask) != GS_FITS)
        return false;
    struct gs_policy_table *table = gs_policies_pin(policies);
    if (!view->sum_total_units) {
        choice.loss = GS_LOSS_NOTHING_TO_LOSE;
    } else if (!table) {
        gs_policy_binpack(view, ask, &choice);
    } else {
        struct judge judge = {.policies = policies, .table = table, .view = view, .ask = ask};
        choose_remembered(&judge, &choice);
    }
    if (table)
        gs_policies_unpin(policies, table);
    if (ask->units && !choice.gpus)
        return false;
    *ret = choice;
    return true;
}
