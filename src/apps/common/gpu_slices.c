/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu_slices.h"

#include <stdio.h>

#define DRIVER "gpu.nvidia.com"

int gpu_slices_next(struct list_watch *watch, const char *node, struct gs_arena *arena,
                    struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err)
{
    static const char *const paths[] = {"/apis/resource.k8s.io/v1/resourceslices",
                                        "/apis/resource.k8s.io/v1beta2/resourceslices",
                                        "/apis/resource.k8s.io/v1beta1/resourceslices", NULL};
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(LIST_WATCH_BYTES_MAX);
    struct gs_error why = {0};
    char select[400];
    snprintf(select, sizeof(select), "fieldSelector=spec.driver%%3D" DRIVER "%s%.253s",
             node ? "%2Cspec.nodeName%3D" : "", node ? node : "");
    watch->paths = paths;
    watch->select = select;
    *ret = NULL;
    *ret_count = 0;
    int result = list_watch_next(watch, &answer, &why);
    watch->select = NULL;
    if (result < 0)
        return why.code == GS_ENOENT ? 0 : gs_fail(err, why.code, "%s", why.msg);
    return gs_codec_gpu_slices((struct gs_slice){answer.data, answer.len}, DRIVER, arena, ret,
                               ret_count, err);
}
