/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "inspect/fetch.h"
#include "inspect/lookup.h"
#include "inspect/own.h"
#include "inspect/show.h"
#include "inspect/terminal.h"
#include "inspect/why.h"

/* kubectl inspect gpushare why [POD]: who waits and why; of a pod that runs: where, and beside
 * whom. */

struct asking {
    struct common common;
    const char *name; /* "POD" or "NAMESPACE/POD"; NULL: all that wait */
    char ns[256];
    enum format format;
    bool watch;
    struct snapshot snapshot;
    struct usage usage; /* of its node, once it has one */
    struct why why;
};

static void read_options(struct asking *asking, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FORMAT(&asking->format),
        OPT_FLAG("watch", &asking->watch,
                 "print again whenever something changes; without POD, text only", .key = 'w'),
        OPT_FLAG("all-namespaces", &asking->common.all_namespaces,
                 "pods of all, also with --namespace; without POD only", .key = 'A'),
        SYSTEM_NAMESPACE_OPTION(&asking->common),
        COMMON_OPTIONS(&asking->common, "namespace of the pod (the context's); without POD: only "
                                        "those of this namespace"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Who waits for GPU memory, since when, and why. Of one pod: for every reason how "
               "many nodes, and the nearest miss; of one that runs: its node, its GPUs, and who "
               "shares them.",
        .operands = "[[NAMESPACE/]POD]",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .max_operands = 1,
        .quiet = true,
    };
    int first = gs_options_parse(&command, argc, argv);
    if (first < argc)
        asking->name = argv[first];
}

/* "team/" and "/pod" would be read as something else. */
static bool is_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash != name && slash[1] && !strchr(slash + 1, '/') : name[0] != '\0';
}

/* ---- asking ---- */

static void find_namespace(struct asking *asking)
{
    const char *slash = strchr(asking->name, '/');
    if (!slash) {
        snprintf(asking->ns, sizeof(asking->ns), "%s", asking->common.source.ns);
        return;
    }
    snprintf(asking->ns, sizeof(asking->ns), "%.*s", (int)(slash - asking->name), asking->name);
    asking->name = slash + 1;
}

static int fetch_all(struct asking *asking, struct gs_error *err)
{
    const struct fetch fetch = {
        .common = &asking->common,
        .node = asking->name && asking->why.pod.node_name[0] ? asking->why.pod.node_name : NULL};
    return fetch_cluster(&fetch, &asking->snapshot, NULL, err);
}

/* -1 when the cluster could not be read; what the pod itself says is told all the same. */
static int tell_pod(struct asking *asking, struct gs_error *err)
{
    struct why *why = &asking->why;
    const struct usage_query query = common_usage(&asking->common, why->pod.node_name);
    bool needs_cluster = why->state >= WHY_BOUND;
    if (needs_cluster && fetch_all(asking, err) < 0) {
        if (asking->format == FORMAT_TEXT)
            why_tell_alone(why, stdout);
        return -1;
    }
    if (why->state == WHY_BOUND)
        usage_fetch(&query, &asking->usage);
    if (needs_cluster)
        why_find(why, &asking->snapshot, &asking->usage);
    if (why->verdict.other[GS_OBSTACLE_NONE].nodes)
        promised_fetch(&asking->common, why->pod.uid, &why->promised);
    if (asking->format != FORMAT_TEXT)
        return why_document(why, asking->format == FORMAT_YAML) < 0 ? fail_output(err) : 0;
    why_tell(why, stdout);
    return fflush(stdout) != 0 ? fail_output(err) : 0;
}

/* ---- all that wait ---- */

/* When the extender is away no pod has a verdict: the one that waits longest is asked about it. */
static void warn_away(const struct asking *asking, const struct waits *waits)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    struct gs_error ignored = {0};
    if (!waits->count)
        return;
    const struct gs_pod *pod = &waits->all[0].waiting->pod;
    source_pods(&path, pod->ns, pod->name);
    if (gs_buf_failed(&path))
        return;
    json_auto_t *tree = lookup_json(&asking->common.source, path.data, NULL, &ignored);
    const json_t *condition = lookup_condition(json_object_get(tree, "status"), "PodScheduled");
    if (why_extender_is_away(lookup_text(condition, "message", NULL)))
        fputs(PROGRAM ": kube-scheduler gets no answer from the extender: kubectl inspect gpushare "
                      "doctor\n",
              stderr);
}

static int print_list(const struct asking *asking, const struct waits *waits)
{
    struct doc doc;
    if (asking->format == FORMAT_TEXT) {
        if (!waits->count)
            fputs("No pod waits for GPU memory.\n", stderr);
        return waits_print(waits, &asking->common.app->terminal, common_now_s(&asking->common));
    }
    doc_open(&doc, stdout, asking->format == FORMAT_YAML);
    doc_text(&doc, "unit", waits->unit);
    waits_document(&doc, waits);
    return doc_close(&doc);
}

static int list(struct asking *asking, struct gs_error *err)
{
    struct waits waits;
    const char *ns = asking->common.all_namespaces ? NULL : asking->common.ns;
    int result = waits_find(&asking->snapshot, ns, &waits, err);
    if (result == 0 && (print_list(asking, &waits) < 0 || fflush(stdout) != 0))
        result = fail_output(err);
    if (result == 0)
        warn_away(asking, &waits);
    waits_release(&waits);
    return result;
}

static int tell_all(struct asking *asking, struct gs_error *err)
{
    const struct own_query query = {.common = &asking->common,
                                    .ns = asking->common.all_namespaces ? NULL : asking->common.ns,
                                    .waiting = true};
    if (fetch_all(asking, err) == 0)
        return list(asking, err);
    if (asking->format != FORMAT_TEXT)
        return -1;
    return own_instead(&query, err);
}

static int watch(struct asking *asking, struct gs_error *err)
{
    const struct show show = {.fetch = {.common = &asking->common},
                              .view.ns = asking->common.all_namespaces ? NULL : asking->common.ns,
                              .format = SHOW_WAITS};
    return show_watch(&show, err);
}

static int run(struct asking *asking, struct gs_error *err)
{
    if (asking->watch)
        return watch(asking, err);
    if (!asking->name)
        return tell_all(asking, err);
    find_namespace(asking);
    return why_fetch(&asking->why, asking->ns, asking->name, err) < 0 ? -1 : tell_pod(asking, err);
}

int cmd_why(const struct app *app, int argc, char **argv)
{
    struct asking asking = {.common = COMMON_DEFAULTS, .why.common = &asking.common};
    struct gs_error err = {0};
    read_options(&asking, argc, argv);
    if (asking.name && !is_name(asking.name)) {
        fprintf(stderr, "%s: \"%s\" is not [NAMESPACE/]POD\n", argv[0], asking.name);
        return 2;
    }
    if (asking.watch && (asking.name || asking.format != FORMAT_TEXT))
        return complain_usage(argv[0], "--watch follows all that wait, as a table: without POD");
    int result = common_connect(&asking.common, app, &err);
    if (result == 0)
        result = run(&asking, &err);
    why_release(&asking.why);
    usage_release(&asking.usage);
    snapshot_release(&asking.snapshot);
    source_close(&asking.common.source);
    return result == 0 ? 0 : complain(&err);
}
