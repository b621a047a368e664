/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/node.h"
#include "inspect/calm.h"
#include "inspect/fetch.h"
#include "inspect/installed.h"
#include "inspect/queue.h"
#include "inspect/terminal.h"
#include "inspect/view.h"
#include "inspect/what_if.h"

/* kubectl inspect gpushare what-if: how many such pods would find a place now, and where, beside
 * those that wait already; also in a cluster with more nodes, or fewer. */

static void read_options(struct what_if *run, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_STRING("gpu-mem", &run->sizes, "N[xR][,N[xR]...]",
                   "gpu-mem of a pod, the total of its GPUs; xR: R such pods, as in 6x10,12x2",
                   .key = 'm'),
        OPT_U32("gpu-count", &run->ask.gpu_count, "N", "GPUs per pod (default 1)", .key = 'c'),
        OPT_U32("gpu-core", &run->ask.cores_pct, "N", "percent of one GPU's compute per pod"),
        OPT_U32("replicas", &run->replicas, "N",
                "number of pods of each size without xR (default 1)", .key = 'r'),
        OPT_STRING("gpu-model", &run->model, "LIST",
                   "only GPUs whose model contains one of these comma-separated words"),
        OPT_STRING(
            "filename", &run->manifest, "FILE",
            "pods of this manifest: Pod, Deployment, StatefulSet or Job; - is standard input",
            .key = 'f'),
        OPT_STRING("add-node", &run->add, "NODE[=N]",
                   "assume N more nodes like NODE, or of a shape such as 8x141GiB"),
        OPT_FLAG("until-fit", &run->until_fit,
                 "find how many nodes like --add-node NODE are enough to schedule all pods"),
        OPT_STRING("without-node", &run->without, "NODE[,NODE...]",
                   "assume that these nodes are drained, and reschedule their pods"),
        OPT_FLAG("pending", &run->waiting, "report which pending pods would be scheduled"),
        OPT_FLAG("ignore-pending", &run->ignore_waiting,
                 "leave out pending pods, which are scheduled first by default"),
        OPT_CUSTOM(
            "policy", OPT_IS(enum gs_placement, &run->policy), policy_parse,
            "binpack|spread|rollout",
            "policy of the extender (default: that of the running one, or rollout without one)"),
        OPT_FORMAT(&run->format),
        SYSTEM_NAMESPACE_OPTION(&run->common),
        COMMON_OPTIONS(&run->common),
    };
    common_parse(
        argc, argv, NULL,
        "Reports how many pods would fit now, where they would go, and what blocks the others. "
        "Runs the extender's placement code on a copy of the cluster; nothing is changed.",
        table, sizeof(table) / sizeof(table[0]));
}

static const char *wrong(const struct what_if *run)
{
    if (!run->sizes && !run->manifest && !run->without && !run->waiting)
        return "--gpu-mem is needed: what a pod requests, such as --gpu-mem 6; or "
               "-f FILE, --pending, or --without-node NODE";
    if (run->waiting && run->ignore_waiting)
        return "--pending and --ignore-pending exclude each other";
    if (run->until_fit && (!run->add || strchr(run->add, '=')))
        return "--until-fit requires --add-node NODE without a number";
    if (!run->ask.gpu_count || run->ask.gpu_count > GS_GPUS_MAX)
        return "--gpu-count must be from 1 to 64";
    if (run->ask.cores_pct > GS_CORES_PCT || (run->ask.cores_pct && run->ask.gpu_count > 1))
        return "--gpu-core must be from 1 to 100, with one GPU";
    if (!run->replicas || run->replicas > REPLICAS_MAX)
        return "--replicas must be from 1 to 100000";
    return NULL;
}

/* ---- the cluster, without some nodes ---- */

/* What ran there has to find another place. */
static int leave_out(struct what_if *run, const char *node, struct gs_error *err)
{
    struct snapshot *snapshot = &run->on.snapshot;
    const struct gs_watch_sink to = snapshot_sink(snapshot);
    uint32_t slot;
    EACH_POD (bound, snapshot->bound) {
        const struct gs_pod *pod = bound->pod;
        if (strcmp(pod->node_name, node) != 0)
            continue;
        gs_ledger_remove(snapshot->cluster.ledger, pod->uid, &slot);
        if (pod->daemon || pod->static_uid[0])
            run->end_there += !pod->deleting;
        else if (!pod->deleting && orders_of_pod(&run->on.orders, ORDER_MOVES, pod, err) < 0)
            return -1;
    }
    to.node_gone(to.ctx, &(struct gs_node){.name = node});
    return 0;
}

static int drain(struct what_if *run, struct gs_error *err)
{
    _cleanup_free_ char *nodes = strdup(run->without);
    if (!nodes)
        return gs_fail_nomem(err);
    for (char *rest = nodes, *name; (name = strsep(&rest, ","));) {
        const struct snap_node *node;
        HASH_FIND_STR(run->on.snapshot.nodes, name, node);
        if (!node)
            return gs_fail(err, GS_ENOENT, "node %.200s not found (see kubectl get nodes)", name);
        if (leave_out(run, name, err) < 0)
            return -1;
    }
    return 0;
}

static int load(struct what_if *run, struct gs_error *err)
{
    const struct fetch fetch = {.common = &run->common, .copies = run->without != NULL};
    return fetch_cluster(&fetch, &run->on.snapshot, NULL, err);
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

/* NODE or NODE=N, where NODE may be a shape. */
static int read_add(const struct what_if *run, char like[254], uint32_t *ret_count,
                    struct gs_error *err)
{
    const char *equals = strchr(run->add, '=');
    *ret_count = 1;
    if (equals && (!gs_parse_u32(equals + 1, strlen(equals + 1), ret_count) || !*ret_count ||
                   *ret_count > NODES_ADDED_MAX))
        return gs_fail(err, GS_EINVAL, "--add-node: \"%.60s\" is not NODE=1 to NODE=%d", run->add,
                       NODES_ADDED_MAX);
    snprintf(like, 254, "%.*s", equals ? (int)(equals - run->add) : 253, run->add);
    return 0;
}

/* "8x141GiB" as the API would show such a node; false: it is the name of one. */
static bool write_shape(const struct what_if *run, const char *like, struct gs_buf *to)
{
    const char *x = strchr(like, 'x'), *unit = strstr(like, "GiB");
    uint32_t gpus, gib;
    if (!x || !unit || unit[3] || unit < x || !gs_parse_u32(like, (size_t)(x - like), &gpus) ||
        !gs_parse_u32(x + 1, (size_t)(unit - x - 1), &gib))
        return false;
    const char *mem = run->common.names.gpu_mem, *count = run->common.names.gpu_count;
    const uint64_t units =
        (uint64_t)gpus * gib * (1024 / gs_unit_mib(view_unit(verdict_unit(&run->on.snapshot))));
    gs_buf_printf(to,
                  "{\"metadata\":{\"name\":\"%s\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
                  "\"status\":\"True\"}],\"capacity\":{\"%s\":%" PRIu64 ",\"%s\":%" PRIu32
                  "},\"allocatable\":{\"%s\":%" PRIu64 ",\"%s\":%" PRIu32 "}}}",
                  like, mem, units, count, gpus, mem, units, count, gpus);
    return true;
}

static int read_node(const struct what_if *run, struct added *added, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    char like[254];
    if (read_add(run, like, &added->count, err) < 0)
        return -1;
    gs_buf_puts(&path, "/api/v1/nodes/");
    gs_url_escape(&path, like);
    if (gs_buf_failed(&path))
        return gs_fail(err, GS_EINVAL, "--add-node: the node name is too long");
    if (!write_shape(run, like, &body) &&
        source_get(&run->common.source, path.data, NULL, &body, err) < 0)
        return gs_error_prefix(err, "--add-node %.100s", like);
    if (gs_codec_node(&run->common.names, (struct gs_slice){body.data, body.len}, &added->node,
                      err) < 0)
        return -1;
    calm_node(&added->node.arena, &added->node);
    added->like = added->node.name;
    open_up(&added->node);
    return 0;
}

/* ---- who waits, and by which policy ---- */

static int take_waiting(struct what_if *run, struct gs_error *err)
{
    struct queue queue = {0};
    int result = run->ignore_waiting ? 0 : queue_find(&run->on.snapshot, &queue, err);
    for (uint32_t i = 0; result == 0 && i < queue.count; i++)
        result = orders_of_pod(&run->on.orders, ORDER_WAITS, queue.all[i], err);
    run->gated = queue.gated;
    run->elsewhere = queue.elsewhere;
    queue_release(&queue);
    return result;
}

static void find_policy(struct what_if *run)
{
    const bool given = run->policy != GS_PLACEMENT_DEFAULT;
    run->on.policy = given ? run->policy : installed_policy(&run->common);
    const bool known = run->on.policy != GS_PLACEMENT_DEFAULT;
    run->policy_source = given ? "option" : known ? "extender" : "default";
    if (!known)
        run->on.policy = GS_PLACEMENT_ROLLOUT;
}

/* ---- all of it ---- */

static int place_and_tell(struct what_if *run, struct gs_error *err)
{
    find_policy(run);
    if (placing_run(&run->on, run->until_fit, err) < 0)
        return -1;
    if (run->on.orders.unread[0])
        fprintf(stderr,
                PROGRAM ": not counted: %s (Pods, Jobs, CronJobs, Deployments, StatefulSets, "
                        "ReplicaSets and ReplicationControllers are)\n",
                run->on.orders.unread);
    int result = run->format == OUTPUT_TABLE ? what_if_print(run) : what_if_document(run);
    return result < 0 || fflush(stdout) != 0 ? fail_output(err) : 0;
}

static int run_all(struct what_if *run, struct gs_error *err)
{
    int result = load(run, err);
    if (result == 0 && run->add)
        result = read_node(run, &run->on.added, err); /* in the unit of those that are drained */
    if (result == 0 && run->without)
        result = drain(run, err);
    if (result == 0)
        result = take_waiting(run, err);
    if (result == 0 && run->manifest)
        result = orders_of_manifest(&run->on.orders, &run->common.names, run->manifest, err);
    return result == 0 ? place_and_tell(run, err) : -1;
}

/* What is wrong with sizes is bad usage at once. */
static int take_sizes(struct what_if *run, struct gs_error *err)
{
    run->ask.model = gs_slice_of(run->model ? run->model : "");
    run->ask.selects = run->ask.model.len > 0;
    return run->sizes ? orders_of_sizes(&run->on.orders, run->sizes, &run->ask, run->replicas, err)
                      : 0;
}

int cmd_what_if(const struct app *app, int argc, char **argv)
{
    struct what_if run = {.common = COMMON_DEFAULTS, .ask = {.gpu_count = 1}, .replicas = 1};
    struct gs_error err = {0};
    read_options(&run, argc, argv);
    if (wrong(&run))
        return complain_usage(argv[0], wrong(&run));
    if (take_sizes(&run, &err) < 0)
        return complain_usage(argv[0], err.msg);
    int result = common_connect(&run.common, app, &err);
    if (result == 0)
        result = run_all(&run, &err);
    gs_node_release(&run.on.added.node);
    orders_release(&run.on.orders);
    snapshot_release(&run.on.snapshot);
    return common_end(&run.common, result, &err);
}
