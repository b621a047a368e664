/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/pod.h"

/*
 * The peak of a resource over a pod's two phases, as Kubernetes counts it
 * (k8s.io/component-helpers resource/helpers.go, PodRequests): init containers run one after the
 * other beside the sidecars that started before them; main containers run beside all sidecars. What
 * the pod itself asks for (spec.resources) takes the place of all that, for CPU and memory.
 */
static int64_t sat_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

typedef int64_t (*amount_fn)(const struct gs_container *container);

static int64_t peak(const struct gs_pod *pod, amount_fn amount)
{
    int64_t sidecars = 0, init_peak = 0, main_sum = 0;
    for (uint32_t i = 0; i < pod->container_count; i++) {
        const struct gs_container *c = &pod->containers[i];
        int64_t units = amount(c);
        if (c->kind == GS_CONTAINER_SIDECAR) {
            sidecars = sat_add(sidecars, units);
        } else if (c->kind == GS_CONTAINER_INIT) {
            int64_t now = sat_add(sidecars, units);
            init_peak = now > init_peak ? now : init_peak;
        } else {
            main_sum = sat_add(main_sum, units);
        }
    }
    main_sum = sat_add(main_sum, sidecars);
    return main_sum > init_peak ? main_sum : init_peak;
}

static int64_t amount_gpu(const struct gs_container *c)
{
    return c->gpu_units;
}

static int64_t amount_cores(const struct gs_container *c)
{
    return c->cores_pct;
}

static int64_t amount_cpu(const struct gs_container *c)
{
    return c->cpu_milli;
}

static int64_t amount_memory(const struct gs_container *c)
{
    return c->memory_bytes;
}

static enum gs_charge_result judge(const struct gs_pod *pod, int64_t total)
{
    if (pod->gpu_units_overflow || total > INT32_MAX)
        return GS_CHARGE_TOO_LARGE;
    if (pod->count_kind == GS_COUNT_BROKEN)
        return GS_CHARGE_BAD_COUNT;
    if (pod->count_kind != GS_COUNT_VALID)
        return GS_CHARGE_OK;
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].gpu_units % pod->gpu_count)
            return GS_CHARGE_NOT_DIVISIBLE;
    }
    return GS_CHARGE_OK;
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

static enum gs_charge_result judge_cores(const struct gs_pod *pod, int64_t cores_pct,
                                         uint32_t gpu_count)
{
    if (has_cores_alone(pod))
        return GS_CHARGE_CORES_ALONE;
    if (gpu_count > 1)
        return GS_CHARGE_CORES_SPREAD;
    return cores_pct > GS_CORES_PCT ? GS_CHARGE_CORES_ABOVE : GS_CHARGE_OK;
}

/* Over how many GPUs the memory lies: as many as the pod asks for. Once it is bound that is edited
 * easily, but the containers were given what the record says: the smaller number cannot be too
 * little. */
static uint32_t spread(const struct gs_pod *pod)
{
    bool given = pod->recorded == GS_RECORDED_VALID && pod->node_name[0];
    uint32_t recorded = given ? gs_gpu_mask_count(pod->recorded_gpus) : pod->gpu_count;
    return recorded && recorded < pod->gpu_count ? recorded : pod->gpu_count;
}

uint32_t gs_pod_total_units(const struct gs_pod *pod)
{
    const int64_t total = peak(pod, amount_gpu);
    return pod->gpu_units_overflow || total > INT32_MAX ? INT32_MAX : (uint32_t)total;
}

enum gs_charge_result gs_pod_charge(const struct gs_pod *pod, struct gs_charge *ret)
{
    *ret = (struct gs_charge){.units = 0, .gpu_count = 1};
    if (!gs_pod_wants_gpu(pod))
        return has_cores_alone(pod) ? GS_CHARGE_CORES_ALONE : GS_CHARGE_OK;
    int64_t total = peak(pod, amount_gpu);
    enum gs_charge_result result = judge(pod, total);
    ret->units = gs_pod_total_units(pod);
    if (result == GS_CHARGE_OK && pod->count_kind == GS_COUNT_VALID) {
        /* every request divides by gpu_count, so every sum of requests does */
        uint32_t gpus = spread(pod);
        ret->gpu_count = pod->gpu_count;
        ret->units = (ret->units + gpus - 1) / gpus;
    }
    int64_t cores_pct = peak(pod, amount_cores);
    ret->cores_pct = (uint32_t)(cores_pct < GS_CORES_PCT ? cores_pct : GS_CORES_PCT);
    if (result == GS_CHARGE_OK && cores_pct)
        result = judge_cores(pod, cores_pct, ret->gpu_count);
    return result;
}

uint32_t gs_container_units(const struct gs_pod *pod, const struct gs_container *container)
{
    struct gs_charge charge; /* over one GPU when the pod's gpu-count cannot be honoured */
    gs_pod_charge(pod, &charge);
    return container->gpu_units / charge.gpu_count;
}

int64_t gs_pod_cpu_milli(const struct gs_pod *pod)
{
    int64_t asked = pod->has_own_cpu ? pod->own_cpu_milli : peak(pod, amount_cpu);
    return sat_add(asked, pod->overhead_cpu_milli);
}

int64_t gs_pod_memory_bytes(const struct gs_pod *pod)
{
    return pod->has_own_memory ? pod->own_memory_bytes : peak(pod, amount_memory);
}
