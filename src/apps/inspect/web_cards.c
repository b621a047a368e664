/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/limits.h"
#include "inspect/web_draw.h"

/* A card for each node: a bar for each GPU, all of one width with sizes in figures, and a block for
 * each pod, which leads to it. */

struct card {
    const struct web_draw *draw;
    const struct view *view;
    const struct view_node *node;
    struct gs_buf *out;
};

void web_put_use(struct gs_buf *out, const struct usage_pod *pod, const struct usage_gpu *use,
                 enum gs_unit unit)
{
    char used[USAGE_TEXT_BYTES], peak[USAGE_TEXT_BYTES];
    if (!use)
        return;
    usage_text(use->used_bytes, unit, used);
    usage_text(use->peak_bytes, unit, peak);
    gs_buf_printf(out, ", uses %s, at most %s so far%s", used, peak,
                  limits_over(pod, use->used_bytes) ? ": more than its share" : "");
}

/* "team-a/a: 15 GiB on each of 2 GPUs, uses 3.0, at most 4.1 so far, since 2026-01-02 02:59 UTC" */
static void put_tip(const struct card *card, const struct gs_claim *claim,
                    const struct usage_pod *pod, const struct usage_gpu *use)
{
    enum gs_unit unit = view_unit_of(card->view, card->node);
    web_escape(card->out, claim->ns);
    gs_buf_putc(card->out, '/');
    web_escape(card->out, claim->name);
    gs_buf_printf(card->out, ": %" PRIu32 " %s", claim->units, gs_unit_name(unit));
    if (claim->gpu_count > 1)
        gs_buf_printf(card->out, " on each of %" PRIu32 " GPUs", claim->gpu_count);
    web_put_use(card->out, pod, use, unit);
    web_put_time(card->out, ", since ", snapshot_since(card->view->snapshot, claim->uid));
}

/* wide: there is room for a word. */
static void put_pod(const struct card *card, const struct gs_claim *claim,
                    const struct view_gpu *gpu, uint64_t width, bool wide)
{
    struct gs_buf *out = card->out;
    const struct usage_pod *pod = usage_pod_find(card->view->usage, claim->node, claim->uid);
    const struct usage_gpu *use = gpu ? usage_gpu_find(pod, gpu->idx) : NULL;
    gs_buf_printf(out, "<a class=\"p n%zu %s%s", view_hue(card->view, claim->ns),
                  view_means(card->view, card->node, claim) ? "" : "dim ",
                  use && !wide ? "bare " : "");
    web_put_width(out, width);
    gs_buf_puts(out, "\" href=\"");
    web_put_address(out, WEB_POD, claim->ns, claim->name);
    gs_buf_puts(out, "\" aria-label=\"");
    put_tip(card, claim, pod, use);
    gs_buf_puts(out, "\">");
    if (wide)
        web_escape(out, claim->name);
    if (use) { /* below the name, as long as what is used is of what was given */
        gs_buf_printf(out, "<s class=\"%s", limits_over(pod, use->used_bytes) ? "over " : "");
        web_put_width(out, web_share(use->used_bytes >> 20, pod->given_bytes >> 20));
        gs_buf_puts(out, "\"></s>");
    }
    gs_buf_puts(out, "</a>");
}

static void put_bar(const struct card *card, const struct view_gpu *gpu)
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
        put_pod(card, claim, gpu, to - at, to - at >= 90);
        at = to;
    }
}

static void put_word(struct gs_buf *out, const struct view_word *word, const char *text)
{
    gs_buf_printf(out, "<em%s>%s</em>", word->bad ? " class=bad" : "", text);
}

/* Only the kernel's limit holds whatever a pod does. */
static void put_enforced(struct gs_buf *out, enum gs_enforced enforced)
{
    if (gs_enforced_holds(enforced))
        gs_buf_printf(out, "<em%s title=\"%s\">%s</em>",
                      enforced == GS_ENFORCED_DMEM ? " class=good" : "",
                      view_limits(enforced)->here, gs_enforced_name(enforced));
}

/* Its GPUs are all held in the same way: the card's head says so once. */
static bool enforced_alike(const struct view_node *node)
{
    for (uint32_t i = 1; i < node->gpu_count; i++) {
        if (node->gpus[i].gpu->enforced != node->gpus[0].gpu->enforced)
            return false;
    }
    return node->gpu_count > 0;
}

static void put_gpu_words(const struct card *card, const struct view_gpu *gpu)
{
    struct gs_buf *out = card->out;
    const bool each = !enforced_alike(card->node);
    if (!view_gpu_word(gpu->gpu, gpu->overfull, 0) &&
        !(each && gs_enforced_holds(gpu->gpu->enforced)))
        return;
    gs_buf_puts(out, "<div class=words>");
    const struct view_word *word;
    for (uint32_t i = 0; (word = view_gpu_word(gpu->gpu, gpu->overfull, i)) != NULL; i++)
        put_word(out, word, word->word);
    if (each)
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
    gs_buf_puts(out, "<div class=g><b><a href=\"");
    web_put_address(out, WEB_NODE, NULL, card->node->node->name);
    gs_buf_printf(out, "&amp;gpu=%" PRIu32 "\">GPU%" PRIu32 "</a></b><div class=\"bar%s\" title=\"",
                  gpu->idx, gpu->idx, gpu->usable ? "" : " off");
    web_escape(out, gpu->gpu->model);
    put_gpu_use(card, gpu);
    gs_buf_puts(out, "\">");
    put_bar(card, gpu);
    gs_buf_printf(out, "</div><span>%" PRIu64 "/%" PRIu64 "</span>", gpu->used_units,
                  gpu->total_units);
    put_gpu_words(card, gpu);
    gs_buf_puts(out, "</div>");
}

static void put_pending(const struct card *card)
{
    gs_buf_puts(card->out, "<div class=\"g pend\"><b>?</b><div class=bar>");
    for (uint32_t i = 0; i < card->node->claim_count; i++) {
        const struct gs_claim *claim = &card->node->claims[i];
        if (!claim_recorded(claim))
            put_pod(card, claim, NULL, 250, true);
    }
    gs_buf_puts(card->out, "</div><span>GPU not known</span></div>");
}

static void put_head(const struct card *card)
{
    struct gs_buf *out = card->out;
    const struct view_node *node = card->node;
    gs_buf_puts(out, "<h3>");
    web_link(out, WEB_NODE, NULL, node->node->name, node->node->name);
    const struct view_word *word;
    for (uint32_t i = 0; (word = view_node_word(node->node, i)) != NULL; i++)
        put_word(out, word, word->plain);
    if (enforced_alike(node))
        put_enforced(out, node->gpus[0].gpu->enforced);
    gs_buf_printf(out, "<b>%" PRIu64 "/%" PRIu64 "</b></h3>", node->used_units, node->total_units);
}

/* What is left of the node, and for whom. */
static void put_rest(const struct card *card)
{
    struct gs_buf *out = card->out;
    const struct view_node *node = card->node;
    const struct gs_fragmentation *part = &node->fragmentation;
    gs_buf_puts(out, "<p>");
    web_escape(out, view_node_model(node));
    gs_buf_printf(out, "%s%" PRIu64 " free", view_node_model(node)[0] ? "; " : "",
                  part->free_units);
    if (part->free_units)
        gs_buf_printf(out, ", largest piece %" PRIu32, part->largest_units);
    if (part->stranded_units)
        gs_buf_printf(out, ", %" PRIu64 " stranded", part->stranded_units);
    if (node->unusable_units)
        gs_buf_printf(out, ", %" PRIu64 " not usable", node->unusable_units);
    if (node->over_units)
        gs_buf_printf(out, ", %" PRIu64 " given beyond what it has", node->over_units);
    gs_buf_printf(out, " %s</p>", gs_unit_name(view_unit_of(card->view, node)));
}

void web_put_card(const struct web_draw *draw, const struct view_node *node,
                  const struct view_gpu *gpu)
{
    const struct card card = {.draw = draw, .view = draw->view, .node = node, .out = draw->out};
    char id[300];
    snprintf(id, sizeof(id), "n-%.253s", node->node->name);
    web_begin(draw, id);
    gs_buf_puts(draw->out, "<article id=\"");
    web_escape(draw->out, id);
    gs_buf_puts(draw->out, "\">");
    put_head(&card);
    put_rest(&card);
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        if (!gpu || gpu == &node->gpus[i])
            put_gpu(&card, &node->gpus[i]);
    }
    if (node->pending_pods && !gpu)
        put_pending(&card);
    gs_buf_puts(draw->out, "</article>\n");
    web_end(draw);
}

void web_put_cards(const struct web_draw *draw)
{
    const struct view *view = draw->view;
    const size_t first = (size_t)draw->page * WEB_NODES_MAX;
    for (size_t i = first; i < view->node_count && i < first + WEB_NODES_MAX; i++)
        web_put_card(draw, &view->nodes[i], NULL);
}
