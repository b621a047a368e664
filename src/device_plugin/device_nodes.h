/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/port/gpu_source.h"

/*
 * --pass-device-specs: the device nodes of a container's GPUs in the answer to the kubelet, so that
 * the container runtime itself allows them. What NVIDIA's runtime adds behind its back is lost when
 * the container's device rules are written anew (systemctl daemon-reload, the kubelet's CPU
 * manager).
 */
enum { DEVICE_NODE_BYTES = 32 };

/* "/dev/nvidia0" while it is there, below dev_root or as this process sees it; else "". An instance
 * (MIG) has none that would do without others of its own. vendor: in gs_vendors. */
void device_node_of(const char *dev_root, uint32_t vendor, const struct gs_gpu *gpu,
                    char out[DEVICE_NODE_BYTES]);

/* Sets ret's devices to the nodes of these GPUs and those that all of the vendor's share
 * (/dev/nvidiactl), as far as they are there; none of the latter when there is none of the first.
 * Host paths lie below dev_root. Everything lies in the arena. -1: out of memory. */
int device_nodes_add(const char *dev_root, const struct gs_gpu_set *set, gs_gpu_mask given,
                     struct gs_arena *arena, struct gs_dp_container *ret);
