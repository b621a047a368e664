/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/plugin.h"

/*
 * What a container is given, from what the allocator decided: the ALIYUN_COM_GPU_MEM_* of the
 * original, and its GPUs in each form that --device-list-strategy names. Everything lies in the
 * arena. -1: out of memory.
 */
int container_env_build(const struct plugin *plugin, const struct gs_allocate_answer *answer,
                        struct gs_arena *arena, struct gs_dp_container *ret);

/*
 * How a container runtime is told which GPUs a container has, in the words of NVIDIA's device
 * plugin (github.com/NVIDIA/k8s-device-plugin, README.md, DEVICE_LIST_STRATEGY). Several at once
 * are possible.
 */
enum device_list {
    DEVICE_LIST_ENVVAR = 1,          /* "envvar": NVIDIA_VISIBLE_DEVICES names them */
    DEVICE_LIST_VOLUME_MOUNTS = 2,   /* "volume-mounts": names of mounts do, and it names those */
    DEVICE_LIST_CDI_ANNOTATIONS = 4, /* "cdi-annotations": as CDI devices, in an annotation */
    DEVICE_LIST_CDI_CRI = 8,         /* "cdi-cri": as CDI devices, in the kubelet's own field */
    DEVICE_LIST_CDI = DEVICE_LIST_CDI_ANNOTATIONS | DEVICE_LIST_CDI_CRI,
};

/* A comma list of those words becomes a set of them. False, and *ret is untouched: an unknown word,
 * or none. */
bool device_lists_parse(const char *text, unsigned *ret);
