/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/columns.h"
#include "inspect/view.h"

/* GPUs of a node, and pods on a GPU, as rows. */

/* The list "devs" of the node's GPUs among these, each with the list "pods". */
void gpus_document(struct doc *doc, const struct view *view, const struct view_node *node,
                   gs_gpu_mask gpus);
/* The list of its pods on the GPU; NULL: of those that name none. */
void gpus_pods(struct doc *doc, const char *key, const struct view *view,
               const struct view_node *node, const struct view_gpu *gpu);

/* Tables of these GPUs, and of the pods that are charged to one of them, for the page. */
void gpus_tables(struct doc *doc, const struct view *view, const struct view_node *node,
                 gs_gpu_mask gpus);

/* The same on a terminal. -1: failed. */
int gpus_write(FILE *out, const struct view *view, const struct view_node *node, gs_gpu_mask gpus,
               const struct terminal *terminal);
