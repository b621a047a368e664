/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "inspect/web_page.h"

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
    const struct usage_node *usage = usage_node_find(view->usage, node->node->name);
    char text[USAGE_TEXT_BYTES];
    if (!usage || !(usage->known & GS_GPU_BIT(gpu->idx)))
        return;
    usage_text(usage->used_bytes[gpu->idx], view_unit_of(view, node), text);
    gs_buf_printf(out, "%s%s %s in use", gpu->gpu->model[0] ? ", " : "", text,
                  gs_unit_name(view_unit_of(view, node)));
}

/* Of those GPUs whose plugin tells it. */
void web_use_total(struct gs_buf *out, const struct view *view)
{
    uint64_t sum = 0, bytes;
    char text[USAGE_TEXT_BYTES];
    enum gs_unit unit = GS_UNIT_GIB;
    if (!view->says_used)
        return;
    for (size_t i = 0; i < view->node_count; i++) {
        if (view_used(view, &view->nodes[i], &bytes))
            sum += bytes;
    }
    gs_unit_parse(view->unit, strlen(view->unit), &unit);
    usage_text(sum, unit, text);
    gs_buf_printf(out, "<div class=fig><b>%s</b> %s<span>truly used", text, gs_unit_name(unit));
    if (view->usage->answered < view->usage->asked)
        gs_buf_printf(out, "; %" PRIu32 " of %" PRIu32 " nodes do not say",
                      view->usage->asked - view->usage->answered, view->usage->asked);
    gs_buf_puts(out, "</span></div>");
}
