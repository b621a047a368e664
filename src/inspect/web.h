/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/http/router.h"
#include "inspect/doc.h"
#include "inspect/events.h"
#include "inspect/own.h"
#include "inspect/view.h"
#include "inspect/watcher.h"
#include "inspect/why.h"

/*
 * The live page: a server on loopback that shows what a watcher keeps. Whoever has the address with
 * its token may look; nothing can be changed. The server answers rows as JSON, with a number by
 * which the script in web/, which draws them, asks whether they are others now.
 */
enum { WEB_TOKEN_BYTES = 33, WEB_BYTES_MAX = 16 << 20 };

/* Of everything, or of one thing; the API server is asked about the last two. */
enum web_view { WEB_ALL, WEB_NAMESPACE, WEB_OWNER, WEB_NODE, WEB_POD };
extern const char *const web_views[]; /* their words */

/* What the query string asks for: ?node=N&gpu=0, ?namespace=N, ?owner=N/Deployment/web, ?pod=N/P,
 * or all, narrowed by the filters. */
struct web_query {
    enum web_view view;
    char name[400]; /* of a node, an owner, a pod */
    bool has_gpu;
    uint32_t gpu;
    char text[128]; /* part of a node's or a pod's name */
    char ns[128];   /* also that of an owner, a pod, and of a namespace's view; "": a node's */
    char model[128];
    char sort[32]; /* a column of nodes */
    uint32_t page; /* of the cards, from 0 */
};

/* What the API server says of a pod or a node: it stands in no row, and is asked again for each
 * answer. */
struct web_words {
    struct why why;            /* of a pod */
    char events[EVENTS_BYTES]; /* ours about it */
    struct gs_error err;       /* why it could not be asked */
};

struct web {
    struct watcher watcher;
    char token[WEB_TOKEN_BYTES]; /* "" when none is asked for */
    bool own_only;               /* the watcher was refused: only what `own` asks for is shown */
    const struct common *common;
    atomic_bool stopping;
    _Atomic int64_t asked_ns; /* when somebody last asked for rows */
    /* guarded by watcher.lock */
    struct usage usage;              /* what pods use, as last asked */
    char silent[WATCHER_TEXT_BYTES]; /* why the API server does not answer; "" when it does */
    struct view view;                /* with waits */
    char sort[32];                   /* of its nodes, as web_query's */
    uint64_t version;                /* of it; counts; 0: there is none yet */
};

/* web_serve.c: the server's routes; their ctx is the struct web. */
enum { WEB_ROUTES = 2 };
extern const struct gs_http_route web_routes[WEB_ROUTES];

/* web_rows.c: all that the page shows of a query, into an open object; of web_refresh(), under the
 * same lock. "found" is false of what there is not. */
void web_put_rows(struct web *web, const struct web_query *query, struct web_words *words,
                  struct doc *doc);
/* The view has the query's pod or node. */
bool web_has(const struct view *view, const struct web_query *query);

/* web_live.c: brings the view up to date; the watcher's lock is held. GS_ENOMEM; GS_EBUSY while the
 * lists are still being read. */
int web_refresh(struct web *web, struct gs_error *err);

/* Asks the API server about the query's pod or node. No lock is held. *Caller releases ret->why.*
 */
void web_ask(struct web *web, const struct web_query *query, struct web_words *ret);

/* A thread that asks, while somebody looks, whether the API server still answers, and what pods
 * use; arg: the struct web. Ends when web->stopping is set. */
void *web_follow(void *arg);

/* After the server. */
void web_close(struct web *web);
