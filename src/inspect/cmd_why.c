/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "inspect/fetch.h"
#include "inspect/show.h"
#include "inspect/terminal.h"
#include "inspect/why.h"

/* kubectl inspect gpushare why [POD]: who waits and why; of a pod that runs: where, and with
 * which pods. */

struct asking {
    struct common common;
    const char *name; /* "POD" or "NAMESPACE/POD"; NULL: all that wait */
    struct show show; /* of all that wait */
    struct snapshot snapshot;
    struct usage usage; /* of its node, once it has one */
    struct view view;
    struct why why;
};

static void read_options(struct asking *asking, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FORMAT_OF_ROWS(&asking->show.output),
        OPT_SORT_OF_ROWS(&asking->show.output),
        OPT_FLAG("all", &asking->show.all,
                 "one row for each pod, not for pods of one owner and reason"),
        OPT_FLAG("all-namespaces", &asking->common.all_namespaces,
                 "pods of all namespaces, the default; overrides --namespace; only without POD",
                 .key = 'A'),
        SYSTEM_NAMESPACE_OPTION(&asking->common),
        NAMESPACE_OPTION(
            &asking->common,
            "namespace of POD (default: the context's), or of the pods to list (default: all)"),
        COMMON_OPTIONS(&asking->common),
    };
    asking->name = common_parse(
        argc, argv, "[[NAMESPACE/]POD]",
        "Lists the pods that are pending for GPU memory, for how long, and why. For a pending POD: "
        "how many nodes are rejected for each reason, and the closest candidate, the node that "
        "lacks least. For a running POD: its node, its GPUs, and the pods that share them.",
        table, sizeof(table) / sizeof(table[0]));
}

/* "team/" and "/pod" would be read as something else. */
static bool is_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash != name && slash[1] && !strchr(slash + 1, '/') : name[0] != '\0';
}

/* ---- asking ---- */

/* -1 when the cluster could not be read; what the pod itself says is told all the same. */
static int find_pod(struct asking *asking, struct gs_error *err)
{
    struct why *why = &asking->why;
    const struct usage_query query = common_usage(&asking->common, why->pod.node_name);
    const struct view_options options = {.usage = &asking->usage};
    const struct fetch fetch = {.common = &asking->common,
                                .node = why->pod.node_name[0] ? why->pod.node_name : NULL};
    if (why->state < WHY_BOUND)
        return 0;
    if (fetch_cluster(&fetch, &asking->snapshot, NULL, err) < 0)
        return -1;
    if (why->state == WHY_BOUND)
        usage_fetch(&query, &asking->usage);
    if (view_build(&asking->snapshot, &options, &asking->view, err) < 0)
        return -1;
    why_find(why, &asking->view);
    return 0;
}

static int run(struct asking *asking, struct gs_error *err)
{
    const char *slash = strchr(asking->name, '/');
    const enum output_format format = asking->show.output.format;
    char ns[256];
    snprintf(ns, sizeof(ns), "%.*s", slash ? (int)(slash - asking->name) : INT_MAX,
             slash ? asking->name : asking->common.source.ns);
    if (why_fetch(&asking->why, ns, slash ? slash + 1 : asking->name, 0, err) < 0)
        return -1;
    int result = find_pod(asking, err);
    if (format < OUTPUT_JSON)
        why_tell(&asking->why, stdout);
    else if (result == 0)
        result = why_document(&asking->why, format == OUTPUT_YAML);
    return fflush(stdout) == 0 && result == 0 ? 0 : fail_output(err);
}

int cmd_why(const struct app *app, int argc, char **argv)
{
    struct asking asking = {.common = COMMON_DEFAULTS, .why.common = &asking.common};
    struct show *show = &asking.show;
    struct gs_error err = {0};
    read_options(&asking, argc, argv);
    waits_check(argv[0], &show->output);
    show->what = SHOW_WAITS;
    if (!asking.name)
        return show_run(app, show, &asking.common);
    if (!is_name(asking.name)) {
        fprintf(stderr, "%s: \"%s\" is not [NAMESPACE/]POD\n", argv[0], asking.name);
        return 2;
    }
    if (show->all || show->output.columns || show->output.format == OUTPUT_CSV)
        return complain_usage(argv[0], "--all, --columns and CSV are of the list of "
                                       "pending pods: leave out POD");
    int result = common_connect(&asking.common, app, &err);
    if (result == 0)
        result = run(&asking, &err);
    why_release(&asking.why);
    view_release(&asking.view);
    usage_release(&asking.usage);
    snapshot_release(&asking.snapshot);
    return common_end(&asking.common, result, &err);
}
