/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/port/gpu_source.h"

/*
 * Which index is whose. Records of pods, the ledger and gpu-cordon name a GPU by its index, so an
 * index belongs to a UUID and not to a place in the driver's list, which is counted anew when a
 * card is lost, added or does not come back from a reboot. The node's own inventory is the memory.
 *
 * A card that was not met before gets the driver's own number when that is free, else the lowest
 * that is. One that is lost keeps its number, and stays in the inventory as gone, while a pod is
 * placed on it; also while this process lives, unless a new card takes the number. Cards without
 * UUIDs (a list by hand) are who their index says. Zeroed: nothing is remembered. Pure.
 *
 * A card that needs a reset stays unhealthy when the process ends and another begins: the inventory
 * names the XID and the node's boot. It is forgotten when the driver was reloaded (set->fresh).
 */
struct gpu_indices {
    struct gs_gpu remembered[GS_GPUS_MAX]; /* by index, as seen last */
    gs_gpu_mask used;                      /* remembered[] is somebody's */
    gs_gpu_mask present;                   /* of these: in the last set */
    gs_gpu_mask seen;                      /* of these: in a set of this process's */
    uint32_t boot;                         /* of the node, as gs_gpu.xid_boot; the caller's */
};

/* The node's inventory. False, and nothing is taken: it contradicts indices that were given out
 * without it. */
bool gpu_indices_remember(struct gpu_indices *indices, const struct gs_gpu *gpus, uint32_t count);

/* A set as its source counts becomes one by our indices; who is remembered and not in it is added
 * as gone. placed: indices that pods are on. A card that no index is left for is left out, and said
 * in set->refused. */
void gpu_indices_apply(struct gpu_indices *indices, struct gs_gpu_set *set, gs_gpu_mask placed);

/* Forgets who is gone, was never seen by this process, and has no pods. True: somebody was. */
bool gpu_indices_forget(struct gpu_indices *indices, gs_gpu_mask placed);

/* Where a container's NVIDIA_VISIBLE_DEVICES ("GPU-…,GPU-…", or the driver's indices) points to, in
 * the indices of a set that gpu_indices_apply() made; 0: to something that is not in it. */
gs_gpu_mask gpu_indices_of_visible(const struct gs_gpu_set *set, const char *visible);
