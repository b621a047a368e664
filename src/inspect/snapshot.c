/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/core/placement.h"

static void drop_node(struct snapshot *snapshot, struct snap_node *node)
{
    HASH_DEL(snapshot->nodes, node);
    gs_arena_release(&node->arena);
    free(node);
}

/* ---- pods with GPU memory ---- */

static struct snap_pod *find_pod(struct snap_pod *table, const char *uid)
{
    struct snap_pod *found;
    HASH_FIND_STR(table, uid, found);
    return found;
}

/* NULL: there is nothing to drop. */
static void drop_pod(struct snap_pod **table, struct snap_pod *pod)
{
    if (!pod)
        return;
    HASH_DEL(*table, pod);
    if (pod->pod)
        gs_pod_release(pod->pod);
    free(pod->pod);
    free(pod);
}

/* What has changed is a new entry. */
static int put_pod(const struct snapshot *snapshot, struct snap_pod **table,
                   const struct gs_pod *pod, bool copy)
{
    const size_t uid = strlen(pod->uid) + 1, owner = strlen(pod->owner) + 1;
    struct snap_pod *made = calloc(1, sizeof(*made) + uid + owner);
    drop_pod(table, find_pod(*table, pod->uid));
    if (!made)
        return -1;
    made->created_s = pod->created_s;
    made->round = snapshot->round;
    memcpy(made->uid, pod->uid, uid);
    memcpy(made->uid + uid, pod->owner, owner);
    HASH_ADD_KEYPTR(hh, *table, made->uid, uid - 1, made);
    made->pod = copy ? calloc(1, sizeof(*pod)) : NULL;
    if (!copy || (made->pod && gs_pod_copy(made->pod, pod) == 0))
        return 0;
    drop_pod(table, made);
    return -1;
}

/* Those whose end was missed: of a bound one the ledger has gone, too. */
static void sweep_pods(const struct snapshot *snapshot, struct snap_pod **table)
{
    struct snap_pod *pod, *next;
    struct gs_claim claim;
    HASH_ITER (hh, *table, pod, next) {
        if (pod->round < snapshot->round &&
            !gs_ledger_find_claim(snapshot->cluster.ledger, pod->uid, &claim))
            drop_pod(table, pod);
    }
}

int64_t snapshot_since(const struct snapshot *snapshot, const char *uid)
{
    const struct snap_pod *found = find_pod(snapshot->bound, uid);
    return found ? found->created_s : 0;
}

const char *snapshot_owner(const struct snapshot *snapshot, const char *uid)
{
    const struct snap_pod *found = find_pod(snapshot->bound, uid);
    return found ? found->uid + strlen(found->uid) + 1 : "";
}

void snapshot_release(struct snapshot *snapshot)
{
    while (snapshot->nodes)
        drop_node(snapshot, snapshot->nodes);
    while (snapshot->waiting)
        drop_pod(&snapshot->waiting, snapshot->waiting);
    while (snapshot->bound)
        drop_pod(&snapshot->bound, snapshot->bound);
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

static struct snap_node *add_node(struct snapshot *snapshot, const char *name)
{
    const size_t len = strlen(name);
    struct snap_node *node = calloc(1, sizeof(*node) + len + 1);
    if (!node)
        return NULL;
    memcpy(node->name, name, len);
    HASH_ADD_KEYPTR(hh, snapshot->nodes, node->name, len, node);
    return node;
}

static int on_node(void *ctx, const struct gs_node *from)
{
    struct snapshot *snapshot = ctx;
    struct snap_node *node = snapshot_node(snapshot, from->name);
    if (gs_cluster_node(&snapshot->cluster, from, NULL) < 0 ||
        (!node && !(node = add_node(snapshot, from->name))))
        return -1;
    gs_arena_reset(&node->arena);
    node->address = gs_arena_strdup(&node->arena, from->address);
    node->inventory_error = gs_arena_strdup(&node->arena, from->inventory_error);
    if (!node->address || !node->inventory_error) {
        drop_node(snapshot, node);
        return -1;
    }
    node->slot = gs_ledger_view(snapshot->cluster.ledger, from->name)->slot;
    node->unit = from->unit;
    node->capacity_units = from->capacity_units;
    node->allocatable_units = from->allocatable_units;
    node->capacity_count = from->capacity_count;
    node->cordon_unknown = from->cordon_unknown;
    node->whole_gpus = from->whole_gpus;
    node->ready = from->ready;
    node->unschedulable = from->unschedulable;
    node->labelled = from->labelled;
    node->says_enforced = gs_enforced_parse(from->enforced, "");
    node->inventory = from->inventory;
    node->moved_unread = from->moved_error && from->moved_error[0];
    return 0;
}

static int on_node_gone(void *ctx, const struct gs_node *last)
{
    struct snapshot *snapshot = ctx;
    struct snap_node *node = snapshot_node(snapshot, last->name);
    gs_cluster_node_gone(&snapshot->cluster, last->name);
    if (node)
        drop_node(snapshot, node);
    return 0;
}

/* ---- pods ---- */

static int on_waits(void *ctx, const struct gs_pod *pod, struct gs_error *err)
{
    struct snapshot *snapshot = ctx;
    const bool known = find_pod(snapshot->waiting, pod->uid);
    return put_pod(snapshot, &snapshot->waiting, pod, true) < 0 ? gs_fail_nomem(err) : !known;
}

static void on_ended(void *ctx, const struct gs_pod *last)
{
    struct snapshot *snapshot = ctx;
    drop_pod(&snapshot->waiting, find_pod(snapshot->waiting, last->uid));
    drop_pod(&snapshot->bound, find_pod(snapshot->bound, last->uid));
}

static void note_override(struct snapshot *snapshot, const struct gs_pod *pod)
{
    if (pod->overrides && !snapshot->overriding++)
        snprintf(snapshot->overriding_example, sizeof(snapshot->overriding_example), "%.63s/%.253s",
                 pod->ns, pod->name);
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
    GS_EACH_OF (known, snapshot->schedulers, SCHEDULERS_MAX) {
        if (known->recorded > most->recorded)
            most = known;
    }
    return most->recorded ? most->name : NULL;
}

bool snapshot_is_elsewhere(const struct snapshot *snapshot, const struct gs_pod *pod)
{
    const char *name = snapshot_scheduler_of(pod);
    GS_EACH_OF (known, snapshot->schedulers, SCHEDULERS_MAX) {
        if (known->recorded && strcmp(known->name, name) == 0)
            return false;
    }
    /* beside as many others it may have placed some, too */
    return snapshot_scheduler(snapshot) && !snapshot->schedulers[SCHEDULERS_MAX - 1].name[0];
}

static int on_bound(void *ctx, const struct gs_pod *pod, bool known)
{
    struct snapshot *snapshot = ctx;
    struct snap_pod *waiting = find_pod(snapshot->waiting, pod->uid);
    const bool waited = waiting;
    if (!known)
        note_scheduler(snapshot, pod);
    drop_pod(&snapshot->waiting, waiting);
    return put_pod(snapshot, &snapshot->bound, pod, snapshot->copies) < 0 ? -1 : waited;
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
    if (kind == GS_KIND_POD) {
        snapshot->round++;
        snapshot->overriding = 0;
    }
    gs_cluster_list_begin(&snapshot->cluster, kind);
    return 0;
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
        sweep_pods(snapshot, &snapshot->waiting);
        sweep_pods(snapshot, &snapshot->bound);
    }
    return 0;
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
    };
}

int snapshot_learnt(struct snapshot *snapshot, struct gs_error *err)
{
    gs_policies_supply(snapshot->cluster.policies, snapshot->cluster.ledger);
    if (!gs_policies_refresh_due(snapshot->cluster.policies))
        return 0;
    return gs_policies_refresh(snapshot->cluster.policies, err);
}
