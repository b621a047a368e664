/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/annotation.h"
#include "inspect/web_draw.h"

/* The views of one thing, each with an address of its own. */

enum { ROWS_MAX = 500 };

static void begin_view(const struct web_draw *draw, const char *kind, const char *name)
{
    web_begin(draw, "view");
    gs_buf_puts(draw->out, "<section id=view><p><a href=\"?\">Whole cluster</a></p><h2>");
    gs_buf_printf(draw->out, "%s ", kind);
    web_escape(draw->out, name);
    gs_buf_puts(draw->out, "</h2>");
}

static void end_view(const struct web_draw *draw)
{
    gs_buf_puts(draw->out, "</section>\n");
    web_end(draw);
}

/* ---- commands to copy ---- */

/* A name that a shell takes as it stands: an owner's is its author's. */
static bool is_plain(const char *name)
{
    while (isalnum((unsigned char)*name) || (*name && strchr("-._:/", *name)))
        name++;
    return !*name;
}

__attribute__((format(printf, 2, 3))) static void put_command(struct gs_buf *out, const char *fmt,
                                                              ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    gs_buf_puts(out, "<p class=cmd><code>");
    web_escape(out, text);
    gs_buf_puts(out, "</code> <button type=button class=copy>copy</button></p>");
}

/* ---- pods that have a place ---- */

static void put_bytes(struct gs_buf *out, const struct usage_pod *pod, uint64_t bytes)
{
    char text[USAGE_TEXT_BYTES] = "-";
    if (pod && pod->known)
        usage_text(bytes, GS_UNIT_GIB, text);
    gs_buf_printf(out, "<td class=num>%s", text);
}

static void put_pod_row(const struct web_draw *draw, const struct view_node *node,
                        const struct gs_claim *claim)
{
    struct gs_buf *out = draw->out;
    const struct snapshot *snapshot = draw->view->snapshot;
    const struct usage_pod *pod = usage_pod_find(draw->view->usage, claim->node, claim->uid);
    const char *owner = snapshot_owner(snapshot, claim->uid);
    char list[GS_IDX_TEXT_BYTES], since[WAIT_SHORT_BYTES];
    waits_since(snapshot_since(snapshot, claim->uid), draw->view->now_s, since);
    gs_buf_puts(out, "<tr><td>");
    web_link(out, WEB_NAMESPACE, NULL, claim->ns, claim->ns);
    gs_buf_puts(out, "<td>");
    web_link(out, WEB_POD, claim->ns, claim->name, claim->name);
    gs_buf_puts(out, "<td>");
    if (owner[0])
        web_link(out, WEB_OWNER, claim->ns, owner, owner);
    gs_buf_puts(out, "<td>");
    web_link(out, WEB_NODE, NULL, node->node->name, node->node->name);
    gs_buf_printf(out, "<td>%s<td class=num>%" PRIu32 "%s",
                  claim_recorded(claim) ? gs_codec_idx_format(claim->gpus, list) : "?",
                  claim->units, claim->gpu_count > 1 ? " each" : "");
    put_bytes(out, pod, pod ? pod->used_bytes : 0);
    put_bytes(out, pod, pod ? pod->peak_bytes : 0);
    gs_buf_printf(out, "<td class=num>%s\n", since);
}

/* Of the nodes in view, on that GPU of them; gpu NULL: on any. */
static void put_pods(const struct web_draw *draw, const struct view_node *nodes, size_t count,
                     const struct view_gpu *gpu)
{
    struct gs_buf *out = draw->out;
    size_t found = 0;
    web_begin(draw, "pods");
    gs_buf_printf(out,
                  "<section id=pods class=rows aria-label=\"Pods that have a place\"><h2>Pods that "
                  "have a place</h2><table><thead><tr><th>Namespace<th>Pod<th>Owner<th>Node<th>GPU"
                  "<th class=num>Given, %s<th class=num>Uses<th class=num>At most, GiB<th "
                  "class=num>Since<tbody>\n",
                  draw->view->unit);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t c = 0; c < nodes[i].claim_count; c++) {
            const struct gs_claim *claim = &nodes[i].claims[c];
            if ((gpu && !claim_on(claim, gpu->idx)) || !view_means(draw->view, &nodes[i], claim))
                continue;
            if (found++ < ROWS_MAX)
                put_pod_row(draw, &nodes[i], claim);
        }
    }
    gs_buf_puts(out, "</table>");
    if (!found)
        gs_buf_puts(out, "<p>None.</p>");
    if (found > ROWS_MAX)
        gs_buf_printf(out, "<p>and %zu more: kubectl inspect gpushare -d</p>", found - ROWS_MAX);
    gs_buf_puts(out, "</section>\n");
    web_end(draw);
}

/* ---- a node, a GPU ---- */

/* What it is, what it has, and what keeps pods to their share there. */
static void put_gpu_lines(struct gs_buf *out, const struct view_gpu *gpu, const char *unit)
{
    const enum gs_enforced enforced = gpu->gpu->enforced;
    gs_buf_printf(out, "<p>GPU%" PRIu32 " ", gpu->idx);
    web_escape(out, gpu->gpu->model);
    gs_buf_putc(out, ' ');
    web_escape(out, gpu->gpu->uuid);
    gs_buf_printf(out, ": %" PRIu64 " of %" PRIu64 " %s given, %" PRIu64 " free", gpu->used_units,
                  gpu->total_units, unit, gpu->free_units);
    const struct view_word *word;
    for (uint32_t i = 0; (word = view_gpu_word(gpu->gpu, gpu->overfull, i)) != NULL; i++)
        gs_buf_printf(out, ", %s", word->word);
    if (gs_enforced_holds(enforced))
        gs_buf_printf(out, "; %s", view_limits(enforced)->here);
    else if (gs_enforced_lacks(enforced))
        gs_buf_printf(out, "; nothing keeps a pod there to its share: %s",
                      gs_enforced_reason(enforced));
    gs_buf_puts(out, "</p>");
}

static void put_events(const struct web_draw *draw)
{
    const struct web_pod *asked = web_pods_find(draw->state->pods, draw->query);
    if (!asked || !asked->events[0])
        return;
    gs_buf_puts(draw->out, "<h3>Events of gpushare</h3><pre class=events>");
    web_escape(draw->out, asked->events);
    gs_buf_puts(draw->out, "</pre>");
}

static bool put_node(const struct web_draw *draw)
{
    struct gs_buf *out = draw->out;
    const char *name = draw->query->name;
    const struct view_node *node = NULL;
    for (size_t i = 0; i < draw->view->node_count && !node; i++) {
        if (strcmp(draw->view->nodes[i].node->name, name) == 0)
            node = &draw->view->nodes[i];
    }
    const struct view_gpu *gpu =
        node && draw->query->has_gpu ? view_gpu_at(node, draw->query->gpu) : NULL;
    if (!node || (draw->query->has_gpu && !gpu))
        return false;
    const char *unit = gs_unit_name(view_unit_of(draw->view, node));
    begin_view(draw, "Node", name);
    gs_buf_puts(out, "<p>");
    web_escape(out, node->node->address);
    const struct view_word *word;
    for (uint32_t i = 0; (word = view_node_word(node->node, i)) != NULL; i++)
        gs_buf_printf(out, "; %s", word->means ? word->means : word->plain);
    gs_buf_puts(out, "</p>");
    if (gpu) {
        gs_buf_printf(out, "<h3>GPU%" PRIu32 " of ", gpu->idx);
        web_link(out, WEB_NODE, NULL, name, name);
        gs_buf_puts(out, "</h3>");
    }
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        if (!gpu || gpu == &node->gpus[i])
            put_gpu_lines(out, &node->gpus[i], unit);
    }
    put_command(out, "kubectl describe node %s", name);
    put_command(out, "kubectl get events --all-namespaces --field-selector involvedObject.name=%s",
                name);
    put_command(out, "kubectl inspect gpushare what-if --without-node %s", name);
    put_events(draw);
    end_view(draw);
    web_put_card(draw, node, gpu);
    put_pods(draw, node, 1, gpu);
    return true;
}

/* ---- a namespace, an owner ---- */

static void put_figure(struct gs_buf *out, const char *unit, const char *name, uint64_t number)
{
    gs_buf_printf(out, "<div class=fig><b>%" PRIu64 "</b> %s<span>%s</span></div>", number, unit,
                  name);
}

static void put_sums(const struct web_draw *draw)
{
    struct gs_buf *out = draw->out;
    const struct view *view = draw->view;
    gs_buf_puts(out, "<div class=figs>");
    put_figure(out, view->unit, "given", view->sum.meant_units);
    if (view->sum.meant_used_pods) {
        char used[USAGE_TEXT_BYTES];
        usage_text(view->sum.meant_used_bytes, GS_UNIT_GIB, used);
        gs_buf_printf(out,
                      "<div class=fig><b>%s</b> GiB<span>truly used, by %" PRIu32
                      " pods of which it is known</span></div>",
                      used, view->sum.meant_used_pods);
    }
    put_figure(out, "", "pods that have a place", view->sum.pods);
    put_figure(out, view->waits.unit, "asked for by pods that wait", view->waits.units);
    put_figure(out, "", "pods that wait", view->waits.count);
    gs_buf_puts(out, "</div>");
}

static void put_owners(const struct web_draw *draw)
{
    struct gs_buf *out = draw->out;
    size_t count = 0;
    struct view_owner *owners = view_owners(draw->view, &count);
    if (!owners)
        out->failed = GS_ENOMEM;
    web_begin(draw, "owners");
    gs_buf_printf(
        out,
        "<section id=owners class=rows aria-label=Owners><h2>Who has it</h2><table><thead>"
        "<tr><th>Owner<th class=num>Pods<th class=num>Given, %s<tbody>\n",
        draw->view->unit);
    for (size_t i = 0; i < count && i < ROWS_MAX; i++) {
        const struct view_owner *row = &owners[i];
        gs_buf_puts(out, "<tr><td>");
        if (row->owner[0])
            web_link(out, WEB_OWNER, row->ns, row->owner, row->owner);
        else
            web_link(out, WEB_POD, row->ns, row->pod, row->pod);
        gs_buf_printf(out, "<td class=num>%" PRIu32 "<td class=num>%" PRIu64 "\n", row->pods,
                      row->units);
    }
    gs_buf_puts(out, "</table>");
    if (count > ROWS_MAX)
        gs_buf_printf(out, "<p>and %zu more</p>", count - ROWS_MAX);
    gs_buf_puts(out, "</section>\n");
    web_end(draw);
    free(owners);
}

static bool put_namespace(const struct web_draw *draw)
{
    const char *name = draw->query->name;
    if (!draw->view->sum.pods && !draw->view->waits.count)
        return false;
    web_put_pager(draw);
    begin_view(draw, "Namespace", name);
    put_sums(draw);
    put_command(draw->out, "kubectl inspect gpushare -n %s", name);
    put_command(draw->out, "kubectl inspect gpushare usage -n %s", name);
    gs_buf_puts(draw->out, "<p>Its bill of 30 days in GiB-hours, where Prometheus records it:</p>");
    put_command(
        draw->out,
        "sum(sum_over_time(gpushare:namespace_asked_gib_hours:sum1h{namespace=\"%s\"}[30d]))",
        name);
    end_view(draw);
    put_owners(draw);
    web_put_waits(draw);
    web_put_cards(draw);
    return true;
}

static bool put_owner(const struct web_draw *draw)
{
    const char *ns = draw->query->ns, *name = draw->query->name;
    const bool named = ns[0] && name[0]; /* else a filter that means the owners of others */
    if (!named || (!draw->view->sum.pods && !draw->view->waits.count))
        return false;
    web_put_pager(draw);
    begin_view(draw, "Owner", name);
    gs_buf_puts(draw->out, "<p>of namespace ");
    web_link(draw->out, WEB_NAMESPACE, NULL, ns, ns);
    gs_buf_puts(draw->out, "</p>");
    put_sums(draw);
    if (is_plain(name))
        put_command(draw->out, "kubectl -n %s describe %s", ns, name);
    end_view(draw);
    web_put_waits(draw);
    put_pods(draw, draw->view->nodes, draw->view->node_count, NULL);
    web_put_cards(draw);
    return true;
}

/* ---- a pod ---- */

struct found {
    const struct view_node *node;
    const struct gs_claim *claim;
    const struct gs_pod *waits;
};

static struct found find_pod(const struct view *view, const char *ns, const char *name)
{
    for (size_t i = 0; i < view->waits.count; i++) {
        const struct gs_pod *pod = &view->waits.all[i].waiting->pod;
        if (strcmp(pod->name, name) == 0 && strcmp(pod->ns, ns) == 0)
            return (struct found){.waits = pod};
    }
    for (size_t i = 0; i < view->node_count; i++) {
        for (uint32_t c = 0; c < view->nodes[i].claim_count; c++) {
            const struct gs_claim *claim = &view->nodes[i].claims[c];
            if (strcmp(claim->name, name) == 0 && strcmp(claim->ns, ns) == 0)
                return (struct found){.node = &view->nodes[i], .claim = claim};
        }
    }
    return (struct found){0};
}

bool web_has(const struct view *view, const struct web_query *query)
{
    if (query->view == WEB_NODE)
        return snapshot_node(view->snapshot, query->name) != NULL;
    const struct found found = find_pod(view, query->ns, query->name);
    return found.claim || found.waits;
}

/* `why`, word for word. */
static void put_why(const struct web_draw *draw)
{
    _cleanup_free_ char *text = web_pod_text(draw->state->pods, draw->view, draw->query);
    gs_buf_puts(draw->out, "<pre>");
    web_escape(draw->out, text ? text : "");
    gs_buf_puts(draw->out, "</pre>");
}

static bool put_pod(const struct web_draw *draw)
{
    struct gs_buf *out = draw->out;
    const char *ns = draw->query->ns, *name = draw->query->name;
    const struct found found = find_pod(draw->view, ns, name);
    if (!found.claim && !found.waits)
        return false;
    const char *owner =
        found.claim ? snapshot_owner(draw->view->snapshot, found.claim->uid) : found.waits->owner;
    begin_view(draw, "Pod", name);
    gs_buf_puts(out, "<p>of namespace ");
    web_link(out, WEB_NAMESPACE, NULL, ns, ns);
    if (owner[0]) {
        gs_buf_puts(out, ", of ");
        web_link(out, WEB_OWNER, ns, owner, owner);
    }
    if (found.node) {
        gs_buf_puts(out, ", on node ");
        web_link(out, WEB_NODE, NULL, found.node->node->name, found.node->node->name);
    }
    gs_buf_puts(out, "</p>");
    put_why(draw);
    put_command(out, "kubectl inspect gpushare why %s/%s", ns, name);
    put_command(out, "kubectl -n %s describe pod %s", ns, name);
    put_command(out, "kubectl -n %s logs %s --all-containers", ns, name);
    put_events(draw);
    end_view(draw);
    if (found.node)
        web_put_card(draw, found.node, NULL);
    return true;
}

bool web_put_view(const struct web_draw *draw)
{
    static bool (*const views[])(const struct web_draw *) = {[WEB_NODE] = put_node,
                                                             [WEB_NAMESPACE] = put_namespace,
                                                             [WEB_OWNER] = put_owner,
                                                             [WEB_POD] = put_pod};
    return views[draw->query->view](draw);
}

/* ---- pages of cards ---- */

static void put_page(struct gs_buf *out, const struct web_query *query, uint32_t page,
                     const char *words)
{
    gs_buf_puts(out, "<a href=\"");
    web_query_text(query, page, out);
    gs_buf_printf(out, "\">%s</a> ", words);
}

void web_put_pager(const struct web_draw *draw)
{
    struct gs_buf *out = draw->out;
    const struct web_query *query = draw->query;
    const size_t count = draw->view->node_count;
    const uint32_t page = draw->page;
    const uint32_t pages = (uint32_t)((count + WEB_NODES_MAX - 1) / WEB_NODES_MAX);
    web_begin(draw, "pager");
    gs_buf_puts(out, "<nav id=pager aria-label=Pages>");
    if (!count && query->view == WEB_ALL && draw->narrowed)
        gs_buf_puts(out, draw->view->waits.count
                             ? "No node matches. <a href=\"?\">Show all</a>"
                             : "Nothing matches: no node, and no pod. <a href=\"?\">Show all</a>");
    if (pages > 1) {
        gs_buf_printf(out, "Cards of nodes, page %" PRIu32 " of %" PRIu32 ": ", page + 1, pages);
        if (page > 0)
            put_page(out, query, 0, "first");
        if (page > 0)
            put_page(out, query, page - 1, "previous");
        if (page + 1 < pages)
            put_page(out, query, page + 1, "next");
        if (page + 1 < pages)
            put_page(out, query, pages - 1, "last");
    }
    gs_buf_puts(out, "</nav>\n");
    web_end(draw);
}
