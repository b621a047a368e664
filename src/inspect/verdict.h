/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/columns.h"
#include "inspect/snapshot.h"

/*
 * Why nodes cannot take a pod, in groups: one line per reason with how many nodes, and the node
 * that comes nearest to it. The verdict is core/place.h's, the reasons are those of
 * kube-scheduler's messages.
 */
enum { VERDICT_TAINTS = 6 };
struct verdict_group {
    enum gs_obstacle obstacle;
    enum gs_reason reason; /* of GS_OBSTACLE_GPU, else GS_FITS */
    uint32_t nodes;
    /* the closest candidate; NULL when the GPUs tell nothing, or none of these nodes could take it
     */
    const char *nearest;
    uint32_t nearest_gpu;
    uint32_t nearest_free_units;
    uint32_t missing_units;                        /* there; 0: it is not memory that is missing */
    const struct gs_taint *taints[VERDICT_TAINTS]; /* of GS_OBSTACLE_TAINT: each once */
};

/* "the node is cordoned …", and "cordoned" as json has it; of nodes that fit "" and "fits". Static.
 */
const char *verdict_text(const struct verdict_group *group);
const char *verdict_label(const struct verdict_group *group);

/* What keeps the pod from every node, by its own object; NULL: nothing. Static. */
const char *verdict_own(const struct gs_pod *pod);

/* That text with the group's taints, " (key=value:effect, …)". NULL: out of memory. */
const char *verdict_reason(struct gs_arena *arena, const struct verdict_group *group);
/* "large GPU3: 35 free, 15 missing", a node's name, or NULL. */
const char *verdict_closest(struct gs_arena *arena, const struct verdict_group *group);
/* The closest candidate as columns of documents. */
void verdict_closest_columns(struct sheet *to, const struct verdict_group *group);

struct verdict {
    struct verdict_group
        groups[GS_OBSTACLES + GS_REASONS]; /* the GPUs' reasons behind the others */
    uint32_t nodes;
};

void verdict_of(const struct snapshot *snapshot, const struct gs_ask *ask, struct verdict *ret);

/* The nodes that come nearest to taking it. */
const struct verdict_group *verdict_nearest(const struct verdict *verdict);

/* Equal: the verdict about one is that about the other; a pod with a hold of its own, which does
 * not stand in its way, has no equal. NULL: out of memory. */
const char *verdict_key(struct gs_arena *arena, const struct gs_ask *ask, const struct gs_pod *pod);

/* The groups as a table, those of most nodes first, without nodes that fit. -1: failed. */
int verdict_write(FILE *out, const struct verdict *verdict, const struct terminal *terminal);
/* The same as the member "reasons". */
void verdict_document(struct doc *doc, const struct verdict *verdict);

/* "GiB", or "units" when no inventory tells or nodes differ. */
const char *verdict_unit(const struct snapshot *snapshot);
