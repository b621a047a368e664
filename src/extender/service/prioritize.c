/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

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

static void prioritize(struct gs_service *service, struct gs_scratch *scratch)
{
    const uint32_t count = gs_filter_args_count(&scratch->args);
    struct gs_ask ask;
    struct gs_match match;
    gs_ask_of_pod(&ask, &scratch->args.pod);
    memset(scratch->verdicts, GS_FITS, count); /* or a score of 0 */
    if (!gs_service_refuses(service)) { /* else: this answer has no Error, no node is preferred */
        gs_service_read(service);
        gs_ask_match(&ask, service->ledger, &match);
        gs_rate(service, &ask, scratch);
        gs_policy_scores(scratch->losses, scratch->fits, count, scratch->verdicts);
        gs_service_unlock(service);
    }
    leave_out_least(scratch->verdicts, count);
}

enum gs_answered gs_verb_prioritize(struct gs_service *service, struct gs_request *request,
                                    struct gs_buf *answer, struct gs_error *err)
{
    struct gs_scratch *scratch = gs_scratch_take(service, request, err);
    if (!scratch)
        return GS_ANSWER_FAILED;
    prioritize(service, scratch);
    gs_codec_host_priorities(answer, &scratch->args, scratch->verdicts);
    gs_scratch_give(service, scratch);
    return GS_ANSWERED;
}
