/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/amount.h"
#include "gpushare/model/pod.h"
#include "gpushare/model/reason.h"

/*
 * What a pod holds, and where: the one answer of extender, device plugin, CLI and simulator
 * (contract, section 1). Pure, of one pod's object.
 *
 * How much is its containers' limits, which nobody can change once the pod is made:
 *   init phase: for each init container, itself plus the sidecars declared before it;
 *   main phase: all main containers plus all sidecars;
 *   the larger of the two. Compute is counted by the same two phases.
 *
 * Where is what the first of these names:
 *   1. the node's gpu-reassigned                             the caller knows them: core/ledger.h,
 *   2. what was bound, given or believed before              allocate/allocator.h
 *   3. the record, when the pod is first seen bound          gs_pod_recorded()
 *
 * Over how many GPUs the memory is divided follows from where it is. gpu-count is its owner's to
 * edit at any time: it is what a pod asks for, and is read only while nothing says where it is.
 *
 *   the pod's object                   gs_pod_recorded()   gs_pod_charge()
 *   not bound, whatever its record     0                   its total over gpu-count GPUs
 *   bound, with a record that can be   the record          its total over the record's GPUs
 *   bound, without one                 0                   its total over gpu-count GPUs: what the
 *                                                          device plugin will look for
 *   told otherwise (1, 2)              not asked           gs_pod_charge_on() these GPUs
 *
 * A record that disagrees with the limits cannot be: one over whose GPUs some container's request
 * does not divide, or whose JSON, where it stands alone, gives its GPUs unequal shares. Bind writes
 * neither. Whether the GPUs are on the node and large enough is for those who know the node.
 */
struct gs_charge {
    uint32_t gpu_count; /* at least 1 */
    GS_AMOUNT_EACH;
};

/*
 * GS_FITS, or what is wrong with the request: gpu-count (GS_REASON_BAD_COUNT, _NOT_DIVISIBLE), a
 * sum above 2^31 units (_GPU_TOO_SMALL), compute (_CORES_ALONE, _ABOVE, _SPREAD).
 *
 * A pod without GPU memory and compute fits with units 0 whatever its gpu-count says. Where
 * gpu-count is read and cannot be honoured *ret holds the undivided total over one GPU (saturated),
 * so that a bound pod can still be charged. Of a pod with a record that can be nothing is wrong
 * with gpu-count.
 */
enum gs_reason gs_pod_charge(const struct gs_pod *pod, struct gs_charge *ret);

/* What it holds when it is on these GPUs (not empty), by whose word ever. A rest is rounded up. */
struct gs_charge gs_pod_charge_on(const struct gs_pod *pod, gs_gpu_mask gpus);

/* Where its record says that it is; 0: not bound, no record, or one that cannot be. */
gs_gpu_mask gs_pod_recorded(const struct gs_pod *pod);

/* Over how many GPUs its gpu-count asks to spread it; 1 where that cannot be honoured. */
uint32_t gs_pod_asked_gpus(const struct gs_pod *pod);

/* The whole of what it asks for, of all its GPUs together, saturated at 2^31 - 1. */
uint32_t gs_pod_total_units(const struct gs_pod *pod);

/* What of that total is on each of so many GPUs (at least 1), rounded up. */
static inline uint32_t gs_units_each(uint32_t total_units, uint32_t gpu_count)
{
    return total_units / gpu_count + (total_units % gpu_count != 0);
}

/* Peak CPU request by the same two phases, or the pod's own, plus overhead; saturated. */
int64_t gs_pod_cpu_milli(const struct gs_pod *pod);
int64_t gs_pod_memory_bytes(const struct gs_pod *pod);
