/* SPDX-License-Identifier: Apache-2.0 */
#include "service_internal.h"

struct gs_gang_member {
    struct gs_gang *group;
    int64_t since_ns;
    uint32_t cycle; /* of the group, in which it was asked about */
    bool refused;
    struct gs_gang_member *prev, *next; /* of the group, the oldest first */
    UT_hash_handle hh;
    char uid[];
};

struct gs_gang {
    uint64_t name; /* hash of namespace and name; of a single pod, of its UID */
    int64_t asked_ns;
    uint32_t cycle;
    bool refused; /* one of its members */
    struct gs_gang_member *members;
    UT_hash_handle hh;
    char text[]; /* namespace/name; "" of a single pod */
};

static struct gs_gang_member *find(const struct gs_gang_reservations *gangs, const char *uid)
{
    struct gs_gang_member *member;
    HASH_FIND_STR(gangs->members, uid, member);
    return member;
}

/* The group goes with its last. */
static void leave_group(struct gs_gang_reservations *gangs, struct gs_gang_member *member)
{
    struct gs_gang *group = member->group;
    DL_DELETE(group->members, member);
    free(member);
    if (group->members)
        return;
    HASH_DEL(gangs->groups, group);
    free(group);
}

static void drop(struct gs_gang_reservations *gangs, struct gs_gang_member *member)
{
    HASH_DEL(gangs->members, member);
    leave_group(gangs, member);
}

void gs_gang_reservations_release(struct gs_gang_reservations *gangs)
{
    while (gangs->members)
        drop(gangs, gangs->members);
}

static struct gs_gang *need_group(struct gs_gang_reservations *gangs, const struct gs_pod *pod)
{
    const bool single = !gs_gang_reservations_concern(pod);
    const uint64_t name = single ? gs_hash_text(pod->uid) : gs_pod_name_hash(pod->ns, pod->group);
    struct gs_gang *group;
    HASH_FIND(hh, gangs->groups, &name, sizeof(name), group);
    if (group)
        return group;
    const size_t bytes = strlen(pod->ns) + strlen(pod->group) + 2;
    group = calloc(1, sizeof(*group) + bytes);
    if (!group)
        return NULL;
    if (!single)
        snprintf(group->text, bytes, "%s/%s", pod->ns, pod->group);
    group->name = name;
    HASH_ADD(hh, gangs->groups, name, sizeof(name), group);
    if (group->hh.tbl)
        return group;
    free(group);
    return NULL;
}

/* An entry for a pod that has none; NULL: there is no memory, or too many are there. */
static struct gs_gang_member *add(struct gs_service *service, const struct gs_pod *pod)
{
    struct gs_gang_reservations *gangs = &service->gangs;
    const size_t len = strlen(pod->uid) + 1;
    const bool room = HASH_COUNT(gangs->members) < GS_GANG_RESERVATIONS_MAX;
    struct gs_gang_member *member = room ? calloc(1, sizeof(*member) + len) : NULL;
    struct gs_gang *group = member ? need_group(gangs, pod) : NULL;
    if (!group) {
        free(member);
        return NULL;
    }
    memcpy(member->uid, pod->uid, len);
    member->group = group;
    member->cycle = group->cycle;
    member->since_ns = group->asked_ns = gs_service_now(service);
    DL_APPEND(group->members, member);
    HASH_ADD_STR(gangs->members, uid, member);
    if (member->hh.tbl)
        return member;
    leave_group(gangs, member);
    return NULL;
}

static bool is_reserved(const struct gs_service *service, const struct gs_gang_member *member)
{
    const struct gs_hold *hold = gs_ledger_find_hold(service->ledger, member->uid);
    return hold && hold->gpus;
}

static void free_memory(struct gs_service *service, const struct gs_gang_member *member)
{
    if (!is_reserved(service, member))
        return;
    const uint32_t slot = gs_ledger_find_hold(service->ledger, member->uid)->slot;
    gs_ledger_release_hold(service->ledger, member->uid);
    gs_service_freed(service, slot, member->group->name);
    gs_reservations_again(service, member->uid);
}

/* Its cycles up to that one. */
static void end_group(struct gs_service *service, struct gs_gang *group, uint32_t cycle)
{
    struct gs_gang_member *member, *next;
    group->refused = false;
    for (member = group->members; member; member = next) {
        next = member->next; /* the group goes with its last */
        if (member->cycle > cycle) {
            group->refused = group->refused || member->refused;
            continue;
        }
        free_memory(service, member);
        drop(&service->gangs, member);
    }
}

void gs_gang_reservations_asked(struct gs_service *service, const struct gs_pod *pod)
{
    struct gs_gang_member *member = find(&service->gangs, pod->uid);
    if (member && !member->refused && !is_reserved(service, member)) {
        member->group->cycle++; /* without it: the binds of the others may be under way */
        drop(&service->gangs, member);
    } else if (member) {
        end_group(service, member->group, member->cycle);
    }
}

void gs_gang_reservations_unbound(struct gs_service *service, const char *uid)
{
    gs_service_write(service);
    const struct gs_gang_member *member = find(&service->gangs, uid);
    if (member)
        free_memory(service, member);
    gs_service_unlock(service);
}

bool gs_gang_reservations_make(struct gs_service *service, const struct gs_pod *pod, uint32_t slot,
                               gs_gpu_mask gpus)
{
    if (gs_cluster_has_ended(&service->cluster, pod->uid, false))
        return false;
    struct gs_gang_member *member = add(service, pod);
    /* in place of its nomination's reservation */
    if (member && gpus &&
        gs_reservations_set(service, pod, gs_ledger_node_name(service->ledger, slot), gpus, NULL) ==
            0 &&
        is_reserved(service, member))
        return true;
    if (member)
        drop(&service->gangs, member);
    return false;
}

/* kube-scheduler tries the node that a pod is nominated to alone, and then the others, in one
 * cycle. */
static bool is_first_try(const struct gs_filter_args *args)
{
    return args->name_count == 1 &&
           gs_slice_eq(args->names[0], gs_slice_of(args->pod.nominated_node));
}

void gs_gang_reservations_refused(struct gs_service *service, const struct gs_filter_args *args)
{
    if (is_first_try(args))
        return;
    gs_service_write(service);
    struct gs_gang_member *member = find(&service->gangs, args->pod.uid);
    if (!member)
        member = add(service, &args->pod);
    if (member && !is_reserved(service, member))
        member->refused = member->group->refused = true;
    gs_service_unlock(service);
}

/* Returns how many of the group have a reservation still. */
static uint32_t end_old(struct gs_service *service, struct gs_gang *group, int64_t now_ns)
{
    struct gs_gang_member *member, *next;
    uint32_t left = 0;
    for (member = group->members; member; member = next) {
        next = member->next; /* the group goes with its last */
        const bool reserved = is_reserved(service, member);
        const bool is_old = now_ns - member->since_ns >= GS_GANG_RESERVATION_NS;
        if (!reserved && (is_old || !member->refused)) {
            drop(&service->gangs, member);
        } else if (is_old) {
            free_memory(service, member);
            member->refused = true;
            member->since_ns = now_ns;
        } else {
            left += reserved;
        }
    }
    return left;
}

const char *gs_gang_reservations_group(const struct gs_service *service, const char *uid,
                                       int64_t *ret_left_ns)
{
    const struct gs_gang_member *member = find(&service->gangs, uid);
    if (!member || !is_reserved(service, member))
        return NULL;
    const struct gs_gang *group = member->group;
    int64_t until_ns = member->since_ns + GS_GANG_RESERVATION_NS;
    if (group->refused && group->asked_ns + GS_GANG_RESERVATION_REFUSED_NS < until_ns)
        until_ns = group->asked_ns + GS_GANG_RESERVATION_REFUSED_NS;
    *ret_left_ns = until_ns - gs_service_now(service);
    return group->text;
}

void gs_gang_reservations_tick(struct gs_service *service, int64_t now_ns)
{
    const bool answers = !gs_service_refuses(service);
    struct gs_gang *group, *next;
    uint32_t left = 0;
    gs_service_write(service);
    HASH_ITER (hh, service->gangs.groups, group, next) {
        if (!answers ||
            (group->refused && now_ns - group->asked_ns >= GS_GANG_RESERVATION_REFUSED_NS))
            end_group(service, group, UINT32_MAX);
        else
            left += end_old(service, group, now_ns);
    }
    GS_INVARIANT(left == gs_ledger_promises(service->ledger), "every gang reservation ends");
    gs_service_unlock(service);
}
