/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/core/ledger.h"
#include "gpushare/core/placement.h"

/*
 * How good a node is for a pod, and which of its GPUs the pod gets there: one answer, so that the
 * GPU that bind takes is the one that the score meant.
 *
 *   binpack   the tightest GPU, then the fullest node
 *   spread    the emptiest GPU of the least used node
 *   rollout   the node where the memory that stays unused after a long run of typical pods grows
 *             least, and there the GPU of which the same holds (the tightest when no GPU does any
 *             harm); exact integer arithmetic, the same choice on every machine. While pods leave
 *             about as fast as they come, full nodes are preferred on top of that
 *
 * rollout needs to know which pods there are: it learns it (below), and behaves like binpack until
 * it has seen GS_LEARN_MIN pods with GPU memory.
 *
 *   struct gs_choice choice;
 *   gs_policies_learn(policies, &ask);                        once per pod, when first seen
 *   gs_policies_left(policies);                               once per pod, when it has gone
 *   gs_chooser_init(&chooser, policies, GS_PLACEMENT_ROLLOUT, &ask);
 *   if (gs_chooser_choose(&chooser, view, &choice))           for each node
 *       ... choice.loss orders nodes, choice.gpus go into the annotation
 *
 *   every second or so, off the request path:
 *   gs_policies_supply(policies, ledger);                     reads the ledger: hold its lock
 *   if (gs_policies_refresh_due(policies))
 *       gs_policies_refresh(policies, &err);                  without any lock; milliseconds
 *
 * A gs_policies object belongs to one ledger (results are remembered by node version) and takes 18
 * MiB at most, little of it while rollout is not used. All functions may be called
 * from several threads at once; none waits for a refresh, choosing allocates nothing. A choice of
 * rollout takes up to a millisecond for a large node in a new state, 10 ns once remembered.
 * While a refresh ends, one request may compare losses of the old and the new table: what fits is
 * never wrong, the node may be second best.
 */
struct gs_policies;

/* Pods with GPU memory that rollout wants to have seen before it trusts what it learnt;
 * from there on a refresh is due whenever the number has doubled. */
enum { GS_LEARN_MIN = 16 };

/* One thousandth of a card, in the unit of a loss. */
#define GS_LOSS_MILLI ((int64_t)1 << 16)

/* The loss of a node without GPUs for a pod that wants none: before all others. */
#define GS_LOSS_NOTHING_TO_LOSE (INT64_MIN / 4)

struct gs_choice {
    int64_t loss;     /* smaller is better; comparable between nodes for one ask and policy only */
    gs_gpu_mask gpus; /* gpu_count of them; 0 for a pod without GPU memory */
};

/* NULL when out of memory. */
struct gs_policies *gs_policies_new(void);
void gs_policies_free(struct gs_policies *policies);
GS_DEFINE_CLEANUP(struct gs_policies *, gs_policies_free)

/* One ask before many nodes: what does not depend on the node is worked out once. policies and ask
 * are borrowed; placement, of an ask that names none, is a real policy, not DEFAULT or BROKEN. */
struct gs_chooser {
    struct gs_policies *policies;
    const struct gs_ask *ask;
    enum gs_placement placement;
    bool leaving;       /* pods leave about as fast as they come */
    uint64_t kind, row; /* where the results of this kind of pod are remembered */
    uint32_t worked;    /* choices of rollout that were not remembered and took long */
    bool hurried;       /* the caller's: no more of these */
    const struct gs_node_view *alone; /* the caller's: the next node without the places that are
                                         held there, where its view is beside them; else NULL */
};
void gs_chooser_init(struct gs_chooser *ret, struct gs_policies *policies,
                     enum gs_placement placement, const struct gs_ask *ask);

/* False when the ask does not fit the view. Looks at GPUs and, to judge the node, at CPU; whether
 * the CPU suffices is kube-scheduler's question. A pod without GPU memory fits everywhere and gets
 * a loss too: the CPU it takes may strand GPUs. Nothing is remembered about a view of version 0.
 * While hurried, a node about which nothing is remembered
 * has GS_LOSS_UNKNOWN, and no GPUs; what is remembered may be of the tables before the last
 * refresh, or of the node `alone`. */
#define GS_LOSS_UNKNOWN INT64_MAX
bool gs_chooser_choose(struct gs_chooser *chooser, const struct gs_node_view *view,
                       struct gs_choice *ret);

/* Counts one pod more of the ask's kind (CPU, units, number of GPUs, models). Broken asks and those
 * that name a GPU by UUID are not counted: they say nothing about what comes next. Memory is
 * bounded: at most 4096 kinds, the rarest are forgotten first, and old pods fade (all counts are
 * halved at 131072). */
void gs_policies_learn(struct gs_policies *policies, const struct gs_ask *ask);

/* A pod with GPU memory has left its node. Once every fourth of the last few hundred that came or
 * went has left, rollout counts what a node has free against it: nodes that empty stay empty for
 * those that want a whole one. Not any more below an eighth. */
void gs_policies_left(struct gs_policies *policies);

/* Notes how much GPU memory of which model the ledger's nodes have: rollout keeps scarce models for
 * the pods that can run nowhere else. Microseconds; the ledger must not change meanwhile. */
void gs_policies_supply(struct gs_policies *policies, const struct gs_ledger *ledger);

/* Enough was learnt since the last refresh, or GPU models have come or gone. */
bool gs_policies_refresh_due(struct gs_policies *policies);

/* Builds the tables from what was learnt and puts them into service; due or not. Does nothing while
 * less than GS_LEARN_MIN pods are known. GS_ENOMEM: the old tables stay. */
int gs_policies_refresh(struct gs_policies *policies, struct gs_error *err);

/* kube-scheduler's 0..10 (extender/v1 MaxExtenderPriority) from losses: 10 for the least, 9 below 5
 * thousandths of a card behind it, 8 below 10, then 20, 40, … 1280: equal nodes are left to the
 * user's preferences. Entries with fits[i] false get 0. */
void gs_policy_scores(const int64_t *loss, const bool *fits, size_t count, uint8_t *ret_scores);
