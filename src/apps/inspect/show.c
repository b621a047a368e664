/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/show.h"

#include <stdio.h>

#include "inspect/terminal.h"

/* Nothing to show is said on standard error, as kubectl says it. */
static void say_empty(const struct show *show, const struct view *view)
{
    if (view->node_count > 0)
        return;
    if (show->fetch.node && !show->view.ns)
        fprintf(stderr, "Node %s has no GPU memory (%s).\n", show->fetch.node,
                show->fetch.names->gpu_mem);
    else if (show->view.ns)
        fprintf(stderr, "No pod of namespace %s has GPU memory (%s) here.\n", show->view.ns,
                show->fetch.names->gpu_mem);
    else
        fprintf(stderr, "No node%s has GPU memory (%s).\n",
                show->fetch.selector ? " that matches the selector" : " of this cluster",
                show->fetch.names->gpu_mem);
}

static int print(const struct show *show, const struct view *view)
{
    switch (show->format) {
    case SHOW_JSON:
    case SHOW_YAML:
        return print_document(view, show->format == SHOW_YAML);
    case SHOW_TABLE:
    case SHOW_WIDE:
    case SHOW_MAP:
        break;
    }
    if (view->node_count == 0)
        return 0;
    if (view->mixed_units)
        fputs(PROGRAM ": nodes count in different units, sums mean little (see doctor)\n", stderr);
    if (show->format == SHOW_MAP)
        return print_map(view, &show->terminal);
    if (show->details)
        return print_details(view, &show->terminal);
    return print_summary(view, &show->terminal, show->format == SHOW_WIDE);
}

static bool shows_use(const struct show *show)
{
    return show->format == SHOW_TABLE ? show->details : show->format != SHOW_MAP;
}

int show_once(const struct show *show, struct snapshot *snapshot, struct gs_error *err)
{
    struct view view;
    struct usage usage = {0};
    struct view_options options = show->view;
    const struct usage_query query = {.source = show->fetch.source,
                                      .clock = show->clock,
                                      .node = show->fetch.node,
                                      .system_ns = show->system_ns,
                                      .timeout_ns = show->usage_ns};
    int result = snapshot_learnt(snapshot, err);
    options.waits = show->format != SHOW_TABLE;
    options.now_s = clock_unix_s(show->clock);
    if (result == 0 && shows_use(show))
        usage_fetch(&query, &usage);
    options.usage = &usage;
    if (result == 0)
        result = view_build(snapshot, &options, &view, err);
    if (result == 0) {
        say_empty(show, &view);
        if (print(show, &view) < 0 || fflush(stdout) != 0)
            result = fail_output(err);
        if (usage.answered) /* else it shows nothing of it */
            usage_say_missing(&usage);
        view_release(&view);
    }
    usage_release(&usage);
    return result;
}
