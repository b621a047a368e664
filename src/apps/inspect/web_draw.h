/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WEB_DRAW_H
#define GPUSHARE_APPS_INSPECT_WEB_DRAW_H

#include "inspect/web_page.h"

/* What the files of the page share: each draws parts from rows, and counts and words nothing. */

struct web_draw {
    const struct web_state *state;
    const struct view *view; /* what the filter means; everything without one */
    const struct web_query *query;
    struct web_parts *parts;
    struct gs_buf *out; /* parts->html */
    bool narrowed;      /* by a filter */
    uint32_t page;      /* of the cards, from 0: the query's, or the last */
};

/* A part is an element with that id; between the two one is written. */
void web_begin(const struct web_draw *draw, const char *id);
void web_end(const struct web_draw *draw);

/* web_page.c: of the cards; before everything else, so that the keyboard comes to it soon. */
void web_put_pager(const struct web_draw *draw);

/* web_waits.c: who waits. */
void web_put_waits(const struct web_draw *draw);

/* web_top.c: five of who waits longest, never used most, is above his share. */
void web_put_top(const struct web_draw *draw);

/* web_cards.c: a card for each node of the query's page, and how many match. */
void web_put_cards(const struct web_draw *draw);
/* A part of its own: the node, or that GPU of it; NULL: all of them. */
void web_put_card(const struct web_draw *draw, const struct view_node *node,
                  const struct view_gpu *gpu);
/* What a pod has there, and uses. use: NULL when that is not known. */
void web_put_use(struct gs_buf *out, const struct usage_pod *pod, const struct usage_gpu *use,
                 enum gs_unit unit);

/* web_overview.c: a cell for each GPU of many. */
enum { WEB_OVERVIEW_NODES = 50 }; /* up to here cards are enough */
void web_put_overview(const struct web_draw *draw);

/* web_views.c: a node, a GPU, a namespace, an owner, a pod. false: there is no such. */
bool web_put_view(const struct web_draw *draw);

/* web_text.c */

/* "?pod=NS%2FNAME", for an attribute; ns: NULL of what has none. */
void web_put_address(struct gs_buf *out, enum web_view view, const char *ns, const char *name);
/* That link, with the text in it. */
void web_link(struct gs_buf *out, enum web_view view, const char *ns, const char *name,
              const char *text);
/* "2026-01-02 02:59 UTC"; nothing of 0. */
void web_put_time(struct gs_buf *out, const char *before, int64_t at_s);

#endif
