/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/codec/list.h"
#include "gpushare/kube/client.h"

/*
 * Objects of which there are few: all are listed, page by page, and listed again once a watch says
 * that one has changed. Blocks, in a thread of its caller's.
 *
 *   static const char *const paths[] = {"/apis/policy/v1/poddisruptionbudgets", NULL};
 *   struct list_watch watch = {
 *       .ask = list_watch_ask, .ctx = client, .paths = paths, .begin = …, .item = …};
 *   for (int64_t ns = 0; !pause_for(ns); ns = list_watch_pause_ns(&watch))
 *       if (list_watch_next(&watch, &err) == 0) ...
 */
struct list_watch {
    /* As gs_kube_request(). */
    int (*ask)(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err);
    void *ctx;
    const char *const
        *paths;         /* of one kind in several versions; the first that is known is asked */
    const char *select; /* "fieldSelector=…", encoded; NULL: all */
    /* As those of gs_pages (kube/pages.h): a list begins, perhaps anew; one of its items. */
    int (*begin)(void *items_ctx, struct gs_error *err);
    int (*item)(void *items_ctx, struct gs_scan *scan, struct gs_error *err);
    void *items_ctx;
    /* its own, zeroed at first: */
    const char *path;     /* of the last list; NULL: there is none */
    char rv[GS_RV_BYTES]; /* "": it did not say */
    bool deaf;            /* it could not be watched */
    enum gs_code code;    /* what became of the last list */
    uint64_t bytes;       /* its size */
};

/* gs_kube_request(); ctx: the client. */
int list_watch_ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
                   struct gs_buf *body, struct gs_error *err);

/* A warning, as passed_over of gs_pages and of the client. */
void list_watch_log_passed_over(void *ctx, const struct gs_error *why);

/* Waits, if there is a last list, until something may have changed since, or minutes went by; then
 * lists. GS_ENOENT: the API server has no such kind. Other errors as the port's, and item's. */
int list_watch_next(struct list_watch *watch, struct gs_error *err);

/* Until the next: a second, as changes come in bursts, and one for each MiB; ten where list or
 * watch failed; a minute where there is no such kind, or no right to list it. */
int64_t list_watch_pause_ns(const struct list_watch *watch);
