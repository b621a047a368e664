/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

static gs_verb_fn *const verbs[GS_VERBS] = {gs_verb_filter, gs_verb_prioritize, gs_verb_bind,
                                            gs_verb_preempt};

enum gs_answered gs_service_answer(struct gs_service *service, enum gs_verb verb,
                                   struct gs_request *request, struct gs_buf *answer,
                                   struct gs_error *err)
{
    const int64_t start_ns = gs_service_now(service);
    request->refused = false;
    enum gs_answered result = verbs[verb](service, request, answer, err);
    if (result == GS_ANSWERED && gs_service_answered(answer, err) < 0)
        result = GS_ANSWER_FAILED;
    if (result != GS_WOULD_SLEEP)
        gs_meter_add(&service->meters[verb], gs_service_now(service) - start_ns,
                     result < 0 || request->refused);
    return result;
}
