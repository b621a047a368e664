/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "inspect/doctor.h"
#include "inspect/view.h"

/* What keeps pods to their share, as the device plugins read it back on their hosts
 * (docs/limits.md). */

struct tally {
    uint32_t gpus[GS_ENFORCED_COUNT];
    uint32_t told; /* GPUs whose plugin says something */
    uint32_t forged;
    const char *forged_example;
};

static void add_node(struct tally *tally, const struct snap_node *node,
                     const struct gs_node_view *view)
{
    bool all = view->gpu_count > 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        enum gs_enforced enforced = view->inventory[i].enforced;
        tally->gpus[enforced]++;
        tally->told += enforced != GS_ENFORCED_UNKNOWN;
        all = all && enforced == GS_ENFORCED_DMEM;
    }
    if (!node->says_enforced || all)
        return;
    tally->forged++;
    tally->forged_example = node->name;
}

/* One line for each way of limiting, then one per reason: some are mended on the host, one with an
 * option. */
static void say_gpus(struct doctor *doctor, const struct tally *tally)
{
    for (enum gs_enforced i = 0; i < GS_ENFORCED_COUNT; i++) {
        if (tally->gpus[i] && gs_enforced_holds(i))
            doctor_say(doctor, FINDING_OK, "limits", "%s on %" PRIu32 " GPUs%s",
                       view_limits(i)->before, tally->gpus[i], view_limits(i)->behind);
        else if (tally->gpus[i] && gs_enforced_lacks(i))
            doctor_say(doctor, FINDING_OK, "limits",
                       "nothing keeps pods to their share on %" PRIu32 " GPUs: %s", tally->gpus[i],
                       gs_enforced_reason(i));
    }
}

void doctor_check_limits(struct doctor *doctor)
{
    struct tally tally = {0};
    for (const struct snap_node *node = doctor->snapshot.nodes; node; node = node->hh.next) {
        const struct gs_node_view *view =
            gs_ledger_view(doctor->snapshot.cluster.ledger, gs_slice_of(node->name));
        if (view)
            add_node(&tally, node, view);
    }
    if (tally.forged)
        doctor_say(doctor, FINDING_WARN, "limits",
                   "label %s says dmem on %" PRIu32 " nodes (%s) whose inventory does not: the "
                   "device plugin did not write it, or is gone; kubectl label node NAME %s-",
                   doctor->common.names.enforced, tally.forged, tally.forged_example,
                   doctor->common.names.enforced);
    if (tally.told)
        say_gpus(doctor, &tally);
}
