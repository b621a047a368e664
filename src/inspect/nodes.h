/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/columns.h"
#include "inspect/view.h"

/* Nodes as rows. */

/* Exits (bad usage) where output names no column. */
void nodes_check(const char *command, const struct output *output);

/* Puts them into output->sort's order, those that are equal by name. -1: GS_ENOMEM. */
int nodes_sort(struct view *view, const struct output *output);

/* A table or CSV, in the view's order. -1: failed. */
int nodes_print(const struct view *view, const struct output *output,
                const struct terminal *terminal);

/* Its members, in an object that is open. */
void nodes_members(struct doc *doc, const struct view *view, const struct view_node *node,
                   const struct output *output);

/* Of all of them. */
void nodes_total(struct doc *doc, const struct view *view);
