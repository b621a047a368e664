/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * What a kubelet wrote down of the devices that it gave to containers, its file
 * kubelet_internal_checkpoint (pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go):
 *   {"Data":{"PodDeviceEntries":[{"PodUID":"…","ContainerName":"c","ResourceName":
 *    "aliyun.com/gpu-mem","DeviceIDs":{"-1":["…"]},"AllocResp":"…"}],…},"Checksum":1}
 * DeviceIDs by NUMA node from 1.20 on, a plain list before. The checksum is not judged: it is over
 * Go's own print of the data. Pure: any thread, no state.
 */
struct gs_checkpoint_entry {
    const char *pod_uid;
    const char *const *ids;
    uint32_t id_count;
    struct gs_slice answer; /* base64 of the plugin's ContainerAllocateResponse; may be empty */
};

/*
 * For each container in turn: its entry, *borrowed* until the call returns, or NULL where it is of
 * another resource; `done` bytes of json are not read again. false: out of memory.
 */
typedef bool (*gs_checkpoint_each)(void *ctx, const struct gs_checkpoint_entry *entry, size_t done);

/*
 * The entries of one resource, of a file of any size: a pod's containers times the node's ids have
 * no ceiling, and one entry is in memory at a time. What was told counts only if this returns 0.
 * GS_EPROTO: no such JSON. GS_ETOOBIG: more than 262,144 containers, or 262,144 ids of one.
 * GS_ENOMEM.
 */
int gs_codec_checkpoint_decode(struct gs_slice json, const char *resource, gs_checkpoint_each each,
                               void *ctx, struct gs_error *err);
