/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/node.h"
#include "inspect/calm.h"
#include "inspect/fetch.h"
#include "inspect/terminal.h"
#include "inspect/what_if.h"

/* kubectl inspect gpushare what-if: how many such pods would find a place now, and where; also in a
 * cluster with more nodes, or fewer. */

enum { NODES_ADDED_MAX = 10000 };

struct what_if {
    struct common common;
    const char *model; /* --gpu-model */
    struct gs_ask ask;
    const char *sizes;    /* --gpu-mem */
    const char *manifest; /* -f */
    const char *add;      /* --add-node */
    const char *without;  /* --without-node, a comma list */
    uint32_t replicas;
    enum gs_placement policy;
    enum format format;
    struct snapshot snapshot;
    struct orders orders;
    uint32_t left_out; /* nodes of --without-node that there are */
};

static void read_options(struct what_if *run, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_STRING("gpu-mem", &run->sizes, "N[xR][,N[xR]...]",
                   "units of memory that each GPU gives; several sizes, each with how many pods",
                   .key = 'm'),
        OPT_U32("gpu-count", &run->ask.gpu_count, "N", "GPUs per pod (1)", .key = 'c'),
        OPT_U32("gpu-core", &run->ask.cores_pct, "N", "percent of one GPU's compute per pod"),
        OPT_U32("replicas", &run->replicas, "N", "how many pods, where the size does not say (1)",
                .key = 'r'),
        OPT_STRING("gpu-model", &run->model, "LIST",
                   "only GPUs whose model has one of these words in it"),
        OPT_STRING("filename", &run->manifest, "FILE",
                   "place the pods of this manifest: Pod, Deployment, StatefulSet, Job; - is "
                   "standard input",
                   .key = 'f'),
        OPT_STRING("add-node", &run->add, "NODE[=N]", "as if there were N more nodes like NODE"),
        OPT_STRING("without-node", &run->without, "NODE[,NODE...]",
                   "as if these were drained: their pods have to find another place first"),
        OPT_POLICY(&run->policy),
        OPT_FORMAT(&run->format),
        COMMON_OPTIONS(&run->common, "has no effect: all pods count"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "How many pods would fit now, where they would go, and what is in the way of the "
               "others. The placement code is the extender's; the cluster is left alone.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .quiet = true,
    };
    gs_options_parse(&command, argc, argv);
}

static const char *wrong(const struct what_if *run)
{
    if (!run->sizes && !run->manifest && !run->without)
        return "--gpu-mem is needed: how much of each GPU a pod asks for, such as --gpu-mem 6; or "
               "-f FILE, or --without-node NODE";
    if (!run->ask.gpu_count || run->ask.gpu_count > GS_GPUS_MAX)
        return "--gpu-count is 1 to 64";
    if (run->ask.cores_pct > GS_CORES_PCT || (run->ask.cores_pct && run->ask.gpu_count > 1))
        return "--gpu-core is 1 to 100, and of one GPU";
    if (!run->replicas || run->replicas > REPLICAS_MAX)
        return "--replicas is 1 to 100000";
    return NULL;
}

/* Sizes come last, after pods that have to move; what is wrong with them is bad usage at once. */
static int check_sizes(const struct what_if *run, struct gs_error *err)
{
    struct orders ignored = {0};
    int result =
        run->sizes ? orders_of_sizes(&ignored, run->sizes, &run->ask, run->replicas, err) : 0;
    orders_release(&ignored);
    return result;
}

/* ---- the cluster, without some nodes ---- */

static bool is_left_out(const struct what_if *run, const char *node)
{
    size_t len = strlen(node);
    for (const char *at = run->without; at && *at && len;) {
        size_t word = strcspn(at, ",");
        if (word == len && strncmp(at, node, len) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return false;
}

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct what_if *run = ctx;
    if (kind == GS_KIND_NODE)
        run->left_out = 0;
    else
        orders_release(&run->orders);
    return 0;
}

static int on_node(void *ctx, const struct gs_node *node)
{
    struct what_if *run = ctx;
    const bool out = is_left_out(run, node->name);
    run->left_out += out;
    return out;
}

/* What ran on a node that is left out has to find another place. */
static int on_pod(void *ctx, const struct gs_pod *pod)
{
    struct what_if *run = ctx;
    struct gs_error ignored = {0};
    if (!is_left_out(run, pod->node_name))
        return 0;
    if (!gs_pod_wants_gpu(pod) || gs_pod_terminal(pod))
        return 1;
    return orders_of_pod(&run->orders, pod, &ignored) < 0 ? -1 : 1;
}

static int load(struct what_if *run, struct gs_error *err)
{
    const struct gs_watch_sink first = {
        .ctx = run, .list_begin = on_list_begin, .node = on_node, .pod = on_pod};
    const struct fetch fetch = {.common = &run->common, .first = &first};
    if (fetch_cluster(&fetch, &run->snapshot, NULL, err) < 0)
        return -1;
    if (run->without && !run->left_out)
        return gs_fail(err, GS_ENOENT, "there is no node %.200s (kubectl get nodes)", run->without);
    return 0;
}

/* ---- more nodes ---- */

/* A cordon is not copied, nor are the taints that the cluster sets itself. */
static void open_up(struct gs_node *node)
{
    static const char own[] = "node.kubernetes.io/";
    struct gs_node_rules *rules = &node->rules;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rules->taint_count; i++) {
        if (strncmp(rules->taints[i].key, own, strlen(own)) != 0)
            rules->taints[kept++] = rules->taints[i];
    }
    rules->taint_count = kept;
    rules->unschedulable = node->unschedulable = false;
    node->ready = true;
}

static int add_copies(struct what_if *run, struct gs_node *node, uint32_t count,
                      struct gs_error *err)
{
    const char *like = node->name;
    const struct gs_watch_sink to = snapshot_sink(&run->snapshot);
    open_up(node);
    for (uint32_t i = 1; i <= count; i++) {
        char name[300];
        snprintf(name, sizeof(name), "%.253s+%u", like, i);
        node->name = node->rules.name = name;
        if (to.node(to.ctx, node) < 0)
            return gs_fail_nomem(err);
    }
    node->name = node->rules.name = like;
    return 0;
}

static int add_nodes(struct what_if *run, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    const char *equals = run->add ? strchr(run->add, '=') : NULL;
    char like[254];
    uint32_t count = 1;
    if (!run->add)
        return 0;
    if (equals && (!gs_parse_u32(equals + 1, strlen(equals + 1), &count) || !count ||
                   count > NODES_ADDED_MAX))
        return gs_fail(err, GS_EINVAL, "--add-node: \"%.60s\" is not NODE=1 to NODE=%d", run->add,
                       NODES_ADDED_MAX);
    snprintf(like, sizeof(like), "%.*s", equals ? (int)(equals - run->add) : 253, run->add);
    gs_buf_puts(&path, "/api/v1/nodes/");
    gs_url_escape(&path, like);
    if (gs_buf_failed(&path))
        return gs_fail(err, GS_EINVAL, "--add-node: the name is too long");
    if (source_get(&run->common.source, path.data, NULL, &body, err) < 0)
        return gs_error_prefix(err, "--add-node %.100s", like);
    struct gs_node node = {0};
    int result =
        gs_codec_node(&run->common.names, (struct gs_slice){body.data, body.len}, &node, err);
    if (result == 0) {
        calm_node(&node.arena, &node);
        result = add_copies(run, &node, count, err);
    }
    gs_node_release(&node);
    return result;
}

/* ---- placing ---- */

static int note_place(struct order *order, const char *node, gs_gpu_mask gpus, struct gs_error *err)
{
    for (uint32_t i = order->place_count; i-- > 0;) { /* mostly the one before */
        struct place *place = &order->places[i];
        if (place->gpus == gpus && strcmp(place->node, node) == 0) {
            place->replicas++;
            return 0;
        }
    }
    struct place *more = reallocarray(order->places, order->place_count + 1, sizeof(*more));
    if (!more)
        return gs_fail_nomem(err);
    order->places = more;
    order->places[order->place_count++] = (struct place){node, gpus, 1};
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strverscmp(x->node, y->node);
    return order ? order : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

static int place(struct what_if *run, struct gs_place *place, struct order *order,
                 struct progress *progress, struct gs_error *err)
{
    uint32_t slots = gs_ledger_slots(place->ledger), slot;
    _cleanup_free_ bool *refused = calloc(slots + 1u, sizeof(*refused));
    gs_gpu_mask gpus;
    if (!refused)
        return gs_fail_nomem(err);
    if (order->ask.rules)
        order->ask.rules = &order->pod.rules; /* orders have moved as their list grew */
    while (order->placed < order->replicas &&
           gs_place_choose(place, &order->ask, refused, &slot, &gpus)) {
        if (gs_place_claim(place, &order->ask, slot, gpus, err) < 0 ||
            note_place(order, gs_ledger_node_name(place->ledger, slot), gpus, err) < 0)
            return -1;
        progress_tell(progress, ++order->placed, order->replicas, "pods placed");
    }
    if (order->placed < order->replicas)
        verdict_of(&run->snapshot, &order->ask, &order->verdict);
    if (order->place_count)
        qsort(order->places, order->place_count, sizeof(*order->places), by_place);
    return 0;
}

static int place_all(struct what_if *run, struct gs_error *err)
{
    struct gs_place on = gs_cluster_place(&run->snapshot.cluster, run->policy);
    struct progress progress;
    int result = snapshot_learnt(&run->snapshot, err);
    progress_begin(&progress, run->common.app->terminal.progress);
    for (size_t i = 0; result == 0 && i < run->orders.count; i++)
        result = place(run, &on, &run->orders.all[i], &progress, err);
    progress_end(&progress);
    return result;
}

static int tell(const struct what_if *run, struct gs_error *err)
{
    const char *unit = verdict_unit(&run->snapshot);
    int result = 0;
    if (run->format != FORMAT_TEXT)
        result = orders_document(&run->orders, unit, run->policy, run->format == FORMAT_YAML);
    else if (run->orders.count)
        result = orders_print(&run->orders, unit, run->policy);
    else
        puts("No pod with GPU memory has to move.");
    return result < 0 || fflush(stdout) != 0 ? fail_output(err) : 0;
}

static int run_all(struct what_if *run, struct gs_error *err)
{
    if (load(run, err) < 0 || add_nodes(run, err) < 0)
        return -1;
    run->ask.model = gs_slice_of(run->model ? run->model : "");
    run->ask.selects = run->ask.model.len > 0;
    if (run->sizes && orders_of_sizes(&run->orders, run->sizes, &run->ask, run->replicas, err) < 0)
        return -1;
    if (run->manifest &&
        orders_of_manifest(&run->orders, &run->common.names, run->manifest, err) < 0)
        return -1;
    return place_all(run, err) < 0 ? -1 : tell(run, err);
}

int cmd_what_if(const struct app *app, int argc, char **argv)
{
    struct what_if run = {.common = COMMON_DEFAULTS,
                          .ask = {.gpu_count = 1},
                          .replicas = 1,
                          .policy = GS_PLACEMENT_ROLLOUT};
    struct gs_error err = {0};
    read_options(&run, argc, argv);
    if (wrong(&run))
        return complain_usage(argv[0], wrong(&run));
    if (check_sizes(&run, &err) < 0)
        return complain_usage(argv[0], err.msg);
    int result = common_connect(&run.common, app, &err);
    if (result == 0)
        result = run_all(&run, &err);
    orders_release(&run.orders);
    snapshot_release(&run.snapshot);
    source_close(&run.common.source);
    return result == 0 ? 0 : complain(&err);
}
