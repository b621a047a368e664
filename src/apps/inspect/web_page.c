/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/web_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/index.h"
#include "inspect/amount.h"
#include "inspect/web_draw.h"

/* What the page is made of, in which order; sums. */

enum { SHARES_MAX = 200 };

/* ---- totals ---- */

static void put_fits(struct gs_buf *out, const struct view *view)
{
    struct view_fit fit;
    char text[AMOUNT_TEXT_BYTES];
    gs_buf_puts(out, "<div class=fits><span>Would fit now, on one GPU each</span>");
    for (uint32_t nth = 0; view_fit(view, nth, &fit); nth++)
        gs_buf_printf(out, "<div><b>%s</b> of %" PRIu32 " GiB</div>", amount_text(fit.pods, text),
                      fit.gib);
    gs_buf_puts(out, "</div>");
}

/* Who has most, and in which colour. */
static void put_shares(struct gs_buf *out, const struct view *view)
{
    if (!view->ns_count)
        return;
    char text[AMOUNT_TEXT_BYTES];
    gs_buf_puts(out, "<div class=fits><span>By namespace</span>");
    for (size_t i = 0; i < view->ns_count && i < SHARES_MAX; i++) {
        const struct view_ns *ns = &view->namespaces[i];
        if (i == VIEW_HUES)
            gs_buf_printf(out, "<details><summary>%zu more</summary>", view->ns_count - i);
        gs_buf_printf(out, "<div><i class=\"sw n%zu\"></i>", view_hue(view, ns->name));
        web_link(out, WEB_NAMESPACE, NULL, ns->name, ns->name);
        gs_buf_printf(out, " <b>%s</b></div>", amount_text(ns->used_units, text));
    }
    if (view->ns_count > SHARES_MAX)
        gs_buf_printf(out, "<div>and %zu more</div>", view->ns_count - SHARES_MAX);
    gs_buf_puts(out, view->ns_count > VIEW_HUES ? "</details></div>" : "</div>");
}

static void put_figures(struct gs_buf *out, const struct view *view, bool memory)
{
    struct view_figure all[VIEW_FIGURES];
    const uint32_t count = view_figures(view, all);
    for (uint32_t i = 0; i < count; i++) {
        char text[AMOUNT_TEXT_BYTES];
        if (all[i].name && all[i].memory == memory && (all[i].number || !all[i].bad))
            gs_buf_printf(out, "<div class=\"fig%s\"><b>%s</b> %s<span>%s</span></div>",
                          all[i].bad ? " bad" : "", amount_text(all[i].number, text),
                          memory ? view->unit : "", all[i].name);
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

static void put_totals(const struct web_draw *draw)
{
    const struct view *view = draw->view;
    const struct view_sum *sum = &view->sum;
    struct gs_buf *out = draw->out;
    char used[AMOUNT_TEXT_BYTES], total[AMOUNT_TEXT_BYTES];
    web_begin(draw, "totals");
    gs_buf_puts(out, "<section id=totals aria-label=Totals><div class=\"fig wide\"><b>");
    gs_buf_printf(out, "%s</b> of %s<span>allocated, %" PRIu64 "%%%s</span>",
                  amount_text(sum->used_units, used),
                  amount_of_memory(sum->total_units, view->unit, total),
                  view_percent(sum->used_units, sum->total_units),
                  draw->narrowed ? ", of the nodes that match" : "");
    gs_buf_puts(out, "<div class=total><i class=\"");
    web_put_width(out, web_share(sum->used_units, sum->total_units));
    gs_buf_puts(out, "\"></i></div></div>");
    if (draw->narrowed)
        gs_buf_printf(out,
                      "<div class=fig><b>%" PRIu64 "</b> %s<span>of pods that match</span></div>",
                      sum->meant_units, view->unit);
    put_used(out, view);
    put_figures(out, view, true);
    put_figures(out, view, false);
    if (!view->mixed_units)
        put_fits(out, view);
    put_shares(out, view);
    gs_buf_puts(out, "</section>\n");
    web_end(draw);
}

/* ---- around them ---- */

static void put_lost(const struct web_draw *draw)
{
    web_begin(draw, "lost");
    gs_buf_puts(draw->out, "<p id=lost role=status>");
    if (draw->state->lost[0]) {
        gs_buf_puts(draw->out, "Not up to date: ");
        web_escape(draw->out, draw->state->lost);
    }
    gs_buf_puts(draw->out, "</p>\n");
    web_end(draw);
}

static void put_missing(const struct web_draw *draw)
{
    static const char *const words[] = {[WEB_NODE] =
                                            "no node with GPU memory, or no GPU, of the name ",
                                        [WEB_NAMESPACE] = "no pod with GPU memory in namespace ",
                                        [WEB_OWNER] = "no pod with GPU memory of owner ",
                                        [WEB_POD] = "no pod with GPU memory of the name "};
    const struct web_query *query = draw->query;
    web_begin(draw, "view");
    gs_buf_printf(draw->out, "<section id=view role=status><h2>There is %s", words[query->view]);
    web_escape(draw->out, query->name);
    if (query->view > WEB_NAMESPACE) {
        gs_buf_puts(draw->out, " in namespace ");
        web_escape(draw->out, query->ns);
    }
    gs_buf_puts(draw->out, "</h2><p>It may have ended. <a href=\"?\">Whole cluster</a></p>"
                           "</section>\n");
    web_end(draw);
    draw->parts->missing = true;
}

static void put_all(const struct web_draw *draw)
{
    web_put_pager(draw);
    put_totals(draw);
    web_put_waits(draw);
    web_put_top(draw);
    if (draw->view->node_count > WEB_OVERVIEW_NODES)
        web_put_overview(draw);
    web_put_cards(draw);
}

/* Nodes may have gone since somebody sent the address: then the last page. */
static uint32_t page_of(const struct view *view, uint32_t asked)
{
    const size_t last = view->node_count ? (view->node_count - 1) / WEB_NODES_MAX : 0;
    return asked < last ? asked : (uint32_t)last;
}

void web_parts_render(struct web_state *state, const struct web_query *query,
                      struct web_parts *parts)
{
    const bool has_owner = query->view == WEB_OWNER,
               one = query->view == WEB_NODE || query->view == WEB_POD;
    const struct view_filter filter = {.text = query->text,
                                       .ns = query->ns,
                                       .model = query->model,
                                       .owner = has_owner ? query->name : ""};
    struct web_draw draw = {
        .state = state, .view = &state->view, .query = query, .parts = parts, .out = &parts->html};
    struct view part = {0};
    gs_buf_reset(&parts->html);
    parts->count = 0;
    parts->missing = false;
    view_sort(&state->view, query->sort);
    if (!one && (query->text[0] || query->ns[0] || query->model[0] || has_owner)) {
        if (view_narrow(&state->view, &filter, &part) < 0)
            parts->html.failed = GS_ENOMEM;
        draw.view = &part;
        draw.narrowed = true;
    }
    draw.page = page_of(draw.view, query->page);
    put_lost(&draw);
    if (query->view == WEB_ALL)
        put_all(&draw);
    else if (!web_put_view(&draw))
        put_missing(&draw);
    if (draw.narrowed)
        view_release(&part);
}
