/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

/* A pod without GPU memory is asked about only where the operator wants it (config/packing: an
 * extender entry without managedResources). Nodes without GPUs, and nodes that are not known here,
 * have nothing to lose by it. */
static bool rate(const struct gs_service *service, struct gs_chooser *chooser,
                 const struct gs_node_view *view, struct gs_gpu_state room[GS_GPUS_MAX],
                 int64_t *ret_loss)
{
    const struct gs_ask *ask = chooser->ask;
    struct gs_node_view beside;
    struct gs_choice choice;
    if (!ask->units && (!view || !view->gpu_count)) {
        *ret_loss = GS_LOSS_NOTHING_TO_LOSE;
        return true;
    }
    if (view && view->nominated) {
        if (gs_fit_beside_holds(service->store.ledger, view, ask, room, &beside) != GS_FITS)
            return false;
        view = &beside;
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

struct work {
    int64_t begin_ns, until_ns;
    uint32_t seen; /* of gs_chooser.worked */
};

static void begin_work(const struct gs_service *service, struct work *work)
{
    int64_t rest_until_ns = atomic_load_explicit(&service->rest_until_ns, memory_order_relaxed);
    work->begin_ns = gs_clock_now_ns(service->config.clock);
    work->until_ns = work->begin_ns < rest_until_ns ? 0 : work->begin_ns + WORK_NS;
    work->seen = 0;
}

/* After each node. */
static void watch_work(const struct gs_service *service, struct work *work,
                       struct gs_chooser *chooser)
{
    if (chooser->worked == work->seen)
        return;
    work->seen = chooser->worked;
    chooser->hurried = gs_clock_now_ns(service->config.clock) >= work->until_ns;
}

static void end_work(struct gs_service *service, const struct work *work)
{
    if (!work->seen || !work->until_ns)
        return;
    int64_t now_ns = gs_clock_now_ns(service->config.clock);
    atomic_store_explicit(&service->rest_until_ns, now_ns + REST_FACTOR * (now_ns - work->begin_ns),
                          memory_order_relaxed);
}

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

static void score(struct gs_service *service, const struct gs_ask *ask, struct gs_scratch *scratch)
{
    uint32_t count = gs_filter_args_count(&scratch->args);
    const struct gs_ledger *ledger = service->store.ledger;
    struct gs_gpu_state
        room[GS_GPUS_MAX]; /* one for all: compilers that harden clear it each time */
    struct gs_chooser chooser;
    gs_chooser_init(&chooser, service->store.policies, gs_service_placement(service, ask), ask);
    struct work work;
    begin_work(service, &work);
    gs_scratch_find_nodes(scratch, ledger);
    for (uint32_t i = 0; i < count; i++) {
        const struct gs_node_view *view = gs_ledger_view_in(ledger, scratch->slots, count, i);
        scratch->losses[i] = 0;
        scratch->fits[i] = rate(service, &chooser, view, room, &scratch->losses[i]);
        watch_work(service, &work, &chooser);
    }
    end_work(service, &work);
    if (chooser.hurried)
        rate_unknown_last(scratch->losses, scratch->fits, count);
    gs_policy_scores(service->config.quantise, scratch->losses, scratch->fits, count,
                     scratch->verdicts);
}

/* kube-scheduler adds an extender's scores to its own, and nothing for a node that is not named:
 * the same off all of them changes no order. Most nodes share the least score, and reading 1,000
 * entries is what kube-scheduler spends most of its time on in an answer. */
static void leave_out_least(uint8_t *scores, uint32_t count)
{
    uint8_t least = GS_SCORE_UNTOLD;
    for (uint32_t i = 0; i < count; i++)
        least = scores[i] < least ? scores[i] : least;
    for (uint32_t i = 0; i < count; i++)
        scores[i] = scores[i] == least ? GS_SCORE_UNTOLD : (uint8_t)(scores[i] - least);
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
    struct gs_match match;
    gs_ask_of_pod(&ask, &scratch->args.pod);
    gs_ask_match(&ask, service->store.ledger, &match);
    if (gs_service_refuses(service)) { /* this answer has no Error: nobody is preferred */
        memset(scratch->verdicts, 0, count);
    } else {
        gs_store_read(&service->store);
        score(service, &ask, scratch);
        gs_store_unlock(&service->store);
    }
    if (service->config.sparse_scores)
        leave_out_least(scratch->verdicts, gs_filter_args_count(&scratch->args));
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
