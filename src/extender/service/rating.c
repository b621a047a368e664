/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* A pod without GPU memory is asked about only where the operator wants it (config/packing: an
 * extender entry without managedResources). Nodes without GPUs, and nodes that are not known here,
 * have nothing to lose by it. beside: one for all nodes of a request, as compilers that harden
 * clear it each time. */
static bool rate(const struct gs_service *service, struct gs_chooser *chooser,
                 const struct gs_node_view *view, struct gs_beside *beside, int64_t *ret_loss)
{
    const struct gs_ask *ask = chooser->ask;
    struct gs_choice choice;
    if (!ask->units && (!view || !view->gpu_count)) {
        *ret_loss = GS_LOSS_NOTHING_TO_LOSE;
        return true;
    }
    chooser->alone = NULL;
    if (view && view->nominated) {
        if (gs_fit_beside_holds(service->ledger, view, ask, beside) != GS_FITS)
            return false;
        chooser->alone = view;
        view = &beside->view;
    }
    if (!view || !gs_chooser_choose(chooser, view, &choice))
        return false;
    *ret_loss = choice.loss;
    return true;
}

/*
 * Choices that are not remembered take up to a millisecond each. Mostly they are few: the nodes
 * that changed since the same kind of pod was last asked about. All nodes, after the tables were
 * built anew or for a new kind of pod, would be seconds in a large cluster, with everybody waiting:
 * so they are worked out in parts, a quarter of the time at most. Until its turn comes a node is
 * rated as before the refresh, or last; one is worked out in each request whatever the time.
 */
enum { REST_FACTOR = 3 };
#define WORK_NS ((int64_t)500 * 1000)

/* Nodes about which nothing is known yet come last. */
static void rate_unknown_last(int64_t *losses, const bool *fits, uint32_t count)
{
    int64_t worst = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        if (fits[i] && losses[i] != GS_LOSS_UNKNOWN && losses[i] > worst)
            worst = losses[i];
    }
    for (uint32_t i = 0; i < count; i++)
        losses[i] = losses[i] == GS_LOSS_UNKNOWN ? worst : losses[i];
}

void gs_rate(struct gs_service *service, const struct gs_ask *ask, struct gs_scratch *scratch)
{
    const uint32_t count = gs_filter_args_count(&scratch->args);
    const int64_t begin_ns = gs_service_now(service);
    const bool rests = begin_ns < atomic_load(&service->rest_until_ns);
    struct gs_beside beside;
    struct gs_chooser chooser;
    uint32_t worked = 0;
    gs_chooser_init(&chooser, service->place.policies, service->place.policy, ask);
    gs_scratch_find_nodes(scratch, service->ledger);
    for (uint32_t i = 0; i < count; i++) {
        scratch->losses[i] = 0;
        scratch->fits[i] = false;
        if (scratch->verdicts[i] != GS_FITS)
            continue;
        const struct gs_node_view *view =
            gs_ledger_view_in(service->ledger, scratch->slots, count, i);
        scratch->fits[i] = rate(service, &chooser, view, &beside, &scratch->losses[i]);
        if (chooser.worked == worked)
            continue;
        worked = chooser.worked;
        chooser.hurried = rests || gs_service_now(service) >= begin_ns + WORK_NS;
    }
    if (worked && !rests) {
        const int64_t now_ns = gs_service_now(service);
        atomic_store(&service->rest_until_ns, now_ns + REST_FACTOR * (now_ns - begin_ns));
    }
    if (chooser.hurried)
        rate_unknown_last(scratch->losses, scratch->fits, count);
}
