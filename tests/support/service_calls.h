/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/service.h"

/* All parts of a tick but the term's, one after the other, in one thread. */
static inline void service_tick(struct gs_service *service)
{
    for (enum gs_tick part = 0; part < GS_TICK_TERM; part++)
        gs_service_tick_part(service, part);
}

/* As a verb: of a client that did not show who it is. */
static inline int service_bind(struct gs_service *service, const char *body, size_t len,
                               struct gs_buf *answer, struct gs_error *err)
{
    return gs_service_bind(service, NULL, body, len, answer, err);
}
