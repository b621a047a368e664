/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/clock.h"
#include "gpushare/codec/list.h"
#include "gpushare/kube/client.h"

/*
 * A list, page by page: the first of page_limit objects, later ones by weight. A page above
 * page_max_bytes is asked for in smaller ones, and one object above object_max_bytes is passed
 * over; a list whose continue token the server forgot begins again, a few times. One without an
 * end, of a million objects, is GS_ETOOBIG. Whoever lists asks here: the client's watches and
 * lists, and the CLI.
 */
struct gs_pages {
    /* As gs_kube_request(); with `ahead` of another thread, too. */
    int (*ask)(void *ask_ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err);
    void *ask_ctx;
    const char *path;
    const char *query; /* "fieldSelector=…", encoded, or NULL */
    uint32_t page_limit;
    size_t page_max_bytes, object_max_bytes;
    const struct gs_clock *clock; /* of deadline_ns; NULL: there is none */
    int64_t deadline_ns;          /* of all pages together */
    int64_t page_timeout_ns;      /* 0: the request's own */
    bool ahead;                   /* while one page is read, the next is on its way */
    /* Before the first item, and again when the server lost the list in its middle (410). NULL:
     * that is GS_EGONE then. */
    int (*begin)(void *ctx, struct gs_error *err);
    int (*item)(void *ctx, struct gs_scan *scan, struct gs_error *err); /* takes the item */
    /* An object is passed over, and why, with its name. NULL: GS_ETOOBIG ends the list. */
    void (*passed_over)(void *ctx, const struct gs_error *why);
    void *ctx;
};

/* ret_rv: the list's resourceVersion, or NULL. Errors as port/kube.h lists them, or the callbacks'
 * own.
 */
int gs_pages_read(const struct gs_pages *pages, char ret_rv[GS_RV_BYTES], struct gs_error *err);
