/* SPDX-License-Identifier: Apache-2.0 */
#include "common/list_watch.h"

#include <stdio.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/log.h"
#include "gpushare/kube/pages.h"

enum { WATCH_S = 290, QUERY_BYTES = 600 + GS_RV_BYTES };

enum { PAGE_LIMIT = 500, PAGE_BYTES_MAX = 8 << 20 };

/* A little longer than the API server lets a watch be. */
#define WATCH_NS ((WATCH_S + 10) * GS_NS_PER_S)

int list_watch_ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
                   struct gs_buf *body, struct gs_error *err)
{
    return gs_kube_request(ctx, request, ret_status, body, err);
}

/* What has changed the next list says: the first bytes are enough. 410: that version is gone. */
static bool await_change(const struct list_watch *watch)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(PAGE_BYTES_MAX);
    char query[QUERY_BYTES];
    int status = 0;
    snprintf(query, sizeof(query), "%.511s%swatch=true&resourceVersion=%s&timeoutSeconds=%d",
             watch->select ? watch->select : "", watch->select ? "&" : "", watch->rv, WATCH_S);
    const struct gs_kube_request request = {.method = "GET",
                                            .path = watch->path,
                                            .query = query,
                                            .first_bytes = true,
                                            .timeout_ns = WATCH_NS};
    return watch->ask(watch->ctx, &request, &status, &body, NULL) == 0 &&
           (status == 200 || status == 410);
}

static int ask_page(void *ctx, const struct gs_kube_request *request, int *ret_status,
                    struct gs_buf *body, struct gs_error *err)
{
    struct list_watch *watch = ctx;
    int result = watch->ask(watch->ctx, request, ret_status, body, err);
    watch->bytes += body->len;
    return result;
}

void list_watch_log_passed_over(void *ctx, const struct gs_error *why)
{
    gs_log(GS_LOG_WARN, "object from the API server ignored", GS_STR("error", why->msg));
}

static int list(struct list_watch *watch, struct gs_error *err)
{
    struct gs_error why = {.code = GS_ENOENT};
    watch->path = NULL;
    watch->rv[0] = '\0';
    for (const char *const *path = watch->paths; *path && why.code == GS_ENOENT; path++) {
        const struct gs_pages pages = {
            .ask = ask_page,
            .ask_ctx = watch,
            .path = *path,
            .query = watch->select,
            .page_limit = PAGE_LIMIT,
            .page_max_bytes = PAGE_BYTES_MAX,
            .object_max_bytes = GS_OBJECT_BYTES_MAX,
            .begin = watch->begin,
            .item = watch->item,
            .passed_over = list_watch_log_passed_over,
            .ctx = watch->items_ctx,
        };
        watch->bytes = 0;
        gs_error_clear(&why);
        if (gs_pages_read(&pages, watch->rv, &why) == 0)
            watch->path = *path;
    }
    return watch->path ? 0 : gs_fail(err, why.code, "%s", why.msg);
}

int list_watch_next(struct list_watch *watch, struct gs_error *err)
{
    watch->deaf = watch->path && (!watch->rv[0] || !await_change(watch));
    int result = list(watch, err);
    watch->code = result < 0 ? err->code : GS_OK;
    return result;
}

int64_t list_watch_pause_ns(const struct list_watch *watch)
{
    if (watch->code == GS_EDENIED || watch->code == GS_ENOENT)
        return 60 * GS_NS_PER_S;
    return (watch->code != GS_OK || watch->deaf || !watch->rv[0]
                ? 10
                : 1 + (int64_t)(watch->bytes >> 20)) *
           GS_NS_PER_S;
}
