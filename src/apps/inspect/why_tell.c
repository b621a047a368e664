/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/codec/annotation.h"
#include "inspect/limits.h"
#include "inspect/view.h"
#include "inspect/why.h"

/* What `why POD` prints, in words and for programs. */

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
        fprintf(out, "kubelet said: %s\n", why->trouble);
}

static void tell_said(const struct why *why, FILE *out)
{
    if (why->said[0])
        fprintf(out, "kube-scheduler said: %s\n", why->said);
    else
        fprintf(out,
                "kube-scheduler has not said anything yet: does one serve the pod's schedulerName, "
                "%s?\n",
                snapshot_scheduler_of(&why->pod));
    if (why_extender_is_away(why->said))
        fputs("That is no verdict: kube-scheduler got none from the extender. See: kubectl inspect "
              "gpushare doctor\n",
              out);
}

/* The one mistake that nothing in the cluster complains about. */
static void tell_scheduler(const struct why *why, FILE *out)
{
    const char *own = snapshot_scheduler_of(&why->pod);
    if (why->scheduler && strcmp(why->scheduler, own) != 0)
        fprintf(
            out,
            "its schedulerName is %s, but pods with GPU memory are placed by %s here: set it in "
            "the pod's spec\n",
            own, why->scheduler);
}

void why_tell_alone(const struct why *why, FILE *out)
{
    const struct gs_ask *ask = &why->ask;
    fprintf(out, "%s/%s ", why->pod.ns, why->pod.name);
    if (why->pod.node_name[0])
        fprintf(out, "is on node %s with ", why->pod.node_name);
    else
        fprintf(out, "waits for ");
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
    fprintf(out, "%s/%s waits for ", why->pod.ns, why->pod.name);
    if (ask->broken)
        fprintf(out, "%" PRIu32 " %s in all", gs_pod_total_units(&why->pod), why->unit);
    else if (ask->gpu_count > 1)
        fprintf(out, "%" PRIu32 " %s on each of %" PRIu32 " GPUs", ask->units, why->unit,
                ask->gpu_count);
    else
        fprintf(out, "%" PRIu32 " %s on one GPU", ask->units, why->unit);
    if (ask->cores_pct && !ask->broken)
        fprintf(out, " and %" PRIu32 " of 100 of its compute", ask->cores_pct);
    fprintf(out, ": %" PRIu32 " of %" PRIu32 " nodes could take it now\n", fits,
            why->verdict.nodes);
    verdict_print(&why->verdict, why->unit, out);
    if (fits)
        fprintf(out,
                "  %" PRIu32 " %s: GPU memory and CPU would do, for example %s; if it stays "
                "Pending, look at taints, affinity and other resources\n",
                fits, fits == 1 ? "node" : "nodes", fitting->nearest);
    promised_print(&why->promised, why->unit, out);
    tell_scheduler(why, out);
    tell_said(why, out);
}

/* ---- a pod that has its node ---- */

struct sharing {
    const struct why *why;
    FILE *out;
    uint32_t others;
};

static bool tell_other(void *ctx, const struct gs_claim *claim)
{
    struct sharing *sharing = ctx;
    char list[GS_IDX_TEXT_BYTES];
    const struct gs_claim *own = &sharing->why->own;
    FILE *out = sharing->out;
    gs_gpu_mask common = claim->charged & own->charged;
    if (strcmp(claim->uid, own->uid) == 0 || !common)
        return true;
    sharing->others++;
    fprintf(out, "  shares GPU %s with %s/%s, which has %" PRIu32 " %s%s\n",
            gs_codec_idx_format(common, list), claim->ns, claim->name, claim->units,
            sharing->why->unit, claim_recorded(claim) ? "" : " (its GPU is not recorded)");
    return true;
}

static void tell_enforced(enum gs_enforced enforced, FILE *out)
{
    if (gs_enforced_holds(enforced))
        fprintf(out, "    %s\n", view_limits(enforced)->here);
    else if (gs_enforced_lacks(enforced))
        fprintf(out, "    nothing keeps a pod there to its share: %s\n",
                gs_enforced_reason(enforced));
}

/* What the kernel counts of this very pod there, and whether it holds it. */
static void tell_use(const struct usage_pod *pod, uint32_t gpu, bool held, const char *unit_name,
                     FILE *out)
{
    const struct usage_gpu *use = usage_gpu_find(pod, gpu);
    char used[USAGE_TEXT_BYTES], peak[USAGE_TEXT_BYTES], over[USAGE_TEXT_BYTES];
    const enum gs_unit unit = view_unit(unit_name);
    if (pod && held && gs_enforced_lacks(pod->enforced))
        fprintf(out, "    but nothing keeps this pod to it: %s\n", pod->reason);
    if (!use)
        return;
    usage_text(use->used_bytes, unit, used);
    usage_text(use->peak_bytes, unit, peak);
    fprintf(out, "    it uses %s %s there; the most so far was %s\n", used, gs_unit_name(unit),
            peak);
    usage_text(limits_over(pod, use->used_bytes), unit, over);
    if (limits_over(pod, use->used_bytes))
        fprintf(out, "    it is %s %s over its share\n", over, gs_unit_name(unit));
}

/* Nothing where nobody asks for compute. */
static void tell_cores(const struct gs_gpu_state *gpu, const struct gs_claim *own,
                       enum gs_enforced enforced, FILE *out)
{
    if (!gpu->used_cores_pct)
        return;
    fprintf(out, "    %" PRIu32 " of 100 of its compute asked for, %" PRIu32 " by this pod: %s\n",
            gpu->used_cores_pct, own->cores_pct, view_cores(enforced)->clause);
}

static void tell_gpus(const struct why *why, FILE *out)
{
    const struct gs_node_view *view = why->view;
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        const struct gs_gpu *what = &view->inventory[i];
        if (!(why->own.charged & GS_GPU_BIT(gpu->idx)))
            continue;
        fprintf(out, "  GPU%u%s%s%s%s: %" PRIu64 " of %" PRIu32 " %s allocated", gpu->idx,
                what->model[0] || what->uuid[0] ? " " : "", what->model,
                what->model[0] && what->uuid[0] ? ", " : "", what->uuid, gpu->used_units,
                gpu->total_units, why->unit);
        const struct view_word *word;
        for (uint32_t nth = 0; (word = view_gpu_word(what, gpu_overfull(gpu), nth)) != NULL; nth++)
            fprintf(out, ", %s", word->word);
        putc('\n', out);
        if (gpu->max_pods)
            fprintf(out, "    %" PRIu32 " of at most %" PRIu32 " pods\n", gpu->pods, gpu->max_pods);
        tell_enforced(what->enforced, out);
        tell_cores(gpu, &why->own, what->enforced, out);
        tell_use(why->use, gpu->idx, what->enforced == GS_ENFORCED_DMEM, why->unit, out);
    }
}

static bool on_mps(const struct why *why)
{
    const struct gs_node_view *view = why->view;
    for (uint32_t i = 0; view && i < view->gpu_count; i++) {
        if (why->own.charged & GS_GPU_BIT(view->gpus[i].idx) &&
            view->inventory[i].enforced == GS_ENFORCED_MPS)
            return true;
    }
    return false;
}

static void tell_bound(const struct why *why, FILE *out)
{
    const struct gs_claim *own = &why->own;
    const struct gs_node_view *view = why->view;
    if (!why->charged) {
        fprintf(out, "%s/%s is on node %s, which it leaves at this moment\n", why->pod.ns,
                why->pod.name, why->pod.node_name);
        return;
    }
    char list[GS_IDX_TEXT_BYTES];
    struct sharing sharing = {.why = why, .out = out};
    if (claim_recorded(own))
        fprintf(out, "%s/%s is on node %s, GPU %s, with %" PRIu32 " %s%s\n", own->ns, own->name,
                own->node, gs_codec_idx_format(own->gpus, list), own->units, why->unit,
                own->gpu_count > 1 ? " of each" : "");
    else if (!view)
        fprintf(out,
                "%s/%s is on node %s with %" PRIu32 " %s, and there is no such node any more: "
                "delete the pod, or let the cluster collect it\n",
                own->ns, own->name, own->node, own->units, why->unit);
    else
        fprintf(out,
                "%s/%s is on node %s with %" PRIu32 " %s, but no annotation says on which GPU: it "
                "is charged to all that could hold it until the device plugin records one\n",
                own->ns, own->name, own->node, own->units, why->unit);
    if (!claim_recorded(own) && view)
        tell_scheduler(why, out);
    tell_gpus(why, out);
    if (view)
        gs_ledger_each_claim(why->snapshot->cluster.ledger, view->slot, tell_other, &sharing);
    if (!sharing.others && view)
        fputs("  shares with nobody\n", out);
    if (why->pod.sets_mps && on_mps(why))
        fputs(
            "  its containers set CUDA_MPS_ variables themselves: nothing keeps it to its share\n",
            out);
    if (why->pod.enforce_required)
        fprintf(out, "  its containers start only when its limit holds (%s)\n",
                why->common->names.enforce);
    if (why->pod.has_assigned && !why->pod.assigned)
        fputs("  the device plugin has not given it to a container yet\n", out);
    tell_trouble(why, out);
}

/* ---- both ---- */

void why_tell(const struct why *why, FILE *out)
{
    const struct gs_pod *pod = &why->pod;
    switch (why->state) {
    case WHY_NO_GPU:
        fprintf(out, "%s/%s asks for no GPU memory (%s)%s%s\n", pod->ns, pod->name,
                why->common->names.gpu_mem, why->ask.broken ? ": " : "",
                gs_reason_text(why->ask.broken));
        break;
    case WHY_ENDED:
        fprintf(out, "%s/%s has ended and holds no GPU memory\n", pod->ns, pod->name);
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
        doc_text(doc, "usualSchedulerName", why->scheduler);
    doc_bool(doc, "extenderAway", why_extender_is_away(why->said));
    doc_number(doc, "nodes", why->verdict.nodes);
    doc_number(doc, "fittingNodes", why->verdict.other[GS_OBSTACLE_NONE].nodes);
    verdict_document(doc, &why->verdict, true);
    promised_document(doc, &why->promised);
}

static bool put_sharer(void *ctx, const struct gs_claim *claim)
{
    struct doc *doc = ctx;
    doc_object(doc, NULL);
    doc_text(doc, "name", claim->name);
    doc_text(doc, "namespace", claim->ns);
    doc_number(doc, "usedGPU", claim->units);
    if (claim->cores_pct)
        doc_number(doc, "corePercentage", claim->cores_pct);
    doc_gpus(doc, "gpus", claim->charged);
    doc_end(doc);
    return true;
}

static void put_use(struct doc *doc, const struct usage_pod *pod)
{
    if (!pod)
        return;
    doc_enforced(doc, pod->enforced, pod->reason);
    doc_list(doc, "use");
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        if (!gpu->known)
            continue;
        doc_object(doc, NULL);
        doc_number(doc, "id", gpu->idx);
        doc_number(doc, "inUseBytes", gpu->used_bytes);
        doc_number(doc, "peakBytes", gpu->peak_bytes);
        doc_end(doc);
    }
    doc_end(doc);
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
    doc_bool(doc, "recorded", claim_recorded(own));
    doc_gpus(doc, "gpus", own->gpus);
    put_use(doc, why->use);
    doc_list(doc, "podsOfNode"); /* itself included */
    if (why->view)
        gs_ledger_each_claim(why->snapshot->cluster.ledger, why->view->slot, put_sharer, doc);
    doc_end(doc);
}

int why_document(const struct why *why, bool yaml)
{
    static const char *const states[] = {"noGPU", "ended", "bound", "waiting"};
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
    if (why->said[0] && !pod->node_name[0])
        doc_text(&doc, "schedulerSaid", why->said);
    if (why->trouble[0])
        doc_text(&doc, "kubeletSaid", why->trouble);
    return doc_close(&doc);
}
