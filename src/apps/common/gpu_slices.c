/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu_slices.h"

#include <stdio.h>

enum { ANSWER_BYTES_MAX = 32 << 20 };

#define DRIVER "gpu.nvidia.com"

int gpu_slices_fetch(const struct gpu_slices_api *api, const char *node, struct gs_arena *arena,
                     struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err)
{
    static const char *const versions[] = {"v1", "v1beta2", "v1beta1"};
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(ANSWER_BYTES_MAX);
    char query[400], path[64];
    int status = 404;
    snprintf(query, sizeof(query), "fieldSelector=spec.driver%%3D" DRIVER "%s%.253s",
             node ? "%2Cspec.nodeName%3D" : "", node ? node : "");
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]) && status == 404; i++) {
        snprintf(path, sizeof(path), "/apis/resource.k8s.io/%s/resourceslices", versions[i]);
        const struct gs_kube_request request = {.method = "GET", .path = path, .query = query};
        if (api->ask(api->ctx, &request, &status, &answer, err) < 0)
            return -1;
    }
    *ret = NULL;
    *ret_count = 0;
    const char *body = answer.data ? answer.data : "";
    if (status == 404)
        return 0;
    if (status != 200)
        return gs_kube_fail_status(status, body, answer.len, err);
    return gs_codec_gpu_slices((struct gs_slice){body, answer.len}, DRIVER, arena, ret, ret_count,
                               err);
}
