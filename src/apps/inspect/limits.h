/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_LIMITS_H
#define GPUSHARE_APPS_INSPECT_LIMITS_H

#include "gpushare/core/ledger.h"
#include "inspect/terminal.h"
#include "inspect/usage.h"

/*
 * Whether pods are kept to their share (docs/limits.md): what device plugins wrote of their GPUs
 * into the inventories, and what they say of --enforce and of pods; and which pods the mode
 * `required` would not let start again as they are.
 */
struct view;
struct view_node;

/* What keeps pods to their share on the node's GPUs: a word that all of them have ("dmem", "mig",
 * "none"), "some", "-" when its plugin does not tell. */
const char *limits_enforced(const struct view_node *node);

/* Of a node, or of all. */
struct limits_row {
    uint32_t limited_gpus; /* something keeps pods there to their share */
    uint32_t held_pods;    /* `required` would hold them back, as far as is known */
    uint64_t over_pods;    /* of these: they use more than their share */
};
struct limits_row limits_of(const struct view_node *node, const struct usage *usage);
void limits_add(struct limits_row *sum, const struct limits_row *row);

/* How much of that the pod's limit does not allow it on a GPU. */
uint64_t limits_over(const struct usage_pod *pod, uint64_t bytes);

/* Why `required` would hold the pod back: its words, or NULL. */
enum { LIMITS_TEXT_BYTES = 320 };
const char *limits_hold(const struct view_node *node, const struct gs_claim *claim,
                        const struct usage *usage, char text[LIMITS_TEXT_BYTES]);

/* Nodes, pods that are held back for what they do themselves, and the sums, onto standard output.
 * -1: out of memory. */
int print_limits(const struct view *view, const struct terminal *terminal);

#endif
