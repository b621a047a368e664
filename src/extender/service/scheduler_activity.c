/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

static unsigned long long hash_of(const char *name)
{
    unsigned long long hash = gs_hash_text(name);
    return hash ? hash : 1;
}

/* Those above the ceiling are not noted. */
void gs_scheduler_activity_note(atomic_ullong *names, const char *name)
{
    unsigned long long hash = hash_of(name);
    for (int i = 0; i < GS_SCHEDULERS_MAX; i++) {
        unsigned long long there = atomic_load(&names[i]);
        if (there == hash ||
            (!there && (atomic_compare_exchange_strong(&names[i], &there, hash) || there == hash)))
            return;
    }
}

static bool has(atomic_ullong *names, unsigned long long hash)
{
    for (int i = 0; i < GS_SCHEDULERS_MAX; i++) {
        if (atomic_load(&names[i]) == hash)
            return true;
    }
    return false;
}

bool gs_scheduler_activity_knows(struct gs_service *service, const char *name)
{
    struct gs_scheduler_activity *schedulers = &service->schedulers;
    if (service->config.scheduler_name)
        return gs_scheduler_activity_lists(service->config.scheduler_name, name);
    unsigned long long hash = hash_of(name);
    return !atomic_load(&schedulers->asked[0]) || has(schedulers->asked, hash) ||
           has(schedulers->bound, hash);
}

bool gs_scheduler_activity_lists(const char *list, const char *name)
{
    const size_t len = strlen(name);
    for (; *list; list += *list == ',') {
        const size_t word = strcspn(list, ",");
        if (word == len && memcmp(list, name, len) == 0)
            return true;
        list += word;
    }
    return false;
}
