/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into an extender with --wrap=gs_service_new: it compares its ledger with the API each
 * second, not each five minutes, and no bind waits for those of a process before it. */
#include "extender/service/service.h"
#include "gpushare/base/clock.h"

struct gs_service *__real_gs_service_new(const struct gs_service_config *config,
                                         struct gs_error *err);
struct gs_service *__wrap_gs_service_new(const struct gs_service_config *config,
                                         struct gs_error *err);

struct gs_service *__wrap_gs_service_new(const struct gs_service_config *config,
                                         struct gs_error *err)
{
    struct gs_service_config often = *config;
    often.reconcile_ns = GS_NS_PER_S;
    often.first_bind_ns = 0;
    return __real_gs_service_new(&often, err);
}
