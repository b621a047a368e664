/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_DIFF_H
#define GPUSHARE_APPS_INSPECT_DIFF_H

#include "inspect/view.h"

/* What is not the same in two views: nodes are known by name, GPUs by UUID, pods by namespace and
 * name, so that a pod of a StatefulSet that was made anew elsewhere has moved. */
enum diff_kind {
    DIFF_NODE_CAME,
    DIFF_NODE_WENT,
    DIFF_NODE_STATE,
    DIFF_GPU_CAME,
    DIFF_GPU_WENT,
    DIFF_GPU_STATE,
    DIFF_STRANDED, /* more than before */
    DIFF_POD_CAME,
    DIFF_POD_WENT,
    DIFF_POD_MOVED,
    DIFF_POD_WAITS, /* and did not */
    DIFF_KINDS,
};

struct diff_change {
    enum diff_kind kind;
    const char *name;           /* "n1", "n1 GPU3", "team-a/b" */
    const char *before, *after; /* "" where it was not there */
};

struct diff {
    struct diff_change *all; /* by kind */
    size_t count, cap;
    uint32_t counts[DIFF_KINDS];
    uint32_t figures; /* sums, of both views */
    struct view_figure before[VIEW_FIGURES], after[VIEW_FIGURES];
    uint64_t waited, waits; /* pods that wait, before and after */
    const char *unit;
    struct gs_arena texts;
};

/* "node came", "node_came" */
const char *diff_words(enum diff_kind kind);
const char *diff_label(enum diff_kind kind);

/* Both by name, with waits. GS_ENOMEM. Release it also then. */
int diff_find(const struct view *before, const struct view *after, struct diff *ret,
              struct gs_error *err);
void diff_release(struct diff *diff);

#endif
