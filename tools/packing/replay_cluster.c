/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/splitmix.h"
#include "gpushare/core/ledger.h"
#include "replay_internal.h"

enum { UID_BYTES = 16 };

const struct gs_replay_policy *gs_replay_policy_find(const char *name)
{
    static const struct gs_replay_policy policies[] = {
        {"binpack", GS_PLACEMENT_BINPACK},
        {"spread", GS_PLACEMENT_SPREAD},
        {"rollout", GS_PLACEMENT_ROLLOUT},
        {"orig", GS_PLACEMENT_DEFAULT},
    };
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    }
    return NULL;
}

/* --- the cluster --- */

/* In brackets: lists of an ask match parts of a model's name, a trace's models are whole names. */
static void put_model(char *at, size_t room, struct gs_slice model)
{
    snprintf(at, room, "[%.*s]", (int)model.len, model.at);
}

static int add_node(struct replay *replay, const struct gs_trace_node *from, struct gs_error *err)
{
    struct gs_gpu gpus[GS_GPUS_MAX] = {0};
    for (uint32_t i = 0; i < from->gpus; i++) {
        gpus[i] = (struct gs_gpu){
            .idx = i,
            .mem_units = GS_TRACE_CARD_MILLI,
            .numa = GS_NUMA_NONE,
            .healthy = true,
            .schedulable = true,
        };
        put_model(gpus[i].model, sizeof(gpus[i].model), gs_slice_of(from->model));
    }
    struct gs_node node = {0};
    gs_node_reset(&node);
    node.name = from->name;
    node.cpu_milli = from->cpu_milli;
    node.gpus = from->gpus ? gpus : NULL;
    node.gpu_count = from->gpus;
    return gs_ledger_set_node(replay->ledger, &node, err);
}

/* Nodes go into the ledger by rank, so that the first of several equal ones has the smallest. */
static int build_cluster(struct replay *replay, const uint32_t *rank, struct gs_error *err)
{
    uint32_t count = replay->trace->node_count;
    replay->ledger = gs_ledger_new();
    replay->policies = gs_policies_new();
    replay->nodes = calloc(count + 1u, sizeof(*replay->nodes));
    replay->losses = calloc(count + 1u, sizeof(*replay->losses));
    replay->gpus = calloc(count + 1u, sizeof(*replay->gpus));
    replay->fits = calloc(count + 1u, sizeof(*replay->fits));
    if (!replay->ledger || !replay->policies || !replay->nodes || !replay->losses ||
        !replay->gpus || !replay->fits)
        return gs_fail_nomem(err);
    for (uint32_t row = 0; row < count; row++) {
        const struct gs_trace_node *from = &replay->trace->nodes[row];
        replay->nodes[rank[row]] =
            (struct replay_node){.trace = from, .row = row, .memory_left_mib = from->memory_mib};
    }
    for (uint32_t slot = 0; slot < count; slot++) {
        if (add_node(replay, replay->nodes[slot].trace, err) < 0)
            return -1;
        if (gs_ledger_slots(replay->ledger) != slot + 1)
            return gs_fail(err, GS_EINVAL, "two nodes of the trace are called %s",
                           replay->nodes[slot].trace->name);
    }
    return 0;
}

/* "A|B" becomes "[A],[B]". Returns the bytes written, with the final NUL. */
static size_t put_list(char *at, size_t room, const char *models)
{
    size_t used = 0;
    for (const char *rest = models; *rest && used < room;) {
        size_t len = strcspn(rest, "|");
        if (used)
            at[used++] = ',';
        put_model(at + used, room - used, (struct gs_slice){rest, len});
        used += strlen(at + used);
        rest += rest[len] ? len + 1 : len;
    }
    at[used] = '\0';
    return used + 1;
}

static int build_asks(struct replay *replay, struct gs_error *err)
{
    const struct gs_trace *trace = replay->trace;
    size_t bytes = 1;
    for (uint32_t i = 0; i < trace->pod_count; i++)
        bytes += 3 * strlen(trace->pods[i].models) + 4; /* at worst "A|B" grows threefold */
    replay->asks = calloc(trace->pod_count + 1u, sizeof(*replay->asks));
    replay->texts = calloc(1, bytes);
    if (!replay->asks || !replay->texts)
        return gs_fail_nomem(err);
    char *at = replay->texts;
    for (uint32_t i = 0; i < trace->pod_count; i++) {
        const struct gs_trace_pod *pod = &trace->pods[i];
        const char *list = at;
        at += put_list(at, bytes - (size_t)(at - replay->texts), pod->models);
        replay->asks[i] = (struct gs_ask){
            .units = pod->gpus ? pod->gpu_milli : 0,
            .gpu_count = pod->gpus ? pod->gpus : 1,
            .cpu_milli = pod->cpu_milli,
            .model = gs_slice_of(list),
            .selects = list[0] != '\0',
        };
    }
    return 0;
}

/* --- a decision --- */

static bool has_room(const struct replay_node *node, const struct gs_node_view *view,
                     const struct gs_trace_pod *pod, const struct gs_ask *ask)
{
    return gs_view_cpu_left_milli(view) >= pod->cpu_milli &&
           node->memory_left_mib >= pod->memory_mib && gs_fit(view, ask) == GS_FITS;
}

static double share(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 1;
}

/* kube-scheduler 1.20's LeastAllocated and BalancedAllocation, each 0..100, of CPU and memory after
 * placement, as the openb experiment computes them. Conversions to integers truncate. */
static int64_t kube_score(const struct replay_node *node, const struct gs_node_view *view,
                          const struct gs_trace_pod *pod)
{
    int64_t memory = node->trace->memory_mib - node->memory_left_mib + pod->memory_mib;
    double cpu_share = share(view->cpu_used_milli + pod->cpu_milli, node->trace->cpu_milli);
    double memory_share = share(memory, node->trace->memory_mib);
    double apart = cpu_share > memory_share ? cpu_share - memory_share : memory_share - cpu_share;
    int64_t least = ((int64_t)((1 - cpu_share) * 100) + (int64_t)((1 - memory_share) * 100)) / 2;
    return least + (int64_t)((1 - apart / 2) * 100);
}

static bool judge_node(const struct replay *replay, uint32_t slot, uint32_t row,
                       struct gs_choice *ret)
{
    const struct replay_node *node = &replay->nodes[slot];
    const struct gs_trace_pod *pod = &replay->trace->pods[row];
    const struct gs_ask *ask = &replay->asks[row];
    const struct gs_node_view *view = gs_ledger_view_at(replay->ledger, slot);
    enum gs_placement placement = replay->spec->policy->placement;
    if (!has_room(node, view, pod, ask))
        return false;
    if (placement != GS_PLACEMENT_DEFAULT) {
        struct gs_chooser chooser;
        gs_chooser_init(&chooser, replay->policies, placement, ask);
        return gs_chooser_choose(&chooser, view, ret);
    }
    ret->loss = -kube_score(node, view, pod);
    ret->gpus = ask->units ? gs_pick_tightest(view, ask) : 0;
    return true;
}

/* Ask the policy about every node that has room; returns how many have. */
static uint32_t judge_nodes(struct replay *replay, uint32_t row)
{
    uint32_t feasible = 0;
    for (uint32_t slot = 0; slot < replay->trace->node_count; slot++) {
        struct gs_choice choice = {0};
        replay->fits[slot] = judge_node(replay, slot, row, &choice);
        replay->losses[slot] = choice.loss;
        replay->gpus[slot] = choice.gpus;
        feasible += replay->fits[slot];
    }
    return feasible;
}

/* The least loss; among equals the first, or any. */
static int64_t least(struct replay *replay, bool drawn)
{
    int64_t best = -1;
    uint64_t equals = 0;
    for (uint32_t slot = 0; slot < replay->trace->node_count; slot++) {
        if (!replay->fits[slot])
            continue;
        if (best < 0 || replay->losses[slot] < replay->losses[best]) {
            best = slot;
            equals = 1;
        } else if (drawn && replay->losses[slot] == replay->losses[best] &&
                   gs_splitmix_below(&replay->random, ++equals) == 0) {
            best = slot;
        }
    }
    return best;
}

int64_t gs_replay_decide(struct replay *replay, uint32_t row)
{
    if (!judge_nodes(replay, row))
        return -1;
    return least(replay, replay->spec->policy->placement == GS_PLACEMENT_DEFAULT);
}

static void put_uid(char uid[UID_BYTES], uint32_t number)
{
    snprintf(uid, UID_BYTES, "%" PRIu32, number);
}

int gs_replay_place(struct replay *replay, uint32_t number, uint32_t row, int64_t slot,
                    struct gs_error *err)
{
    const struct gs_trace_pod *pod = &replay->trace->pods[row];
    struct replay_node *node = &replay->nodes[slot];
    char uid[UID_BYTES];
    put_uid(uid, number);
    node->memory_left_mib -= pod->memory_mib;
    if (!pod->gpus)
        return gs_ledger_set_other(replay->ledger, uid, node->trace->name, pod->cpu_milli, err);
    struct gs_claim claim = {
        .uid = uid,
        .ns = "",
        .name = "",
        .node = node->trace->name,
        .gpus = replay->gpus[slot],
        .units = pod->gpu_milli,
        .gpu_count = pod->gpus,
        .cpu_milli = (uint32_t)pod->cpu_milli,
    };
    return gs_ledger_set_claim(replay->ledger, &claim, err);
}

void gs_replay_vacate(struct replay *replay, uint32_t number, uint32_t row, int64_t slot)
{
    const struct gs_trace_pod *pod = &replay->trace->pods[row];
    char uid[UID_BYTES];
    put_uid(uid, number);
    replay->nodes[slot].memory_left_mib += pod->memory_mib;
    if (gs_ledger_remove(replay->ledger, uid, NULL))
        gs_policies_left(replay->policies);
}

bool gs_replay_has_room(const struct replay *replay, uint32_t row)
{
    for (uint32_t slot = 0; slot < replay->trace->node_count; slot++) {
        if (has_room(&replay->nodes[slot], gs_ledger_view_at(replay->ledger, slot),
                     &replay->trace->pods[row], &replay->asks[row]))
            return true;
    }
    return false;
}

/* --- what is learnt, and the whole --- */

/* What the policies know before the first arrival. */
static int teach(struct replay *replay, struct gs_error *err)
{
    gs_policies_supply(replay->policies, replay->ledger);
    for (uint32_t i = 0; !replay->spec->learn && i < replay->trace->pod_count; i++)
        gs_policies_learn(replay->policies, &replay->asks[i]);
    return gs_policies_refresh(replay->policies, err);
}

int gs_replay_learn(struct replay *replay, uint32_t row, struct gs_error *err)
{
    if (!replay->spec->learn)
        return 0;
    gs_policies_learn(replay->policies, &replay->asks[row]);
    return gs_policies_refresh_due(replay->policies) ? gs_policies_refresh(replay->policies, err)
                                                     : 0;
}

int gs_replay_open(struct replay *replay, const uint32_t *rank, struct gs_error *err)
{
    if (build_cluster(replay, rank, err) < 0 || build_asks(replay, err) < 0)
        return -1;
    return teach(replay, err);
}

void gs_replay_close(struct replay *replay)
{
    gs_ledger_free(replay->ledger);
    gs_policies_free(replay->policies);
    free(replay->nodes);
    free(replay->asks);
    free(replay->texts);
    free(replay->losses);
    free(replay->gpus);
    free(replay->fits);
}
