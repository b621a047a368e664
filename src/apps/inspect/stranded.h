/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_STRANDED_H
#define GPUSHARE_APPS_INSPECT_STRANDED_H

#include "inspect/bound.h"
#include "inspect/terminal.h"
#include "inspect/view.h"

/* Where free memory is stranded (core/fragmentation.h), why, and what pod would use it. */
struct stranded_row {
    uint64_t units, free_units;
    uint32_t pieces;   /* GPUs with something free */
    uint32_t largest;  /* units: the largest pod on one GPU that would use it */
    int64_t cpu_milli; /* which may ask for so much CPU; -1: not known */
    const char *why;
};
struct stranded_row stranded_of(const struct view_node *node);

/* A table, most first, and the sum, onto standard output. bound (NULL: not known): for the first
 * nodes the move of one pod is looked for after which a pod fits that is larger than each piece; it
 * is carried out on the snapshot's ledger, of which the view is. -1: out of memory. */
int print_stranded(const struct view *view, const struct bound *bound,
                   const struct terminal *terminal);

#endif
