/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu_slices.h"

#include <stdio.h>

#include "gpushare/base/clock.h"
#include "gpushare/codec/watch.h"

enum { ANSWER_BYTES_MAX = 32 << 20, QUERY_BYTES = 600, WATCH_S = 290 };

/* A little longer than the API server lets a watch be. */
#define WATCH_NS ((WATCH_S + 10) * GS_NS_PER_S)

#define DRIVER "gpu.nvidia.com"

static void select_slices(const char *node, const char *rest, char query[QUERY_BYTES])
{
    snprintf(query, QUERY_BYTES, "fieldSelector=spec.driver%%3D" DRIVER "%s%.253s%s",
             node ? "%2Cspec.nodeName%3D" : "", node ? node : "", rest);
}

int gpu_slices_fetch(const struct gpu_slices_api *api, const char *node, struct gs_arena *arena,
                     struct gs_sliced_gpu **ret, uint32_t *ret_count,
                     struct gpu_slices_place *ret_place, struct gs_error *err)
{
    static const char *const paths[] = {"/apis/resource.k8s.io/v1/resourceslices",
                                        "/apis/resource.k8s.io/v1beta2/resourceslices",
                                        "/apis/resource.k8s.io/v1beta1/resourceslices"};
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(ANSWER_BYTES_MAX);
    struct gpu_slices_place place = {.rv = ""};
    char query[QUERY_BYTES];
    int status = 404;
    if (ret_place)
        *ret_place = place;
    select_slices(node, "", query);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) && status == 404; i++) {
        place.path = paths[i];
        const struct gs_kube_request request = {
            .method = "GET", .path = place.path, .query = query};
        if (api->ask(api->ctx, &request, &status, &answer, err) < 0)
            return -1;
    }
    *ret = NULL;
    *ret_count = 0;
    const struct gs_slice body = {answer.data ? answer.data : "", answer.len};
    if (status == 404)
        return 0;
    if (status != 200)
        return gs_kube_fail_status(status, body.at, body.len, err);
    (void)gs_codec_object_rv(body, place.rv, NULL);
    if (ret_place)
        *ret_place = place;
    return gs_codec_gpu_slices(body, DRIVER, arena, ret, ret_count, err);
}

/* What has changed the next list says: the first bytes are enough. */
int gpu_slices_wait(const struct gpu_slices_api *api, const char *node,
                    const struct gpu_slices_place *place, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(ANSWER_BYTES_MAX);
    char query[QUERY_BYTES], rest[GS_RV_BYTES + 64];
    int status = 0;
    snprintf(rest, sizeof(rest), "&watch=true&resourceVersion=%s&timeoutSeconds=%d", place->rv,
             WATCH_S);
    select_slices(node, rest, query);
    const struct gs_kube_request request = {.method = "GET",
                                            .path = place->path,
                                            .query = query,
                                            .first_bytes = true,
                                            .timeout_ns = WATCH_NS};
    if (api->ask(api->ctx, &request, &status, &answer, err) < 0)
        return -1;
    return status == 200 || status == 410
               ? 0
               : gs_kube_fail_status(status, answer.data ? answer.data : "", answer.len, err);
}
