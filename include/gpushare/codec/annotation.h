/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/charge.h"
#include "gpushare/model/gpu.h"
#include "gpushare/model/kv.h"
#include "gpushare/model/names.h"

/* Pod annotations that bind writes and everybody reads (docs/contract.md, section 1). Pure. */

/* "0,3": distinct indices below GS_GPUS_MAX, no spaces, at least one; else false, *ret untouched.
 */
bool gs_codec_idx_parse(struct gs_slice text, gs_gpu_mask *ret);

/* The same, ascending; "" for an empty set. Returns out. */
enum { GS_IDX_TEXT_BYTES = 192 };
char *gs_codec_idx_format(gs_gpu_mask gpus, char out[GS_IDX_TEXT_BYTES]);

/*
 * Appends the value of GS_ALLOCATION_KEY: index into spec.containers → GPU index → units, e.g.
 * {"0":{"1":4},"1":{"1":4}}; main containers that request GPU memory only, each with
 * its units divided by the number of GPUs (a rest is rounded up) on each of them.
 */
void gs_codec_allocation(struct gs_buf *out, const struct gs_pod *pod, gs_gpu_mask gpus);

/* All GPUs that such a value names, whatever the units; even: every container has the same GPUs,
 * and the same on each. false: it is no such JSON, names none, or an index that is not below
 * GS_GPUS_MAX; both untouched. */
bool gs_codec_allocation_gpus(struct gs_slice json, gs_gpu_mask *ret, bool *ret_even);

/* What bind records about a pod. */
struct gs_bind_record {
    gs_gpu_mask gpus;        /* not empty */
    uint64_t dev_units;      /* size of (one of) these GPUs */
    struct gs_charge charge; /* of gs_pod_charge(): POD is units * gpu_count */
    int64_t assume_time_ns;  /* wall clock; 0: no extender bound it, and no annotation says so */
};

enum { GS_BIND_ANNOTATIONS = 6 };

/*
 * The annotations of a Binding: IDX, DEV, POD, ASSIGNED "false", the allocation JSON and
 * ASSUME_TIME. *ret_kv (GS_BIND_ANNOTATIONS entries) and its values lie in the arena, its keys are
 * *borrowed* from names. -1: GS_ENOMEM.
 */
int gs_codec_bind_annotations(const struct gs_names *names, const struct gs_pod *pod,
                              const struct gs_bind_record *record, struct gs_arena *arena,
                              struct gs_kv **ret_kv, size_t *ret_count, struct gs_error *err);
