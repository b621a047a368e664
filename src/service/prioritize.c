/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* A pod without GPU memory is asked about only where the operator wants it (config/packing: an
 * extender entry without managedResources). Nodes without GPUs, and nodes that are not known here,
 * have nothing to lose by it. */
static bool rate(const struct gs_service *service, const struct gs_ask *ask,
                 const struct gs_node_view *view, struct gs_gpu_state room[GS_GPUS_MAX],
                 int64_t *ret_loss)
{
    struct gs_node_view now;
    struct gs_choice choice;
    if (!ask->units && (!view || !view->gpu_count)) {
        *ret_loss = GS_LOSS_NOTHING_TO_LOSE;
        return true;
    }
    if (!view || gs_fit_beside_holds(service->store.ledger, view, ask, room, &now) != GS_FITS ||
        !gs_policy_choose(service->store.policies, gs_service_placement(service, ask), &now, ask,
                          &choice))
        return false;
    *ret_loss = choice.loss;
    return true;
}

static void score(struct gs_service *service, const struct gs_ask *ask, struct gs_scratch *scratch)
{
    uint32_t count = gs_filter_args_count(&scratch->args);
    struct gs_gpu_state
        room[GS_GPUS_MAX]; /* one for all: compilers that harden clear it each time */
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_node_view *view =
            gs_ledger_view(service->store.ledger, gs_filter_args_name(&scratch->args, i));
        scratch->losses[i] = 0;
        scratch->fits[i] = rate(service, ask, view, room, &scratch->losses[i]);
    }
    gs_policy_scores(service->config.quantise, scratch->losses, scratch->fits, count,
                     scratch->verdicts);
}

static int prioritize(struct gs_service *service, struct gs_slice body, struct gs_scratch *scratch,
                      struct gs_buf *answer, struct gs_error *err)
{
    if (gs_codec_filter_args(service->config.names, body, &scratch->args, err) < 0)
        return -1;
    uint32_t count = gs_filter_args_count(&scratch->args);
    if (gs_scratch_room(scratch, count) < 0)
        return gs_fail_nomem(err);
    struct gs_ask ask;
    gs_ask_of_pod(&ask, &scratch->args.pod);
    if (gs_service_refuses(service)) { /* this answer has no Error: nobody is preferred */
        memset(scratch->verdicts, 0, count);
    } else {
        gs_store_read(&service->store);
        score(service, &ask, scratch);
        gs_store_unlock(&service->store);
    }
    gs_codec_host_priorities(answer, &scratch->args, scratch->verdicts);
    return gs_buf_failed(answer) ? gs_fail(err, GS_ENOMEM, "the answer does not fit") : 0;
}

int gs_service_prioritize(struct gs_service *service, const char *body, size_t len,
                          struct gs_buf *answer, struct gs_error *err)
{
    int64_t start_ns = gs_clock_now_ns(service->config.clock);
    struct gs_scratch *scratch = gs_scratch_take(service);
    if (!scratch)
        return gs_fail_nomem(err);
    int result = prioritize(service, (struct gs_slice){body, len}, scratch, answer, err);
    gs_scratch_give(service, scratch);
    gs_meter_add(&service->meters[GS_VERB_PRIORITIZE],
                 gs_clock_now_ns(service->config.clock) - start_ns, result < 0);
    return result;
}
