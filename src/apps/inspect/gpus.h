/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_GPUS_H
#define GPUSHARE_APPS_INSPECT_GPUS_H

#include "inspect/columns.h"
#include "inspect/view.h"

/* GPUs of a node, and pods on a GPU, as rows. */

/* The members of one, in an object that is open. */
void gpus_members(struct doc *doc, const struct view_node *node, const struct view_gpu *gpu);

/* Entries of a list that is open: those of the node's GPUs, each with the list "pods". */
void gpus_document(struct doc *doc, const struct view *view, const struct view_node *node,
                   gs_gpu_mask gpus);
/* The list of its pods that name no GPU. */
void gpus_document_stray(struct doc *doc, const char *key, const struct view *view,
                         const struct view_node *node);

/* Tables of these GPUs, and of the pods that are charged to one of them, for the page. */
void gpus_tables(struct doc *doc, const struct view *view, const struct view_node *node,
                 gs_gpu_mask gpus);

/* The same on a terminal. -1: failed. */
int gpus_write(FILE *out, const struct view *view, const struct view_node *node, gs_gpu_mask gpus,
               const struct terminal *terminal);

#endif
