/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The device plugin in this process, all of it but main.c, settings.c and the GPUs' thread, against
 * an API server, a kubelet, a tree of cgroups, GPUs and a clock that are variables. The edges are
 * replaced at link time (--wrap, CMakeLists.txt); the two workers do their jobs at once.
 *
 *   node_make(&node);                    two cards of 16 GiB, GPU-a (0) and GPU-b (1); all answers
 *   node_start(&node);                   the plugin; set node.settings before
 *   node_admit(&node, node_bind(&node, "p", 8, GS_GPU_BIT(0), 0));
 *   node_kill(&node);  node_start(&node);
 *   node_run(&node, 15);                 seconds
 */
#include "cgroup_tree.h"
#include "device_plugin/plugin.h"
#include "fake_limits.h"

#define NODE_SOON_NS (100 * GS_NS_PER_MS)
enum { NODE_PODS = 32, NODE_IDS = 64, NODE_EVENT_TEXTS = 64 };

struct node_pod {
    char name[40];         /* and UID: the API server's have 36 bytes, others are static pods' */
    uint32_t units, count; /* count: gpu-count, 0: none */
    uint32_t beside;       /* of a second container, which the kubelet does not begin */
    bool required;         /* it is to be limited */
    bool owned;            /* by a ReplicaSet */
    gs_gpu_mask record;
    bool bound; /* the API has it */
    bool late;  /* its cgroup is not made with it */
    bool running;
    bool admitted; /* the kubelet has it */
    char ids[NODE_IDS][40];
    const char *asked[NODE_IDS]; /* the same, for its call */
    struct gs_dp_ids wanted;
    char env[512]; /* KEY=VALUE lines of the answer */
    bool answered; /* its last call */
    bool failed;   /* Allocate failed; why */
    char why[256];
};

struct node {
    char dir[64];
    struct settings settings;
    struct cgroup_tree tree;
    int64_t now_ns;
    struct gs_clock clock;
    /* GPUs, as the driver counts them */
    struct gs_gpu_set gpus;
    /* the API server */
    bool node_away, pods_away, slices_away;
    enum gs_code node_error; /* what reading the node comes to */
    enum gs_code
        refused;         /* what patches of pods and Events come to, DENIED: lists of slices, too */
    const char *kubelet; /* its version */
    bool unwatched;      /* pods are listed, and their watch brings nothing */
    char inventory[8192], moved[2048], slices[1024];
    char label[32];            /* gpu-enforced */
    const char *cordon;        /* gpu-cordon; NULL: none */
    const char *others;        /* capacity of NVIDIA's plugin, as ,"NAME":"N"; NULL: none */
    bool mps;                  /* the label */
    struct fake_limits driver; /* NVIDIA's, which limits by its own account */
    bool upgrading;            /* the label: it is replaced */
    uint32_t counts[2];        /* capacity: GPUs, cores */
    char events[NODE_EVENT_TEXTS][600];
    uint32_t event_count;
    int node_tries, node_patches, pod_patches, event_tries, slice_requests;
    /* the kubelet */
    bool linked;
    bool lists_fail; /* no list of devices can be made for it */
    char devices[40000][24];
    size_t device_count;
    struct node_pod pods[NODE_PODS];
    uint32_t pod_count;
    uint32_t next_id;
    bool lazy;  /* it writes its checkpoint down with the next pod that it admits */
    bool twice; /* it gives out ids that another pod holds, as up to 1.37 (kubernetes#137534) */
    /* the start under way */
    bool starts;
    bool start_wakes;               /* it is followed by a round soon */
    uint32_t more_starts, readings; /* starts beside one; of the checkpoint for starts */
    bool runs;                      /* the plugin */
};

extern struct plugin plugin;

void node_make(struct node *node);
void node_free(struct node *node);

/* False: it ends at once. */
bool node_start(struct node *node);
/* As SIGKILL: nothing is said to anybody. */
void node_kill(struct node *node);
void node_run(struct node *node, int seconds);
/* The driver's list changed. */
void node_set_gpus(struct node *node, const struct gs_gpu *gpus, uint32_t count);
/* The watch brings all pods. */
void node_list_pods(struct node *node);

/* The extender binds it to these GPUs. */
struct node_pod *node_bind(struct node *node, const char *name, uint32_t units, gs_gpu_mask gpus,
                           uint32_t count);
/* Of the resource, that the kubelet has given nobody. */
uint32_t node_free_ids(const struct node *node);
/* The kubelet calls for its memory. */
void node_ask(struct node *node, struct node_pod *pod);
/* The kubelet takes it in and makes its cgroup, if it is not late. False: Allocate failed. */
bool node_admit(struct node *node, struct node_pod *pod);
/* Its container starts; false: it was held back. */
bool node_starts(struct node *node, struct node_pod *pod);
/* A pod changed by hand. */
void node_write_checkpoint(const struct node *node);
void node_end(struct node *node, struct node_pod *pod);

/* Where its cgroup is, in besteffort. */
const char *node_folder(const struct node_pod *pod);
/* Its limit on a region: bytes, UINT64_MAX without one. */
uint64_t node_limit(struct node *node, const struct node_pod *pod, const char *region);
/* The value of a variable of its container; "" without it. */
const char *node_env(const struct node_pod *pod, const char *name);
