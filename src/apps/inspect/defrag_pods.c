/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "inspect/defrag.h"
#include "inspect/fetch.h"

/* The cluster as the planner wants it: a ledger, and what every bound pod asked for. */

static const char *keep(struct defrag_run *run, const char *text)
{
    return gs_arena_strndup(&run->texts, text, strlen(text));
}

/* The pod's own text goes with it. */
static bool keep_list(struct defrag_run *run, struct gs_slice *list)
{
    const char *copy = gs_arena_strndup(&run->texts, list->len ? list->at : "", list->len);
    *list = (struct gs_slice){copy, list->len};
    return copy != NULL;
}

static const struct gs_pod_rules *keep_rules(struct defrag_run *run,
                                             const struct gs_pod_rules *rules)
{
    struct gs_pod_rules *copy = gs_arena_alloc(&run->texts, sizeof(*copy));
    return copy && gs_pod_rules_copy(&run->texts, copy, rules) == 0 ? copy : NULL;
}

static bool comes_back_elsewhere(const struct gs_pod *pod)
{
    return pod->owner_uid[0] && !pod->daemon && !pod->static_uid[0] && !pod->deleting;
}

static int grow(struct defrag_run *run)
{
    uint32_t cap = run->pod_cap ? run->pod_cap * 2 : 256;
    void *pods = reallocarray(run->pods, cap, sizeof(*run->pods));
    if (pods)
        run->pods = pods;
    void *nodes = reallocarray(run->nodes, cap, sizeof(*run->nodes));
    if (nodes)
        run->nodes = nodes;
    void *gpus = reallocarray(run->gpus, cap, sizeof(*run->gpus));
    if (gpus)
        run->gpus = gpus;
    if (!pods || !nodes || !gpus)
        return -1;
    run->pod_cap = cap;
    return 0;
}

static int note_bound(struct defrag_run *run, const struct gs_pod *pod)
{
    struct gs_defrag_pod made = {
        .uid = keep(run, pod->uid),
        .ns = keep(run, pod->ns),
        .name = keep(run, pod->name),
        .movable = comes_back_elsewhere(pod),
    };
    const char *node = keep(run, pod->node_name);
    if (run->pod_count == run->pod_cap && grow(run) < 0)
        return -1;
    if (pod->created_s)
        made.age_s = common_now_s(&run->common) - pod->created_s;
    gs_ask_of_pod(&made.ask, pod);
    made.ask.uid = made.uid;
    made.ask.ns = made.ns;
    made.ask.rules = keep_rules(run, &pod->rules);
    if (!made.ask.rules || !made.uid || !made.ns || !made.name || !node ||
        !keep_list(run, &made.ask.model) || !keep_list(run, &made.ask.model_deny) ||
        !keep_list(run, &made.ask.uuid) || !keep_list(run, &made.ask.uuid_deny))
        return -1;
    run->nodes[run->pod_count] = node;
    run->gpus[run->pod_count] = gs_pod_recorded(pod);
    run->pods[run->pod_count++] = made;
    return 0;
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    ((struct defrag_run *)ctx)->pod_count = 0;
    return 0;
}

static int on_node(void *ctx, const struct gs_node *node)
{
    return 0;
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    const bool bound = pod->node_name[0] && gs_pod_wants_gpu(pod) && !gs_pod_terminal(pod);
    return bound ? note_bound(ctx, pod) : 0;
}

int defrag_load(struct defrag_run *run, struct gs_error *err)
{
    const struct gs_watch_sink first = {
        .ctx = run, .list_begin = on_list_begin, .node = on_node, .pod = on_pod};
    const struct fetch fetch = {.common = &run->common, .first = &first};
    return fetch_cluster(&fetch, &run->snapshot, NULL, err) < 0
               ? -1
               : snapshot_learnt(&run->snapshot, err);
}

void defrag_release(struct defrag_run *run)
{
    for (uint32_t i = 0; i < run->entry_count; i++)
        gs_defrag_plan_release(&run->entries[i].plan);
    free(run->entries);
    free(run->stay);
    free(run->pods);
    free(run->nodes);
    free(run->gpus);
    gs_arena_release(&run->texts);
    snapshot_release(&run->snapshot);
    source_close(&run->common.source);
}
