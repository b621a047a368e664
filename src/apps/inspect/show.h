/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_SHOW_H
#define GPUSHARE_APPS_INSPECT_SHOW_H

#include "inspect/bound.h"
#include "inspect/fetch.h"
#include "inspect/view.h"

/* The tables, once or again and again. */
enum show_format {
    SHOW_TABLE,
    SHOW_WIDE,
    SHOW_JSON,
    SHOW_YAML,
    SHOW_MAP,
    SHOW_WAITS,
    SHOW_STRANDED,
    SHOW_LIMITS
};

struct show {
    struct fetch fetch;
    struct view_options view;
    const struct bound *bound; /* of SHOW_STRANDED: who could move; NULL: not known */
    enum show_format format;
    bool details;
    bool watch;
};

/* Prints what the snapshot holds. */
int show_once(const struct show *show, struct snapshot *snapshot, struct gs_error *err);

/* --watch: until SIGINT or SIGTERM. */
int show_watch(const struct show *show, struct gs_error *err);

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
