/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/*
 * A pod without GPU memory is asked about only where the operator wants it (config/: an extender
 * entry without managedResources): GPU nodes are for those who need GPUs.
 */
enum { CPU_POD_ON_GPU_NODE = 0, CPU_POD_ELSEWHERE = 10 };

static void score_cpu_pod(const struct gs_ledger *ledger, struct gs_scratch *scratch)
{
    uint32_t count = gs_filter_args_count(&scratch->args);
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_node_view *view =
            gs_ledger_view(ledger, gs_filter_args_name(&scratch->args, i));
        scratch->verdicts[i] = view && view->gpu_count ? CPU_POD_ON_GPU_NODE : CPU_POD_ELSEWHERE;
    }
}

static void score_gpu_pod(struct gs_service *service, const struct gs_ask *ask,
                          struct gs_scratch *scratch)
{
    const struct gs_ledger *ledger = service->store.ledger;
    enum gs_placement placement = gs_service_placement(service, ask);
    uint32_t count = gs_filter_args_count(&scratch->args);
    struct gs_gpu_state room[GS_GPUS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_node_view *view =
            gs_ledger_view(ledger, gs_filter_args_name(&scratch->args, i));
        struct gs_node_view now;
        struct gs_choice choice;
        scratch->fits[i] = view && gs_fit_beside_holds(ledger, view, ask, room, &now) == GS_FITS &&
                           gs_policy_choose(service->store.policies, placement, &now, ask, &choice);
        scratch->losses[i] = scratch->fits[i] ? choice.loss : 0;
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
        if (ask.units)
            score_gpu_pod(service, &ask, scratch);
        else
            score_cpu_pod(service->store.ledger, scratch);
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
