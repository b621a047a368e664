/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/doctor.h"
#include "inspect/waits.h"

/* ---- pods that have their node ---- */

struct unrecorded {
    const struct gs_ledger *ledger;
    struct doctor_names names, orphans; /* orphans: the node is gone */
};

static bool note_unrecorded(void *ctx, const struct gs_claim *claim)
{
    struct unrecorded *found = ctx;
    char name[400];
    if (claim_recorded(claim))
        return true;
    snprintf(name, sizeof(name), "%.63s/%.253s", claim->ns, claim->name);
    doctor_add_name(gs_ledger_view(found->ledger, gs_slice_of(claim->node)) ? &found->names
                                                                            : &found->orphans,
                    name);
    return true;
}

/* Those that were bound by a scheduler that never asks the extender. */
static void check_schedulers(struct doctor *doctor)
{
    const char *usual = snapshot_scheduler(&doctor->snapshot);
    for (size_t i = 0; usual && i < SCHEDULERS_MAX; i++) {
        const struct snap_scheduler *other = &doctor->snapshot.schedulers[i];
        if (other->unrecorded && strcmp(other->name, usual) != 0)
            doctor_say(doctor, FINDING_WARN, "pods",
                       "%" PRIu64 " bound without a GPU index by %s; set schedulerName to %s, "
                       "which schedules pods with GPU memory here",
                       other->unrecorded, other->name, usual);
    }
}

void doctor_check_pods(struct doctor *doctor)
{
    struct unrecorded found = {.ledger = doctor->snapshot.cluster.ledger};
    gs_ledger_each(doctor->snapshot.cluster.ledger, note_unrecorded, &found);
    doctor_say_list(doctor, FINDING_FAIL, "pods", &found.names,
                    "bound, but without a valid GPU index (bypassing the extender, or the "
                    "annotation was changed), so its memory counts on every GPU that fits it; "
                    "delete the pod to reschedule it");
    doctor_say_list(doctor, FINDING_WARN, "pods", &found.orphans,
                    "its node no longer exists; kube-controller-manager deletes such pods after a "
                    "while, or run kubectl delete pod");
    if (found.names.count)
        check_schedulers(doctor);
    if (doctor->snapshot.overriding)
        doctor_say(doctor, FINDING_WARN, "pods",
                   "%" PRIu64 " %s and may use GPUs that are allocated to other pods (%s); remove "
                   "the variable from env",
                   doctor->snapshot.overriding,
                   doctor->snapshot.overriding == 1 ? "pod sets NVIDIA_VISIBLE_DEVICES itself"
                                                    : "pods set NVIDIA_VISIBLE_DEVICES themselves",
                   doctor->snapshot.overriding_example);
    if (!found.names.count)
        doctor_say(doctor, FINDING_OK, "pods", "every bound pod with GPU memory has a GPU index");
}

/* ---- pods that wait ---- */

/* Nobody serves it: not kube-scheduler's configuration, as far as that is known, and nobody of that
 * name placed pods before. */
static bool is_elsewhere(const struct doctor *doctor, const struct waits *waits,
                         const struct wait *wait)
{
    const char *name = snapshot_scheduler_of(&wait->waiting->pod);
    const char *at = strstr(doctor->served, name);
    size_t len = strlen(name);
    bool served = at && (at == doctor->served || at[-1] == ',') && (!at[len] || at[len] == ',');
    if (served)
        return false;
    return waits->scheduler ? wait->other_scheduler : doctor->served[0] != '\0';
}

static void name_waits(const struct doctor *doctor, const struct waits *waits,
                       struct doctor_names *never, struct doctor_names *elsewhere,
                       uint32_t *ret_fragmented)
{
    GS_EACH_OF (wait, waits->all, waits->count) {
        const struct gs_pod *pod = &wait->waiting->pod;
        char name[400], asks[WAIT_SHORT_BYTES];
        waits_asks(pod, asks);
        snprintf(name, sizeof(name), "%.63s/%.200s (%.40s)", pod->ns, pod->name, asks);
        if (wait->never)
            doctor_add_name(never, name);
        snprintf(name, sizeof(name), "%.63s/%.200s (%.100s)", pod->ns, pod->name,
                 snapshot_scheduler_of(pod));
        if (is_elsewhere(doctor, waits, wait))
            doctor_add_name(elsewhere, name);
        *ret_fragmented +=
            wait->reason == GS_REASON_FRAGMENTED || wait->reason == GS_REASON_TOO_FEW_FREE;
    }
}

int doctor_check_waits(struct doctor *doctor, struct gs_error *err)
{
    struct waits waits;
    struct doctor_names never = {0}, elsewhere = {0};
    uint32_t fragmented = 0;
    char sum[WAIT_TEXT_BYTES];
    int result = waits_find(&doctor->snapshot, NULL, &waits, err);
    if (result == 0 && waits.count) {
        name_waits(doctor, &waits, &never, &elsewhere, &fragmented);
        waits_sum(&waits, sum);
        doctor_say(doctor, FINDING_WARN, "pending", "%s%s%s; run kubectl inspect gpushare why", sum,
                   never.count ? ": " : "", never.text);
        doctor_say_list(doctor, FINDING_WARN, "scheduler", &elsewhere,
                        "pending with a schedulerName that has scheduled no pods with GPU memory "
                        "here; check that a scheduler of that name calls the extender");
        if (fragmented)
            doctor_say(doctor, FINDING_WARN, "pending",
                       "%" PRIu32
                       " only because free memory is spread over several GPUs: the nodes' total is "
                       "enough, so Cluster Autoscaler adds no node; request less, or set gpu-count",
                       fragmented);
    }
    waits_release(&waits);
    return result;
}
