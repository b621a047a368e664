/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/utf8.h"
#include "inspect/gpus.h"
#include "inspect/nodes.h"
#include "inspect/show.h"
#include "inspect/web.h"

/* What the page shows, as rows. Every sum and word is the view's; web/app.js lays them out. */

enum {
    NODES_MAX = 50, /* cards of a page; above so many nodes there is a map */
    ROWS_MAX = 500,
    CHOICES_MAX = 200,
    GROUPS_MAX = 100,
    TOP = 5
};

/* ---- nodes ---- */

/* Nodes may have gone since somebody sent the address: then the last page. */
static void put_nodes(struct doc *doc, const struct view *view, uint32_t asked)
{
    const size_t last = view->node_count ? (view->node_count - 1) / NODES_MAX : 0;
    const size_t page = asked < last ? asked : last, first = page * NODES_MAX;
    doc_number(doc, "page", page + 1);
    doc_number(doc, "pages", last + 1);
    doc_list(doc, "nodes");
    for (size_t i = first; i < view->node_count && i < first + NODES_MAX; i++)
        document_node(doc, view, &view->nodes[i], UINT64_MAX, NULL);
    doc_end(doc);
}

/* ---- sums ---- */

/* Of the nodes; of those pods on them that the filter means; of pending pods. */
static void put_totals(struct doc *doc, const struct view *view, const struct view *whole)
{
    const struct view_sum *sum = &view->sum;
    document_cluster(doc, "total", view);
    doc_object(doc, "meant");
    doc_number(doc, "usedGPU", sum->meant_units);
    doc_number(doc, "usedBytes", sum->meant_used_bytes);
    doc_number(doc, "podCount", sum->meant_used_pods);
    doc_end(doc);
    doc_number(doc, "askedCount", view->usage->asked);
    doc_number(doc, "answeredCount", view->usage->answered);
    doc_number(doc, "shareCount", view->ns_count);
    document_namespaces(doc, "shares", view, CHOICES_MAX);
    doc_object(doc, "pending");
    doc_number(doc, "podCount", view->waits.count);
    doc_number(doc, "requestedGPU", view->waits.units);
    doc_number(doc, "allPodCount", whole->waits.count);
    doc_end(doc);
}

/* ---- pending pods ---- */

/* By owner, the oldest first; of one owner each pod. */
static void put_waits_table(struct doc *doc, const struct view *view, const struct view *whole,
                            bool each)
{
    char title[WAIT_TEXT_BYTES] = "No pod with GPU memory is pending";
    const struct table table = {
        "waiting", title, "message,pod,namespace,pods,request,age,closest,missing", GROUPS_MAX};
    if (view->waits.count)
        waits_sum(&view->waits, title);
    else if (whole->waits.count)
        snprintf(title, sizeof(title), "No pending pod matches (%zu pending in the cluster)",
                 whole->waits.count);
    waits_table(doc, &table, &view->waits, each, view->now_s);
}

/* ---- five of each ---- */

static void put_top(struct doc *doc, const struct table *table, const struct view *view,
                    bool excess)
{
    struct sheet pods = {0};
    EACH_ROW (node, view) {
        EACH_CLAIM (claim, node) {
            const struct usage_pod *pod = usage_pod_find(view->usage, claim->node, claim->uid);
            const uint64_t bytes = !pod     ? 0
                                   : excess ? limits_over(pod, pod->used_bytes)
                                            : pods_unused(pod);
            if (!bytes || bytes == COLUMN_UNKNOWN || !view_means(view, node, claim))
                continue;
            sheet_row(&pods);
            column_text(&pods, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, claim->name);
            column_text(&pods, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, claim->ns);
            column_number(&pods, COLUMN_BYTES, "GiB", "bytes", COLUMN_ALWAYS, bytes);
        }
    }
    sheet_sort(&pods, NULL, "bytes");
    sheet_table(doc, table, &pods, 0);
}

static void put_tops(struct doc *doc, const struct view *view)
{
    const struct table unused = {"top-unused", "Most unused memory", .most = TOP};
    const struct table excess = {"top-excess", "Over their request", .most = TOP};
    const struct table pending = {"top-pending", "Longest pending", "pod,namespace,age", TOP};
    put_top(doc, &unused, view, false);
    put_top(doc, &excess, view, true);
    waits_table(doc, &pending, &view->waits, true, view->now_s);
}

/* ---- the map: a cell for each GPU ---- */

/* Each node: model, name, allocated, of how much, free, stranded, not usable, overcommitted; then a
 * list of each GPU: index, allocated, of how much, and whether it is overcommitted or takes no
 * pods.
 */
static void put_cells(struct doc *doc, const struct view_node *node)
{
    const uint64_t sums[] = {node->used_units,
                             node->total_units,
                             node->fragmentation.free_units,
                             node->fragmentation.stranded_units,
                             node->unusable_units,
                             node->over_units};
    doc_list(doc, NULL);
    doc_text(doc, NULL, view_node_model(node));
    doc_text(doc, NULL, node->node->name);
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        doc_number(doc, NULL, sums[i]);
    EACH_GPU (gpu, node) {
        const char *state = gpu->overfull ? "!" : gpu->usable ? "" : "x";
        doc_list(doc, NULL);
        doc_number(doc, NULL, gpu->idx);
        doc_number(doc, NULL, gpu->used_units);
        doc_number(doc, NULL, gpu->total_units);
        if (state[0])
            doc_text(doc, NULL, state);
        doc_end(doc);
    }
    doc_end(doc);
}

static void put_map(struct doc *doc, const struct view *view)
{
    if (view->node_count <= NODES_MAX)
        return;
    doc_list(doc, "map");
    EACH_ROW (node, view)
        put_cells(doc, node);
    doc_end(doc);
}

/* ---- what can be chosen ---- */

struct choices {
    const char *all[CHOICES_MAX];
    size_t count;
};

/* Each once. */
static void put_choice(struct doc *doc, struct choices *choices, const char *text)
{
    for (size_t i = 0; i < choices->count; i++) {
        if (strcmp(choices->all[i], text) == 0)
            return;
    }
    if (!text[0] || choices->count == CHOICES_MAX)
        return;
    choices->all[choices->count++] = text;
    doc_text(doc, NULL, text);
}

/* Namespaces that have most first; then those whose pods all wait. */
static void put_choices(struct doc *doc, const struct view *view)
{
    struct choices spaces = {.count = 0}, models = {.count = 0};
    doc_list(doc, "namespaces");
    GS_EACH_OF (owner, view->namespaces, view->ns_count)
        put_choice(doc, &spaces, owner->ns);
    GS_EACH_OF (wait, view->waits.all, view->waits.count)
        put_choice(doc, &spaces, wait->pod->ns);
    doc_end(doc);
    doc_list(doc, "models");
    EACH_ROW (node, view) {
        EACH_GPU (gpu, node)
            put_choice(doc, &models, gpu->gpu->model);
    }
    doc_end(doc);
}

/* What isolation modes mean. */
static void put_limits(struct doc *doc)
{
    doc_object(doc, "limits");
    for (enum gs_enforced each = GS_ENFORCED_UNKNOWN; each < GS_ENFORCED_COUNT; each++) {
        if (gs_enforced_holds(each))
            doc_text(doc, gs_enforced_by(each), view_limits(each));
    }
    doc_end(doc);
}

/* ---- of everything, a namespace, an owner ---- */

static bool put_part(struct doc *doc, const struct view *view, const struct view *whole,
                     const struct web_query *query)
{
    const struct table owners = {"owners", "Owners", .most = ROWS_MAX};
    const struct table pods = {"pods", "Scheduled pods", .most = ROWS_MAX};
    if (query->view != WEB_ALL && !view->sum.pods && !view->waits.count)
        return false;
    put_totals(doc, view, whole);
    put_nodes(doc, view, query->page);
    if (query->view == WEB_ALL)
        put_map(doc, view);
    doc_list(doc, "tables");
    put_waits_table(doc, view, whole, query->view == WEB_OWNER);
    if (query->view == WEB_ALL)
        put_tops(doc, view);
    else if (query->view == WEB_NAMESPACE)
        pods_table(doc, &owners, view, &(struct pods_options){PODS_BY_OWNER});
    else
        pods_table(doc, &pods, view, &(struct pods_options){PODS_BY_POD});
    doc_end(doc);
    return true;
}

/* An owner without a namespace or a name would be a filter that means the owners of others. */
static bool put_narrowed(struct web *web, struct doc *doc, const struct web_query *query)
{
    struct view *whole = &web->view;
    const bool owner = query->view == WEB_OWNER;
    const struct view_filter filter = {.text = query->text,
                                       .ns = query->ns,
                                       .model = query->model,
                                       .owner = owner ? query->name : ""};
    struct view part = {0};
    if (owner && (!query->ns[0] || !query->name[0]))
        return false;
    if (strcmp(web->sort, query->sort) != 0) {
        doc->failed |= nodes_sort(whole, &(struct output){.sort = query->sort}) < 0;
        memcpy(web->sort, query->sort, sizeof(web->sort));
    }
    const bool narrowed = owner || query->text[0] || query->ns[0] || query->model[0];
    doc_bool(doc, "narrowed", narrowed);
    if (!narrowed)
        return put_part(doc, whole, whole, query);
    doc->failed |= view_narrow(whole, &filter, &part) < 0;
    const bool found = put_part(doc, &part, whole, query);
    view_release(&part);
    return found;
}

/* ---- of a node, a GPU, a pod ---- */

static bool is_named(const struct web_query *query, const char *ns, const char *name)
{
    return strcmp(query->ns, ns) == 0 && strcmp(query->name, name) == 0;
}

struct found {
    const struct view_node *node;
    const char *owner; /* "" of a node; NULL: it is not there */
};

static struct found find(const struct view *view, const struct web_query *query)
{
    const bool of_pod = query->view == WEB_POD;
    GS_EACH_OF (wait, view->waits.all, of_pod ? view->waits.count : 0) {
        const struct gs_pod *pod = wait->pod;
        if (is_named(query, pod->ns, pod->name))
            return (struct found){.owner = pod->owner};
    }
    EACH_ROW (node, view) {
        if (!of_pod && is_named(query, "", node->node->name))
            return (struct found){node, ""};
        EACH_CLAIM (claim, node) {
            if (of_pod && is_named(query, claim->ns, claim->name))
                return (struct found){node, snapshot_owner(view->snapshot, claim->uid)};
        }
    }
    return (struct found){0};
}

bool web_has(const struct view *view, const struct web_query *query)
{
    return find(view, query).owner != NULL;
}

/* `why`, word for word. */
static void put_why(struct doc *doc, const struct view *view, struct web_words *words)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return;
    gs_utf8_calm(words->err.msg);
    if (words->err.code) {
        fprintf(out, "The API server could not be asked about it: %s\n", words->err.msg);
    } else {
        why_find(&words->why, view);
        why_tell(&words->why, out);
    }
    if (fclose(out) == 0)
        doc_text(doc, "why", text);
}

static bool put_one(const struct view *view, struct doc *doc, const struct web_query *query,
                    struct web_words *words)
{
    const struct found found = find(view, query);
    const struct view_gpu *gpu =
        found.node && query->has_gpu ? view_gpu_at(found.node, query->gpu) : NULL;
    const gs_gpu_mask gpus = gpu ? GS_GPU_BIT(gpu->idx) : UINT64_MAX;
    if (!found.owner || (query->has_gpu && !gpu))
        return false;
    doc_list(doc, "nodes");
    if (found.node)
        document_node(doc, view, found.node, gpus, NULL);
    doc_end(doc);
    doc_list(doc, "tables");
    if (query->view == WEB_NODE)
        gpus_tables(doc, view, found.node, gpus);
    doc_end(doc);
    if (gpu)
        doc_number(doc, "gpu", gpu->idx);
    doc_text(doc, "owner", found.owner);
    if (query->view == WEB_POD || words->err.code)
        put_why(doc, view, words);
    doc_text(doc, "events", words->events);
    return true;
}

static const char *why_lost(const struct web *web)
{
    GS_EACH_OF (why, web->watcher.lost, 2) {
        if ((*why)[0])
            return *why;
    }
    return web->silent;
}

const char *const web_views[] = {"all", "namespace", "owner", "node", "pod"};

void web_put_rows(struct web *web, const struct web_query *query, struct web_words *words,
                  struct doc *doc)
{
    doc_number(doc, "version", web->version);
    doc_number(doc, "nowUnix", (uint64_t)web->view.now_s);
    doc_text(doc, "server", web->common->source.server);
    doc_text(doc, "lost", why_lost(web));
    doc_text(doc, "kind", web_views[query->view]);
    doc_text(doc, "name", query->name);
    doc_text(doc, "namespace", query->ns);
    doc_text(doc, "unit", web->view.unit);
    put_choices(doc, &web->view);
    put_limits(doc);
    doc_bool(doc, "found",
             query->view >= WEB_NODE ? put_one(&web->view, doc, query, words)
                                     : put_narrowed(web, doc, query));
}
