/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/core/placement.h"

static void free_node(struct snap_node *node)
{
    free(node->name);
    free(node->address);
    free(node->inventory_error);
    free(node);
}

static void free_waiting(struct snap_waiting *pod)
{
    gs_pod_release(&pod->pod);
    free(pod);
}

static void drop_node(struct snapshot *snapshot, struct snap_node *node)
{
    HASH_DEL(snapshot->nodes, node);
    free_node(node);
}

static void drop_waiting(struct snapshot *snapshot, struct snap_waiting *pod)
{
    HASH_DEL(snapshot->waiting, pod);
    free_waiting(pod);
}

/* ---- since when ---- */

static struct snap_since *find_since(const struct snapshot *snapshot, const char *uid)
{
    struct snap_since *found;
    HASH_FIND_STR(snapshot->since, uid, found);
    return found;
}

int64_t snapshot_since(const struct snapshot *snapshot, const char *uid)
{
    const struct snap_since *found = find_since(snapshot, uid);
    return found ? found->created_s : 0;
}

const char *snapshot_owner(const struct snapshot *snapshot, const char *uid)
{
    const struct snap_since *found = find_since(snapshot, uid);
    return found ? found->owner : "";
}

static int put_since(struct snapshot *snapshot, const struct gs_pod *pod)
{
    if (find_since(snapshot, pod->uid))
        return 0;
    const size_t uid = strlen(pod->uid) + 1, owner = strlen(pod->owner) + 1;
    struct snap_since *made = malloc(sizeof(*made) + uid + owner);
    if (!made)
        return -1;
    *made = (struct snap_since){.created_s = pod->created_s, .owner = made->uid + uid};
    memcpy(made->uid, pod->uid, uid);
    memcpy(made->uid + uid, pod->owner, owner);
    HASH_ADD_KEYPTR(hh, snapshot->since, made->uid, uid - 1, made);
    return 0;
}

static void drop_since(struct snapshot *snapshot, struct snap_since *entry)
{
    HASH_DEL(snapshot->since, entry);
    free(entry);
}

/* Those whose end was missed. */
static void sweep_since(struct snapshot *snapshot)
{
    struct snap_since *entry, *next;
    struct gs_claim claim;
    HASH_ITER (hh, snapshot->since, entry, next) {
        if (!gs_ledger_find_claim(snapshot->cluster.ledger, entry->uid, &claim))
            drop_since(snapshot, entry);
    }
}

void snapshot_release(struct snapshot *snapshot)
{
    struct snap_since *entry, *next_entry;
    HASH_ITER (hh, snapshot->since, entry, next_entry)
        drop_since(snapshot, entry);
    struct snap_node *node, *next_node;
    struct snap_waiting *pod, *next_pod;
    HASH_ITER (hh, snapshot->nodes, node, next_node)
        drop_node(snapshot, node);
    HASH_ITER (hh, snapshot->waiting, pod, next_pod)
        drop_waiting(snapshot, pod);
    gs_cluster_release(&snapshot->cluster);
    *snapshot = (struct snapshot){0};
}

struct snap_node *snapshot_node(const struct snapshot *snapshot, const char *name)
{
    struct snap_node *found;
    HASH_FIND_STR(snapshot->nodes, name, found);
    return found;
}

/* ---- nodes ---- */

static bool set_text(char **to, const char *text)
{
    if (*to && strcmp(*to, text) == 0)
        return true;
    char *copy = strdup(text);
    if (!copy)
        return false;
    free(*to);
    *to = copy;
    return true;
}

static struct snap_node *add_node(struct snapshot *snapshot, const char *name)
{
    struct snap_node *node = calloc(1, sizeof(*node));
    if (!node || !set_text(&node->name, name)) {
        free(node);
        return NULL;
    }
    HASH_ADD_KEYPTR(hh, snapshot->nodes, node->name, strlen(node->name), node);
    return node;
}

static int on_node(void *ctx, const struct gs_node *from)
{
    struct snapshot *snapshot = ctx;
    struct snap_node *node = snapshot_node(snapshot, from->name);
    if (gs_cluster_node(&snapshot->cluster, from, NULL) < 0)
        return -1;
    if (!node)
        node = add_node(snapshot, from->name);
    if (!node || !set_text(&node->address, from->address) ||
        !set_text(&node->inventory_error, from->inventory_error ? from->inventory_error : ""))
        return -1;
    node->slot = gs_ledger_view(snapshot->cluster.ledger, gs_slice_of(from->name))->slot;
    node->unit = from->unit;
    node->capacity_units = from->capacity_units;
    node->allocatable_units = from->allocatable_units;
    node->capacity_count = from->capacity_count;
    node->cordon_unknown = from->cordon_unknown;
    node->whole_gpus = from->whole_gpus;
    node->ready = from->ready;
    node->unschedulable = from->unschedulable;
    node->labelled = from->labelled;
    node->says_enforced = strcmp(from->enforced, "dmem") == 0;
    node->inventory = from->inventory;
    node->moved_unread = from->moved_error && from->moved_error[0];
    return 0;
}

static int on_node_gone(void *ctx, const struct gs_node *last)
{
    struct snapshot *snapshot = ctx;
    struct snap_node *node = snapshot_node(snapshot, last->name);
    if (node)
        drop_node(snapshot, node);
    gs_cluster_node_gone(&snapshot->cluster, last->name);
    return 0;
}

/* ---- pods ---- */

static struct snap_waiting *find_waiting(const struct snapshot *snapshot, const char *uid)
{
    struct snap_waiting *found;
    HASH_FIND_STR(snapshot->waiting, uid, found);
    return found;
}

static struct snap_waiting *add_waiting(struct snapshot *snapshot, const struct gs_pod *pod)
{
    struct snap_waiting *made = calloc(1, sizeof(*made));
    if (!made || gs_pod_copy(&made->pod, pod) < 0) {
        free(made);
        return NULL;
    }
    HASH_ADD_KEYPTR(hh, snapshot->waiting, made->pod.uid, strlen(made->pod.uid), made);
    return made;
}

/* The key of the table lies in the copy: what has changed is a new entry. */
static int on_waits(void *ctx, const struct gs_pod *pod, struct gs_error *err)
{
    struct snapshot *snapshot = ctx;
    struct snap_waiting *known = find_waiting(snapshot, pod->uid);
    if (known)
        drop_waiting(snapshot, known);
    struct snap_waiting *waiting = add_waiting(snapshot, pod);
    if (!waiting)
        return gs_fail_nomem(err);
    gs_pod_charge(pod, &waiting->charge);
    waiting->round = snapshot->round;
    return !known;
}

static void on_ended(void *ctx, const struct gs_pod *last)
{
    struct snapshot *snapshot = ctx;
    struct snap_waiting *waiting = find_waiting(snapshot, last->uid);
    struct snap_since *since = find_since(snapshot, last->uid);
    if (since)
        drop_since(snapshot, since);
    if (waiting)
        drop_waiting(snapshot, waiting);
}

static void note_override(struct snapshot *snapshot, const struct gs_pod *pod)
{
    for (uint32_t i = 0; i < pod->container_count; i++) {
        if (!pod->containers[i].overrides_visible_devices)
            continue;
        if (!snapshot->overriding++)
            snprintf(snapshot->overriding_example, sizeof(snapshot->overriding_example),
                     "%.63s/%.253s", pod->ns, pod->name);
        return;
    }
}

const char *snapshot_scheduler_of(const struct gs_pod *pod)
{
    return pod->scheduler_name[0] ? pod->scheduler_name : "default-scheduler";
}

static void note_scheduler(struct snapshot *snapshot, const struct gs_pod *pod)
{
    const char *name = snapshot_scheduler_of(pod);
    GS_EACH_OF (known, snapshot->schedulers, SCHEDULERS_MAX) {
        if (!known->name[0])
            snprintf(known->name, sizeof(known->name), "%s", name);
        if (strcmp(known->name, name) != 0)
            continue;
        known->recorded += pod->recorded == GS_RECORDED_VALID;
        known->unrecorded += pod->recorded != GS_RECORDED_VALID;
        return;
    }
}

const char *snapshot_scheduler(const struct snapshot *snapshot)
{
    const struct snap_scheduler *most = &snapshot->schedulers[0];
    for (size_t i = 1; i < SCHEDULERS_MAX; i++) {
        if (snapshot->schedulers[i].recorded > most->recorded)
            most = &snapshot->schedulers[i];
    }
    return most->recorded ? most->name : NULL;
}

bool snapshot_is_elsewhere(const struct snapshot *snapshot, const struct gs_pod *pod)
{
    const char *scheduler = snapshot_scheduler(snapshot);
    return scheduler && strcmp(snapshot_scheduler_of(pod), scheduler) != 0;
}

static int on_bound(void *ctx, const struct gs_pod *pod, bool known)
{
    struct snapshot *snapshot = ctx;
    struct snap_waiting *waiting = find_waiting(snapshot, pod->uid);
    if (!known)
        note_scheduler(snapshot, pod);
    if (waiting)
        drop_waiting(snapshot, waiting);
    return put_since(snapshot, pod) < 0 ? -1 : waiting != NULL;
}

static const struct gs_cluster_owner owner = {
    .bound = on_bound, .waits = on_waits, .ended = on_ended};

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    struct snapshot *snapshot = ctx;
    if (gs_pod_wants_gpu(pod) && !gs_pod_terminal(pod))
        note_override(snapshot, pod);
    return gs_cluster_pod(&snapshot->cluster, pod, false, NULL);
}

static int on_pod_gone(void *ctx, const struct gs_pod *last)
{
    gs_cluster_pod_gone(&((struct snapshot *)ctx)->cluster, last);
    return 0;
}

/* ---- lists ---- */

static int on_list_begin(void *ctx, enum gs_kind kind)
{
    struct snapshot *snapshot = ctx;
    snapshot->round += kind == GS_KIND_POD;
    gs_cluster_list_begin(&snapshot->cluster, kind);
    return 0;
}

static void sweep_waiting(struct snapshot *snapshot)
{
    struct snap_waiting *pod, *next;
    HASH_ITER (hh, snapshot->waiting, pod, next) {
        if (pod->round < snapshot->round)
            drop_waiting(snapshot, pod);
    }
}

static void sweep_nodes(struct snapshot *snapshot)
{
    struct snap_node *node, *next;
    HASH_ITER (hh, snapshot->nodes, node, next) {
        if (!snapshot_view(snapshot, node))
            drop_node(snapshot, node);
    }
}

static int on_list_end(void *ctx, enum gs_kind kind)
{
    struct snapshot *snapshot = ctx;
    gs_cluster_list_end(&snapshot->cluster, kind);
    if (kind == GS_KIND_NODE) {
        sweep_nodes(snapshot);
    } else {
        sweep_waiting(snapshot);
        sweep_since(snapshot);
    }
    return 0;
}

static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
}

int snapshot_init(struct snapshot *snapshot, struct gs_error *err)
{
    *snapshot = (struct snapshot){0};
    return gs_cluster_init(&snapshot->cluster, &owner, snapshot, err);
}

struct gs_watch_sink snapshot_sink(struct snapshot *snapshot)
{
    return (struct gs_watch_sink){
        .ctx = snapshot,
        .list_begin = on_list_begin,
        .list_end = on_list_end,
        .node = on_node,
        .node_gone = on_node_gone,
        .pod = on_pod,
        .pod_gone = on_pod_gone,
        .live = on_live,
    };
}

int snapshot_learnt(struct snapshot *snapshot, struct gs_error *err)
{
    gs_policies_supply(snapshot->cluster.policies, snapshot->cluster.ledger);
    if (!gs_policies_refresh_due(snapshot->cluster.policies))
        return 0;
    return gs_policies_refresh(snapshot->cluster.policies, err);
}
