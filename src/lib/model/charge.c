/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/charge.h"

#include "gpushare/base/num.h"

/*
 * The peak of a resource over a pod's two phases, as Kubernetes counts it
 * (k8s.io/component-helpers resource/helpers.go, PodRequests): init containers run one after the
 * other beside the sidecars that started before them; main containers run beside all sidecars. What
 * the pod itself asks for (spec.resources) takes the place of all that, for CPU and memory.
 */
enum resource { GPU_MEMORY, GPU_CORES, CPU, MEMORY };

static int64_t amount_of(const struct gs_container *container, enum resource resource)
{
    const int64_t amounts[] = {[GPU_MEMORY] = container->gpu_units,
                               [GPU_CORES] = container->cores_pct,
                               [CPU] = container->cpu_milli,
                               [MEMORY] = container->memory_bytes};
    return amounts[resource];
}

static int64_t peak(const struct gs_pod *pod, enum resource resource)
{
    int64_t sidecars = 0, init_peak = 0, main_sum = 0;
    for (uint32_t i = 0; i < pod->container_count; i++) {
        const struct gs_container *c = &pod->containers[i];
        int64_t units = amount_of(c, resource);
        if (c->kind == GS_CONTAINER_SIDECAR) {
            sidecars = gs_sat_add(sidecars, units);
        } else if (c->kind == GS_CONTAINER_INIT) {
            int64_t now = gs_sat_add(sidecars, units);
            init_peak = now > init_peak ? now : init_peak;
        } else {
            main_sum = gs_sat_add(main_sum, units);
        }
    }
    main_sum = gs_sat_add(main_sum, sidecars);
    return main_sum > init_peak ? main_sum : init_peak;
}

static bool divides(const struct gs_pod *pod, uint32_t gpus)
{
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].gpu_units % gpus)
            return false;
    }
    return true;
}

/* Over how many GPUs its owner asks to spread it. */
static enum gs_reason read_count(const struct gs_pod *pod, uint32_t *ret)
{
    if (pod->count_kind == GS_COUNT_BROKEN)
        return GS_REASON_BAD_COUNT;
    if (pod->count_kind != GS_COUNT_VALID)
        return GS_FITS;
    if (!divides(pod, pod->gpu_count))
        return GS_REASON_NOT_DIVISIBLE;
    *ret = pod->gpu_count;
    return GS_FITS;
}

uint32_t gs_pod_asked_gpus(const struct gs_pod *pod)
{
    uint32_t gpus = 1;
    read_count(pod, &gpus);
    return gpus;
}

/* What is promised of compute is promised of a GPU that the container has. */
static bool has_cores_alone(const struct gs_pod *pod)
{
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].cores_pct && !pod->containers[i].gpu_units)
            return true;
    }
    return false;
}

static enum gs_reason judge_cores(const struct gs_pod *pod, int64_t cores_pct, uint32_t gpu_count)
{
    if (has_cores_alone(pod))
        return GS_REASON_CORES_ALONE;
    if (gpu_count > 1)
        return GS_REASON_CORES_SPREAD;
    return cores_pct > GS_CORES_PCT ? GS_REASON_CORES_ABOVE : GS_FITS;
}

gs_gpu_mask gs_pod_recorded(const struct gs_pod *pod)
{
    const gs_gpu_mask gpus = pod->recorded == GS_RECORDED_VALID ? pod->recorded_gpus : 0;
    const bool can_be = gpus && !pod->uneven && divides(pod, gs_gpu_mask_count(gpus));
    return can_be && pod->node_name && pod->node_name[0] ? gpus : 0;
}

uint32_t gs_pod_total_units(const struct gs_pod *pod)
{
    const int64_t total = peak(pod, GPU_MEMORY);
    return pod->gpu_units_overflow || total > INT32_MAX ? INT32_MAX : (uint32_t)total;
}

static uint32_t cores_of(const struct gs_pod *pod)
{
    const int64_t cores_pct = peak(pod, GPU_CORES);
    return (uint32_t)(cores_pct < GS_CORES_PCT ? cores_pct : GS_CORES_PCT);
}

static struct gs_charge over(const struct gs_pod *pod, uint32_t gpus)
{
    return (struct gs_charge){.units = gs_units_each(gs_pod_total_units(pod), gpus),
                              .gpu_count = gpus,
                              .cores_pct = cores_of(pod)};
}

struct gs_charge gs_pod_charge_on(const struct gs_pod *pod, gs_gpu_mask gpus)
{
    return over(pod, gs_gpu_mask_count(gpus));
}

enum gs_reason gs_pod_charge(const struct gs_pod *pod, struct gs_charge *ret)
{
    *ret = (struct gs_charge){.units = 0, .gpu_count = 1};
    if (!gs_pod_wants_gpu(pod))
        return has_cores_alone(pod) ? GS_REASON_CORES_ALONE : GS_FITS;
    const int64_t total = peak(pod, GPU_MEMORY);
    const gs_gpu_mask recorded = gs_pod_recorded(pod);
    enum gs_reason result = GS_FITS;
    uint32_t gpus = recorded ? gs_gpu_mask_count(recorded) : 1;
    if (pod->gpu_units_overflow || total > INT32_MAX)
        result = GS_REASON_GPU_TOO_SMALL;
    else if (!recorded)
        result = read_count(pod, &gpus);
    *ret = over(pod, gpus);
    if (result == GS_FITS && ret->cores_pct)
        result = judge_cores(pod, peak(pod, GPU_CORES), gpus);
    return result;
}

int64_t gs_pod_cpu_milli(const struct gs_pod *pod)
{
    int64_t asked = pod->has_own_cpu ? pod->own_cpu_milli : peak(pod, CPU);
    return gs_sat_add(asked, pod->overhead_cpu_milli);
}

int64_t gs_pod_memory_bytes(const struct gs_pod *pod)
{
    return pod->has_own_memory ? pod->own_memory_bytes : peak(pod, MEMORY);
}
