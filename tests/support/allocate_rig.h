/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An allocator of node n1 with a GPU 0 of 16 units and a GPU 1 of 24, and calls whose device ids
 * all differ. Header only.
 */

#include "rows.h"

#include "device_plugin/allocate/allocator.h"

struct rig {
    struct gs_names names;
    struct gs_clock clock;
    int64_t now_ns;
    struct gs_allocator *alloc;
    int calls; /* makes ids that differ */
    uint64_t revision;
};

static inline int64_t rig_now(void *ctx)
{
    return ((struct rig *)ctx)->now_ns;
}

static inline void give_gpus(struct rig *rig, bool healthy, bool schedulable, gs_gpu_mask gone)
{
    const struct gs_gpu gpus[] = {
        {.idx = 0, .mem_units = 16, .numa = -1, .healthy = healthy, .schedulable = schedulable},
        {.idx = 1, .mem_units = 24, .numa = -1, .healthy = true, .schedulable = true},
    };
    assert_int_equal(gs_allocator_set_gpus(rig->alloc, gpus, 2, gone, NULL), 0);
}

static inline void rig_up(struct rig *rig)
{
    *rig = (struct rig){.now_ns = 1};
    assert_int_equal(gs_names_init(&rig->names, "aliyun.com", NULL), 0);
    rig->clock = (struct gs_clock){.monotonic_ns = rig_now, .ctx = rig};
    const struct gs_allocator_config config = {
        .names = &rig->names, .node = "n1", .clock = &rig->clock};
    rig->alloc = gs_allocator_new(&config);
    assert_non_null(rig->alloc);
    give_gpus(rig, true, true, 0);
}

struct given_pod {
    const char *name;  /* and UID, unless that is given */
    uint32_t units[3]; /* of its containers */
    int gpu;           /* recorded; -1: none */
    gs_gpu_mask gpus;  /* recorded, where they are several */
    bool overrides;
    bool sets_mps, deleting;
    uint64_t revision; /* 0: newer than all before */
    enum gs_pod_phase phase;
    const char *uid, *ns; /* NULL: ns */
    const char *node;     /* NULL: n1 */
    uint32_t inits;       /* of its containers, the first ones */
    uint32_t sidecars;    /* and those after them */
    uint32_t gpu_count;   /* 0: not given */
    uint32_t created_s;
    bool assigned;
    gs_gpu_mask allocation; /* the JSON's GPUs; 0: none */
    const char *static_uid;
    const char *replica_set; /* its controller, which has that UID, too */
    enum gs_qos qos;
    bool enforce_required;
    uint32_t cores_pct[3]; /* of its containers */
};

/* As an API server tells of it; into containers and revision, which it borrows. */
static inline struct gs_pod describe_pod(const struct given_pod *given, uint64_t number,
                                         struct gs_container containers[3], char revision[24])
{
    uint32_t count = 0;
    memset(containers, 0, 3 * sizeof(*containers));
    for (int i = 0; i < 3 && (given->units[i] || (i < 2 && given->units[i + 1])); i++)
        containers[count++] = (struct gs_container){
            .kind = (uint32_t)i < given->inits                     ? GS_CONTAINER_INIT
                    : (uint32_t)i < given->inits + given->sidecars ? GS_CONTAINER_SIDECAR
                                                                   : GS_CONTAINER_MAIN,
            .gpu_units = given->units[i],
            .cores_pct = (uint16_t)given->cores_pct[i]};
    snprintf(revision, 24, "%llu", (unsigned long long)number);
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    pod.sets_mps = given->sets_mps;
    pod.overrides = given->overrides ? "NVIDIA_VISIBLE_DEVICES" : NULL;
    pod.deleting = given->deleting;
    if (given->replica_set) {
        pod.owner_api = "apps/v1";
        pod.owner_kind = "ReplicaSet";
        pod.owner_name = pod.owner_uid = given->replica_set;
    }
    pod.uid = given->uid ? given->uid : given->name;
    pod.ns = given->ns ? given->ns : "ns";
    pod.name = given->name;
    pod.resource_version = revision;
    pod.node_name = given->node ? given->node : "n1";
    pod.phase = given->phase ? given->phase : GS_PHASE_PENDING;
    pod.containers = containers;
    pod.container_count = count;
    pod.recorded = given->gpu >= 0 ? GS_RECORDED_VALID : GS_RECORDED_NONE;
    pod.recorded_gpus = given->gpu >= 0 ? GS_GPU_BIT(given->gpu) : 0;
    if (given->gpus) {
        pod.recorded = GS_RECORDED_VALID;
        pod.recorded_gpus = given->gpus;
    }
    pod.assigned = given->assigned;
    pod.allocation = given->allocation ? GS_RECORDED_VALID : GS_RECORDED_NONE;
    pod.allocation_gpus = given->allocation;
    if (given->gpu < 0 && given->allocation) {
        pod.recorded = GS_RECORDED_VALID;
        pod.recorded_gpus = given->allocation;
        pod.idx_missing = true;
    }
    pod.count_kind = given->gpu_count ? GS_COUNT_VALID : GS_COUNT_ABSENT;
    pod.gpu_count = given->gpu_count;
    pod.created_s = given->created_s;
    pod.static_uid = given->static_uid ? given->static_uid : "";
    pod.qos = given->qos;
    pod.enforce_required = given->enforce_required;
    return pod;
}

static inline void give_pod(struct rig *rig, const struct given_pod *given)
{
    struct gs_container containers[3];
    char revision[24];
    struct gs_error err = {0};
    const struct gs_pod pod = describe_pod(
        given, given->revision ? given->revision : ++rig->revision, containers, revision);
    if (gs_allocator_pod(rig->alloc, &pod, &err) < 0)
        fail_msg("%s: %s", given->name, err.msg);
}

static inline void make_ids(int call, uint32_t units, char texts[][24], const char **ids)
{
    for (uint32_t i = 0; i < units; i++) {
        snprintf(texts[i], 24, "%d-%u", call, i);
        ids[i] = texts[i];
    }
}

/* The GPU's index, or -1; *ret_key names the call. */
static inline int allocate(struct rig *rig, uint32_t units, uint64_t *ret_key, struct gs_error *err)
{
    char texts[64][24];
    const char *ids[64];
    struct gs_allocate_answer answer;
    make_ids(rig->calls++, units, texts, ids);
    if (ret_key)
        *ret_key = gs_allocate_key(ids, units);
    const struct gs_allocate_request request = {
        .ids = ids, .id_count = units, .api = GS_API_ANSWERED};
    if (gs_allocator_allocate(rig->alloc, &request, &answer, err) != GS_ALLOCATE_DONE)
        return -1;
    return __builtin_ctzll(answer.gpus);
}
