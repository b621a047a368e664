/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

enum { NODES_PER_LOOK = 128 };

void gs_service_read(const struct gs_service *service)
{
    pthread_rwlock_rdlock((pthread_rwlock_t *)&service->lock);
}

void gs_service_write(struct gs_service *service)
{
    pthread_rwlock_wrlock(&service->lock);
}

void gs_service_unlock(const struct gs_service *service)
{
    pthread_rwlock_unlock((pthread_rwlock_t *)&service->lock);
}

void gs_service_each_node(const struct gs_service *service, gs_service_node_fn *fn, void *ctx)
{
    for (uint32_t slot = 0, end = 1; slot < end;) {
        gs_service_read(service);
        end = gs_ledger_slots(service->ledger);
        for (uint32_t i = 0; i < NODES_PER_LOOK && slot < end; i++, slot++) {
            const struct gs_node_view *view = gs_ledger_view_at(service->ledger, slot);
            if (view)
                fn(ctx, service, view);
        }
        gs_service_unlock(service);
    }
}
