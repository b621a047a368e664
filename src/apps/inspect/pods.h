/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_PODS_H
#define GPUSHARE_APPS_INSPECT_PODS_H

#include "inspect/columns.h"
#include "inspect/view.h"

/* The memory of bound pods, by pod or summed up: requested, used, unused, recommended, limited. */
enum pods_by { PODS_BY_OWNER, PODS_BY_POD, PODS_BY_NAMESPACE, PODS_BY_NODE };

struct pods_options {
    enum pods_by by;
    bool over; /* only pods that use, or used, more than they requested */
};

bool pods_by_parse(void *to, const char *text);

/* Exits (bad usage) where output names no column. */
void pods_check(const struct pods_options *options, const char *command,
                const struct output *output);

/* At most so many rows for the page, of the pods that the view's filter means. */
void pods_table(struct doc *doc, const struct table *table, const struct view *view,
                const struct pods_options *options);

/* The rows, and what is missing of them on standard error. -1: failed. */
int pods_print(const struct view *view, const struct pods_options *options,
               const struct output *output, const struct terminal *terminal);

#endif
