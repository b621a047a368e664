/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

#define LOOK_EVERY_NS (1 * GS_NS_PER_S)

struct gs_bind_reservation *gs_bind_reservations_find(const struct gs_service *service,
                                                      const char *uid)
{
    struct gs_bind_reservation *one;
    HASH_FIND_STR(service->bind_reservations.all, uid, one);
    return one;
}

bool gs_bind_is_unresolved(const struct gs_service *service, const char *uid)
{
    const struct gs_bind_reservation *one = gs_bind_reservations_find(service, uid);
    return one && !one->queued;
}

bool gs_bind_reservations_add(struct gs_service *service, const struct gs_binding_args *args,
                              bool queued, int64_t look_ns, int64_t until_ns)
{
    struct gs_bind_reservations *binds = &service->bind_reservations;
    struct gs_bind_reservation *one = gs_bind_reservations_find(service, args->uid);
    if (!one) {
        const size_t bytes = strlen(args->uid) + 1;
        one = calloc(1, sizeof(*one) + bytes);
        if (!one)
            return false;
        memcpy(one->uid, args->uid, bytes);
        HASH_ADD_STR(binds->all, uid, one);
        if (!one->hh.tbl) {
            free(one);
            return false;
        }
        one->ns = gs_hash_text(args->ns);
        one->queued = queued;
        atomic_fetch_add(&binds->unresolved, !queued);
    }
    one->next_look_ns = look_ns;
    one->until_ns = one->until_ns > until_ns ? one->until_ns : until_ns;
    return true;
}

void gs_bind_reservations_remove(struct gs_service *service, struct gs_bind_reservation *one)
{
    struct gs_bind_reservations *binds = &service->bind_reservations;
    if (!one)
        return;
    HASH_DEL(binds->all, one);
    atomic_fetch_sub(&binds->unresolved, !one->queued);
    free(one);
}

struct gs_bind_reservation *gs_bind_reservations_due(struct gs_service *service, bool queued,
                                                     int64_t now_ns)
{
    struct gs_bind_reservations *binds = &service->bind_reservations;
    struct gs_bind_reservation *due = NULL;
    uint64_t least = 0;
    for (struct gs_bind_reservation *one = binds->all; one; one = one->hh.next) {
        const uint64_t turns = one->ns - binds->turn;
        if (one->queued == queued && one->next_look_ns <= now_ns &&
            (!due || turns < least || (turns == least && one->next_look_ns < due->next_look_ns))) {
            due = one;
            least = turns;
        }
    }
    if (!due)
        return NULL;
    binds->turn = due->ns + 1;
    due->next_look_ns = now_ns + LOOK_EVERY_NS;
    return due;
}
