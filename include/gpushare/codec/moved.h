/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/node.h"

/*
 * The node annotation <domain>/gpu-reassigned, text ⇄ entries (docs/contract.md, section 4): which
 * pods of the node hold other GPUs than those of their bind, by the device plugin's word:
 *   {"5c2f…-pod-uid":[0],"9ab1…-pod-uid":[1,3]}
 * {}, or no annotation: no pod moved. It is on the node because a pod's annotations are its
 * owner's to write, and a node's are not. Pure: any thread, no state.
 */
enum {
    GS_MOVED_MAX = 1024,           /* entries; a kubelet runs 110 pods by default */
    GS_MOVED_TEXT_MAX = 128 << 10, /* bytes; an object's annotations have 256 KiB together */
};

/* Appends the annotation's text, entries as they come, indices ascending. */
void gs_codec_moved_encode(struct gs_buf *out, const struct gs_moved *moved, size_t count);

/*
 * *ret (NULL when there is none) lies in the arena, does not borrow from text, and is sorted by
 * UID.
 * GS_EPROTO: no such JSON, an empty UID or one that comes twice, a pod without GPU, an index that
 * comes twice or is not below GS_GPUS_MAX. GS_ETOOBIG: more than the ceilings above. GS_ENOMEM.
 */
int gs_codec_moved_decode(struct gs_slice text, struct gs_arena *arena, struct gs_moved **ret,
                          uint32_t *ret_count, struct gs_error *err);
