/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/service.h"

/* All parts of a tick but the term's, one after the other, in one thread. */
static inline void service_tick(struct gs_service *service)
{
    for (enum gs_tick part = 0; part < GS_TICK_TERM; part++)
        gs_service_tick_part(service, part);
}

/* Each verb as a function, of a client that did not show who it is. */
#define SERVICE_VERB(name, verb)                                                                   \
    __attribute__((noinline, unused)) static int name(struct gs_service *service,                  \
                                                      const char *body, size_t len,                \
                                                      struct gs_buf *answer, struct gs_error *err) \
    {                                                                                              \
        struct gs_request request = {.body = {body, len}, .may_sleep = true};                      \
        return (int)gs_service_answer(service, verb, &request, answer, err);                       \
    }
SERVICE_VERB(gs_service_filter, GS_VERB_FILTER)
SERVICE_VERB(gs_service_prioritize, GS_VERB_PRIORITIZE)
SERVICE_VERB(gs_service_preempt, GS_VERB_PREEMPT)
SERVICE_VERB(service_bind, GS_VERB_BIND)

/* As long as it may not sleep. */
static inline enum gs_answered service_try(struct gs_service *service, enum gs_verb verb,
                                           const char *body, size_t len, struct gs_buf *answer)
{
    struct gs_request request = {.body = {body, len}};
    return gs_service_answer(service, verb, &request, answer, NULL);
}
