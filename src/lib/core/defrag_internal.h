/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/defrag.h"

/* What defrag*.c share. */

/* What is known of a pod besides what the caller says. */
struct defrag_tenant {
    uint64_t shape;
    uint32_t slot;
    gs_gpu_mask gpus;
    struct gs_amount each;
    bool gone; /* moved by an earlier plan, or not where its record says: stays */
};

/* What becomes of a pod of one shape with at most so many moves, as things are; UINT32_MAX: whether
 * it has room anywhere (GS_DEFRAG_FITS). */
struct defrag_known {
    uint64_t shape;
    uint32_t max_moves;
    enum gs_defrag_result result;
};
enum { DEFRAG_KNOWN_MAX = 256 };

struct gs_defrag {
    struct gs_place *place;
    const struct gs_ledger *ledger; /* the place's */
    bool *refused;                  /* by slot: for gs_place_choose() */
    const struct gs_defrag_pod *pods;
    uint32_t count;
    struct defrag_tenant *tenants; /* by index of pods */
    uint32_t *by_slot;             /* pods, by slot */
    uint32_t *first;               /* of a slot in by_slot; one more entry at the end */
    struct defrag_known known[DEFRAG_KNOWN_MAX];
    uint32_t known_count;
};

/* Where the policy puts a pod among all nodes but one (GS_LEDGER_NO_NODE: none is left out). */
bool defrag_place(const struct gs_defrag *defrag, const struct gs_ask *ask, uint32_t but,
                  uint32_t *ret_slot, gs_gpu_mask *ret_gpus);

/* All or nothing: the moves of these pods, and the waiting pod on the slot. 1: carried
 * out and in *ret; 0: it does not work, the ledger is as before; -1: out of memory. */
int defrag_carry_out(struct gs_defrag *defrag, const struct gs_ask *waiting, uint32_t slot,
                     const uint32_t *pods, uint32_t count, bool cordon, struct gs_defrag_plan *ret);

/* The pod comes to (sign 1) or leaves (sign -1) a copy of its node's view. */
void defrag_charge(const struct gs_defrag *defrag, struct gs_node_view *view, uint32_t pod,
                   int sign);

/* Of all by which one ask finds a place where another does not (base/index.h). */
uint64_t defrag_shape_of(const struct gs_ask *ask);

/* The copy has changed: nothing that was found out about it holds any more. */
void defrag_forget(struct gs_defrag *defrag);

/* NULL: it is not known. */
const enum gs_defrag_result *defrag_find_known(const struct gs_defrag *defrag, uint64_t shape,
                                               uint32_t max_moves);
void defrag_note_known(struct gs_defrag *defrag, uint64_t shape, uint32_t max_moves,
                       enum gs_defrag_result result);

/* Might this pod find a place somewhere, as things are? */
bool defrag_might_move(struct gs_defrag *defrag, uint32_t pod);
