/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

static const struct {
    const char *name; /* in metrics, and the end of its path */
    gs_verb_fn *answer;
} verbs[GS_VERBS] = {
    [GS_VERB_FILTER] = {"filter", gs_verb_filter},
    [GS_VERB_PRIORITIZE] = {"prioritize", gs_verb_prioritize},
    [GS_VERB_BIND] = {"bind", gs_verb_bind},
    [GS_VERB_PREEMPT] = {"preempt", gs_verb_preempt},
};

const char *gs_verb_name(enum gs_verb verb)
{
    return verbs[verb].name;
}

enum gs_answered gs_service_answer(struct gs_service *service, enum gs_verb verb,
                                   struct gs_request *request, struct gs_buf *answer,
                                   struct gs_error *err)
{
    const int64_t start_ns = gs_service_now(service);
    request->refused = false;
    enum gs_answered result = verbs[verb].answer(service, request, answer, err);
    if (result == GS_ANSWERED && gs_service_answered(answer, err) < 0)
        result = GS_ANSWER_FAILED;
    if (result != GS_WOULD_SLEEP)
        gs_meter_add(&service->meters[verb], gs_service_now(service) - start_ns,
                     result < 0 || request->refused);
    return result;
}
