/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_CHECKPOINT_H
#define GPUSHARE_CODEC_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
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
 * The entries of one resource. *ret and all it points to lies in the arena, or in json, which it
 * borrows from. GS_EPROTO: no such JSON. GS_ETOOBIG: more than 65,536 containers, or 262,144
 * ids of one. GS_ENOMEM. Outputs are untouched then.
 */
int gs_codec_checkpoint_decode(struct gs_slice json, const char *resource, struct gs_arena *arena,
                               struct gs_checkpoint_entry **ret, uint32_t *ret_count,
                               struct gs_error *err);

#endif
