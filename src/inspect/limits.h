/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/ledger.h"
#include "inspect/usage.h"

/*
 * Whether pods are limited to their request (docs/limits.md): what device plugins wrote of their
 * GPUs into the inventories, and what they say of --enforce and of pods; and which pods the mode
 * `required` would not let start again as they are.
 */
struct view_node;

/* What limits pods on the node's GPUs: a word that all of them have ("dmem", "mig",
 * "none"), "some"; NULL: its plugin does not report it. */
const char *limits_enforced(const struct view_node *node);
/* Why not, on the first of its GPUs where nothing does; NULL: there is none. */
const char *limits_why_not(const struct view_node *node);

/* Sets limited_gpus and blocked_pods. whole: all pods of the node are in it. */
void limits_count(struct view_node *node, const struct usage *usage, bool whole);

/* How much of that the pod's limit does not allow it on a GPU. */
uint64_t limits_over(const struct usage_pod *pod, uint64_t bytes);

/* Why `required` would hold the pod back: its words, or NULL. */
enum { LIMITS_TEXT_BYTES = 320 };
const char *limits_hold(const struct view_node *node, const struct gs_claim *claim,
                        const struct usage *usage, char text[LIMITS_TEXT_BYTES]);
