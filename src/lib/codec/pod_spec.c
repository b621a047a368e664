/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/pod.h"
#include "gpushare/model/vendor.h"

#include "gpushare/base/num.h"
#include "gpushare/model/vendor.h"
#include "pod_reader.h"

/* A container's limits or requests; -1: absent. */
struct amounts {
    int64_t gpu_units;
    int64_t cores_pct;
    int64_t cpu_milli;
    int64_t memory_bytes;
};

static const struct gs_member amount_members[] = {
    GS_MEMBER_AS(struct amounts, "cpu", cpu_milli, GS_READ_MILLI),
    GS_MEMBER_AS(struct amounts, "memory", memory_bytes, GS_READ_VALUE),
    GS_NAMED(struct amounts, gpu_mem, gpu_units),
    GS_NAMED(struct amounts, gpu_cores, cores_pct),
    {0},
};

/* A container while it is being read. */
struct draft {
    struct gs_container container;
    struct amounts limits, requests;
    struct gs_scan_text restart;
    struct gs_scan_text env, mount; /* of the entry of env or volumeMounts that is being read */
};

static bool names_gpu(const struct amounts *side)
{
    return side->gpu_units >= 0 || side->cores_pct >= 0;
}

static int64_t first_said(int64_t a, int64_t b)
{
    int64_t amount = a >= 0 ? a : b;
    return amount >= 0 ? amount : 0;
}

static uint32_t saturate(int64_t amount, uint32_t most)
{
    return amount < most ? (uint32_t)amount : most;
}

static void apply_amounts(struct gs_pod *pod, struct draft *draft)
{
    const struct amounts *limits = &draft->limits, *requests = &draft->requests;
    struct gs_container *container = &draft->container;
    pod->names_gpu |= names_gpu(limits) || names_gpu(requests);
    container->cpu_milli = first_said(requests->cpu_milli, limits->cpu_milli);
    container->memory_bytes = first_said(requests->memory_bytes, limits->memory_bytes);
    const int64_t units = first_said(limits->gpu_units, requests->gpu_units);
    pod->gpu_units_overflow |= units > INT32_MAX;
    container->gpu_units = saturate(units, INT32_MAX);
    container->cores_pct =
        (uint16_t)saturate(first_said(limits->cores_pct, requests->cores_pct), UINT16_MAX);
}

static bool is_of_mps(struct gs_scan_text name)
{
    char word[64];
    return gs_scan_text_copy(name, word, sizeof(word)) &&
           strncmp(word, "CUDA_MPS_", strlen("CUDA_MPS_")) == 0;
}

static const struct gs_member env_members[] = {GS_MEMBER(struct draft, "name", env), {0}};

static void read_env(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    struct gs_pod *pod = &((struct gs_pod_reader *)reader)->pod;
    draft->env = (struct gs_scan_text){0};
    gs_read_entry(reader, "[]", env_members, draft);
    for (const struct gs_vendor *vendor = gs_vendors; vendor->name; vendor++)
        if (gs_scan_text_is_name(draft->env, vendor->visible_devices))
            pod->overrides = vendor->visible_devices;
    pod->sets_mps |= is_of_mps(draft->env);
}

static const struct gs_member mount_members[] = {GS_MEMBER(struct draft, "mountPath", mount), {0}};

static void read_mount(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    draft->mount = (struct gs_scan_text){0};
    gs_read_entry(reader, "[]", mount_members, draft);
    ((struct gs_pod_reader *)reader)->pod.own_shm |=
        gs_scan_text_is(draft->mount, "/dev/shm") || gs_scan_text_is(draft->mount, "/dev/shm/");
}

static const struct gs_member container_members[] = {
    GS_OBJECT("resources",
              GS_MEMBERS(GS_OBJECT_AT(struct draft, "limits", limits, amount_members),
                         GS_OBJECT_AT(struct draft, "requests", requests, amount_members))),
    GS_EACH("env", read_env),
    GS_EACH("volumeMounts", read_mount),
    GS_MEMBER(struct draft, "restartPolicy", restart),
    {0},
};

static void read_container(struct gs_pod_reader *pr, struct gs_container *container)
{
    struct draft draft = {.container = *container, {-1, -1, -1, -1}, {-1, -1, -1, -1}};
    gs_read_entry(&pr->reader, "[]", container_members, &draft);
    apply_amounts(&pr->pod, &draft);
    *container = draft.container;
    if (container->kind == GS_CONTAINER_INIT && gs_scan_text_is(draft.restart, "Always"))
        container->kind = GS_CONTAINER_SIDECAR;
}

/* Adds a container above the limit to the last one that is kept, so that the pod is charged at
 * least its peak. */
static void read_into_last(struct gs_pod_reader *pr, enum gs_container_kind kind,
                           struct gs_container *last)
{
    struct gs_container more = {.kind = kind};
    read_container(pr, &more);
    const int64_t units = (int64_t)last->gpu_units + more.gpu_units;
    pr->pod.gpu_units_overflow |= units > INT32_MAX;
    last->gpu_units = saturate(units, INT32_MAX);
    last->cores_pct = (uint16_t)saturate(last->cores_pct + more.cores_pct, UINT16_MAX);
    last->cpu_milli = gs_sat_add(last->cpu_milli, more.cpu_milli);
    last->memory_bytes = gs_sat_add(last->memory_bytes, more.memory_bytes);
    if (more.kind == GS_CONTAINER_SIDECAR) /* it runs beside the main containers */
        last->kind = GS_CONTAINER_SIDECAR;
}

static void read_container_of(struct gs_pod_reader *pr, enum gs_container_kind kind,
                              struct gs_container_list *list)
{
    if (list->count == GS_POD_CONTAINERS_MAX) {
        read_into_last(pr, kind, &list->items[list->count - 1]);
        return;
    }
    struct gs_container *container = gs_read_append(&pr->reader, &list->items, &list->count,
                                                    sizeof(*container), GS_POD_CONTAINERS_MAX);
    if (!container)
        return;
    container->kind = kind;
    read_container(pr, container);
}

static void read_main_container(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    read_container_of(pr, GS_CONTAINER_MAIN, &pr->main);
}

static void read_init_container(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    read_container_of(pr, GS_CONTAINER_INIT, &pr->init);
}

static void read_gate(struct gs_reader *reader, void *to)
{
    gs_scan_skip(&reader->scan);
    ((struct gs_pod_reader *)to)->pod.gated = true;
}

/* The API server defaults an absent name. One that is still empty belongs to no scheduler. */
static void read_scheduler(struct gs_reader *reader, void *to)
{
    const char **name = &((struct gs_pod_reader *)to)->pod.scheduler_name;
    if (gs_read_name(reader, name) && !(*name)[0])
        *name = "(none)";
}

#define AMOUNT(key, field, kind) GS_MEMBER_AS(struct gs_pod_reader, key, field, kind)

const struct gs_member gs_pod_spec_members[] = {
    GS_EACH_IN(struct gs_pod_reader, "containers", main.count, read_main_container),
    GS_EACH_IN(struct gs_pod_reader, "initContainers", init.count, read_init_container),
    GS_POD_MEMBER("nodeName", pod.node_name),
    GS_CALL("schedulerName", read_scheduler),
    GS_OBJECT("schedulingGroup", GS_MEMBERS(GS_POD_MEMBER("podGroupName", pod.group))),
    GS_POD_MEMBER("priority", pod.priority),
    GS_OBJECT("overhead", GS_MEMBERS(AMOUNT("cpu", pod.overhead_cpu_milli, GS_READ_MILLI))),
    GS_OBJECT("affinity", gs_pod_affinity_members),
    /* Limits need no reading: the API server copies them to requests. */
    GS_OBJECT("resources",
              GS_MEMBERS(GS_OBJECT("requests",
                                   GS_MEMBERS(AMOUNT("cpu", own_cpu_milli, GS_READ_MILLI),
                                              AMOUNT("memory", own_memory_bytes, GS_READ_VALUE))))),
    GS_CALL("nodeSelector", gs_read_pod_node_selector),
    GS_EACH_IN(struct gs_pod_reader, "tolerations", pod.rules.toleration_count,
               gs_read_pod_toleration),
    GS_EACH("schedulingGates", read_gate),
    GS_EACH("topologySpreadConstraints", gs_read_pod_spread),
    GS_POD_MEMBER("preemptionPolicy", preemption),
    {0},
};

int gs_pod_reader_join(struct gs_pod_reader *pr)
{
    struct gs_pod *pod = &pr->pod;
    pod->has_own_cpu = pr->own_cpu_milli >= 0;
    pod->own_cpu_milli = first_said(pr->own_cpu_milli, 0);
    pod->has_own_memory = pr->own_memory_bytes >= 0;
    pod->own_memory_bytes = first_said(pr->own_memory_bytes, 0);
    struct gs_container *all = pr->main.items;
    if (pr->init.count) {
        all = gs_arena_extend(&pod->arena, pr->init.items, pr->init.count, pr->main.count,
                              sizeof(*all));
        if (!all)
            return -1;
        if (pr->main.count)
            memcpy(all + pr->init.count, pr->main.items, pr->main.count * sizeof(*all));
    }
    pod->containers = all;
    pod->container_count = pr->init.count + pr->main.count;
    return 0;
}
