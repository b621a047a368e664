/* SPDX-License-Identifier: Apache-2.0 */
/* A pod decodes to something whole, or is left empty with an error. */
#include "fuzz.h"
#include "gpushare/codec/pod.h"
#include "gpushare/model/charge.h"

static void check_whole(const struct gs_pod *pod)
{
    FUZZ_CHECK(pod->uid && pod->ns && pod->name && pod->resource_version && pod->node_name);
    FUZZ_CHECK(pod->nominated_node && pod->owner_uid && pod->owner && pod->gpu_model);
    FUZZ_CHECK(pod->gpu_model_deny && pod->gpu_uuid && pod->gpu_uuid_deny);
    FUZZ_CHECK((pod->count_kind == GS_COUNT_VALID) == (pod->gpu_count != 0));
    FUZZ_CHECK(pod->gpu_count <= GS_GPUS_MAX);
    FUZZ_CHECK((pod->recorded == GS_RECORDED_VALID) == (pod->recorded_gpus != 0));
    FUZZ_CHECK(pod->assume_time_ns >= 0);
    enum gs_container_kind highest = GS_CONTAINER_INIT;
    for (uint32_t i = 0; i < pod->container_count; i++) {
        const struct gs_container *container = &pod->containers[i];
        FUZZ_CHECK(container->cpu_milli >= 0 && container->memory_bytes >= 0);
        FUZZ_CHECK(highest != GS_CONTAINER_MAIN || container->kind == GS_CONTAINER_MAIN);
        highest = container->kind;
    }
}

FUZZ_TEXT(text)
{
    struct gs_names names;
    struct gs_pod pod = {0};
    struct gs_error err = {0};
    FUZZ_CHECK(gs_names_init(&names, "aliyun.com", NULL) == 0);
    int result = gs_codec_pod(&names, text, &pod, &err);
    FUZZ_CHECK((result == 0) == (err.code == GS_OK));
    check_whole(&pod);
    FUZZ_CHECK(result == 0 || (pod.container_count == 0 && !pod.uid[0] && !pod.has_assigned));
    struct gs_charge charge;
    gs_pod_charge(&pod, &charge);
    const uint64_t all = (uint64_t)charge.units * charge.gpu_count;
    const uint32_t total = gs_pod_total_units(&pod);
    FUZZ_CHECK(charge.gpu_count && all >= total && all < (uint64_t)total + charge.gpu_count);
    const gs_gpu_mask recorded = gs_pod_recorded(&pod);
    FUZZ_CHECK(!recorded || (recorded == pod.recorded_gpus && pod.node_name[0]));
    FUZZ_CHECK(!recorded || !charge.units || charge.gpu_count == gs_gpu_mask_count(recorded));
    gs_pod_release(&pod);
}
