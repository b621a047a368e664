/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/bound.h"

#include <stdlib.h>
#include <string.h>

static const char *keep(struct bound *bound, const char *text)
{
    return gs_arena_strndup(&bound->texts, text, strlen(text));
}

/* The pod's own text goes with it. */
static bool keep_list(struct bound *bound, struct gs_slice *list)
{
    const char *copy = gs_arena_strndup(&bound->texts, list->len ? list->at : "", list->len);
    *list = (struct gs_slice){copy, list->len};
    return copy != NULL;
}

static const struct gs_pod_rules *keep_rules(struct bound *bound, const struct gs_pod_rules *rules)
{
    struct gs_pod_rules *copy = gs_arena_alloc(&bound->texts, sizeof(*copy));
    return copy && gs_pod_rules_copy(&bound->texts, copy, rules) == 0 ? copy : NULL;
}

static bool comes_back_elsewhere(const struct gs_pod *pod)
{
    return pod->owner_uid[0] && !pod->daemon && !pod->static_uid[0] && !pod->deleting;
}

static int grow(struct bound *bound)
{
    uint32_t cap = bound->cap ? bound->cap * 2 : 256;
    void *pods = reallocarray(bound->pods, cap, sizeof(*bound->pods));
    if (!pods)
        return -1;
    bound->pods = pods;
    bound->cap = cap;
    return 0;
}

static int note_bound(struct bound *bound, const struct gs_pod *pod)
{
    struct gs_defrag_pod made = {
        .uid = keep(bound, pod->uid),
        .ns = keep(bound, pod->ns),
        .name = keep(bound, pod->name),
        .movable = comes_back_elsewhere(pod),
    };
    if (bound->count == bound->cap && grow(bound) < 0)
        return -1;
    if (pod->created_s)
        made.age_s = bound->now_s - pod->created_s;
    gs_ask_of_pod(&made.ask, pod);
    made.ask.uid = made.uid;
    made.ask.ns = made.ns;
    made.ask.rules = keep_rules(bound, &pod->rules);
    if (!made.ask.rules || !made.uid || !made.ns || !made.name ||
        !keep_list(bound, &made.ask.model) || !keep_list(bound, &made.ask.model_deny) ||
        !keep_list(bound, &made.ask.uuid) || !keep_list(bound, &made.ask.uuid_deny))
        return -1;
    bound->pods[bound->count++] = made;
    return 0;
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    ((struct bound *)ctx)->count = 0;
    return 0;
}

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    const bool bound = pod->node_name[0] && gs_pod_wants_gpu(pod) && !gs_pod_terminal(pod);
    return bound ? note_bound(ctx, pod) : 0;
}

struct gs_watch_sink bound_sink(struct bound *bound)
{
    return (struct gs_watch_sink){.ctx = bound, .list_begin = on_list_begin, .pod = on_pod};
}

void bound_release(struct bound *bound)
{
    free(bound->pods);
    gs_arena_release(&bound->texts);
    *bound = (struct bound){0};
}
