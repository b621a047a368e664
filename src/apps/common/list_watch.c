/* SPDX-License-Identifier: Apache-2.0 */
#include "common/list_watch.h"

#include <stdio.h>

#include "gpushare/base/clock.h"
#include "gpushare/codec/watch.h"

enum { WATCH_S = 290, QUERY_BYTES = 600 + GS_RV_BYTES };

/* A little longer than the API server lets a watch be. */
#define WATCH_NS ((WATCH_S + 10) * GS_NS_PER_S)

int list_watch_ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
                   struct gs_buf *body, struct gs_error *err)
{
    return gs_kube_request(ctx, request, ret_status, body, err);
}

/* What has changed the next list says: the first bytes are enough. 410: that version is gone. */
static bool await_change(const struct list_watch *watch, struct gs_buf *body)
{
    char query[QUERY_BYTES];
    int status = 0;
    snprintf(query, sizeof(query), "%.511s%swatch=true&resourceVersion=%s&timeoutSeconds=%d",
             watch->select ? watch->select : "", watch->select ? "&" : "", watch->rv, WATCH_S);
    const struct gs_kube_request request = {.method = "GET",
                                            .path = watch->path,
                                            .query = query,
                                            .first_bytes = true,
                                            .timeout_ns = WATCH_NS};
    return watch->ask(watch->ctx, &request, &status, body, NULL) == 0 &&
           (status == 200 || status == 410);
}

static int list(struct list_watch *watch, struct gs_buf *body, struct gs_error *err)
{
    int status = 404;
    watch->path = NULL;
    watch->rv[0] = '\0';
    for (const char *const *path = watch->paths; *path && status == 404; path++) {
        const struct gs_kube_request request = {
            .method = "GET", .path = *path, .query = watch->select};
        if (watch->ask(watch->ctx, &request, &status, body, err) < 0)
            return -1;
        watch->path = status == 200 ? *path : NULL;
    }
    const struct gs_slice answer = {body->data ? body->data : "", body->len};
    if (!watch->path)
        return gs_kube_fail_status(status, answer.at, answer.len, err);
    if (!answer.len)
        return gs_fail(err, GS_EPROTO, "an empty answer");
    watch->mib = (uint32_t)(answer.len >> 20);
    (void)gs_codec_object_rv(answer, watch->rv, NULL);
    return 0;
}

int list_watch_next(struct list_watch *watch, struct gs_buf *body, struct gs_error *err)
{
    watch->deaf = watch->path && (!watch->rv[0] || !await_change(watch, body));
    int result = list(watch, body, err);
    watch->code = result < 0 ? err->code : GS_OK;
    return result;
}

int64_t list_watch_pause_ns(const struct list_watch *watch)
{
    if (watch->code == GS_EDENIED || watch->code == GS_ENOENT)
        return 60 * GS_NS_PER_S;
    return (watch->code != GS_OK || watch->deaf || !watch->rv[0] ? 10 : 1 + watch->mib) *
           GS_NS_PER_S;
}
