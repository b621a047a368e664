/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_GPU_SLICES_H
#define GPUSHARE_CODEC_GPU_SLICES_H

#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * GPUs that a driver of dynamic resource allocation offers, out of a ResourceSliceList of
 * resource.k8s.io (k8s.io/api/resource/{v1,v1beta2,v1beta1}/types.go). Pure: any thread, no state.
 */
struct gs_sliced_gpu {
    const char *node; /* spec.nodeName */
    const char *uuid; /* the device's attribute "uuid" */
};

/*
 * Devices with a UUID, of slices of that driver that belong to a node. *ret lies in the arena.
 * GS_EPROTO: no such JSON. GS_ETOOBIG: more than 65,536. GS_ENOMEM. Outputs are untouched then.
 */
int gs_codec_gpu_slices(struct gs_slice json, const char *driver, struct gs_arena *arena,
                        struct gs_sliced_gpu **ret, uint32_t *ret_count, struct gs_error *err);

#endif
