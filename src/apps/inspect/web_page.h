/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WEB_PAGE_H
#define GPUSHARE_APPS_INSPECT_WEB_PAGE_H

#include "inspect/events.h"
#include "inspect/view.h"
#include "inspect/why.h"

/*
 * The page of `web` as HTML: a head with the filters, and parts below it, elements with an id, of
 * which an update names those that are different now. Widths are classes, because a strict
 * Content-Security-Policy forbids style attributes. Everything from the cluster is escaped.
 */
enum { WEB_NODES_MAX = 50, WEB_PARTS_MAX = 200, WEB_BYTES_MAX = 16 << 20 };

/* Of everything, or of one thing. */
enum web_view { WEB_ALL, WEB_NODE, WEB_NAMESPACE, WEB_OWNER, WEB_POD };

/* What the query string asks for: ?node=N&gpu=0, ?namespace=N, ?owner=N/Deployment/web, ?pod=N/P,
 * or all, narrowed by the filters. */
struct web_query {
    enum web_view view;
    char name[400]; /* of a node, an owner, a pod */
    bool has_gpu;
    uint32_t gpu;
    char text[128]; /* part of a node's or a pod's name */
    char ns[128];   /* also that of an owner, a pod, and of a namespace's view */
    char model[128];
    enum view_sort sort;
    uint32_t page; /* from 0 */
};

/* What the API says of a pod or a node (ns "") that somebody looks at. */
struct web_pod {
    char ns[128], name[400];
    struct why why;
    char events[EVENTS_BYTES]; /* ours about it */
    char failed[512];          /* why it could not be asked; "" when it could */
    int64_t asked_ns;
};
enum { WEB_PODS_MAX = 32 };
struct web_pods {
    struct web_pod all[WEB_PODS_MAX];
};

struct web_parts {
    struct gs_buf html;
    bool missing; /* there is no such thing */
    uint32_t count;
    struct {
        size_t from, to;      /* of html */
        uint64_t id, content; /* hashes */
    } part[WEB_PARTS_MAX];
};
#define WEB_PARTS ((struct web_parts){.html = GS_BUF(WEB_BYTES_MAX)})

/* What is the same for everybody who looks. */
struct web_state {
    struct view view; /* with waits; its nodes are put in order */
    const char *server;
    const char *lost; /* why it is not up to date; "" when it is */
    struct web_pods *pods;
};

/* *parts is emptied before; check its html at the end. */
void web_parts_render(struct web_state *state, const struct web_query *query,
                      struct web_parts *parts);

/* One word for all of them. */
enum { WEB_SUM_BYTES = 17 };
void web_parts_sum(const struct web_parts *parts, char to[WEB_SUM_BYTES]);

/* A document's head, and its form as far as the search for a text; live: the script keeps it up to
 * date, else the browser loads it again every ten seconds. */
void web_head(struct gs_buf *out, const char *server, int64_t now_s, bool live, const char *text);

/* The whole document around them. */
void web_document(const struct web_state *state, const struct web_query *query,
                  const struct web_parts *parts, struct gs_buf *out);

/* Thousandths of a whole, at most 1000; and classes for a width of so many: tens, ones and tenths
 * of a percent. */
uint64_t web_share(uint64_t part, uint64_t whole);
void web_put_width(struct gs_buf *out, uint64_t thousandths);

/* < > & " ' as entities. */
void web_escape(struct gs_buf *out, const char *text);

/* For the text of a link: query as "q=…&ns=…", without what is not set. */
void web_query_text(const struct web_query *query, uint32_t page, struct gs_buf *out);

/* web_views.c: the page has the query's pod or node. */
bool web_has(const struct view *view, const struct web_query *query);

/* web_pod.c: `why` of the query's pod, of what was asked about it and what the view has now;
 * *caller frees*. NULL: no memory. */
char *web_pod_text(struct web_pods *pods, const struct view *view, const struct web_query *query);
struct web_pod *web_pods_find(struct web_pods *pods, const struct web_query *query);
/* The API server is asked about what it is of. */
bool web_asks(const struct web_query *query);
void web_pods_release(struct web_pods *pods);

#endif
