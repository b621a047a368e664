/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/gpu.h"

/*
 * The node annotation <domain>/gpu-inventory, text ⇄ GPUs (docs/contract.md, section 2):
 *   {"v":1,"unit":"GiB","gpus":[{"idx":0,"uuid":"GPU-…","mem":79,"memMiB":81559,
 *    "model":"…","healthy":true,"numa":0,"schedulable":true,"enforced":"dmem","maxPods":48}],
 *    "reassignments":true,"rev":7}
 * and the device plugin's own copy of it on the host, which names "node", "mps" and
 * "otherDriverGPUs" as well. Pure: any thread, no state.
 */
struct gs_inventory {
    enum gs_unit unit;
    struct gs_gpu *gpus; /* ascending idx; NULL when there is none */
    uint32_t gpu_count;
    bool tells_moved; /* "reassignments": this plugin writes <domain>/gpu-reassigned (codec/moved.h)
                       */
    bool unit_doubted;  /* "unitConflict": the kubelet's checkpoint says this unit, --memory-unit
                           another: nothing new is placed in it */
    int64_t rev;        /* "rev": grows with every change of unit or indices; 0: absent */
    const char *node;   /* that it belongs to; NULL: absent */
    const char *vendor; /* of a list of GPUs for the device plugin; NULL: absent */
    bool mps;           /* "mps": it had the label that chooses MPS, of the copy on the host */
    const char *const *others; /* UUIDs of GPUs that a DRA driver's slices named */
    uint32_t other_count;
};

enum { GS_INVENTORY_OTHERS_MAX = GS_GPUS_MAX };

/* Appends the annotation's text. A GPU without uuid, model, memMiB, pci, xid, numa, maxPods or a
 * word about limits is written without that key. */
void gs_codec_inventory_encode(struct gs_buf *out, const struct gs_inventory *inventory);

/*
 * *ret lies in the arena and does not borrow from text. "v" must be 1; "unit", and of each GPU
 * "idx" and "mem" must be there; healthy and schedulable default to true, reassignments,
 * unitConflict and mps to false, numa to GS_NUMA_NONE. Unknown keys are skipped; a model that
 * is too long is cut at a character's end. GS_EPROTO: no such JSON, an index that comes twice or is
 * not below GS_GPUS_MAX, a UUID that comes twice, a number above 2^31 - 1, a NUMA node outside
 * int16, a negative rev. GS_ETOOBIG: a UUID or a PCI address that is too long, more than
 * GS_INVENTORY_OTHERS_MAX others. GS_ENOMEM.
 */
int gs_codec_inventory_decode(struct gs_slice text, struct gs_arena *arena,
                              struct gs_inventory *ret, struct gs_error *err);
