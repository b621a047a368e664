/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/utf8.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/pod.h"
#include "inspect/common.h"
#include "inspect/fetch.h"
#include "inspect/lookup.h"
#include "inspect/terminal.h"
#include "inspect/verdict.h"

/* kubectl inspect gpushare why POD: why it waits, or where it is and beside whom. */

struct why {
    struct common common;
    const char *name; /* "POD" or "NAMESPACE/POD" */
    char ns[256];
    struct source source;
    struct snapshot snapshot;
    struct gs_pod pod;
    char said[1024];    /* kube-scheduler's last word */
    char trouble[1024]; /* the kubelet's: why it failed, or what its container waits for */
};

static void read_options(struct why *why, int argc, char **argv)
{
    const struct gs_option table[] = {
        COMMON_OPTIONS(&why->common, "namespace of the pod; else the context's"),
    };
    const struct gs_command command = {
        .name = argv[0],
        .doc = "Why a pod waits: for every reason how many nodes, and the nearest miss. Of a pod "
               "that runs: its node, its GPUs, and who shares them.",
        .operands = "[NAMESPACE/]POD",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
        .min_operands = 1,
        .max_operands = 1,
        .quiet = true,
    };
    why->name = argv[gs_options_parse(&command, argc, argv)];
}

/* ---- asking ---- */

static void find_namespace(struct why *why)
{
    const char *slash = strchr(why->name, '/');
    if (!slash) {
        snprintf(why->ns, sizeof(why->ns), "%s", why->source.ns);
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
    gs_buf_puts(&path, "/api/v1/namespaces/");
    source_escape(&path, why->ns);
    gs_buf_puts(&path, "/pods/");
    source_escape(&path, why->name);
    if (gs_buf_failed(&path))
        return gs_fail(err, GS_EINVAL, "the pod's name is too long");
    if (source_get(&why->source, path.data, NULL, &body, err) < 0) {
        if (err->code == GS_ENOENT) {
            gs_error_clear(err);
            gs_fail(err, GS_ENOENT, "there is no pod %.100s in namespace %.100s (give -n)",
                    why->name, why->ns);
        }
        return -1;
    }
    json_auto_t *tree = json_loadb(body.data, body.len, 0, NULL);
    read_words(why, json_object_get(tree, "status"));
    return gs_codec_pod(&why->common.names, (struct gs_slice){body.data, body.len}, &why->pod, err);
}

static int fetch_all(struct why *why, const struct app *app, struct gs_error *err)
{
    const struct fetch fetch = {.source = &why->source,
                                .names = &why->common.names,
                                .node = why->pod.node_name[0] ? why->pod.node_name : NULL,
                                .progress = app->terminal.progress};
    if (snapshot_init(&why->snapshot, err) < 0)
        return -1;
    const struct gs_watch_sink sink = snapshot_sink(&why->snapshot);
    return fetch_cluster(&fetch, &sink, NULL, err);
}

/* ---- what others said ---- */

static void tell_trouble(const struct why *why)
{
    if (why->trouble[0])
        printf("kubelet said: %s\n", why->trouble);
}

static void tell_said(const struct why *why)
{
    if (why->said[0])
        printf("kube-scheduler said: %s\n", why->said);
    else
        puts("kube-scheduler has not said anything yet: does one serve the pod's schedulerName?");
}

/* Without the right to see nodes and other pods: what the pod itself tells. */
static void tell_alone(const struct why *why)
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &why->pod);
    printf("%s/%s ", why->pod.ns, why->pod.name);
    if (why->pod.node_name[0])
        printf("is on node %s with ", why->pod.node_name);
    else
        printf("waits for ");
    printf("%" PRIu32 " units%s\n", ask.units, ask.gpu_count > 1 ? " on each of several GPUs" : "");
    if (why->pod.node_name[0])
        tell_trouble(why);
    else
        tell_said(why);
}

/* ---- a pod that waits ---- */

static void tell_waiting(struct why *why)
{
    struct gs_ask ask;
    struct verdict verdict;
    const char *unit = verdict_unit(&why->snapshot);
    gs_ask_of_pod(&ask, &why->pod);
    verdict_of(&why->snapshot, &ask, &verdict);
    uint32_t fits = verdict.other[OBSTACLE_NONE].nodes;
    printf("%s/%s waits for %" PRIu32 " %s ", why->pod.ns, why->pod.name, ask.units, unit);
    if (ask.gpu_count > 1)
        printf("on each of %" PRIu32 " GPUs", ask.gpu_count);
    else
        printf("on one GPU");
    printf(": %" PRIu32 " of %" PRIu32 " nodes could take it now\n", fits, verdict.nodes);
    verdict_print(&verdict, &ask, unit);
    if (fits)
        printf("  %" PRIu32 " %s: GPU memory and CPU would do, for example %s; if it stays "
               "Pending, look at taints, affinity and other resources\n",
               fits, fits == 1 ? "node" : "nodes", verdict.other[OBSTACLE_NONE].nearest);
    tell_said(why);
}

/* ---- a pod that has its node ---- */

struct sharing {
    const struct gs_claim *own;
    const char *unit;
    uint32_t others;
};

static bool tell_other(void *ctx, const struct gs_claim *claim)
{
    struct sharing *sharing = ctx;
    char list[GS_IDX_TEXT_BYTES];
    gs_gpu_mask common = claim->charged & sharing->own->charged;
    if (strcmp(claim->uid, sharing->own->uid) == 0 || !common)
        return true;
    sharing->others++;
    printf("  shares GPU %s with %s/%s, which has %" PRIu32 " %s%s\n",
           gs_codec_idx_format(common, list), claim->ns, claim->name, claim->units, sharing->unit,
           claim_recorded(claim) ? "" : " (its GPU is not recorded)");
    return true;
}

static void tell_enforced(enum gs_enforced enforced)
{
    if (enforced == GS_ENFORCED_DMEM)
        puts("    the kernel keeps each pod there to its share (dmem)");
    else if (enforced != GS_ENFORCED_UNKNOWN)
        printf("    nothing keeps a pod there to its share: %s\n", gs_enforced_reason(enforced));
}

static void tell_gpus(const struct gs_node_view *view, const struct gs_claim *own, const char *unit)
{
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        const struct gs_gpu *what = &view->inventory[i];
        if (!(own->charged & GS_GPU_BIT(gpu->idx)))
            continue;
        printf("  GPU%u%s%s%s%s: %" PRIu64 " of %" PRIu32 " %s allocated%s%s%s\n", gpu->idx,
               what->model[0] || what->uuid[0] ? " " : "", what->model,
               what->model[0] && what->uuid[0] ? ", " : "", what->uuid, gpu->used_units,
               gpu->total_units, unit, what->healthy ? "" : ", unhealthy",
               what->schedulable ? "" : ", cordoned",
               gpu->used_units > gpu->total_units ? ", overfull" : "");
        tell_enforced(what->enforced);
    }
}

static void tell_bound(struct why *why)
{
    struct gs_claim own;
    const char *unit = verdict_unit(&why->snapshot);
    const struct gs_ledger *ledger = why->snapshot.ledger;
    if (!gs_ledger_find_claim(ledger, why->pod.uid, &own)) {
        printf("%s/%s is on node %s, which it leaves at this moment\n", why->pod.ns, why->pod.name,
               why->pod.node_name);
        return;
    }
    const struct gs_node_view *view = gs_ledger_view(ledger, gs_slice_of(own.node));
    char list[GS_IDX_TEXT_BYTES];
    struct sharing sharing = {.own = &own, .unit = unit};
    if (claim_recorded(&own))
        printf("%s/%s is on node %s, GPU %s, with %" PRIu32 " %s%s\n", own.ns, own.name, own.node,
               gs_codec_idx_format(own.gpus, list), own.units, unit,
               own.gpu_count > 1 ? " of each" : "");
    else
        printf("%s/%s is on node %s with %" PRIu32 " %s, but no annotation says on which GPU: it "
               "is charged to all that could hold it until the device plugin records one\n",
               own.ns, own.name, own.node, own.units, unit);
    tell_gpus(view, &own, unit);
    if (view)
        gs_ledger_each_claim(ledger, view->slot, tell_other, &sharing);
    if (!sharing.others)
        puts("  shares with nobody");
    if (why->pod.enforce_required)
        printf("  its containers start only when its limit holds (%s)\n",
               why->common.names.enforce);
    if (why->pod.has_assigned && !why->pod.assigned)
        puts("  the device plugin has not given it to a container yet");
    tell_trouble(why);
}

static int tell(struct why *why, const struct app *app, struct gs_error *err)
{
    const struct gs_pod *pod = &why->pod;
    if (!gs_pod_wants_gpu(pod)) {
        printf("%s/%s asks for no GPU memory (%s)\n", pod->ns, pod->name,
               why->common.names.gpu_mem);
        return 0;
    }
    if (gs_pod_terminal(pod)) {
        printf("%s/%s has ended and holds no GPU memory\n", pod->ns, pod->name);
        tell_trouble(why);
        return 0;
    }
    if (fetch_all(why, app, err) < 0) {
        tell_alone(why);
        return -1;
    }
    if (pod->node_name[0])
        tell_bound(why);
    else
        tell_waiting(why);
    return 0;
}

int cmd_why(const struct app *app, int argc, char **argv)
{
    struct why why = {.common = COMMON_DEFAULTS};
    struct gs_error err = {0};
    read_options(&why, argc, argv);
    int result = common_connect(&why.common, app, &why.source, &err);
    if (result == 0) {
        find_namespace(&why);
        result = fetch_pod(&why, &err);
    }
    if (result == 0)
        result = tell(&why, app, &err);
    gs_pod_release(&why.pod);
    snapshot_release(&why.snapshot);
    source_close(&why.source);
    return result == 0 ? 0 : complain(&err);
}
