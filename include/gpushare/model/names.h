/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

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
    /* node capacity; pod label or annotation: number of GPUs; those of a pod are on one node. Not a
     * container limit */
    char gpu_count[GS_NAME_BYTES];
    /* node annotation, by the device plugin: JSON list of the node's GPUs, and the memory unit */
    char inventory[GS_NAME_BYTES];
    /* node annotation, by the device plugin: JSON map, from the UIDs of pods whose GPUs differ from
     * those that bind chose */
    char moved[GS_NAME_BYTES];
    /* node annotation, by an administrator: GPU indices or UUIDs, comma-separated, that accept no
     * new pods */
    char cordon[GS_NAME_BYTES];
    /* pod annotation, environment: index of the GPU; several are separated by commas */
    char idx[GS_NAME_BYTES];
    /* node label, by an administrator: "true" makes the device plugin close the driver's library
     * for an upgrade (docs/operate.md); the node's GPUs accept no new pods meanwhile */
    char driver_upgrade[GS_NAME_BYTES];
    /* node label, by an administrator: "true" connects containers to MPS daemons, where the device
     * plugin runs with --mps-by-label */
    char mps[GS_NAME_BYTES];
    /* pod annotation, environment: total units of the GPU; of several, of the first */
    char dev[GS_NAME_BYTES];
    /* pod annotation, environment: units allocated to the pod */
    char pod[GS_NAME_BYTES];
    /* environment: units allocated to this container */
    char container[GS_NAME_BYTES];
    /* environment: the container's GPUs, where NVIDIA_VISIBLE_DEVICES does not name them
     * (--device-list-strategy) */
    char gpus[GS_NAME_BYTES];
    /* pod annotation: "false" at bind, "true" once every container is allocated its GPU */
    char assigned[GS_NAME_BYTES];
    /* pod annotation: time of the bind, in Unix nanoseconds. AliyunContainerService chose the name
     */
    char assume_time[GS_NAME_BYTES];
    /* pod annotation, by the user: binpack, spread or rollout; overrides --policy */
    char placement[GS_NAME_BYTES];
    /* pod annotation, by the user: allowed GPU models; substrings, separated by commas */
    char model[GS_NAME_BYTES];
    /* pod annotation, by the user: excluded GPU models */
    char model_deny[GS_NAME_BYTES];
    /* pod annotation, by the user: allowed GPUs; UUIDs, separated by commas */
    char uuid[GS_NAME_BYTES];
    /* pod annotation, by the user: excluded GPUs */
    char uuid_deny[GS_NAME_BYTES];
    /* pod annotation, by the user: "required" blocks the start of its containers until the kernel
     * limits the pod's GPU memory (docs/limits.md) */
    char enforce[GS_NAME_BYTES];
    /* node label, by the device plugin: "dmem" while the kernel limits the GPU memory of pods on
     * every GPU of the node */
    char enforced[GS_NAME_BYTES];
    /* pod annotation, by the extender: its update makes kube-scheduler retry a pending pod */
    char wake[GS_NAME_BYTES];
    /* pod annotation, by the extender: the node that it nominated the pod to */
    char offer[GS_NAME_BYTES];
};

/* pod annotation: JSON map of container index to GPU index to units. Not under the domain:
 * AliyunContainerService's kubectl-inspect-gpushare reads it */
#define GS_ALLOCATION_KEY "scheduler.framework.gpushare.allocation"

/* node label, by an administrator: "true" for nodes on which the device plugin's DaemonSet runs */
#define GS_NODE_LABEL "gpushare"

/* pod label, by the extender: "true" on the pod of the leader */
#define GS_LEADER_LABEL "gpushare/leader"

/* pod annotation, by the extender on its own pod: when the replica became leader, in Unix
 * nanoseconds, and the number of the term. A new leader binds no pod before its watch returns this
 * value. Not to be edited */
#define GS_TERM_KEY "gpushare/leader-term"

/* pod annotation, by the kubelet: on the mirror of a static pod, the hash that replaces its UID */
#define GS_MIRROR_KEY "kubernetes.io/config.mirror"

/* domain: a DNS name of at most 63 bytes, else GS_EINVAL. "aliyun.com" gives the environment-like
 * prefix "ALIYUN_COM": upper case, everything that is no letter or digit becomes '_'. */
int gs_names_init(struct gs_names *names, const char *domain, struct gs_error *err);
