/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/doctor.h"
#include "inspect/limits.h"
#include "inspect/usage.h"
#include "inspect/waits.h"

enum { NAME_BYTES = 512 };

/* ---- pods that have their node ---- */

static bool note_unrecorded(void *ctx, const struct gs_claim *claim)
{
    struct doctor *doctor = ctx;
    char name[NAME_BYTES];
    const bool there = gs_ledger_view(doctor->snapshot.cluster.ledger, claim->node) != NULL;
    if (there && claim_recorded(claim))
        return true;
    snprintf(name, sizeof(name), "%s/%s", claim->ns, claim->name);
    if (there)
        doctor_say_of(doctor, FINDING_FAIL, "pods", name,
                      "bound, but without a valid GPU index (bypassing the extender, or the "
                      "annotation was changed), so its memory counts on every GPU that fits it; "
                      "delete the pod to reschedule it");
    else
        doctor_say_of(doctor, FINDING_WARN, "pods", name,
                      "its node no longer exists; kube-controller-manager deletes such pods after "
                      "a while, or run kubectl delete pod");
    return true;
}

static void check_bound(struct doctor *doctor)
{
    const struct snapshot *snapshot = &doctor->snapshot;
    const char *usual = snapshot_scheduler(snapshot);
    gs_ledger_each(snapshot->cluster.ledger, note_unrecorded, doctor);
    if (doctor_is_ok(doctor, "pods"))
        doctor_say(doctor, FINDING_OK, "pods", "every bound pod with GPU memory has a GPU index");
    for (size_t i = 0; usual && i < SCHEDULERS_MAX; i++) {
        const struct snap_scheduler *other = &snapshot->schedulers[i];
        if (other->unrecorded && !other->recorded)
            doctor_say(doctor, FINDING_WARN, "pods",
                       "%" PRIu64 " bound without a GPU index by %s; set schedulerName to %s, "
                       "which schedules pods with GPU memory here",
                       other->unrecorded, other->name, usual);
    }
    if (snapshot->overriding)
        doctor_say(doctor, FINDING_WARN, "pods",
                   "%" PRIu64 " %s and may use GPUs that are allocated to other pods (%s); remove "
                   "the variable from env",
                   snapshot->overriding,
                   snapshot->overriding == 1 ? "pod sets NVIDIA_VISIBLE_DEVICES itself"
                                             : "pods set NVIDIA_VISIBLE_DEVICES themselves",
                   snapshot->overriding_example);
}

static int by_key(const struct usage_pod *a, const struct usage_pod *b)
{
    return strcmp(a->hh.key, b->hh.key);
}

/* Where device plugins name pods, these are named; elsewhere they are counted. Nothing is said
 * where none answers: `pods` says why. */
static void check_use(struct doctor *doctor)
{
    const struct usage_query query = common_usage(&doctor->common, NULL);
    struct usage usage;
    uint64_t over = 0;
    char name[NAME_BYTES];
    usage_fetch(&query, &usage);
    HASH_SORT(usage.pods, by_key); /* they stand as the plugins answered */
    for (const struct usage_pod *pod = usage.pods; pod; pod = pod->hh.next) {
        snprintf(name, sizeof(name), "%s/%s", pod->ns, pod->name);
        if (limits_over(pod, pod->used_bytes))
            doctor_say_of(doctor, FINDING_WARN, "usage", name,
                          "uses more of a GPU's memory than it requested; see kubectl inspect "
                          "gpushare pods --over-request");
    }
    for (const struct usage_node *node = usage.nodes; node; node = node->hh.next)
        over += node->over_pods;
    if (over && doctor_is_ok(doctor, "usage"))
        doctor_say(doctor, FINDING_WARN, "usage",
                   "%" PRIu64
                   " pods use more of a GPU's memory than they requested; with --pod-usage=on, "
                   "kubectl inspect gpushare pods --over-request lists them",
                   over);
    usage_release(&usage);
}

/* ---- pending pods ---- */

/* Neither kube-scheduler's configuration, as far as it is known, has that name, nor did a scheduler
 * of that name bind pods. */
static bool is_elsewhere(const struct doctor *doctor, const struct waits *waits,
                         const struct wait *wait)
{
    if (json_object_get(doctor->served, snapshot_scheduler_of(wait->pod)))
        return false;
    return waits->scheduler ? wait->other_scheduler : doctor->served != NULL;
}

static void check_waits(struct doctor *doctor, const struct waits *waits)
{
    char text[WAIT_TEXT_BYTES];
    uint32_t fragmented = 0;
    waits_sum(waits, text);
    if (waits->count)
        doctor_say(doctor, FINDING_WARN, "pending", "%s; run kubectl inspect gpushare why", text);
    GS_EACH_OF (wait, waits->all, waits->count) {
        const struct gs_pod *pod = wait->pod;
        snprintf(text, sizeof(text), "%s/%s (%s)", pod->ns, pod->name, snapshot_scheduler_of(pod));
        if (is_elsewhere(doctor, waits, wait))
            doctor_say_of(doctor, FINDING_WARN, "scheduler", text,
                          "pending with a schedulerName that has scheduled no pods with GPU "
                          "memory here; check that a scheduler of that name calls the extender");
        fragmented += wait->group.reason == GS_REASON_FRAGMENTED ||
                      wait->group.reason == GS_REASON_TOO_FEW_FREE;
    }
    if (fragmented)
        doctor_say(doctor, FINDING_WARN, "pending",
                   "%" PRIu32 " only because free memory is spread over several GPUs: the nodes' "
                   "total is enough, so Cluster Autoscaler adds no node; request less, or set "
                   "gpu-count",
                   fragmented);
}

int doctor_check_pods(struct doctor *doctor, struct gs_error *err)
{
    struct waits waits;
    check_bound(doctor);
    check_use(doctor);
    int result = waits_find(&doctor->snapshot, NULL, &waits, err);
    if (result == 0)
        check_waits(doctor, &waits);
    waits_release(&waits);
    return result;
}
