/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"

/*
 * GPUs that a driver of dynamic resource allocation offers, out of ResourceSlices of
 * resource.k8s.io (k8s.io/api/resource/{v1,v1beta2,v1beta1}/types.go). Pure: any thread, no state.
 */
struct gs_sliced_gpu {
    const char *node; /* spec.nodeName */
    const char *uuid; /* the device's attribute "parentUUID" (an instance's card), else "uuid" */
};

/*
 * Takes a ResourceSlice, an item of a list, off *from: adds its devices with a UUID to *all, in the
 * arena, if it is that driver's and belongs to a node. GS_EPROTO: no such JSON. GS_ETOOBIG: more
 * than 65,536. GS_ENOMEM. *all and *count are untouched then.
 */
int gs_codec_gpu_slice_take(struct gs_scan *from, const char *driver, struct gs_arena *arena,
                            struct gs_sliced_gpu **all, uint32_t *count, struct gs_error *err);
