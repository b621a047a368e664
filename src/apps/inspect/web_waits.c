/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "inspect/web_draw.h"

/* Who waits, by owner: the reason first, whole, then the nearest miss; the oldest on top. */

enum { GROUPS_MAX = 100, MEMBERS_MAX = 50 };

static void put_nearest(struct gs_buf *out, const struct wait *wait, const char *text)
{
    if (!text[0])
        return;
    gs_buf_puts(out, "<small>nearest: ");
    web_link(out, WEB_NODE, NULL, wait->group.nearest, text);
    gs_buf_puts(out, "</small>");
}

static void put_members(struct gs_buf *out, const struct wait_group *group)
{
    gs_buf_printf(out, "<details><summary>%zu pods</summary>", group->count);
    for (size_t i = 0; i < group->count && i < MEMBERS_MAX; i++) {
        const struct gs_pod *pod = &group->pods[i]->waiting->pod;
        web_link(out, WEB_POD, pod->ns, pod->name, pod->name);
        gs_buf_putc(out, ' ');
    }
    if (group->count > MEMBERS_MAX)
        gs_buf_printf(out, "and %zu more", group->count - MEMBERS_MAX);
    gs_buf_puts(out, "</details>");
}

static void put_who(struct gs_buf *out, const struct wait_group *group)
{
    const struct gs_pod *pod = &group->pods[0]->waiting->pod;
    web_link(out, WEB_NAMESPACE, NULL, pod->ns, pod->ns);
    gs_buf_puts(out, " / ");
    if (pod->owner[0])
        web_link(out, WEB_OWNER, pod->ns, pod->owner, pod->owner);
    if (group->count > 1) {
        put_members(out, group);
    } else {
        gs_buf_puts(out, pod->owner[0] ? "<br>" : "");
        web_link(out, WEB_POD, pod->ns, pod->name, pod->name);
    }
}

static void put_group(const struct web_draw *draw, const struct wait_group *group)
{
    struct gs_buf *out = draw->out;
    const struct wait *wait = group->pods[0];
    struct wait_row row;
    waits_row(&draw->view->waits, wait, draw->view->now_s, &row);
    gs_buf_printf(out, "<tr%s><td>", wait->never ? " class=never" : "");
    web_escape(out, row.reason);
    put_nearest(out, wait, row.nearest);
    gs_buf_puts(out, "<td>");
    put_who(out, group);
    gs_buf_printf(out, "<td class=num>%s<td class=num>%s\n", row.asks, row.since);
}

static void put_groups(const struct web_draw *draw)
{
    struct gs_buf *out = draw->out;
    struct wait_groups groups;
    if (waits_group(&draw->view->waits, &groups) < 0)
        out->failed = GS_ENOMEM;
    gs_buf_printf(out,
                  "<div class=scroll><table><thead><tr><th>Why<th>Who<th class=num>Asks, %s<th "
                  "class=num>Since<tbody>\n",
                  draw->view->waits.unit);
    for (size_t i = 0; i < groups.count && i < GROUPS_MAX; i++)
        put_group(draw, &groups.all[i]);
    gs_buf_puts(out, "</table></div>");
    if (groups.count > GROUPS_MAX)
        gs_buf_printf(out,
                      "<p>and %zu more owners; a search shows them, or kubectl inspect "
                      "gpushare why</p>",
                      groups.count - GROUPS_MAX);
    wait_groups_release(&groups);
}

void web_put_waits(const struct web_draw *draw)
{
    const struct waits *waits = &draw->view->waits;
    const size_t all = draw->state->view.waits.count;
    struct gs_buf *out = draw->out;
    char sum[WAIT_TEXT_BYTES];
    waits_sum(waits, sum);
    web_begin(draw, "waiting");
    gs_buf_puts(out, "<section id=waiting aria-label=\"Waiting pods\"><h2>");
    if (!all)
        gs_buf_puts(out, "Nobody waits for GPU memory");
    else if (!waits->count)
        gs_buf_printf(out, "None of the %zu pods that wait is meant", all);
    else
        gs_buf_printf(out, "%s", sum);
    if (draw->narrowed && waits->count)
        gs_buf_printf(out, " <small>of %zu</small>", all);
    gs_buf_puts(out, "</h2>");
    if (waits->count)
        put_groups(draw);
    gs_buf_puts(out, "</section>\n");
    web_end(draw);
}
