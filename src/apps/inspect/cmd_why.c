/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/fetch.h"
#include "inspect/lookup.h"
#include "inspect/own.h"
#include "inspect/show.h"
#include "inspect/terminal.h"
#include "inspect/why.h"

/* kubectl inspect gpushare why [POD]: who waits and why; of a pod that runs: where, and beside
 * whom. */

static void read_options(struct why *why, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_FORMAT(&why->format),
        OPT_FLAG("watch", &why->watch,
                 "print again whenever something changes; without POD, text only", .key = 'w'),
        OPT_FLAG("all-namespaces", &why->common.all_namespaces,
                 "pods of all, also with --namespace; without POD only", .key = 'A'),
        SYSTEM_NAMESPACE_OPTION(&why->common),
        COMMON_OPTIONS(&why->common, "namespace of the pod (the context's); without POD: only "
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
        why->name = argv[first];
}

/* "team/" and "/pod" would be read as something else. */
static bool is_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash != name && slash[1] && !strchr(slash + 1, '/') : name[0] != '\0';
}

/* ---- asking ---- */

static void find_namespace(struct why *why)
{
    const char *slash = strchr(why->name, '/');
    if (!slash) {
        snprintf(why->ns, sizeof(why->ns), "%s", why->common.source.ns);
        return;
    }
    snprintf(why->ns, sizeof(why->ns), "%.*s", (int)(slash - why->name), why->name);
    why->name = slash + 1;
}

/* The first container that cannot start, init containers first; "" when none says so. */
static void find_stuck(const json_t *status, char *to, size_t size)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
    for (size_t l = 0; l < 2 && !to[0]; l++) {
        size_t i;
        json_t *container;
        json_array_foreach(json_object_get(status, lists[l]), i, container)
        {
            const char *reason = lookup_text(container, "state", "waiting", "reason", NULL);
            const char *message = lookup_text(container, "state", "waiting", "message", NULL);
            if (to[0] || !reason[0] || strcmp(reason, "ContainerCreating") == 0 ||
                strcmp(reason, "PodInitializing") == 0)
                continue;
            snprintf(to, size, "container %s waits: %s%s%s", lookup_text(container, "name", NULL),
                     reason, message[0] ? ": " : "", message);
        }
    }
}

/* What others wrote about the pod. */
static void read_words(struct why *why, const json_t *status)
{
    const json_t *said = lookup_condition(status, "PodScheduled");
    const char *reason = lookup_text(status, "reason", NULL);
    const char *message = lookup_text(status, "message", NULL);
    snprintf(why->said, sizeof(why->said), "%s", lookup_text(said, "message", NULL));
    if (reason[0] || message[0])
        snprintf(why->trouble, sizeof(why->trouble), "%s%s%s", reason,
                 reason[0] && message[0] ? ": " : "", message);
    else
        find_stuck(status, why->trouble, sizeof(why->trouble));
    gs_utf8_calm(why->said);
    gs_utf8_calm(why->trouble);
}

static int fetch_pod(struct why *why, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    source_pods(&path, why->ns, why->name);
    if (gs_buf_failed(&path))
        return gs_fail(err, GS_EINVAL, "the pod's name is too long");
    if (source_get(&why->common.source, path.data, NULL, &body, err) < 0) {
        if (err->code == GS_ENOENT) {
            gs_error_clear(err);
            gs_fail(err, GS_ENOENT, "there is no pod %.100s in namespace %.100s (give -n)",
                    why->name, why->ns);
        }
        return -1;
    }
    json_auto_t *tree = lookup_parse(&body);
    read_words(why, json_object_get(tree, "status"));
    const struct gs_slice text = {body.data, body.len};
    if (gs_codec_pod(&why->common.names, text, &why->pod, err) < 0)
        return -1;
    calm_pod(&why->pod.arena, &why->pod);
    gs_ask_of_pod(&why->ask, &why->pod);
    why->state = !gs_pod_wants_gpu(&why->pod) ? WHY_NO_GPU
                 : gs_pod_terminal(&why->pod) ? WHY_ENDED
                 : why->pod.node_name[0]      ? WHY_BOUND
                                              : WHY_WAITING;
    return 0;
}

static int fetch_all(struct why *why, struct gs_error *err)
{
    const struct fetch fetch = {.common = &why->common,
                                .node =
                                    why->name && why->pod.node_name[0] ? why->pod.node_name : NULL};
    return fetch_cluster(&fetch, &why->snapshot, NULL, err);
}

static void find_facts(struct why *why)
{
    const struct gs_ledger *ledger = why->snapshot.cluster.ledger;
    why->unit = verdict_unit(&why->snapshot);
    why->scheduler = snapshot_scheduler(&why->snapshot);
    if (why->state == WHY_WAITING)
        verdict_of(&why->snapshot, &why->ask, &why->verdict);
    if (why->verdict.other[GS_OBSTACLE_NONE].nodes)
        promised_fetch(&why->common, why->pod.uid, &why->promised);
    why->charged = gs_ledger_find_claim(ledger, why->pod.uid, &why->own);
    if (!why->charged)
        return;
    why->view = gs_ledger_view(ledger, gs_slice_of(why->own.node));
    why->use = usage_pod_find(&why->usage, why->own.node, why->own.uid);
}

/* -1 when the cluster could not be read; what the pod itself says is told all the same. */
static int tell_pod(struct why *why, struct gs_error *err)
{
    const struct usage_query query = common_usage(&why->common, why->pod.node_name);
    bool needs_cluster = why->state >= WHY_BOUND;
    if (needs_cluster && fetch_all(why, err) < 0) {
        if (why->format == FORMAT_TEXT)
            why_tell_alone(why);
        return -1;
    }
    if (why->state == WHY_BOUND)
        usage_fetch(&query, &why->usage);
    if (needs_cluster)
        find_facts(why);
    if (why->format != FORMAT_TEXT)
        return why_document(why) < 0 ? fail_output(err) : 0;
    why_tell(why);
    return fflush(stdout) != 0 ? fail_output(err) : 0;
}

/* ---- all that wait ---- */

/* When the extender is away no pod has a verdict: the one that waits longest is asked about it. */
static void warn_away(const struct why *why, const struct waits *waits)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    struct gs_error ignored = {0};
    if (!waits->count)
        return;
    const struct gs_pod *pod = &waits->all[0].waiting->pod;
    source_pods(&path, pod->ns, pod->name);
    if (gs_buf_failed(&path))
        return;
    json_auto_t *tree = lookup_json(&why->common.source, path.data, NULL, &ignored);
    const json_t *condition = lookup_condition(json_object_get(tree, "status"), "PodScheduled");
    if (why_extender_is_away(lookup_text(condition, "message", NULL)))
        fputs(PROGRAM ": kube-scheduler gets no answer from the extender: kubectl inspect gpushare "
                      "doctor\n",
              stderr);
}

static int print_list(const struct why *why, const struct waits *waits)
{
    struct doc doc;
    if (why->format == FORMAT_TEXT) {
        if (!waits->count)
            fputs("No pod waits for GPU memory.\n", stderr);
        return waits_print(waits, &why->common.app->terminal, common_now_s(&why->common));
    }
    doc_open(&doc, stdout, why->format == FORMAT_YAML);
    doc_text(&doc, "unit", waits->unit);
    waits_document(&doc, waits);
    return doc_close(&doc);
}

static int list(struct why *why, struct gs_error *err)
{
    struct waits waits;
    const char *ns = why->common.all_namespaces ? NULL : why->common.ns;
    int result = waits_find(&why->snapshot, ns, &waits, err);
    if (result == 0 && (print_list(why, &waits) < 0 || fflush(stdout) != 0))
        result = fail_output(err);
    if (result == 0)
        warn_away(why, &waits);
    waits_release(&waits);
    return result;
}

static int tell_all(struct why *why, struct gs_error *err)
{
    const struct own_query query = {.common = &why->common,
                                    .ns = why->common.all_namespaces ? NULL : why->common.ns,
                                    .waiting = true};
    if (fetch_all(why, err) == 0)
        return list(why, err);
    if (why->format != FORMAT_TEXT)
        return -1;
    return own_instead(&query, err);
}

static int watch(struct why *why, struct gs_error *err)
{
    const struct show show = {.fetch = {.common = &why->common},
                              .view.ns = why->common.all_namespaces ? NULL : why->common.ns,
                              .format = SHOW_WAITS};
    return show_watch(&show, err);
}

static int run(struct why *why, struct gs_error *err)
{
    if (why->watch)
        return watch(why, err);
    if (!why->name)
        return tell_all(why, err);
    find_namespace(why);
    return fetch_pod(why, err) < 0 ? -1 : tell_pod(why, err);
}

int cmd_why(const struct app *app, int argc, char **argv)
{
    struct why why = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    read_options(&why, argc, argv);
    if (why.name && !is_name(why.name)) {
        fprintf(stderr, "%s: \"%s\" is not [NAMESPACE/]POD\n", argv[0], why.name);
        return 2;
    }
    if (why.watch && (why.name || why.format != FORMAT_TEXT))
        return complain_usage(argv[0], "--watch follows all that wait, as a table: without POD");
    int result = common_connect(&why.common, app, &err);
    if (result == 0)
        result = run(&why, &err);
    gs_pod_release(&why.pod);
    usage_release(&why.usage);
    snapshot_release(&why.snapshot);
    source_close(&why.common.source);
    return result == 0 ? 0 : complain(&err);
}
