/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "inspect/common.h"
#include "inspect/fetch.h"
#include "inspect/own.h"
#include "inspect/show.h"
#include "inspect/terminal.h"

/* kubectl inspect gpushare [NODE]: the tables. */

#define SHOW_HELP                                                                                  \
    "Commands, each with its own --help:\n"                                                        \
    "  map [NODE]         a bar for each GPU, with a letter for each pod\n"                        \
    "  why [POD]          pending pods, and why they are pending; or the GPUs of one pod\n"        \
    "  what-if            how many more pods of a given size would fit, and where\n"               \
    "  pods [NODE]        memory that pods request, use and should request; what limits it\n"      \
    "  snapshot FILE      write the cluster to a file for planning, without secrets\n"             \
    "  defrag             pods to evict so that pending pods fit\n"                                \
    "  web                a live page for a browser on this machine\n"                             \
    "  doctor             problems of the installation, and how to fix them\n"                     \
    "\n"                                                                                           \
    "Examples:\n"                                                                                  \
    "  kubectl inspect gpushare -o wide --sort stranded\n"                                         \
    "  kubectl inspect gpushare why -n team-a trainer-0\n"                                         \
    "  kubectl inspect gpushare what-if --gpu-mem 6 --replicas 10"

/* Rows that all have. */
#define PODS_OPTIONS(show, common)                                                                 \
    OPT_STRING("selector", &(show)->fetch.selector, "SELECTOR", "only nodes with matching labels", \
               .key = 'l'),                                                                        \
        OPT_FLAG("all-namespaces", &(common)->all_namespaces,                                      \
                 "pods of all namespaces, the default; overrides --namespace", .key = 'A'),        \
        NAMESPACE_OPTION(common,                                                                   \
                         "only pods of this namespace, and only nodes that run one of them"),      \
        COMMON_OPTIONS(common)

#define NODES_OPTIONS(show, common) OPT_SORT_OF_ROWS(&(show)->output), PODS_OPTIONS(show, common)

static void read_show_options(struct show *show, struct common *common, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FLAG("details", &show->details, "list the pods on each GPU of every node", .key = 'd'),
        OPT_FORMAT_OF_ROWS(&show->output),
        USAGE_OPTIONS(common),
        NODES_OPTIONS(show, common),
    };
    show->fetch.node = common_parse(argc, argv, "[NODE]",
                                    "Lists the GPU memory of every node, or of NODE, and which "
                                    "pods it is allocated to.\v" SHOW_HELP,
                                    table, sizeof(table) / sizeof(table[0]));
    nodes_check(argv[0], &show->output);
}

static void read_map_options(struct show *show, struct common *common, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FORMAT(&show->output.format),
        USAGE_OPTIONS(common),
        NODES_OPTIONS(show, common),
    };
    show->what = SHOW_MAP;
    show->fetch.node =
        common_parse(argc, argv, "[NODE]",
                     "Draws every GPU, or those of NODE: a bar proportional to its memory, a "
                     "letter for each pod, # for pods of other namespaces, dots for free memory.",
                     table, sizeof(table) / sizeof(table[0]));
    nodes_check(argv[0], &show->output);
}

static void read_pods_options(struct show *show, struct common *common, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_CUSTOM("by", &show->pods.by, pods_by_parse, "owner|pod|namespace|node",
                   "one row for each controller (owner, the default), pod, namespace or node"),
        OPT_FLAG("over-request", &show->pods.over,
                 "only pods that use, or used, more than they requested"),
        OPT_FORMAT_OF_ROWS(&show->output),
        OPT_SORT_OF_ROWS(&show->output),
        USAGE_OPTIONS(common),
        PODS_OPTIONS(show, common),
    };
    show->what = SHOW_PODS;
    show->fetch.node = common_parse(
        argc, argv, "[NODE]",
        "Compares the GPU memory that pods requested with what they use now and used at their "
        "peak. Pods over their request come first, then those with most unused memory. -o wide "
        "adds what limits memory, and which pods the mode required of --enforce would block. What "
        "pods use needs device plugins with --pod-usage=on, and a kernel (dmem) or driver (NVML) "
        "that reports it.",
        table, sizeof(table) / sizeof(table[0]));
    pods_check(&show->pods, argv[0], &show->output);
}

static int show_now(const struct show *show, struct gs_error *err)
{
    struct snapshot snapshot;
    uint64_t broken = 0;
    int result = fetch_cluster(&show->fetch, &snapshot, &broken, err);
    if (result == 0 && show->fetch.node && !snapshot.nodes)
        result = gs_fail(err, GS_ENOENT,
                         "no node or command %.200s%s found (see kubectl get nodes, or --help)",
                         show->fetch.node, show->fetch.selector ? " that matches" : "");
    if (result == 0 && broken)
        fprintf(stderr, PROGRAM ": %llu objects were left out because they could not be parsed\n",
                (unsigned long long)broken);
    if (result == 0)
        result = show_once(show, &snapshot, err);
    snapshot_release(&snapshot);
    return result;
}

int show_run(const struct app *app, struct show *show, struct common *common)
{
    struct gs_error err = {0};
    common->live = show->fetch.selector ? "--selector" : NULL;
    int result = common_connect(common, app, &err);
    show->fetch.common = common;
    show->view.ns = common->all_namespaces ? NULL : common->ns;
    if (result == 0)
        result = show_now(show, &err);
    /* Programs that read a document get no other one than they know: the error. */
    if (result < 0 && show->output.format < OUTPUT_JSON && !common->live)
        result = own_print(&show->fetch, show->view.ns, show->what == SHOW_WAITS, &err);
    return common_end(common, result, &err);
}

static int run(const struct app *app, int argc, char **argv,
               void (*read)(struct show *, struct common *, int, char **))
{
    struct common common = COMMON_DEFAULTS;
    struct show show = {0};
    read(&show, &common, argc, argv);
    return show_run(app, &show, &common);
}

int cmd_show(const struct app *app, int argc, char **argv)
{
    return run(app, argc, argv, read_show_options);
}

int cmd_map(const struct app *app, int argc, char **argv)
{
    return run(app, argc, argv, read_map_options);
}

int cmd_pods(const struct app *app, int argc, char **argv)
{
    return run(app, argc, argv, read_pods_options);
}
