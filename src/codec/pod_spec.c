/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/pod.h"

#include "gpushare/base/num.h"
#include "pod_reader.h"

/* One side of a container's resources, -1 where it says nothing. */
struct amounts {
    int64_t gpu_units;
    int64_t cores_pct;
    int64_t cpu_milli;
    int64_t memory_bytes;
};

static void read_amounts(struct gs_pod_reader *pr, const char *what, struct amounts *ret)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, what))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "cpu"))
            gs_read_milli(reader, "cpu of a container", &ret->cpu_milli);
        else if (gs_scan_text_is(key, "memory"))
            gs_read_value(reader, "memory of a container", &ret->memory_bytes);
        else if (gs_scan_text_is_name(key, pr->names->gpu_mem))
            gs_read_whole(reader, "GPU memory of a container", &ret->gpu_units);
        else if (gs_scan_text_is_name(key, pr->names->gpu_cores))
            gs_read_whole(reader, "GPU compute of a container", &ret->cores_pct);
        else
            gs_scan_skip(&reader->scan);
    }
}

static bool names_gpu(const struct amounts *side)
{
    return side->gpu_units >= 0 || side->cores_pct >= 0;
}

static int64_t first_said(int64_t a, int64_t b)
{
    int64_t amount = a >= 0 ? a : b;
    return amount >= 0 ? amount : 0;
}

static void read_resources(struct gs_pod_reader *pr, struct gs_container *container)
{
    struct gs_reader *reader = &pr->reader;
    struct amounts limits = {-1, -1, -1, -1}, requests = {-1, -1, -1, -1};
    struct gs_scan_text key;
    if (!gs_read_object(reader, "resources of a container"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "limits"))
            read_amounts(pr, "limits of a container", &limits);
        else if (gs_scan_text_is(key, "requests"))
            read_amounts(pr, "requests of a container", &requests);
        else
            gs_scan_skip(&reader->scan);
    }
    pr->pod->names_gpu |= names_gpu(&limits) || names_gpu(&requests);
    container->cpu_milli = first_said(requests.cpu_milli, limits.cpu_milli);
    container->memory_bytes = first_said(requests.memory_bytes, limits.memory_bytes);
    int64_t units = first_said(limits.gpu_units, requests.gpu_units);
    if (units > INT32_MAX) {
        pr->pod->gpu_units_overflow = true;
        units = INT32_MAX;
    }
    container->gpu_units = (uint32_t)units;
    int64_t cores_pct = first_said(limits.cores_pct, requests.cores_pct);
    container->cores_pct = (uint32_t)(cores_pct < INT32_MAX ? cores_pct : INT32_MAX);
}

static bool is_of_mps(struct gs_scan_text name)
{
    char word[sizeof("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT") + 32];
    return gs_scan_text_copy(name, word, sizeof(word)) &&
           strncmp(word, "CUDA_MPS_", strlen("CUDA_MPS_")) == 0;
}

static void read_env(struct gs_pod_reader *pr, struct gs_container *container)
{
    struct gs_reader *reader = &pr->reader;
    if (!gs_read_array(reader, "env of a container"))
        return;
    while (gs_scan_element(&reader->scan)) {
        struct gs_scan_text name;
        gs_read_text_of(reader, "env entry of a container", GS_SLICE("name"),
                        "env name of a container", &name);
        container->overrides_visible_devices |= gs_scan_text_is(name, "NVIDIA_VISIBLE_DEVICES");
        pr->pod->sets_mps |= is_of_mps(name);
    }
}

static void read_mounts(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    if (!gs_read_array(reader, "volumeMounts of a container"))
        return;
    while (gs_scan_element(&reader->scan)) {
        struct gs_scan_text path;
        gs_read_text_of(reader, "volumeMounts entry of a container", GS_SLICE("mountPath"),
                        "mountPath of a container", &path);
        pr->pod->own_shm |= gs_scan_text_is(path, "/dev/shm") || gs_scan_text_is(path, "/dev/shm/");
    }
}

static void read_container(struct gs_pod_reader *pr, struct gs_container *container)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key, restart = {0};
    gs_scan_object(&reader->scan, "container");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "name"))
            gs_read_string(reader, "name of a container", &container->name);
        else if (gs_scan_text_is(key, "resources"))
            read_resources(pr, container);
        else if (gs_scan_text_is(key, "env"))
            read_env(pr, container);
        else if (gs_scan_text_is(key, "volumeMounts"))
            read_mounts(pr);
        else if (gs_scan_text_is(key, "restartPolicy"))
            gs_read_text(reader, "restartPolicy of a container", &restart);
        else
            gs_scan_skip(&reader->scan);
    }
    if (container->kind == GS_CONTAINER_INIT && gs_scan_text_is(restart, "Always"))
        container->kind = GS_CONTAINER_SIDECAR;
}

/* One more than there is room for. Its pod may run all the same: the last one that is kept asks for
 * what it asks for too, so that the pod is charged no less than its peak. */
static void read_into_last(struct gs_pod_reader *pr, enum gs_container_kind kind,
                           struct gs_container *last)
{
    struct gs_container more = {.name = "", .kind = kind};
    read_container(pr, &more);
    const int64_t units = (int64_t)last->gpu_units + more.gpu_units;
    pr->pod->gpu_units_overflow |= units > INT32_MAX;
    last->gpu_units = (uint32_t)(units < INT32_MAX ? units : INT32_MAX);
    const int64_t cores_pct = (int64_t)last->cores_pct + more.cores_pct;
    last->cores_pct = (uint32_t)(cores_pct < INT32_MAX ? cores_pct : INT32_MAX);
    last->cpu_milli = gs_sat_add(last->cpu_milli, more.cpu_milli);
    last->memory_bytes = gs_sat_add(last->memory_bytes, more.memory_bytes);
    last->overrides_visible_devices |= more.overrides_visible_devices;
    if (more.kind == GS_CONTAINER_SIDECAR) /* stays beside the main containers */
        last->kind = GS_CONTAINER_SIDECAR;
}

static void read_containers(struct gs_pod_reader *pr, const char *what, enum gs_container_kind kind,
                            struct gs_container_list *list)
{
    struct gs_reader *reader = &pr->reader;
    if (!gs_read_array(reader, what))
        return;
    *list = (struct gs_container_list){0};
    while (gs_scan_element(&reader->scan)) {
        if (list->count == GS_POD_CONTAINERS_MAX) {
            read_into_last(pr, kind, &list->items[list->count - 1]);
            continue;
        }
        struct gs_container *items = gs_read_grow(reader, list->items, list->count, sizeof(*items),
                                                  what, GS_POD_CONTAINERS_MAX);
        if (!items)
            return;
        list->items = items;
        struct gs_container *container = &items[list->count];
        *container = (struct gs_container){.name = "", .kind = kind, .main_index = list->count};
        read_container(pr, container);
        list->count++;
    }
}

static void read_overhead(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.overhead"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "cpu"))
            gs_read_milli(reader, "spec.overhead.cpu", &pr->pod->overhead_cpu_milli);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_own_requests(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    int64_t cpu_milli = -1, memory_bytes = -1;
    if (!gs_read_object(reader, "spec.resources.requests"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "cpu"))
            gs_read_milli(reader, "cpu of spec.resources", &cpu_milli);
        else if (gs_scan_text_is(key, "memory"))
            gs_read_value(reader, "memory of spec.resources", &memory_bytes);
        else
            gs_scan_skip(&reader->scan);
    }
    struct gs_pod *pod = pr->pod;
    pod->has_own_cpu = cpu_milli >= 0;
    pod->own_cpu_milli = first_said(cpu_milli, 0);
    pod->has_own_memory = memory_bytes >= 0;
    pod->own_memory_bytes = first_said(memory_bytes, 0);
}

/* Limits alone say nothing: the API server makes requests of them. */
static void read_own_resources(struct gs_pod_reader *pr)
{
    struct gs_scan *scan = &pr->reader.scan;
    struct gs_scan_text key;
    if (!gs_read_object(&pr->reader, "spec.resources"))
        return;
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "requests"))
            read_own_requests(pr);
        else
            gs_scan_skip(scan);
    }
}

static void read_gates(struct gs_pod_reader *pr)
{
    if (!gs_read_array(&pr->reader, "spec.schedulingGates"))
        return;
    while (gs_scan_element(&pr->reader.scan)) {
        gs_scan_skip(&pr->reader.scan);
        pr->pod->gated = true;
    }
}

static void read_group(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.schedulingGroup"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "podGroupName"))
            gs_read_string(reader, "spec.schedulingGroup.podGroupName", &pr->pod->group);
        else
            gs_scan_skip(&reader->scan);
    }
}

void gs_read_pod_spec(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key, policy;
    if (!gs_read_object(reader, "spec"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "containers"))
            read_containers(pr, "spec.containers", GS_CONTAINER_MAIN, &pr->main);
        else if (gs_scan_text_is(key, "initContainers"))
            read_containers(pr, "spec.initContainers", GS_CONTAINER_INIT, &pr->init);
        else if (gs_scan_text_is(key, "nodeName"))
            gs_read_string(reader, "spec.nodeName", &pr->pod->node_name);
        else if (gs_scan_text_is(key, "schedulerName"))
            gs_read_string(reader, "spec.schedulerName", &pr->pod->scheduler_name);
        else if (gs_scan_text_is(key, "schedulingGroup"))
            read_group(pr);
        else if (gs_scan_text_is(key, "priority"))
            gs_read_i32(reader, "spec.priority", &pr->pod->priority);
        else if (gs_scan_text_is(key, "overhead"))
            read_overhead(pr);
        else if (gs_scan_text_is(key, "affinity"))
            gs_read_pod_affinity(pr);
        else if (gs_scan_text_is(key, "resources"))
            read_own_resources(pr);
        else if (gs_scan_text_is(key, "nodeSelector"))
            gs_read_pod_node_selector(pr);
        else if (gs_scan_text_is(key, "tolerations"))
            gs_read_pod_tolerations(pr);
        else if (gs_scan_text_is(key, "schedulingGates"))
            read_gates(pr);
        else if (gs_scan_text_is(key, "preemptionPolicy"))
            pr->pod->never_preempts = gs_read_text(reader, "spec.preemptionPolicy", &policy) &&
                                      gs_scan_text_is(policy, "Never");
        else
            gs_scan_skip(&reader->scan);
    }
}

int gs_pod_reader_join(struct gs_pod_reader *pr)
{
    struct gs_pod *pod = pr->pod;
    uint32_t count = pr->init.count + pr->main.count;
    struct gs_container *all = pr->main.items;
    if (pr->init.count) {
        all = gs_arena_calloc(&pod->arena, count, sizeof(*all));
        if (!all)
            return -1;
        memcpy(all, pr->init.items, pr->init.count * sizeof(*all));
        if (pr->main.count)
            memcpy(all + pr->init.count, pr->main.items, pr->main.count * sizeof(*all));
    }
    pod->containers = count ? all : NULL;
    pod->container_count = count;
    return 0;
}
