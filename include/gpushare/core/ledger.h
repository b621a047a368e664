/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/base/index.h"
#include "gpushare/base/slice.h"
#include "gpushare/core/ask.h"
#include "gpushare/core/view.h"
#include "gpushare/model/charge.h"

/*
 * The ledger: which pod is charged how much on which GPU of which node. A pure data structure
 * keyed by pod UID: no time, no locks, no I/O. One writer, or several readers, at a time
 * (service/store guards it).
 *
 * A claim is either reserved (a bind is under way) or confirmed (the API shows it). Node totals are
 * kept as claims come and go. Claims on nodes or GPUs that are not reported (yet) are kept and
 * counted as soon as they are.
 *
 * A claim whose recorded GPUs cannot be believed (none recorded, another number than gpu_count,
 * not on the node, too small) is charged its units on every GPU of its node that could hold it, and
 * on those it is recorded on: see gs_ledger_stats.unplaced_claims. What fits nowhere and is
 * recorded nowhere is charged everywhere. The node's own list of moved pods (gs_node.moved) is
 * believed before any record, and as it stands.
 *
 *   struct gs_ledger *ledger = gs_ledger_new();
 *   gs_ledger_set_node(ledger, &node, err);
 *   gs_ledger_set_claim(ledger, &(struct gs_claim){.uid = uid, .node = "n1", .gpus = 1, .units = 8,
 *                                                  .gpu_count = 1}, err);
 *   const struct gs_node_view *view = gs_ledger_view(ledger, "n1");
 */
struct gs_ledger;

enum __attribute__((packed)) gs_claim_state { GS_CLAIM_CONFIRMED, GS_CLAIM_RESERVED };

/* What the ledger keeps of a claim beside its names. total_units is of all its GPUs, to be divided
 * again when it is told where it is. */
#define GS_CLAIM_BODY                                                                              \
    const struct gs_labels *labels; /* gs_pod.labels */                                            \
    gs_gpu_mask gpus;               /* as recorded; 0: none that can be */                         \
    gs_gpu_mask also;     /* where else it may be: charged too, and it counts as unplaced */       \
    gs_gpu_mask charged;  /* out only: where it counts now */                                      \
    uint64_t revision;    /* resourceVersion as a number, 0 when none */                           \
    GS_AMOUNT_EACH;       /* units: at least 1 */                                                  \
    uint32_t slot;        /* out only: the node's, also of one without node object */              \
    uint32_t gpu_count;   /* at least 1 */                                                         \
    uint32_t gpus_max;    /* where the record is not valid, it may use so many: the larger of */   \
                          /* record and gpu-count; 0: gpu_count */                                 \
    uint32_t total_units; /* 0: units times gpu_count */                                           \
    int32_t priority;                                                                              \
    uint32_t cpu_milli;                                                                            \
    enum gs_claim_state state;                                                                     \
    bool unplaced;   /* out only: the recorded GPUs are not valid */                               \
    bool from_moved; /* gpus are those of gs_node.moved: believed whatever their size */           \
    bool leaving;    /* being deleted: charged until it is gone, but nobody need evict it */       \
    bool seen;       /* out only: set since gs_ledger_begin_pods() */                              \
    bool assigned    /* the device plugin recorded the GPUs of all its containers */
struct gs_claim_body {
    GS_CLAIM_BODY;
};

/* A claim as it goes in and comes out. Strings are copied in, borrowed out (until the ledger
 * changes). */
struct gs_claim {
    const char *uid;
    const char *ns;
    const char *name;
    const char *node;
    union {
        struct gs_claim_body body;
        struct {
            GS_CLAIM_BODY;
        };
    };
};

struct gs_ledger_stats {
    uint32_t nodes;     /* with a node object */
    uint32_t gpu_nodes; /* with at least one GPU */
    uint32_t gpus;
    uint32_t claims;
    uint32_t reserved;        /* claims with a bind under way */
    uint32_t unplaced_claims; /* charged to every GPU that could hold them */
    uint32_t overfull_gpus;   /* used above total; of compute nobody dies */
    uint32_t others;          /* bound pods without GPU memory */
    uint32_t held;            /* nominated pods */
    uint32_t promised;        /* pods with a promise */
};

/* NULL when out of memory. */
struct gs_ledger *gs_ledger_new(void);
void gs_ledger_free(struct gs_ledger *ledger);
GS_DEFINE_CLEANUP(struct gs_ledger *, gs_ledger_free)

/*
 * Adds a node or takes over its new state; claims are counted anew. GS_ENOMEM: nothing changed.
 * Claims of pods in node->moved (also later ones) get these GPUs, as `from_moved`, with their total
 * divided among them, and keep them when the entry goes; with a moved_error the list before it
 * stands.
 */
int gs_ledger_set_node(struct gs_ledger *ledger, const struct gs_node *node, struct gs_error *err);

/* The node object is gone. Its claims stay until their pods go; they count again when a node of
 * that name returns. Unknown names are fine. */
void gs_ledger_drop_node(struct gs_ledger *ledger, const char *name);

/* The view of a node, borrowed until the ledger changes; NULL when there is no such node object. */
const struct gs_node_view *gs_ledger_view(const struct gs_ledger *ledger, const char *name);

/*
 * The same for many names, in less time than one after the other, and in two steps:
 * gs_ledger_find_nodes() says which slot each name has (GS_LEDGER_NO_NODE: none), which holds until
 * gs_ledger_names_epoch() is another one; gs_ledger_view_in(…, i) is what gs_ledger_view() returns
 * for the i-th of them, and is quickest when asked in order.
 */
#define GS_LEDGER_NO_NODE UINT32_MAX
void gs_ledger_find_nodes(const struct gs_ledger *ledger, const struct gs_slice *names,
                          uint32_t count, uint32_t *ret_slots);
uint64_t gs_ledger_names_epoch(const struct gs_ledger *ledger); /* never 0 */
const struct gs_node_view *gs_ledger_view_in(const struct gs_ledger *ledger, const uint32_t *slots,
                                             uint32_t count, uint32_t i);

/* Views by slot number, 0 .. gs_ledger_slots() - 1; NULL for an empty slot. Slots of nodes keep
 * their number as long as the node object lives. */
uint32_t gs_ledger_slots(const struct gs_ledger *ledger);
const struct gs_node_view *gs_ledger_view_at(const struct gs_ledger *ledger, uint32_t slot);
const char *gs_ledger_node_name(const struct gs_ledger *ledger, uint32_t slot);

/* The highest number in use. */
uint16_t gs_ledger_model_count(const struct gs_ledger *ledger);
/* The name of a model number of gs_gpu_state, "" for 0 and for a free one. Borrowed until the
 * ledger changes. */
const char *gs_ledger_model_name(const struct gs_ledger *ledger, uint16_t model);

/*
 * The claim of a bound pod with GPU memory, in two steps (contract, section 4). Strings are
 * borrowed from the pod.
 *
 * gs_claim_of_pod() is what the pod's own object says (model/charge.h), which is believed when the
 * pod is seen for the first time; of a record that cannot be, its GPUs are `also`.
 * gs_claim_follow() is what remains of that once the ledger knows the pod on that node: its owner
 * may edit the object as he likes, so neither GPUs nor size change any more.
 *   - The original's plugin writes no gpu-reassigned and gives what the record says when asked:
 *     there the pod is charged both where it was and where it says now. A pod without a believable
 *     place gets the first that is recorded.
 *   - The record that a bind left is another one than was reserved: both, with the larger share,
 *     until the bind is answered (gs_ledger_place()) or the device plugin has recorded that all
 *     containers have their GPUs. It alone counts where is_binding: this is the Binding's revision.
 */
void gs_claim_of_pod(const struct gs_pod *pod, struct gs_claim *ret);

/* The claim of whoever asks so, on these GPUs. What says whose it is, and where, is the caller's to
 * set. */
struct gs_claim gs_claim_of_ask(const struct gs_ask *ask, gs_gpu_mask gpus);

void gs_claim_follow(const struct gs_ledger *ledger, struct gs_claim *claim, bool is_binding);

/* Puts a claim in, or replaces the one of the same UID in one step, on the same node or another.
 * GS_EINVAL: empty UID or node, units or gpu_count 0. GS_ENOMEM: nothing changed. */
int gs_ledger_set_claim(struct gs_ledger *ledger, const struct gs_claim *claim,
                        struct gs_error *err);

/* It is on these GPUs (not empty) and nowhere else, its total divided among them. */
void gs_claim_move(struct gs_claim_body *claim, gs_gpu_mask gpus);

/* A claim that is not told otherwise moves to these GPUs. Unknown UIDs are fine. */
void gs_ledger_place(struct gs_ledger *ledger, const char *uid, gs_gpu_mask gpus);

/* A reserved claim becomes confirmed; false when there is no claim of that UID. Counts as mentioned
 * in a list round: the list may be older than the bind. */
bool gs_ledger_confirm(struct gs_ledger *ledger, const char *uid);

/* Frees what a pod held: as claim, as other pod, as nominated pod. True when a claim went; then
 * *ret_slot, when not NULL, is its node's slot. */
bool gs_ledger_remove(struct gs_ledger *ledger, const char *uid, uint32_t *ret_slot);

/* Frees a claim only while it is reserved (a bind that surely failed). */
bool gs_ledger_undo(struct gs_ledger *ledger, const char *uid);

/* False when there is no such claim. */
bool gs_ledger_find_claim(const struct gs_ledger *ledger, const char *uid, struct gs_claim *ret);

/* Calls each for every claim on a node, newest first, until it returns false. */
void gs_ledger_each_claim(const struct gs_ledger *ledger, uint32_t slot,
                          bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx);

/* Every claim, also on nodes without object. */
void gs_ledger_each(const struct gs_ledger *ledger,
                    bool (*each)(void *ctx, const struct gs_claim *claim), void *ctx);

/* A pod without GPU memory takes CPU on a node, known or not: 24 bytes a pod. GS_ENOMEM: nothing
 * changed. */
int gs_ledger_set_other(struct gs_ledger *ledger, const char *uid, const char *node,
                        int64_t cpu_milli, struct gs_error *err);

/*
 * The place on a node of a pod that is not bound yet. Replaces an earlier hold of the same UID. A
 * claim of the same UID ends the hold.
 *
 * A nominated pod (pod.status.nominatedNodeName) waits for a place, and which GPUs these will be is
 * worked out each time. A promise (service/reservations.h) is of `gpus`, and of these alone; it
 * stays when a list is swept: whoever made it ends it.
 */
struct gs_hold {
    struct gs_ask ask; /* the pod's, whose UID it has to name; neither rules nor namespace are kept.
                          Its group keeps off a promise of any priority */
    const char *node;
    gs_gpu_mask gpus; /* of a promise; 0: a nomination */
    uint32_t slot;    /* out only: the node's */
};

/* With a node of NULL or "", or of a pod that can be placed nowhere: it holds nothing any more.
 * GS_ENOMEM: nothing changed. */
int gs_ledger_hold(struct gs_ledger *ledger, const struct gs_hold *hold, struct gs_error *err);

/* What a pod holds; borrowed until the ledger changes. NULL: nothing. */
const struct gs_hold *gs_ledger_find_hold(const struct gs_ledger *ledger, const char *uid);
/* How many pods are promised a place. */
uint32_t gs_ledger_promises(const struct gs_ledger *ledger);

/* False when there was none. */
bool gs_ledger_release_hold(struct gs_ledger *ledger, const char *uid);

/* Calls each for every hold on a node, highest priority first, oldest first among equals. */
void gs_ledger_each_hold(const struct gs_ledger *ledger, uint32_t slot,
                         bool (*each)(void *ctx, const struct gs_hold *hold), void *ctx);

/* For a list from the API: begin a round, mention every object by setting it, then sweep what was
 * not mentioned since. Reserved claims survive a sweep: their bind decides. */
void gs_ledger_begin_nodes(struct gs_ledger *ledger);
void gs_ledger_sweep_nodes(struct gs_ledger *ledger);
void gs_ledger_begin_pods(struct gs_ledger *ledger);
/* Returns how many claims went. */
uint32_t gs_ledger_sweep_pods(struct gs_ledger *ledger);

void gs_ledger_stats(const struct gs_ledger *ledger, struct gs_ledger_stats *ret);

/* Recounts a node's totals from its claims and compares: the number of its GPUs whose account
 * differs from the recount. Always 0 unless there is a bug; the drift metric's inner half. */
uint32_t gs_ledger_audit(const struct gs_ledger *ledger, uint32_t slot);
