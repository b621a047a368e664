/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/core/placement.h"
#include "inspect/view.h"

/* The view's sums, and the same of a part of it. */

/* ---- sums ---- */

/* On all its GPUs, as the kernel counts. */
static void sum_use(struct view_sum *sum, const struct usage_pod *pod)
{
    if (!pod || !pod->known)
        return;
    sum->meant_used_pods++;
    EACH_GPU (gpu, pod) {
        if (gpu->known)
            sum->meant_used_bytes = gs_sat_add_u64(sum->meant_used_bytes, gpu->used_bytes);
    }
}

static void sum_meant(struct view *view, const struct view_node *node)
{
    EACH_CLAIM (claim, node) {
        if (!view_means(view, node, claim))
            continue;
        view->sum.pods++;
        view->sum.meant_units += claim_units(claim);
        if (view->filter)
            sum_use(&view->sum, usage_pod_find(view->usage, claim->node, claim->uid));
    }
}

static void add_node(struct view_sum *sum, const struct view_node *node)
{
    static const struct usage_node measured = {.known = 1};
    struct view_node *all = &sum->all;
    sum->gpus += node->gpu_count;
    all->columns = node->columns > all->columns ? node->columns : all->columns;
    all->total_units += node->total_units;
    all->used_units += node->used_units;
    all->pending_units += node->pending_units;
    all->pending_pods += node->pending_pods;
    all->unusable_units += node->unusable_units;
    all->over_units += node->over_units;
    all->limited_gpus += node->limited_gpus;
    all->blocked_pods += node->blocked_pods;
    all->used_bytes = gs_sat_add_u64(all->used_bytes, node->used_bytes);
    all->usage = node->usage && node->usage->known ? &measured : all->usage;
    gs_fragmentation_add(&all->fragmentation, &node->fragmentation);
    EACH_GPU (gpu, node) {
        if (gpu->total_units > sum->largest_gpu_units)
            sum->largest_gpu_units = gpu->total_units;
        sum->overfull_gpus += gpu->overfull;
        sum->unusable_gpus += !gpu->usable;
    }
}

static void sum_nodes(struct view *view)
{
    view->sum.largest_gpu_units = 1;
    EACH_ROW (node, view) {
        add_node(&view->sum, node);
        sum_meant(view, node);
    }
    view->sum.all.claim_count = view->sum.pods;
}

/* The inventory's word; without any, the original's guess from the first node: more than 100 of a
 * unit on one GPU must be MiB. */
static void find_unit(struct view *view)
{
    enum gs_unit unit = GS_UNIT_UNKNOWN;
    const char *guess = NULL;
    EACH_ROW (node, view) {
        enum gs_unit own = node->node->unit;
        view->mixed_units |= own && unit && own != unit;
        unit = unit ? unit : own;
        if (!guess && !own && node->gpu_count)
            guess = node->total_units / node->gpu_count > 100 ? "MiB" : "GiB";
    }
    view->unit = view->mixed_units ? "mixed units" : unit ? gs_unit_name(unit) : guess;
    if (!view->unit)
        view->unit = "GiB";
}

/* ---- namespaces ---- */

static int order_most(const void *a, const void *b)
{
    const struct view_space *x = a, *y = b;
    return x->units != y->units ? (x->units < y->units ? 1 : -1) : strcmp(x->ns, y->ns);
}

static int sum_spaces(struct view *view)
{
    struct view_space *known = NULL, *space;
    view->namespaces = calloc(view->sum.pods + 1, sizeof(*space));
    if (!view->namespaces)
        return -1;
    EACH_ROW (node, view) {
        EACH_CLAIM (claim, node) {
            if (!view_means(view, node, claim))
                continue;
            HASH_FIND_STR(known, claim->ns, space);
            if (!space) {
                space = &view->namespaces[view->ns_count++];
                space->ns = claim->ns;
                HASH_ADD_KEYPTR(hh, known, space->ns, strlen(space->ns), space);
            }
            space->pods++;
            space->units += claim_units(claim);
        }
    }
    HASH_CLEAR(hh, known);
    qsort(view->namespaces, view->ns_count, sizeof(*space), order_most);
    return 0;
}

int view_sum_up(struct view *view)
{
    sum_nodes(view);
    find_unit(view);
    return sum_spaces(view);
}

/* ---- a part of it ---- */

static bool has_text(const char *text, const char *part)
{
    return !part[0] || strcasestr(text, part) != NULL;
}

/* Of the namespace and of the owner. */
static bool is_theirs(const struct view_filter *filter, const char *ns, const char *owner)
{
    return (!filter->ns[0] || strcmp(filter->ns, ns) == 0) &&
           (!filter->owner[0] || strcmp(filter->owner, owner) == 0);
}

static bool name_has_text(const struct view_filter *filter, const char *ns, const char *name)
{
    char full[400];
    snprintf(full, sizeof(full), "%.100s/%.253s", ns, name);
    return has_text(full, filter->text);
}

bool view_means(const struct view *view, const struct view_node *node, const struct gs_claim *claim)
{
    const struct view_filter *filter = view->filter;
    if (!filter)
        return true;
    const char *owner = filter->owner[0] ? snapshot_owner(view->snapshot, claim->uid) : "";
    return is_theirs(filter, claim->ns, owner) && (has_text(node->node->name, filter->text) ||
                                                   name_has_text(filter, claim->ns, claim->name));
}

static bool has_model(const struct view_node *node, const char *model)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        if (strcmp(node->gpus[i].gpu->model, model) == 0)
            return true;
    }
    return !model[0];
}

static bool node_is_meant(const struct view *view, const struct view_node *node)
{
    const struct view_filter *filter = view->filter;
    if (!has_model(node, filter->model))
        return false;
    if (!filter->ns[0] && has_text(node->node->name, filter->text))
        return true;
    EACH_CLAIM (claim, node) {
        if (view_means(view, node, claim))
            return true;
    }
    return false;
}

/* Some GPU of the model could take it: the pod's own lists let it, and it is as large. Of the whole
 * cluster: who waits may match by a name that no node there has. */
static bool may_use_model(const struct view *view, const char *model, const struct wait *wait)
{
    for (size_t i = 0; i < view->node_count && model[0]; i++) {
        const struct view_node *node = &view->nodes[i];
        const gs_gpu_mask allowed = gs_ask_allowed(&wait->ask, node->state);
        for (uint32_t g = 0; g < node->gpu_count; g++) {
            if ((allowed & GS_GPU_BIT(node->gpus[g].idx)) &&
                node->gpus[g].total_units >= wait->ask.units &&
                strcmp(node->gpus[g].gpu->model, model) == 0)
                return true;
        }
    }
    return !model[0];
}

struct narrowing {
    const struct view *whole;
    const struct view_filter *filter;
};

static bool wait_is_meant(const void *ctx, const struct wait *wait)
{
    const struct narrowing *narrowing = ctx;
    const struct gs_pod *pod = wait->pod;
    const struct view_filter *filter = narrowing->filter;
    return is_theirs(filter, pod->ns, pod->owner) &&
           (name_has_text(filter, pod->ns, pod->name) || has_text(pod->owner, filter->text) ||
            (wait->group.nearest && has_text(wait->group.nearest, filter->text))) &&
           may_use_model(narrowing->whole, filter->model, wait);
}

int view_narrow(const struct view *whole, const struct view_filter *filter, struct view *ret)
{
    *ret = *whole;
    ret->nodes = calloc(whole->node_count + 1, sizeof(*ret->nodes));
    ret->node_count = ret->ns_count = 0;
    ret->sum = (struct view_sum){0};
    ret->mixed_units = false;
    ret->namespaces = NULL;
    ret->all_claims = NULL;
    ret->all_gpus = NULL;
    ret->waits = (struct waits){0};
    ret->filter = filter;
    ret->scope = "Nodes Shown";
    if (!ret->nodes)
        return -1;
    EACH_ROW (node, whole) {
        if (node_is_meant(ret, node))
            ret->nodes[ret->node_count++] = *node;
    }
    if (view_sum_up(ret) < 0)
        return -1;
    const struct narrowing narrowing = {whole, filter};
    return waits_narrow(&whole->waits, wait_is_meant, &narrowing, &ret->waits);
}

const char *view_node_model(const struct view_node *node)
{
    const char *model = node->gpu_count ? node->gpus[0].gpu->model : "";
    for (uint32_t i = 1; i < node->gpu_count; i++) {
        if (strcmp(node->gpus[i].gpu->model, model) != 0)
            return "mixed GPUs";
    }
    return model;
}
