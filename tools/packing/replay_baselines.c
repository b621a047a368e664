/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fgd.h"
#include "gpushare/base/splitmix.h"
#include "replay_internal.h"

/*
 * Policies to compare with, as the paper's simulator defines them (hkust-adsl/kubernetes-scheduler-
 * simulator, pkg/simulator/plugin). Scores are larger for better nodes; a loss is a score's
 * negative. Conversions to integers truncate there, so they do here.
 */

/* The largest node and the most GPUs that the paper's scores are relative to. */
#define CPU_SCALE  128000.0
#define GPU_SCALE  8000.0
#define CARD_MILLI ((uint32_t)GS_TRACE_CARD_MILLI)

static double cpu_left(const struct replay_case *the)
{
    return (double)gs_view_cpu_left_milli(the->view);
}

static double asked_milli(const struct replay_case *the)
{
    return (double)the->pod->gpus * the->pod->gpu_milli;
}

static uint32_t fully_free(const struct gs_node_view *view)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++)
        count += view->gpus[i].free_units == CARD_MILLI;
    return count;
}

static bool give(const struct replay_case *the, int64_t score, struct gs_choice *ret)
{
    ret->loss = -score * GS_LOSS_MILLI;
    ret->gpus = the->ask->units ? gs_pick_tightest(the->view, the->ask) : 0;
    return true;
}

static bool bestfit(const struct replay_case *the, struct gs_choice *ret)
{
    double cpu_after = cpu_left(the) - (double)the->pod->cpu_milli;
    double gpu_after = (double)the->view->sum_free_units - asked_milli(the);
    double score = (1 - 0.5 * cpu_after / CPU_SCALE - 0.5 * gpu_after / GPU_SCALE) * 100;
    return give(the, (int64_t)score, ret);
}

static bool dotprod(const struct replay_case *the, struct gs_choice *ret)
{
    double cpu = cpu_left(the) / CPU_SCALE * ((double)the->pod->cpu_milli / CPU_SCALE);
    double gpu = (double)the->view->sum_free_units / GPU_SCALE * (asked_milli(the) / GPU_SCALE);
    return give(the, (int64_t)(100 * (1 - (cpu + gpu) / 2)), ret);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* GPU packing: fill used GPUs first, then free GPUs of used nodes, then free nodes. */
static bool packing(const struct replay_case *the, struct gs_choice *ret)
{
    const struct gs_node_view *view = the->view;
    if (!the->ask->units)
        return give(the, 0, ret);
    uint32_t whole = fully_free(view);
    if (whole == view->gpu_count)
        return give(the, larger(33 - (int64_t)whole, whole), ret);
    gs_gpu_mask gpus = gs_pick_tightest(view, the->ask);
    uint32_t whole_taken = 0;
    int64_t used_share = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        if (!(gpus & GS_GPU_BIT(view->gpus[i].idx)))
            continue;
        whole_taken += view->gpus[i].free_units == CARD_MILLI;
        used_share += (int64_t)view->gpus[i].free_units * 100 / CARD_MILLI;
    }
    if (whole_taken)
        return give(the, larger(50 - (int64_t)whole_taken, 33), ret);
    return give(the, larger(100 - used_share / 10, 50), ret);
}

static uint32_t kind_of(const struct gs_trace_pod *pod)
{
    if (!pod->gpus)
        return 0;
    return pod->gpu_milli < CARD_MILLI ? 1 : 1 + pod->gpus;
}

/* GPU clustering: keep pods of one kind together. */
static bool cluster(const struct replay_case *the, struct gs_choice *ret)
{
    if (!the->ask->units)
        return give(the, 0, ret);
    uint32_t kind = kind_of(the->pod), others = 0;
    for (uint32_t k = 1; k < POD_KINDS; k++)
        others += k != kind ? the->node->kinds[k] : 0;
    bool same = the->node->kinds[kind] != 0;
    double base = 25 * (GPU_SCALE - (double)the->view->sum_free_units) / GPU_SCALE;
    int64_t bonus = same ? (others ? 50 : 75) : (others ? 0 : 25);
    return give(the, (int64_t)base + bonus, ret);
}

/* Any node, any GPU. */
static bool random_fit(const struct replay_case *the, struct gs_choice *ret)
{
    give(the, 0, ret);
    if (the->pod->gpus != 1 || the->pod->gpu_milli == CARD_MILLI)
        return true;
    gs_gpu_mask candidates = gs_fit_candidates(the->view, the->ask);
    uint64_t skip = gs_splitmix_below(&the->replay->random, gs_gpu_mask_count(candidates));
    for (; skip; skip--)
        candidates &= candidates - 1;
    ret->gpus = candidates & -candidates;
    return true;
}

/* A scheduler extender that only filters: kube-scheduler's scores decide alone. */
static bool orig(const struct replay_case *the, struct gs_choice *ret)
{
    return give(the, gs_replay_kube_score(the), ret);
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 1;
}

int64_t gs_replay_kube_score(const struct replay_case *the)
{
    const struct gs_trace_node *node = the->node->trace;
    int64_t cpu = the->view->cpu_used_milli + the->pod->cpu_milli;
    int64_t memory = node->memory_mib - the->node->memory_left_mib + the->pod->memory_mib;
    double cpu_share = share(cpu, node->cpu_milli), memory_share = share(memory, node->memory_mib);
    double apart = cpu_share > memory_share ? cpu_share - memory_share : memory_share - cpu_share;
    int64_t least = ((int64_t)((1 - cpu_share) * 100) + (int64_t)((1 - memory_share) * 100)) / 2;
    return least + (int64_t)((1 - apart / 2) * 100);
}

static bool shipped(const struct replay_case *the, struct gs_choice *ret)
{
    return gs_policy_choose(the->replay->policies, the->replay->spec->policy->placement, the->view,
                            the->ask, ret);
}

static bool fgd(const struct replay_case *the, struct gs_choice *ret)
{
    return gs_fgd_choose(the->replay->policies, the->view, the->ask, ret);
}

static const struct gs_replay_policy policies[] = {
    {.name = "binpack", .placement = GS_PLACEMENT_BINPACK, .judge = shipped},
    {.name = "spread", .placement = GS_PLACEMENT_SPREAD, .judge = shipped},
    {.name = "fgd", .judge = fgd},
    {.name = "rollout", .placement = GS_PLACEMENT_ROLLOUT, .judge = shipped},
    {.name = "bestfit", .judge = bestfit},
    {.name = "packing", .judge = packing},
    {.name = "dotprod", .judge = dotprod},
    {.name = "cluster", .judge = cluster},
    {.name = "random", .judge = random_fit, .drawn = true},
    {.name = "orig", .judge = orig, .kube = true, .drawn = true},
};

const struct gs_replay_policy *gs_replay_policy_find(const char *name)
{
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    }
    return NULL;
}

const char *gs_replay_policy_name(const struct gs_replay_policy *policy)
{
    return policy->name;
}

const char *gs_replay_policy_names(void)
{
    return "binpack, spread, rollout, fgd, bestfit, packing, dotprod, cluster, random, orig";
}
