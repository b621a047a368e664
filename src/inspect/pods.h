/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/columns.h"
#include "inspect/view.h"

/* The memory of bound pods, by pod or summed up: requested, used, unused, recommended, limited. */
enum pods_by { PODS_BY_OWNER, PODS_BY_POD, PODS_BY_NAMESPACE, PODS_BY_NODE, PODS_ON_GPU };

struct pods_options {
    enum pods_by by;
    bool over; /* only pods that use, or used, more than they requested */
};

bool pods_by_parse(void *to, const char *text);

/* Exits (bad usage) where output names no column. */
void pods_check(const struct pods_options *options, const char *command,
                const struct output *output);

/* A row of a pod; of PODS_ON_GPU on one of its GPUs, NULL: it names none. */
void pods_row(struct sheet *to, enum pods_by by, const struct view *view,
              const struct view_node *node, const struct gs_claim *claim,
              const struct view_gpu *gpu);

/* Bytes on all its GPUs; COLUMN_UNKNOWN unless each of them is measured. */
uint64_t pods_unused(const struct usage_pod *pod);

/* At most so many rows for the page, of the pods that the view's filter means. */
void pods_table(struct doc *doc, const struct table *table, const struct view *view,
                const struct pods_options *options);

/* The rows, and what is missing of them on standard error. -1: failed. */
int pods_print(const struct view *view, const struct pods_options *options,
               const struct output *output, const struct terminal *terminal);
