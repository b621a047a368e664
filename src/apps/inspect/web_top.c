/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "inspect/limits.h"
#include "inspect/web_draw.h"

/* Five of each: who never used most of what he was given, who uses more than that, who waits
 * longest. The first two where plugins tell what pods use. */

enum { TOP = 5 };

struct top {
    const struct gs_claim *claim;
    uint64_t bytes;
};

static void keep(struct top top[TOP], const struct gs_claim *claim, uint64_t bytes)
{
    for (int i = 0; i < TOP && bytes; i++) {
        if (bytes <= top[i].bytes)
            continue;
        const struct top next = top[i];
        top[i] = (struct top){claim, bytes};
        claim = next.claim;
        bytes = next.bytes;
    }
}

static void find(const struct view *view, struct top waste[TOP], struct top over[TOP])
{
    for (size_t i = 0; i < view->node_count; i++) {
        const struct view_node *node = &view->nodes[i];
        for (uint32_t c = 0; c < node->claim_count; c++) {
            const struct gs_claim *claim = &node->claims[c];
            const struct usage_pod *pod = usage_pod_find(view->usage, claim->node, claim->uid);
            if (!pod || !pod->known || !view_means(view, node, claim))
                continue;
            keep(waste, claim, usage_never_used(pod));
            keep(over, claim, limits_over(pod, pod->used_bytes));
        }
    }
}

static void put_pod(struct gs_buf *out, const char *ns, const char *name, const char *text)
{
    gs_buf_puts(out, "<li>");
    web_link(out, WEB_POD, ns, name, name);
    gs_buf_puts(out, " of ");
    web_link(out, WEB_NAMESPACE, NULL, ns, ns);
    gs_buf_printf(out, ": %s", text);
}

static void put_list(struct gs_buf *out, const char *title, const struct top top[TOP])
{
    char number[USAGE_TEXT_BYTES], text[USAGE_TEXT_BYTES + 8];
    if (!top[0].bytes)
        return;
    gs_buf_printf(out, "<div><h2>%s</h2><ol>", title);
    for (int i = 0; i < TOP && top[i].bytes; i++) {
        usage_text(top[i].bytes, GS_UNIT_GIB, number);
        snprintf(text, sizeof(text), "%s GiB", number);
        put_pod(out, top[i].claim->ns, top[i].claim->name, text);
    }
    gs_buf_puts(out, "</ol></div>");
}

static void put_oldest(struct gs_buf *out, const struct view *view)
{
    const struct waits *waits = &view->waits;
    if (waits->count <= TOP) /* they stand above */
        return;
    gs_buf_puts(out, "<div><h2>Wait longest</h2><ol>");
    for (size_t i = 0; i < waits->count && i < TOP; i++) {
        const struct gs_pod *pod = &waits->all[i].waiting->pod;
        char since[WAIT_SHORT_BYTES];
        waits_since(pod->created_s, view->now_s, since);
        put_pod(out, pod->ns, pod->name, since);
    }
    gs_buf_puts(out, "</ol></div>");
}

void web_put_top(const struct web_draw *draw)
{
    struct top waste[TOP] = {0}, over[TOP] = {0};
    if (draw->view->usage && draw->view->usage->names_pods)
        find(draw->view, waste, over);
    web_begin(draw, "top");
    gs_buf_puts(draw->out, "<section id=top aria-label=\"Top five\">");
    put_oldest(draw->out, draw->view);
    put_list(draw->out, "Never used most of their share", waste);
    put_list(draw->out, "Above their share", over);
    gs_buf_puts(draw->out, "</section>\n");
    web_end(draw);
}
