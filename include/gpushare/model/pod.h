/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/model/eligible.h"
#include "gpushare/model/gpu.h"

/*
 * What this project knows of a Kubernetes Pod (core/v1 Pod). Plain data; strings are borrowed from
 * the pod's arena until gs_pod_reset() or gs_pod_release(); absent strings are "", never NULL.
 */
enum gs_pod_phase {
    GS_PHASE_UNKNOWN,
    GS_PHASE_PENDING,
    GS_PHASE_RUNNING,
    GS_PHASE_SUCCEEDED,
    GS_PHASE_FAILED,
};

enum __attribute__((packed)) gs_container_kind {
    GS_CONTAINER_INIT,    /* runs to its end before the next starts */
    GS_CONTAINER_SIDECAR, /* init container with restartPolicy Always: stays */
    GS_CONTAINER_MAIN,
};

/* 24 bytes, since a pod may have thousands. */
struct gs_container {
    int64_t cpu_milli;    /* requests.cpu (limits.cpu when there is no request) */
    int64_t memory_bytes; /* requests.memory, likewise */
    uint32_t gpu_units;   /* limits of <domain>/gpu-mem (requests when there is no limit) */
    uint16_t cores_pct;   /* likewise of <domain>/gpu-core.percentage; saturated */
    enum gs_container_kind kind;
};

/* status.qosClass; kubelets keep pods of each class in a folder of cgroups of their own. */
enum gs_qos { GS_QOS_GUARANTEED, GS_QOS_BURSTABLE, GS_QOS_BEST_EFFORT, GS_QOS_COUNT };

/* The GPU indices that annotation ALIYUN_COM_GPU_MEM_IDX names, or without it the allocation JSON.
 */
enum gs_recorded {
    GS_RECORDED_NONE,   /* neither annotation */
    GS_RECORDED_VALID,  /* a comma list of distinct indices below GS_GPUS_MAX, in `gpus` */
    GS_RECORDED_BROKEN, /* an annotation that is no such list */
};

/* `<domain>/gpu-count`: the number of GPUs the pod is spread over. */
enum gs_count_kind { GS_COUNT_ABSENT, GS_COUNT_VALID, GS_COUNT_BROKEN };

/* Of the UID by which the kubelet knows a pod, its NUL included: a static pod's is a hash of its
 * manifest, or what the manifest says; a longer one is ignored. */
enum { GS_POD_UID_BYTES = 64 };

/*
 * The comma lists of a pod's author, and how much of them is believed to be one: with more bytes or
 * entries the pod is refused. Decoders keep no more than one byte past the ceiling.
 */
enum { GS_LIST_BYTES_MAX = 1024, GS_LIST_ENTRIES_MAX = 32, GS_POD_LABELS_MAX = 64 };

/* `<domain>/gpu-placement` */
enum gs_placement {
    GS_PLACEMENT_DEFAULT, /* absent: the service's policy */
    GS_PLACEMENT_BINPACK,
    GS_PLACEMENT_SPREAD,
    GS_PLACEMENT_ROLLOUT,
    GS_PLACEMENT_BROKEN, /* an annotation with another word */
};

/* "binpack", …; "" for default and broken. */
const char *gs_placement_name(enum gs_placement placement);
bool gs_placement_parse(const char *text, size_t len, enum gs_placement *ret);

struct gs_pod {
    const char *uid;
    const char *ns;
    const char *name;
    const char *resource_version;
    const char *node_name;      /* spec.nodeName: bound there; "" while not bound */
    const char *nominated_node; /* status.nominatedNodeName */
    const char *scheduler_name; /* spec.schedulerName */
    const char *said;           /* message of condition PodScheduled, cut as lists are */
    /* The group with which it is scheduled (a gang): spec.schedulingGroup.podGroupName (1.36), or
     * the label of Coscheduling, scheduling.x-k8s.io/pod-group, formerly
     * pod-group.scheduling.sigs.k8s.io; "" without one. */
    const char *group;
    /* Of a bound pod with GPU memory (model/budget.h), the first GS_POD_LABELS_MAX; else, and in a
     * copy, NULL. */
    const struct gs_labels *labels;
    const char *owner_uid; /* the controller's UID, "" without one */
    /* "Deployment/web", "Job/train": who made it; a ReplicaSet's Deployment where the pod's label
     * pod-template-hash tells it. "" without a controller */
    const char *owner;
    /* The controller, as metadata.ownerReferences names it: "apps/v1", "ReplicaSet", "web-5d6c"; ""
     * without one. */
    const char *owner_api, *owner_kind, *owner_name;
    bool daemon; /* the controller is a DaemonSet: its pod belongs to its node */
    /* Of a static pod's mirror: what the kubelet calls it in place of a UID; else "". The API
     * server lets nobody add that annotation to a pod. */
    const char *static_uid;
    const char *term; /* annotation gpushare/leader-term, or "" */
    enum gs_qos qos;  /* BestEffort when it is not said */
    enum gs_pod_phase phase;
    bool deleting;     /* metadata.deletionTimestamp is set: frees nothing by itself */
    int32_t priority;  /* spec.priority, 0 when absent */
    int64_t created_s; /* metadata.creationTimestamp, Unix seconds, 0 when absent */

    struct gs_container *containers; /* initContainers in order, then containers in order */
    uint32_t container_count;
    bool own_shm;          /* some container mounts a volume of its own at /dev/shm */
    bool sets_mps;         /* some container's env sets a variable CUDA_MPS_* itself */
    const char *overrides; /* a vendor's visible_devices that one's env sets itself; NULL: none */
    bool names_gpu; /* some container names a resource of ours, if with 0: kube-scheduler asks about
                       such pods (managedResources) */
    bool gpu_units_overflow; /* a container asks for more than 2^31 units: fits nowhere */
    int64_t overhead_cpu_milli;
    /* spec.resources (1.34 or newer): what the pod asks for as a whole, in place of what its
     * containers say. CPU and memory only: the API server refuses anything else there. */
    bool has_own_cpu, has_own_memory;
    int64_t own_cpu_milli, own_memory_bytes;
    struct gs_pod_rules rules; /* what it says about nodes that it may use */
    bool has_preferences; /* about nodes or other pods, which kube-scheduler's scores are for */
    bool gated;           /* spec.schedulingGates: no scheduler looks at it yet */
    bool never_preempts;  /* spec.preemptionPolicy is Never */

    /* Annotations (names without the domain's prefix); values as they stand, untrusted. */
    enum gs_count_kind count_kind;
    uint32_t gpu_count; /* when count_kind is VALID, 1..GS_GPUS_MAX */
    enum gs_placement placement;
    enum gs_recorded recorded;
    gs_gpu_mask recorded_gpus;
    bool idx_missing;            /* recorded is the JSON's: the index annotation is not there */
    bool uneven;                 /* ... and divides its units unequally over them */
    enum gs_recorded allocation; /* the JSON by itself */
    gs_gpu_mask allocation_gpus;
    int64_t assume_time_ns; /* ..._ASSUME_TIME, 0 when absent or broken */
    bool assigned;          /* ..._ASSIGNED is "true" */
    bool has_assigned;      /* ..._ASSIGNED is there at all */
    const char *offer;      /* gpu-nominated: the node that an extender nominated it to */
    bool enforce_required;  /* gpu-enforce: starts only when its limit holds */
    const char *gpu_model;  /* comma list of model substrings allowed */
    const char *gpu_model_deny;
    const char *gpu_uuid;      /* comma list of UUIDs allowed */
    const char *gpu_uuid_deny; /* these five: cut after GS_LIST_BYTES_MAX + 1 bytes */

    struct gs_arena arena;
};

void gs_pod_reset(struct gs_pod *pod);
void gs_pod_release(struct gs_pod *pod);

/* Makes *to (zeroed or used before) a copy of *from that owns all its strings. -1: out of memory,
 * *to is then empty. */
int gs_pod_copy(struct gs_pod *to, const struct gs_pod *from);

/* 64-bit hash of namespace and name, for this process's own tables (base/index.h). */
uint64_t gs_pod_name_hash(const char *ns, const char *name);

/* Deleted from the API or in a terminal phase: its memory is free. deletionTimestamp alone is not
 * terminal. */
static inline bool gs_pod_terminal(const struct gs_pod *pod)
{
    return pod->phase == GS_PHASE_SUCCEEDED || pod->phase == GS_PHASE_FAILED;
}

/* resource_version as a number, to tell an older event from a newer one; 0 when it is none. */
uint64_t gs_pod_revision(const struct gs_pod *pod);

/* Some container asks for GPU memory. */
bool gs_pod_wants_gpu(const struct gs_pod *pod);
