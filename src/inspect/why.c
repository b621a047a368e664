/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/why.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/codec/pod.h"
#include "inspect/calm.h"
#include "inspect/gpus.h"
#include "inspect/lookup.h"

/* ---- what is asked, and what the cluster has of it ---- */

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
            snprintf(to, size, "container %s is waiting: %s%s%s",
                     lookup_text(container, "name", NULL), reason, message[0] ? ": " : "", message);
        }
    }
}

/* What others wrote about the pod. */
static void read_words(struct why *why, const json_t *status)
{
    const char *reason = lookup_text(status, "reason", NULL);
    const char *message = lookup_text(status, "message", NULL);
    if (reason[0] || message[0])
        snprintf(why->trouble, sizeof(why->trouble), "%s%s%s", reason,
                 reason[0] && message[0] ? ": " : "", message);
    else
        find_stuck(status, why->trouble, sizeof(why->trouble));
    gs_utf8_calm(why->trouble);
}

int why_fetch(struct why *why, const char *ns, const char *name, int64_t timeout_ns,
              struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), body = GS_BUF(SOURCE_BODY_MAX);
    struct gs_error away = {0};
    source_pods(&path, ns, name);
    why->unit = "units";
    if (gs_buf_failed(&path))
        return gs_fail(err, GS_EINVAL, "the pod name is too long");
    const struct gs_kube_request request = {
        .method = "GET", .path = path.data, .timeout_ns = timeout_ns};
    if (source_ask(&why->common->source, &request, &body, &away) < 0)
        return away.code == GS_ENOENT
                   ? gs_fail(err, away.code, "pod %.100s not found in namespace %.100s (use -n)",
                             name, ns)
                   : gs_fail(err, away.code, "%s", away.msg);
    json_auto_t *tree = lookup_parse(&body);
    if (!tree)
        return gs_fail(err, GS_EPROTO, "the pod is not JSON");
    if (gs_codec_pod(&why->common->names, (struct gs_slice){body.data, body.len}, &why->pod, err) <
        0)
        return -1;
    read_words(why, json_object_get(tree, "status"));
    calm_pod(&why->pod.arena, &why->pod);
    gs_ask_of_pod(&why->ask, &why->pod);
    why->state = !gs_pod_wants_gpu(&why->pod) ? WHY_NO_GPU
                 : gs_pod_terminal(&why->pod) ? WHY_ENDED
                 : why->pod.node_name[0]      ? WHY_BOUND
                                              : WHY_WAITING;
    return 0;
}

void why_find(struct why *why, const struct view *view)
{
    const struct snapshot *snapshot = view->snapshot;
    why->view = view;
    why->node = NULL;
    why->unit = verdict_unit(snapshot);
    why->scheduler = snapshot_scheduler(snapshot);
    why->elsewhere = snapshot_is_elsewhere(snapshot, &why->pod);
    gs_ask_of_pod(&why->ask, &why->pod); /* it points into the pod, which may have been moved */
    if (why->state == WHY_WAITING)
        verdict_of(snapshot, &why->ask, &why->verdict);
    why->charged = gs_ledger_find_claim(snapshot->cluster.ledger, why->pod.uid, &why->own);
    EACH_ROW (node, view) {
        if (why->charged && strcmp(node->node->name, why->own.node) == 0)
            why->node = node;
    }
}

void why_release(struct why *why)
{
    gs_pod_release(&why->pod);
}

/* ---- in words ---- */

/* The page, too, has these words: as in a pipe. */
static const struct terminal *terminal_of(const struct why *why, const FILE *out)
{
    return out == stdout ? &why->common->app->terminal : NULL;
}

/* ---- what others said ---- */

bool why_extender_is_away(const char *said)
{
    /* Go's HTTP errors and those of kube-scheduler name the URL, whose prefix is the extender's;
     * the others are the extender's own refusals. */
    static const char *const signs[] = {"/gpushare-scheduler", "gpushare-extender is ",
                                        "extender filter: "};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (strstr(said, signs[i]))
            return true;
    }
    return false;
}

static void tell_trouble(const struct why *why, FILE *out)
{
    if (why->trouble[0])
        fprintf(out, "kubelet reports: %s\n", why->trouble);
}

static void tell_said(const struct why *why, FILE *out)
{
    if (why->pod.said[0])
        fprintf(out, "kube-scheduler reports: %s\n", why->pod.said);
    else
        fprintf(out,
                "kube-scheduler has reported nothing yet: check that a scheduler named %s "
                "(schedulerName) is running\n",
                snapshot_scheduler_of(&why->pod));
    if (why_extender_is_away(why->pod.said))
        fputs(
            "kube-scheduler got no answer from the extender; run kubectl inspect gpushare doctor\n",
            out);
}

/* The one mistake that nothing in the cluster complains about. */
static void tell_scheduler(const struct why *why, FILE *out)
{
    if (why->elsewhere)
        fprintf(out,
                "its schedulerName is %s, but pods with GPU memory are scheduled by %s: set "
                "spec.schedulerName\n",
                snapshot_scheduler_of(&why->pod), why->scheduler);
}

/* ---- a pod that waits ---- */

static void tell_waiting(const struct why *why, FILE *out)
{
    const struct gs_ask *ask = &why->ask;
    const struct verdict_group *fitting = &why->verdict.groups[GS_OBSTACLE_NONE];
    const uint32_t fits = fitting->nodes;
    fprintf(out, "%s/%s is pending and requests ", why->pod.ns, why->pod.name);
    if (why->pod.gpu_units_overflow)
        fputs("too much", out);
    else if (ask->broken)
        fprintf(out, "%" PRIu32 " %s in total", gs_pod_total_units(&why->pod), why->unit);
    else if (ask->gpu_count > 1)
        fprintf(out, "%" PRIu32 " %s on each of %" PRIu32 " GPUs", ask->units, why->unit,
                ask->gpu_count);
    else
        fprintf(out, "%" PRIu32 " %s on one GPU", ask->units, why->unit);
    if (ask->cores_pct && !ask->broken)
        fprintf(out, " and %" PRIu32 " of 100 of its compute", ask->cores_pct);
    if (why->view)
        fprintf(out, ": it fits on %" PRIu32 " of %" PRIu32 " nodes now", fits, why->verdict.nodes);
    fputc('\n', out);
    verdict_write(out, &why->verdict, terminal_of(why, out));
    if (fits)
        fprintf(out,
                "%" PRIu32 " %s enough GPU memory and CPU, for example %s; if the pod stays "
                "Pending, check taints, affinity and other resources\n",
                fits, fits == 1 ? "node has" : "nodes have", fitting->nearest);
    if (verdict_own(&why->pod))
        fprintf(out, "%s\n", verdict_own(&why->pod));
    tell_scheduler(why, out);
    tell_said(why, out);
}

/* ---- a pod that has its node ---- */

static bool on_mps(const struct why *why)
{
    EACH_GPU (gpu, why->node) {
        if (why->own.charged & GS_GPU_BIT(gpu->idx) && gpu->gpu->enforced == GS_ENFORCED_MPS)
            return true;
    }
    return false;
}

static void tell_limits(const struct why *why, FILE *out)
{
    const struct gs_claim *own = &why->own;
    const struct usage *usage = why->view->usage;
    const struct usage_pod *pod = usage_pod_find(usage, own->node, own->uid);
    char text[LIMITS_TEXT_BYTES];
    if (pod && gs_enforced_lacks(pod->enforced) && pod->reason[0])
        fprintf(out, "its limit is not enforced: %s\n", pod->reason);
    if (limits_hold(why->node, own, usage, text) == text)
        fprintf(out, "it %s\n", text);
}

/* Why its GPU is not known; "": it is. */
static const char *unrecorded(const struct why *why)
{
    if (!why->view || (why->node && claim_recorded(&why->own)))
        return "";
    return why->node ? ", but no annotation names its GPU: its memory counts as allocated on each "
                       "GPU where it fits until the device plugin records one"
                     : ", and the node no longer exists: delete the pod, or wait for the pod "
                       "garbage collector";
}

static void tell_bound(const struct why *why, FILE *out)
{
    const struct gs_claim *own = &why->own;
    const struct gs_pod *pod = &why->pod;
    const uint32_t count = why->charged ? own->gpu_count : why->ask.gpu_count;
    char gpus[GS_IDX_TEXT_BYTES];
    if (why->view && !why->charged) {
        fprintf(out, "%s/%s is terminating on node %s\n", pod->ns, pod->name, pod->node_name);
        return;
    }
    gs_codec_idx_format(why->charged && claim_recorded(own) ? own->gpus : 0, gpus);
    fprintf(out, "%s/%s is on node %s%s%s%s with %" PRIu32 " %s%s%s\n", pod->ns, pod->name,
            pod->node_name, gpus[0] ? ", GPU " : "", gpus, gpus[0] ? "," : "",
            why->charged ? own->units : why->ask.units, why->unit,
            count < 2 ? ""
            : gpus[0] ? " of each"
                      : " of each of its GPUs",
            unrecorded(why));
    if (unrecorded(why)[0] && why->node)
        tell_scheduler(why, out);
    if (why->node) {
        gpus_write(out, why->view, why->node, own->charged, terminal_of(why, out));
        tell_limits(why, out);
    }
    if (why->node && pod->sets_mps && on_mps(why))
        fputs("its containers set CUDA_MPS_ variables themselves: its limit is not enforced\n",
              out);
    if (pod->enforce_required)
        fprintf(out, "its containers start only when its limit is enforced (%s)\n",
                why->common->names.enforce);
    if (pod->has_assigned && !pod->assigned)
        fputs("the device plugin has not allocated it to a container yet\n", out);
    tell_trouble(why, out);
}

/* ---- both ---- */

void why_tell(const struct why *why, FILE *out)
{
    const struct gs_pod *pod = &why->pod;
    switch (why->state) {
    case WHY_NO_GPU:
        fprintf(out, "%s/%s requests no GPU memory (%s)%s%s\n", pod->ns, pod->name,
                why->common->names.gpu_mem, why->ask.broken ? ": " : "",
                gs_reason_text(why->ask.broken));
        break;
    case WHY_ENDED:
        fprintf(out, "%s/%s has terminated and has no GPU memory allocated\n", pod->ns, pod->name);
        tell_trouble(why, out);
        break;
    case WHY_BOUND:
        tell_bound(why, out);
        break;
    case WHY_WAITING:
        tell_waiting(why, out);
    }
}

/* ---- -o json, yaml ---- */

static void put_waiting(struct doc *doc, const struct why *why)
{
    doc_number(doc, "requestedGPU", why->ask.units);
    if (why->ask.cores_pct)
        doc_number(doc, "requestedCorePercentage", why->ask.cores_pct);
    doc_number(doc, "gpuCount", why->ask.gpu_count);
    doc_text(doc, "schedulerName", snapshot_scheduler_of(&why->pod));
    if (why->scheduler)
        doc_text(doc, "expectedSchedulerName", why->scheduler);
    doc_bool(doc, "extenderUnreachable", why_extender_is_away(why->pod.said));
    doc_number(doc, "nodeCount", why->verdict.nodes);
    doc_number(doc, "fittingNodeCount", why->verdict.groups[GS_OBSTACLE_NONE].nodes);
    verdict_document(doc, &why->verdict);
    if (why->pod.said[0])
        doc_text(doc, "schedulerMessage", why->pod.said);
}

static void put_bound(struct doc *doc, const struct why *why)
{
    static const struct view_node gone;
    const struct gs_claim *own = &why->own;
    doc_text(doc, "node", why->pod.node_name);
    if (!why->charged)
        return;
    doc_number(doc, "usedGPU", own->units);
    if (own->cores_pct)
        doc_number(doc, "corePercentage", own->cores_pct);
    doc_number(doc, "gpuCount", own->gpu_count);
    doc_bool(doc, "gpuIndexValid", claim_recorded(own));
    doc_gpus(doc, "gpus", own->gpus);
    gpus_document(doc, why->view, why->node ? why->node : &gone, own->charged);
}

int why_document(const struct why *why, bool yaml)
{
    static const char *const states[] = {"noGPU", "ended", "bound", "pending"};
    const struct gs_pod *pod = &why->pod;
    struct doc doc;
    doc_open(&doc, stdout, yaml);
    doc_text(&doc, "name", pod->name);
    doc_text(&doc, "namespace", pod->ns);
    doc_text(&doc, "state", states[why->state]);
    if (why->unit)
        doc_text(&doc, "unit", why->unit);
    if (why->state == WHY_BOUND)
        put_bound(&doc, why);
    else if (why->state == WHY_WAITING)
        put_waiting(&doc, why);
    if (why->trouble[0])
        doc_text(&doc, "kubeletMessage", why->trouble);
    return doc_close(&doc);
}
