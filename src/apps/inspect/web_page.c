/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/web_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/index.h"

enum { SHARES_MAX = 24 };

/* ---- parts ---- */

static void begin(struct web_parts *parts, const char *id)
{
    parts->part[parts->count].from = parts->html.len;
    parts->part[parts->count].id = gs_hash_text(id);
}

static void end(struct web_parts *parts)
{
    size_t from = parts->part[parts->count].from;
    parts->part[parts->count].to = parts->html.len;
    if (!gs_buf_failed(&parts->html))
        parts->part[parts->count].content =
            gs_hash_bytes(parts->html.data + from, parts->html.len - from);
    parts->count++;
}

/* Of a namespace, 0 to 11. */
static unsigned colour_of(const struct view *view, const char *ns)
{
    return (unsigned)(view_ns_rank(view, ns) % 12);
}

/* ---- totals ---- */

static void put_fits(struct gs_buf *out, const struct view *view)
{
    struct view_fit fit;
    gs_buf_puts(out, "<div class=fits><span>Would fit now, on one GPU each</span>");
    for (uint32_t nth = 0; view_fit(view, nth, &fit); nth++)
        gs_buf_printf(out, "<div><b>%" PRIu64 "</b> of %" PRIu32 " GiB</div>", fit.pods, fit.gib);
    gs_buf_puts(out, "</div>");
}

/* Who has most, and in which colour. */
static void put_shares(struct gs_buf *out, const struct view *view)
{
    if (!view->ns_count)
        return;
    gs_buf_puts(out, "<div class=fits><span>By namespace</span>");
    for (size_t i = 0; i < view->ns_count && i < SHARES_MAX; i++) {
        const struct view_ns *ns = &view->namespaces[i];
        gs_buf_printf(out, "<div><i class=\"sw n%u\"></i>", colour_of(view, ns->name));
        web_escape(out, ns->name);
        gs_buf_printf(out, " <b>%" PRIu64 "</b></div>", ns->used_units);
    }
    if (view->ns_count > SHARES_MAX)
        gs_buf_printf(out, "<div>and %zu more</div>", view->ns_count - SHARES_MAX);
    gs_buf_puts(out, "</div>");
}

static void put_figures(struct gs_buf *out, const struct view *view, bool memory)
{
    struct view_figure all[VIEW_FIGURES];
    const uint32_t count = view_figures(view, all);
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].name && all[i].memory == memory && (all[i].number || !all[i].bad))
            gs_buf_printf(out, "<div class=\"fig%s\"><b>%" PRIu64 "</b> %s<span>%s</span></div>",
                          all[i].bad ? " bad" : "", all[i].number, memory ? view->unit : "",
                          all[i].name);
    }
}

/* Of those GPUs whose plugin tells it. */
static void put_used(struct gs_buf *out, const struct view *view)
{
    char text[USAGE_TEXT_BYTES];
    const enum gs_unit unit = view_unit(view->unit);
    if (!view->says_used)
        return;
    usage_text(view->sum.used_bytes, unit, text);
    gs_buf_printf(out, "<div class=fig><b>%s</b> %s<span>truly used", text, gs_unit_name(unit));
    if (view->usage->answered < view->usage->asked)
        gs_buf_printf(out, "; %" PRIu32 " of %" PRIu32 " nodes do not say",
                      view->usage->asked - view->usage->answered, view->usage->asked);
    gs_buf_puts(out, "</span></div>");
}

static void put_totals(struct web_parts *parts, const struct view *view)
{
    const struct view_sum *sum = &view->sum;
    struct gs_buf *out = &parts->html;
    begin(parts, "totals");
    gs_buf_puts(out, "<section id=totals aria-label=Totals><div class=\"fig wide\"><b>");
    gs_buf_printf(out, "%" PRIu64 "</b> of %" PRIu64 " %s<span>allocated, %" PRIu64 "%%</span>",
                  sum->used_units, sum->total_units, view->unit,
                  view_percent(sum->used_units, sum->total_units));
    gs_buf_puts(out, "<div class=total><i class=\"");
    web_put_width(out, web_share(sum->used_units, sum->total_units));
    gs_buf_puts(out, "\"></i></div></div>");
    put_used(out, view);
    put_figures(out, view, true);
    put_figures(out, view, false);
    if (!view->mixed_units)
        put_fits(out, view);
    put_shares(out, view);
    gs_buf_puts(out, "</section>\n");
    end(parts);
}

/* ---- who waits ---- */

static bool contains(const char *text, const char *part)
{
    return !part[0] || strcasestr(text, part) != NULL;
}

/* "namespace/name" has the text, and the namespace is the one asked for. */
static bool pod_matches(const struct web_query *query, const char *ns, const char *name)
{
    char full[400];
    snprintf(full, sizeof(full), "%.100s/%.253s", ns, name);
    return (!query->ns[0] || strcmp(query->ns, ns) == 0) && contains(full, query->text);
}

static void put_wait(struct gs_buf *out, const struct view *view, const struct wait *wait)
{
    const struct gs_pod *pod = &wait->waiting->pod;
    struct wait_row row;
    waits_row(&view->waits, wait, view->now_s, &row);
    gs_buf_printf(out, "<tr%s><td>", wait->never ? " class=never" : "");
    web_escape(out, pod->ns);
    gs_buf_puts(out, "<td>");
    web_escape(out, pod->name);
    gs_buf_printf(out, "<td class=num>%s<td class=num>%s<td>", row.asks, row.since);
    web_escape(out, row.reason);
    gs_buf_puts(out, "<td>");
    web_escape(out, row.nearest);
    gs_buf_putc(out, '\n');
}

static void put_waits(struct web_parts *parts, const struct view *view,
                      const struct web_query *query)
{
    const struct waits *waits = &view->waits;
    struct gs_buf *out = &parts->html;
    uint32_t shown = 0, found = 0;
    char sum[WAIT_TEXT_BYTES];
    waits_sum(waits, sum);
    begin(parts, "waiting");
    gs_buf_puts(out, "<section id=waiting aria-label=\"Waiting pods\">");
    if (!waits->count)
        gs_buf_puts(out, "<h2>Nobody waits for GPU memory</h2>");
    else
        gs_buf_printf(out,
                      "<h2>%s</h2><div class=scroll><table><thead><tr><th>Namespace<th>Pod<th "
                      "class=num>Asks<th class=num>Since<th>Why<th>Nearest miss<tbody>\n",
                      sum);
    for (size_t i = 0; i < waits->count; i++) {
        const struct gs_pod *pod = &waits->all[i].waiting->pod;
        if (!pod_matches(query, pod->ns, pod->name))
            continue;
        found++;
        if (shown == WEB_WAITS_MAX)
            continue;
        shown++;
        put_wait(out, view, &waits->all[i]);
    }
    if (waits->count)
        gs_buf_puts(out, "</table></div>");
    if (found > shown)
        gs_buf_printf(out, "<p>and %" PRIu32 " more; kubectl inspect gpushare why", found - shown);
    gs_buf_puts(out, "</section>\n");
    end(parts);
}

/* ---- nodes ---- */

struct card {
    const struct view *view;
    const struct web_query *query;
    const struct view_node *node;
    uint64_t largest_units;
    bool named; /* the node itself has the text that is searched */
    struct gs_buf *out;
};

static bool is_meant(const struct card *card, const struct gs_claim *claim)
{
    if (card->query->ns[0] && strcmp(card->query->ns, claim->ns) != 0)
        return false;
    return card->named || pod_matches(card->query, claim->ns, claim->name);
}

static bool has_model(const struct view_node *node, const char *model)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        if (strcmp(node->gpus[i].gpu->model, model) == 0)
            return true;
    }
    return !model[0];
}

static bool node_matches(const struct web_query *query, const struct view_node *node)
{
    bool named = contains(node->node->name, query->text);
    if (!has_model(node, query->model))
        return false;
    if (named && !query->ns[0])
        return true;
    for (uint32_t i = 0; i < node->claim_count; i++) {
        const struct gs_claim *claim = &node->claims[i];
        if (named ? strcmp(claim->ns, query->ns) == 0 : pod_matches(query, claim->ns, claim->name))
            return true;
    }
    return false;
}

static void put_use(struct gs_buf *out, const struct usage_gpu *use, enum gs_unit unit)
{
    char used[USAGE_TEXT_BYTES], peak[USAGE_TEXT_BYTES];
    usage_text(use->used_bytes, unit, used);
    usage_text(use->peak_bytes, unit, peak);
    gs_buf_printf(out, ", uses %s, at most %s so far", used, peak);
}

/* "team-a/a: 15 GiB on each of 2 GPUs, uses 3.0, at most 4.1 so far, since 2026-01-02 02:59 UTC" */
static void put_tip(const struct card *card, const struct gs_claim *claim,
                    const struct usage_gpu *use)
{
    int64_t since_s = snapshot_since(card->view->snapshot, claim->uid);
    enum gs_unit unit = view_unit_of(card->view, card->node);
    char text[32];
    struct tm when;
    time_t at = (time_t)since_s;
    web_escape(card->out, claim->ns);
    gs_buf_putc(card->out, '/');
    web_escape(card->out, claim->name);
    gs_buf_printf(card->out, ": %" PRIu32 " %s", claim->units, gs_unit_name(unit));
    if (claim->gpu_count > 1)
        gs_buf_printf(card->out, " on each of %" PRIu32 " GPUs", claim->gpu_count);
    if (use)
        put_use(card->out, use, unit);
    if (since_s && gmtime_r(&at, &when) && strftime(text, sizeof(text), "%F %H:%M", &when))
        gs_buf_printf(card->out, ", since %s UTC", text);
}

/* wide: there is room for a word. */
static void put_pod(const struct card *card, const struct gs_claim *claim,
                    const struct view_gpu *gpu, uint64_t width, bool wide)
{
    struct gs_buf *out = card->out;
    const struct usage_pod *pod = usage_pod_find(card->view->usage, claim->node, claim->uid);
    const struct usage_gpu *use = gpu ? usage_gpu_find(pod, gpu->idx) : NULL;
    gs_buf_printf(out, "<i class=\"p n%u %s%s", colour_of(card->view, claim->ns),
                  is_meant(card, claim) ? "" : "dim ", use && !wide ? "bare " : "");
    web_put_width(out, width);
    gs_buf_puts(out, "\" tabindex=0 role=img aria-label=\"");
    put_tip(card, claim, use);
    gs_buf_puts(out, "\">");
    if (wide)
        web_escape(out, claim->name);
    if (use) { /* below the name, as long as what is used is of what was given */
        gs_buf_printf(out, "<s class=\"%s", use->used_bytes > pod->given_bytes ? "over " : "");
        web_put_width(out, web_share(use->used_bytes >> 20, pod->given_bytes >> 20));
        gs_buf_puts(out, "\"></s>");
    }
    gs_buf_puts(out, "</i>");
}

static void put_bar(const struct card *card, const struct view_gpu *gpu, uint64_t length)
{
    uint64_t whole = gpu->used_units > gpu->total_units ? gpu->used_units : gpu->total_units;
    uint64_t units = 0, at = 0;
    for (uint32_t i = 0; i < card->node->claim_count; i++) {
        const struct gs_claim *claim = &card->node->claims[i];
        if (!claim_on(claim, gpu->idx))
            continue;
        units += claim->units;
        /* ends are rounded, not widths: a full GPU has a full bar */
        uint64_t to = web_share(units, whole);
        put_pod(card, claim, gpu, to - at, (to - at) * length >= 90 * 1000);
        at = to;
    }
}

/* Only the kernel's limit holds whatever a pod does. */
static void put_enforced(struct gs_buf *out, enum gs_enforced enforced)
{
    if (gs_enforced_holds(enforced))
        gs_buf_printf(out, "<em%s title=\"%s\">%s</em>",
                      enforced == GS_ENFORCED_DMEM ? " class=good" : "",
                      view_limits(enforced)->here, gs_enforced_name(enforced));
}

static void put_word(struct gs_buf *out, const struct view_word *word, const char *text)
{
    gs_buf_printf(out, "<em%s>%s</em>", word->bad ? " class=bad" : "", text);
}

/* Behind a bar of that length, or in one that leaves no room. */
static void put_gpu_words(struct gs_buf *out, const struct view_gpu *gpu, uint64_t length)
{
    gs_buf_printf(out, "<div class=\"words%s\">", length > 700 ? " in" : "");
    const struct view_word *word;
    for (uint32_t i = 0; (word = view_gpu_word(gpu->gpu, gpu->overfull, i)) != NULL; i++)
        put_word(out, word, word->word);
    put_enforced(out, gpu->gpu->enforced);
    gs_buf_puts(out, "</div>");
}

static void put_gpu_use(const struct card *card, const struct view_gpu *gpu)
{
    char text[USAGE_TEXT_BYTES];
    const enum gs_unit unit = view_unit_of(card->view, card->node);
    const struct usage_node *usage = card->node->usage;
    if (!usage || !(usage->known & GS_GPU_BIT(gpu->idx)))
        return;
    usage_text(usage->used_bytes[gpu->idx], unit, text);
    gs_buf_printf(card->out, "%s%s %s in use", gpu->gpu->model[0] ? ", " : "", text,
                  gs_unit_name(unit));
}

static void put_gpu(const struct card *card, const struct view_gpu *gpu)
{
    struct gs_buf *out = card->out;
    uint64_t length = web_share(gpu->total_units, card->largest_units);
    gs_buf_printf(out, "<div class=g><b>%" PRIu32 "</b><div class=track><div class=\"bar%s ",
                  gpu->idx, gpu->usable ? "" : " off");
    web_put_width(out, length);
    gs_buf_puts(out, "\" title=\"");
    web_escape(out, gpu->gpu->model);
    put_gpu_use(card, gpu);
    gs_buf_puts(out, "\">");
    put_bar(card, gpu, length);
    if (view_gpu_word(gpu->gpu, gpu->overfull, 0) || gs_enforced_holds(gpu->gpu->enforced))
        put_gpu_words(out, gpu, length);
    gs_buf_printf(out, "</div></div><span>%" PRIu64 "/%" PRIu64 "</span></div>", gpu->used_units,
                  gpu->total_units);
}

static void put_pending(const struct card *card)
{
    gs_buf_puts(card->out, "<div class=\"g pend\"><b>?</b><div class=track>");
    for (uint32_t i = 0; i < card->node->claim_count; i++) {
        const struct gs_claim *claim = &card->node->claims[i];
        if (!claim_recorded(claim))
            put_pod(card, claim, NULL, 250, true);
    }
    gs_buf_puts(card->out, "</div><span>GPU not known</span></div>");
}

static void put_node_words(struct gs_buf *out, const struct view_node *node)
{
    gs_buf_puts(out, "<small>");
    web_escape(out, view_node_model(node));
    gs_buf_puts(out, "</small>");
    const struct view_word *word;
    for (uint32_t i = 0; (word = view_node_word(node->node, i)) != NULL; i++)
        put_word(out, word, word->plain);
}

static void put_node(struct web_parts *parts, const struct card *card)
{
    const struct view_node *node = card->node;
    struct gs_buf *out = card->out;
    char id[300];
    snprintf(id, sizeof(id), "n-%.253s", node->node->name);
    begin(parts, id);
    gs_buf_puts(out, "<article id=\"");
    web_escape(out, id);
    gs_buf_puts(out, "\"><h3><span>");
    web_escape(out, node->node->name);
    gs_buf_puts(out, "</span>");
    put_node_words(out, node);
    gs_buf_printf(out, "<b>%" PRIu64 "/%" PRIu64 "</b></h3>", node->used_units, node->total_units);
    for (uint32_t i = 0; i < node->gpu_count; i++)
        put_gpu(card, &node->gpus[i]);
    if (node->pending_pods)
        put_pending(card);
    gs_buf_puts(out, "</article>\n");
    end(parts);
}

static void put_pager(struct web_parts *parts, const struct web_query *query, uint32_t found)
{
    struct gs_buf *out = &parts->html;
    uint32_t pages = (found + WEB_NODES_MAX - 1) / WEB_NODES_MAX;
    begin(parts, "pager");
    gs_buf_puts(out, "<nav id=pager aria-label=Pages>");
    if (!found)
        gs_buf_puts(out, "No node matches.");
    for (uint32_t page = 0; pages > 1 && page < pages; page++) {
        gs_buf_printf(out, "<a%s href=\"?", page == query->page ? " aria-current=page" : "");
        web_query_text(query, page, out);
        gs_buf_printf(out, "\">%" PRIu32 "</a> ", page + 1);
    }
    gs_buf_puts(out, "</nav>\n");
    end(parts);
}

static void put_nodes(struct web_parts *parts, const struct view *view,
                      const struct web_query *query)
{
    uint32_t found = 0, first = query->page * WEB_NODES_MAX;
    struct card card = {.view = view,
                        .query = query,
                        .largest_units = view->sum.largest_gpu_units,
                        .out = &parts->html};
    for (size_t i = 0; i < view->node_count; i++) {
        card.node = &view->nodes[i];
        if (!node_matches(query, card.node))
            continue;
        card.named = contains(card.node->node->name, query->text);
        if (found >= first && found < first + WEB_NODES_MAX)
            put_node(parts, &card);
        found++;
    }
    put_pager(parts, query, found);
}

static void put_lost(struct web_parts *parts, const struct web_state *state)
{
    begin(parts, "lost");
    gs_buf_puts(&parts->html, "<p id=lost role=status>");
    if (state->lost[0]) {
        gs_buf_puts(&parts->html, "Not up to date: ");
        web_escape(&parts->html, state->lost);
    }
    gs_buf_puts(&parts->html, "</p>\n");
    end(parts);
}

void web_parts_render(struct web_state *state, const struct web_query *query,
                      struct web_parts *parts)
{
    gs_buf_reset(&parts->html);
    parts->count = 0;
    view_sort(&state->view, query->sort);
    put_lost(parts, state);
    put_totals(parts, &state->view);
    put_waits(parts, &state->view, query);
    put_nodes(parts, &state->view, query);
}
