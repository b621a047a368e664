/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_VERDICT_H
#define GPUSHARE_APPS_INSPECT_VERDICT_H

#include "inspect/doc.h"
#include "inspect/snapshot.h"

/*
 * Why nodes cannot take a pod, in groups: one line per reason with how many nodes, and the node
 * that comes nearest to it. The verdict is core/place.h's, the reasons are those of
 * kube-scheduler's messages.
 */
struct verdict_group {
    uint32_t nodes;
    /* the nearest miss; NULL when the GPUs tell nothing, or none of these nodes could take it */
    const char *nearest;
    uint32_t nearest_gpu;
    uint32_t nearest_free_units;
    uint32_t missing_units; /* there; 0: it is not memory that is missing */
};

/* "the node is cordoned …", and "cordoned" as json has it; of GS_OBSTACLE_GPU those of the reason,
 * of GS_OBSTACLE_NONE "" and "fits". Static. */
const char *verdict_text(enum gs_obstacle obstacle, enum gs_reason reason);
const char *verdict_label(enum gs_obstacle obstacle, enum gs_reason reason);

struct verdict {
    struct verdict_group gpu[GS_REASONS];
    struct verdict_group other[GS_OBSTACLES];
    uint32_t nodes;
};

void verdict_of(const struct snapshot *snapshot, const struct gs_ask *ask, struct verdict *ret);

/* The nodes that come nearest to taking it, and what is in the way there: with GS_OBSTACLE_GPU a
 * reason, else GS_FITS. */
const struct verdict_group *verdict_nearest(const struct verdict *verdict,
                                            enum gs_obstacle *ret_obstacle,
                                            enum gs_reason *ret_reason);

/* 0: but for what they say about nodes and their own holds, the verdict about one is that about the
 * other. */
int verdict_order(const struct gs_ask *left, const struct gs_ask *right);

/* Prints the groups, one line each, those of most nodes first; nothing for nodes that fit. */
void verdict_print(const struct verdict *verdict, const char *unit, FILE *out);

/* The member "reasons", of the same; gpus: with the nearest node's GPU. */
void verdict_document(struct doc *doc, const struct verdict *verdict, bool gpus);
/* What is asked for. */
void verdict_ask_document(struct doc *doc, const struct gs_ask *ask);

/* "GiB", or "units" when no inventory tells or nodes differ. */
const char *verdict_unit(const struct snapshot *snapshot);

#endif
