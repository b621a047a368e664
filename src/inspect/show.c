/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/show.h"

#include <stdio.h>

#include "inspect/why.h"

static bool is_document(const struct output *output)
{
    return output->format == OUTPUT_JSON || output->format == OUTPUT_YAML;
}

/* Nothing to show is said on standard error, as kubectl says it. */
static void say_empty(const struct show *show, const struct view *view)
{
    if (show->what == SHOW_WAITS && !view->waits.count && !is_document(&show->output))
        fputs("No pod with GPU memory is pending.\n", stderr);
    if (show->what == SHOW_WAITS || view->node_count > 0)
        return;
    if (show->fetch.node && !show->view.ns)
        fprintf(stderr, "Node %s has no GPU memory (%s).\n", show->fetch.node,
                show->fetch.common->names.gpu_mem);
    else if (show->view.ns)
        fprintf(stderr, "No pod of namespace %s has GPU memory (%s).\n", show->view.ns,
                show->fetch.common->names.gpu_mem);
    else
        fprintf(stderr, "No node%s has GPU memory (%s).\n",
                show->fetch.selector ? " that matches the selector" : " of this cluster",
                show->fetch.common->names.gpu_mem);
}

static int print_waits(const struct show *show, const struct waits *waits, int64_t now_s)
{
    struct doc doc;
    /* When the extender is away no pod has a verdict: the words about the one that waits longest */
    if (waits->count && why_extender_is_away(waits->all[0].pod->said))
        fputs(PROGRAM ": kube-scheduler gets no answer from the extender; run kubectl inspect "
                      "gpushare doctor\n",
              stderr);
    if (!is_document(&show->output))
        return waits_print(waits, &show->output, show->all, &show->fetch.common->app->terminal,
                           now_s);
    doc_open(&doc, stdout, show->output.format == OUTPUT_YAML);
    doc_text(&doc, "unit", waits->unit);
    waits_document(&doc, waits, &show->output);
    return doc_close(&doc);
}

static int print(const struct show *show, const struct view *view)
{
    const struct terminal *terminal = &show->fetch.common->app->terminal;
    if (show->what == SHOW_PODS)
        return pods_print(view, &show->pods, &show->output, terminal);
    if (show->what == SHOW_WAITS)
        return print_waits(show, &view->waits, view->now_s);
    if (is_document(&show->output))
        return print_document(view, &show->output);
    if (view->node_count == 0)
        return 0;
    if (view->mixed_units)
        fputs(PROGRAM
              ": nodes use different memory units, so totals are not comparable (see doctor)\n",
              stderr);
    if (show->what == SHOW_MAP)
        return print_map(view, terminal);
    if (show->details)
        return print_details(view);
    return print_summary(view, &show->output, terminal);
}

/* Device plugins are not asked for what the original's table and the map have. */
static bool shows_use(const struct show *show)
{
    return show->output.format != OUTPUT_TABLE || show->output.columns || show->output.sort ||
           show->what == SHOW_PODS;
}

int show_once(const struct show *show, struct snapshot *snapshot, struct gs_error *err)
{
    struct view view;
    struct usage usage = {0};
    struct view_options options = show->view;
    const struct usage_query query = common_usage(show->fetch.common, show->fetch.node);
    options.waits = show->what == SHOW_WAITS || is_document(&show->output);
    options.now_s = common_now_s(show->fetch.common);
    options.some = show->fetch.node || show->fetch.selector;
    if (shows_use(show))
        usage_fetch(&query, &usage);
    options.usage = &usage;
    int result = view_build(snapshot, &options, &view, err);
    if (result == 0 && show->output.sort && show->what <= SHOW_MAP &&
        nodes_sort(&view, &show->output) < 0)
        result = gs_fail_nomem(err);
    if (result == 0) {
        say_empty(show, &view);
        if (print(show, &view) < 0 || fflush(stdout) != 0)
            result = fail_output(err);
        if (usage.answered) /* else it shows nothing of it */
            usage_say_missing(&usage);
    }
    view_release(&view);
    usage_release(&usage);
    return result;
}
