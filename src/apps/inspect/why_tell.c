/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "inspect/gpus.h"
#include "inspect/show.h"
#include "inspect/why.h"

/* What `why POD` prints, in words and for programs. */

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
    const char *own = snapshot_scheduler_of(&why->pod);
    if (why->scheduler && strcmp(why->scheduler, own) != 0)
        fprintf(out,
                "its schedulerName is %s, but pods with GPU memory are scheduled by %s: set "
                "spec.schedulerName\n",
                own, why->scheduler);
}

void why_tell_alone(const struct why *why, FILE *out)
{
    const struct gs_ask *ask = &why->ask;
    fprintf(out, "%s/%s ", why->pod.ns, why->pod.name);
    if (why->pod.node_name[0])
        fprintf(out, "is on node %s with ", why->pod.node_name);
    else
        fprintf(out, "is pending and requests ");
    fprintf(out, "%" PRIu32 " units%s\n", ask->units,
            ask->gpu_count > 1 ? " on each of several GPUs" : "");
    if (why->pod.node_name[0])
        tell_trouble(why, out);
    else
        tell_said(why, out);
}

/* ---- a pod that waits ---- */

static void tell_waiting(const struct why *why, FILE *out)
{
    const struct gs_ask *ask = &why->ask;
    const struct verdict_group *fitting = &why->verdict.other[GS_OBSTACLE_NONE];
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
    fprintf(out, ": it fits on %" PRIu32 " of %" PRIu32 " nodes now\n", fits, why->verdict.nodes);
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

static void tell_bound(const struct why *why, FILE *out)
{
    const struct gs_claim *own = &why->own;
    if (!why->charged) {
        fprintf(out, "%s/%s is terminating on node %s\n", why->pod.ns, why->pod.name,
                why->pod.node_name);
        return;
    }
    char list[GS_IDX_TEXT_BYTES];
    if (claim_recorded(own))
        fprintf(out, "%s/%s is on node %s, GPU %s, with %" PRIu32 " %s%s\n", own->ns, own->name,
                own->node, gs_codec_idx_format(own->gpus, list), own->units, why->unit,
                own->gpu_count > 1 ? " of each" : "");
    else if (!why->node)
        fprintf(out,
                "%s/%s is bound to node %s with %" PRIu32
                " %s, and the node no longer exists: delete the pod, or wait for the pod garbage "
                "collector\n",
                own->ns, own->name, own->node, own->units, why->unit);
    else
        fprintf(out,
                "%s/%s is on node %s with %" PRIu32
                " %s, but no annotation names its GPU: its memory counts as allocated on each GPU "
                "where it fits until the device plugin records one\n",
                own->ns, own->name, own->node, own->units, why->unit);
    if (!claim_recorded(own) && why->node)
        tell_scheduler(why, out);
    if (why->node)
        gpus_write(out, why->view, why->node, own->charged, terminal_of(why, out));
    if (why->node)
        tell_limits(why, out);
    if (why->node && why->pod.sets_mps && on_mps(why))
        fputs("its containers set CUDA_MPS_ variables themselves: its limit is not enforced\n",
              out);
    if (why->pod.enforce_required)
        fprintf(out, "its containers start only when its limit is enforced (%s)\n",
                why->common->names.enforce);
    if (why->pod.has_assigned && !why->pod.assigned)
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
    verdict_ask_document(doc, &why->ask);
    doc_text(doc, "schedulerName", snapshot_scheduler_of(&why->pod));
    if (why->scheduler)
        doc_text(doc, "expectedSchedulerName", why->scheduler);
    doc_bool(doc, "extenderUnreachable", why_extender_is_away(why->pod.said));
    doc_number(doc, "nodeCount", why->verdict.nodes);
    doc_number(doc, "fittingNodeCount", why->verdict.other[GS_OBSTACLE_NONE].nodes);
    verdict_document(doc, &why->verdict);
    if (why->pod.said[0])
        doc_text(doc, "schedulerMessage", why->pod.said);
}

static void put_bound(struct doc *doc, const struct why *why)
{
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
    doc_list(doc, "devs");
    if (why->node)
        gpus_document(doc, why->view, why->node, own->charged);
    doc_end(doc);
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
