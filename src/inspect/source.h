/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/kube/pages.h"
#include "gpushare/port/kube.h"

/*
 * A cluster to ask: an API server, a file, or one in memory for tests. Fill it with app.connect(),
 * close it with source_close(). One thread, but for kube.ops->watch.
 */
struct source {
    void *ctx;
    /* As gs_kube_request(). */
    int (*ask)(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err);
    void (*close)(void *ctx);
    struct gs_kube kube; /* for --watch; ops is NULL where nothing ever changes */
    char server[256];    /* for messages */
    char ns[256];        /* namespace of the context, or the one asked for */
};

/* A page of this many pods is a few megabytes, and a tenth of a second for the API server. */
enum { SOURCE_BODY_MAX = 64 << 20, PAGE_LIMIT = 500 };

void source_close(struct source *source);

/* The path of a namespace's pods, or, with a name, of one. */
void source_pods(struct gs_buf *out, const char *ns, const char *name);

/* 0 with the body of a 2xx, else -1 with what the status means (port/kube.h). */
int source_ask(const struct source *source, const struct gs_kube_request *request,
               struct gs_buf *body, struct gs_error *err);

int source_get(const struct source *source, const char *path, const char *query,
               struct gs_buf *body, struct gs_error *err);

/* A list, page by page (kube/pages.h, whose ask, sizes and limits are filled in). */
int source_list(const struct source *source, struct gs_pages pages, struct gs_error *err);
