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

static bool set_format(void *to, const char *text)
{
    static const char *const words[] = {"table", "wide", "json", "yaml", NULL};
    return word_parse(words, to, text);
}

/* text stays what the command is for. */
static bool set_document(void *to, const char *text)
{
    enum show_format *format = to;
    enum format asked;
    if (!format_parse(&asked, text))
        return false;
    if (asked != FORMAT_TEXT)
        *format = asked == FORMAT_JSON ? SHOW_JSON : SHOW_YAML;
    return true;
}

#define SHOW_HELP                                                                                  \
    "Commands, each with a --help of its own:\n"                                                   \
    "  map [NODE]         the same as a picture: a bar for every GPU, a letter for every pod\n"    \
    "  stranded [NODE]    where free memory is of no use, why, and which pod would use it\n"       \
    "  limits [NODE]      whether pods are kept to their share, and whom that would stop\n"        \
    "  why [POD]          who waits for GPU memory, and why; or what one pod has\n"                \
    "  what-if            how many more pods of a size would fit, and where\n"                     \
    "  usage [NODE]       what pods truly use of it, and what they should ask for instead\n"       \
    "  snapshot FILE      the cluster as a file to plan with, without secrets\n"                   \
    "  defrag             which pods would have to move so that those that wait fit\n"             \
    "  nodeoverlay        what Karpenter has to know of instance types with GPU memory\n"          \
    "  web                a live page of all that, for this machine's browser\n"                   \
    "  doctor             what is wrong with the installation, and how to mend it\n"               \
    "\n"                                                                                           \
    "Examples:\n"                                                                                  \
    "  kubectl inspect gpushare -o wide --sort stranded\n"                                         \
    "  kubectl inspect gpushare why -n team-a trainer-0\n"                                         \
    "  kubectl inspect gpushare what-if --gpu-mem 6 --replicas 10"

static void parse(struct show *show, const struct gs_command *command, int argc, char **argv)
{
    int first = gs_options_parse(command, argc, argv);
    if (first < argc)
        show->fetch.node = argv[first];
}

/* Rows that both commands have. */
#define NODES_OPTIONS(show, common)                                                                \
    OPT_FLAG("watch", &(show)->watch, "print again whenever something changes", .key = 'w'),       \
        OPT_STRING("selector", &(show)->fetch.selector, "SELECTOR",                                \
                   "only nodes whose labels match", .key = 'l'),                                   \
        OPT_CUSTOM("sort", &(show)->view.sort, view_sort_parse, VIEW_SORTS,                        \
                   "order of the nodes; most first (name)"),                                       \
        OPT_FLAG("all-namespaces", &(common)->all_namespaces,                                      \
                 "pods of all, also with --namespace", .key = 'A'),                                \
        COMMON_OPTIONS(common, "only pods of this namespace, and only nodes that run one")

#define DOCUMENT_OPTION(show)                                                                      \
    OPT_CUSTOM("output", &(show)->format, set_document, "text|json|yaml",                          \
               "form of the output (text); json and yaml are those of the tables", .key = 'o')

static void read_show_options(struct show *show, struct common *common, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FLAG("details", &show->details, "pods per GPU of every node", .key = 'd'),
        OPT_CUSTOM("output", &show->format, set_format, "table|wide|json|yaml",
                   "form of the output", .key = 'o'),
        USAGE_OPTIONS(common),
        NODES_OPTIONS(show, common),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "GPU memory of every node, or of NODE: who has how much of which GPU.\v" SHOW_HELP,
        .operands = "[NODE]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = 1,
        .quiet = true,
    };
    parse(show, &command, argc, argv);
}

/* What is shown of nodes, as a picture, a table or a document. */
static void read_nodes_options(struct show *show, struct common *common, int argc, char **argv,
                               const char *doc)
{
    const struct gs_option table[] = {
        DOCUMENT_OPTION(show),
        USAGE_OPTIONS(common),
        NODES_OPTIONS(show, common),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = doc,
        .operands = "[NODE]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = 1,
        .quiet = true,
    };
    parse(show, &command, argc, argv);
}

static void read_map_options(struct show *show, struct common *common, int argc, char **argv)
{
    show->format = SHOW_MAP;
    read_nodes_options(show, common, argc, argv,
                       "Draws every GPU, or those of NODE: a bar in proportion to its memory, a "
                       "letter for each pod, a dot for what is free.");
}

static void read_stranded_options(struct show *show, struct common *common, int argc, char **argv)
{
    const struct gs_option table[] = {NODES_OPTIONS(show, common)};
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Where free memory would stay free after a long run of pods like those seen, most "
               "first: why, the largest pod on one GPU that would use it, and which pod would have "
               "to move for a larger one.",
        .operands = "[NODE]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = 1,
        .quiet = true,
    };
    show->format = SHOW_STRANDED;
    show->view.sort = SORT_STRANDED;
    parse(show, &command, argc, argv);
}

static void read_limits_options(struct show *show, struct common *common, int argc, char **argv)
{
    show->format = SHOW_LIMITS;
    read_nodes_options(show, common, argc, argv,
                       "The mode of --enforce on each node, on how many GPUs something keeps pods "
                       "to their share, why not on the others, and the pods that the mode required "
                       "would hold back.");
}

static int show_now(const struct show *show, struct gs_error *err)
{
    struct snapshot snapshot;
    uint64_t broken = 0;
    int result = fetch_cluster(&show->fetch, &snapshot, &broken, err);
    const char *like = show->fetch.common->app->like;
    if (result == 0 && show->fetch.node && !snapshot.nodes)
        result = gs_fail(err, GS_ENOENT, "there is no node and no command %.200s%s%s%s (%s--help)",
                         show->fetch.node, show->fetch.selector ? " that matches" : "",
                         like ? "; did you mean " : "", like ? like : "",
                         like ? "" : "kubectl get nodes; ");
    if (result == 0 && broken)
        fprintf(stderr, PROGRAM ": %llu objects cannot be read and are left out\n",
                (unsigned long long)broken);
    if (result == 0)
        result = show_once(show, &snapshot, err);
    snapshot_release(&snapshot);
    return result;
}

/* Programs that read a document get no other one than they know: the error. */
static int show_own(const struct show *show, struct gs_error *err)
{
    const struct own_query query = {
        .common = show->fetch.common, .ns = show->view.ns, .node = show->fetch.node};
    if (show->format == SHOW_JSON || show->format == SHOW_YAML || show->fetch.selector)
        return -1;
    if (show->watch)
        fputs(PROGRAM ": what may not be listed cannot be followed: once\n", stderr);
    return own_instead(&query, err);
}

static int run(const struct app *app, struct show *show, struct common *common)
{
    struct gs_error err = {0};
    int result = common_connect(common, app, &err);
    show->fetch.common = common;
    show->view.ns = common->all_namespaces ? NULL : common->ns;
    if (result == 0)
        result = show->watch ? show_watch(show, &err) : show_now(show, &err);
    if (result < 0 && err.code == GS_EDENIED)
        result = show_own(show, &err);
    source_close(&common->source);
    return result == 0 ? 0 : complain(&err);
}

int cmd_show(const struct app *app, int argc, char **argv)
{
    struct common common = COMMON_DEFAULTS;
    struct show show = {0};
    read_show_options(&show, &common, argc, argv);
    return run(app, &show, &common);
}

int cmd_map(const struct app *app, int argc, char **argv)
{
    struct common common = COMMON_DEFAULTS;
    struct show show = {0};
    read_map_options(&show, &common, argc, argv);
    return run(app, &show, &common);
}

int cmd_stranded(const struct app *app, int argc, char **argv)
{
    struct common common = COMMON_DEFAULTS;
    struct show show = {0};
    struct bound bound = {.now_s = clock_unix_s(app->clock)};
    const struct gs_watch_sink first = bound_sink(&bound);
    read_stranded_options(&show, &common, argc, argv);
    if (!show.watch && !show.fetch.node) { /* a move wants to know all nodes; a watch, the ledger as
                                              it is */
        show.bound = &bound;
        show.fetch.first = &first;
    }
    int result = run(app, &show, &common);
    bound_release(&bound);
    return result;
}

int cmd_limits(const struct app *app, int argc, char **argv)
{
    struct common common = COMMON_DEFAULTS;
    struct show show = {0};
    read_limits_options(&show, &common, argc, argv);
    return run(app, &show, &common);
}
