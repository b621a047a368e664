/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_PRINT_H
#define GPUSHARE_APPS_INSPECT_PRINT_H

#include "inspect/app.h"
#include "inspect/view.h"

/* One printer per format, all onto standard output. -1 when out of memory. */

/* The original's summary; wide: more columns, and tables of namespaces and of the cluster. */
int print_summary(const struct view *view, const struct terminal *terminal, bool wide);

/* The original's -d. */
int print_details(const struct view *view, const struct terminal *terminal);

/* Every GPU a bar, every pod a letter. */
int print_map(const struct view *view, const struct terminal *terminal);

/* JSON, or the same as YAML. */
int print_document(const struct view *view, bool yaml);

#endif
