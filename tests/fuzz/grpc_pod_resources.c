/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is decoded can be walked to its end, and holds no more than its bytes allow. */
#include "fuzz.h"
#include "gpushare/grpc/pod_resources.h"

static size_t walk_devices(const struct gs_podres_devices *devices)
{
    size_t parts = devices->id_count + strlen(devices->resource_name);
    for (size_t i = 0; i < devices->id_count; i++)
        parts += strlen(devices->ids[i]);
    return parts;
}

static size_t walk_pod(const struct gs_podres_pod *pod)
{
    size_t parts = pod->container_count + strlen(pod->ns) + strlen(pod->name);
    for (size_t c = 0; c < pod->container_count; c++) {
        const struct gs_podres_container *container = &pod->containers[c];
        parts += container->device_count + strlen(container->name);
        for (size_t d = 0; d < container->device_count; d++)
            parts += walk_devices(&container->devices[d]);
    }
    return parts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_arena arena = {0};
    struct gs_podres_list list = {.pod_count = SIZE_MAX};
    struct gs_error err = {0};
    if (gs_podres_decode(&arena, data, size, &list, &err) < 0) {
        FUZZ_CHECK(err.code != GS_OK && list.pod_count == SIZE_MAX);
    } else {
        size_t parts = list.pod_count;
        for (size_t p = 0; p < list.pod_count; p++)
            parts += walk_pod(&list.pods[p]);
        FUZZ_CHECK(parts <= size);
    }
    gs_arena_release(&arena);
    return 0;
}
