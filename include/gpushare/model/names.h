/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_MODEL_NAMES_H
#define GPUSHARE_MODEL_NAMES_H

#include "gpushare/base/error.h"

/*
 * Every name that carries the configurable domain (default "aliyun.com", --domain), built once at
 * start and read-only afterwards. Forks of the original renamed the domain.
 *
 *   struct gs_names names;
 *   if (gs_names_init(&names, "aliyun.com", err) < 0) ...
 *   names.gpu_mem → "aliyun.com/gpu-mem", names.idx → "ALIYUN_COM_GPU_MEM_IDX"
 */
enum { GS_NAME_BYTES = 128 };

/* Behind each: where it is found, and what it means (docs/reference.md is written from that). */
struct gs_names {
    char domain[GS_NAME_BYTES];

    /* container limit, node capacity: GPU memory in whole units */
    char gpu_mem[GS_NAME_BYTES];
    /* container limit, node capacity: percent of one GPU's compute */
    char gpu_cores[GS_NAME_BYTES];
    /* node capacity; pod label or annotation: number of GPUs; of a pod, all or nothing */
    char gpu_count[GS_NAME_BYTES];
    /* node annotation, by the device plugin: JSON of the node's GPUs and the unit */
    char inventory[GS_NAME_BYTES];
    /* node annotation, by the device plugin: JSON of the pods that are on other GPUs than those of
     * their bind */
    char moved[GS_NAME_BYTES];
    /* node annotation, by an administrator: comma list of GPU indices or UUIDs that take no pods */
    char cordon[GS_NAME_BYTES];
    /* pod annotation, environment: index of the GPU, or a comma list */
    char idx[GS_NAME_BYTES];
    /* node label, by an administrator: "true" makes the device plugin let go of the driver, and
     * the node's GPUs take no pods */
    char driver_upgrade[GS_NAME_BYTES];
    /* node label, by an administrator: "true" makes containers clients of MPS daemons where the
     * device plugin goes by it (--mps-by-label) */
    char mps[GS_NAME_BYTES];
    /* pod annotation, environment: units of (one of) its GPUs */
    char dev[GS_NAME_BYTES];
    /* pod annotation, environment: units that the pod is charged */
    char pod[GS_NAME_BYTES];
    /* environment: units of this container */
    char container[GS_NAME_BYTES];
    /* environment: its GPUs, as NVIDIA_VISIBLE_DEVICES would name them, where that does not
     * (--device-list-strategy) */
    char gpus[GS_NAME_BYTES];
    /* pod annotation: "false" at bind, "true" once every container has its GPU */
    char assigned[GS_NAME_BYTES];
    /* pod annotation: time of the bind, Unix nanoseconds */
    char assume_time[GS_NAME_BYTES];
    /* pod annotation, by its owner: binpack, spread, fgd or rollout, instead of --policy */
    char placement[GS_NAME_BYTES];
    /* pod annotation, by its owner: only GPUs of these models, a comma list of substrings */
    char model[GS_NAME_BYTES];
    /* pod annotation, by its owner: no GPUs of these models */
    char model_deny[GS_NAME_BYTES];
    /* pod annotation, by its owner: only these GPUs, a comma list of UUIDs */
    char uuid[GS_NAME_BYTES];
    /* pod annotation, by its owner: none of these GPUs */
    char uuid_deny[GS_NAME_BYTES];
    /* pod annotation, by its owner: "required" lets its containers start only when the kernel keeps
     * the pod to its share (docs/limits.md) */
    char enforce[GS_NAME_BYTES];
    /* node label, by the device plugin: "dmem" while the kernel keeps pods to their share on every
     * GPU of the node */
    char enforced[GS_NAME_BYTES];
    /* pod annotation: touched to make kube-scheduler look at a refused pod again */
    char wake[GS_NAME_BYTES];
    /* pod annotation, by the extender: the node that it nominated the pod to, while it is so */
    char offer[GS_NAME_BYTES];
};

/* pod annotation: JSON, container's index to GPU index to units; not under the domain, since the
 * original's inspect reads it */
#define GS_ALLOCATION_KEY "scheduler.framework.gpushare.allocation"

/* node label, by an administrator: "true" where the device plugin runs */
#define GS_NODE_LABEL "gpushare"

/* pod label: "true" on the extender's replica that leads */
#define GS_LEADER_LABEL "gpushare/leader"

/* pod annotation: on the extender's own pod, by itself: when its last term as the leader began, in
 * Unix nanoseconds, and its number. It binds when its watch has shown that */
#define GS_TERM_KEY "gpushare/term"

/* pod annotation, by the kubelet: on the mirror of a static pod, the hash that is in place of its
 * UID (pkg/kubelet/pod/mirror_client.go) */
#define GS_MIRROR_KEY "kubernetes.io/config.mirror"

/* domain: a DNS name of at most 63 bytes, else GS_EINVAL. "aliyun.com" gives the environment-like
 * prefix "ALIYUN_COM": upper case, everything that is no letter or digit becomes '_'. */
int gs_names_init(struct gs_names *names, const char *domain, struct gs_error *err);

#endif
