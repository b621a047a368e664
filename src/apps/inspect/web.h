/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WEB_H
#define GPUSHARE_APPS_INSPECT_WEB_H

#include "gpushare/http/router.h"
#include "gpushare/http/stream.h"
#include "inspect/own.h"
#include "inspect/watcher.h"
#include "inspect/web_page.h"

/*
 * The live page: a server on loopback that shows what a watcher keeps. Whoever has the address with
 * its token may look; nothing can be changed. Pages are rendered here; a script of ours replaces
 * the parts that an event stream names.
 */
enum { WEB_CLIENTS_MAX = 32, WEB_TOKEN_BYTES = 33 };

/* Somebody's event stream: what he looks at, and what he has seen of it. */
struct web_client {
    struct gs_http_stream *stream;
    struct web_query query;
    uint64_t version; /* of the view */
    uint32_t count;
    uint64_t ids[WEB_PARTS_MAX], contents[WEB_PARTS_MAX];
    atomic_bool gone; /* the server has let go of it */
};

struct web {
    struct watcher watcher;
    char token[WEB_TOKEN_BYTES]; /* "" when none is asked for */
    bool own_only;               /* the watcher was refused: only what `own` asks for is shown */
    struct own_query own;
    atomic_bool stopping;
    _Atomic int64_t asked_ns; /* when somebody last asked for the page */
    /* guarded by watcher.lock */
    struct usage usage; /* what pods truly use, as last asked */
    char silent[256];   /* why the API server does not answer; "" when it does */
    struct web_state state;
    struct web_pods pods; /* who was asked about */
    uint64_t version;     /* of its view; counts; 0: there is none yet */
    struct web_parts parts;
    /* guarded by lock, which is taken last */
    pthread_mutex_t lock;
    struct web_client *clients[WEB_CLIENTS_MAX];
};

/* web_serve.c: the server's routes; their ctx is the struct web. */
enum { WEB_ROUTES = 2 };
extern const struct gs_http_route web_routes[WEB_ROUTES];

/* web_live.c: brings the view up to date; the watcher's lock is held. GS_ENOMEM; GS_EBUSY while the
 * lists are still being read. */
int web_refresh(struct web *web, struct gs_error *err);

/* Parts for a query, in web->parts; after web_refresh(), under the same lock. */
void web_render(struct web *web, const struct web_query *query);

/* A new stream for somebody who has seen the page of that data-sum. NULL: there are too many, or no
 * memory. */
struct gs_http_stream *web_open(struct web *web, const struct web_query *query, const char *seen);

/* web_pod.c: asks the API server about the query's pod, unless that was done just now. No lock is
 * held. */
void web_pod_ask(struct web *web, const struct web_query *query);

/* web_own.c: the page of a user who may see his own pods only. */
void web_own_page(struct web *web, const struct web_query *query, struct gs_http_response *res);

/* Tells every stream what changed; tick: and that it is alive. */
void web_push(struct web *web, bool tick);

/* web_live.c: a thread that asks what pods truly use while somebody looks; arg: the struct web.
 * Ends when web->stopping is set. */
void *web_follow(void *arg);

/* A thread that asks, while somebody looks, whether the API server still answers. */
void *web_pulse(void *arg);

/* Ends the streams, which the server has let go of. */
void web_close(struct web *web);

#endif
