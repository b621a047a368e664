/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "inspect/source.h"
#include "inspect/web_page.h"

/* Words in a page and in a link: of others, and of what is used. */

void web_escape(struct gs_buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            gs_buf_puts(out, "&lt;");
            break;
        case '>':
            gs_buf_puts(out, "&gt;");
            break;
        case '&':
            gs_buf_puts(out, "&amp;");
            break;
        case '"':
            gs_buf_puts(out, "&quot;");
            break;
        case '\'':
            gs_buf_puts(out, "&#39;");
            break;
        default:
            gs_buf_putc(out, *text);
        }
    }
}

static void put_argument(struct gs_buf *out, const char *name, const char *value)
{
    if (!value[0])
        return;
    gs_buf_printf(out, "%s=", name);
    gs_url_escape(out, value);
    gs_buf_puts(out, "&amp;");
}

void web_query_text(const struct web_query *query, uint32_t page, struct gs_buf *out)
{
    put_argument(out, "q", query->text);
    put_argument(out, "ns", query->ns);
    put_argument(out, "model", query->model);
    if (query->sort != SORT_NAME)
        put_argument(out, "sort", view_sorts[query->sort]);
    gs_buf_printf(out, "page=%" PRIu32, page + 1);
}

void web_put_width(struct gs_buf *out, uint64_t thousandths)
{
    gs_buf_printf(out, "t%" PRIu64 " u%" PRIu64 " d%" PRIu64, thousandths / 100,
                  thousandths / 10 % 10, thousandths % 10);
}

uint64_t web_share(uint64_t part, uint64_t whole)
{
    if (!whole)
        return 0;
    return part >= whole ? 1000 : (part * 1000 + whole / 2) / whole;
}

struct web_use web_use_of(const struct view *view, const struct view_node *node,
                          const struct gs_claim *claim, const struct view_gpu *gpu)
{
    enum gs_unit unit = view_unit_of(view, node);
    const struct usage_gpu *use =
        gpu ? usage_gpu_find(usage_pod_find(view->usage, claim->node, claim->uid), gpu->idx) : NULL;
    return (struct web_use){.gpu = use && use->known ? use : NULL,
                            .given_bytes = (uint64_t)claim->units * gs_unit_mib(unit) << 20,
                            .unit = unit};
}

void web_use_words(struct gs_buf *out, const struct web_use *use)
{
    char used[USAGE_TEXT_BYTES], peak[USAGE_TEXT_BYTES];
    if (!use->gpu)
        return;
    usage_text(use->gpu->used_bytes, use->unit, used);
    usage_text(use->gpu->peak_bytes, use->unit, peak);
    gs_buf_printf(out, ", uses %s, at most %s so far", used, peak);
}

/* Below the name, as long as what is used is of what was given. */
void web_use_stripe(struct gs_buf *out, const struct web_use *use)
{
    if (!use->gpu)
        return;
    gs_buf_printf(out, "<s class=\"%s", use->gpu->used_bytes > use->given_bytes ? "over " : "");
    web_put_width(out, web_share(use->gpu->used_bytes >> 20, use->given_bytes >> 20));
    gs_buf_puts(out, "\"></s>");
}

void web_use_gpu(struct gs_buf *out, const struct view *view, const struct view_node *node,
                 const struct view_gpu *gpu)
{
    char text[USAGE_TEXT_BYTES];
    if (!node->usage || !(node->usage->known & GS_GPU_BIT(gpu->idx)))
        return;
    usage_text(node->usage->used_bytes[gpu->idx], view_unit_of(view, node), text);
    gs_buf_printf(out, "%s%s %s in use", gpu->gpu->model[0] ? ", " : "", text,
                  gs_unit_name(view_unit_of(view, node)));
}

/* Of those GPUs whose plugin tells it. */
void web_use_total(struct gs_buf *out, const struct view *view)
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
