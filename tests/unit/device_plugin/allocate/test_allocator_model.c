/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator against a slow model of everything around it: an API server, an extender that
 * chooses validly, a kubelet that takes pods in one by one, in an order of its own, uses ids of
 * init containers again, gives pods up midway and writes down whose ids are whose; a watch that is
 * late; writes that fail; a plugin that is started anew. Random steps; the seed is in every
 * message.
 */
#include "device_plugin/allocate/allocator.h"

#include "gpushare/codec/annotation.h"
#include "gpushare/codec/moved.h"
#include "rows.h"

enum { GPUS = 4, SIZE = 16, IDS = GPUS * SIZE, PODS = 48, BOXES = 4, STEPS = 400 };

struct box { /* a container that asks */
    enum gs_container_kind kind;
    uint32_t units;
    bool allocated, started;
    gs_gpu_mask env;
    int ids[IDS];
    uint32_t id_count;
};

struct model_pod {
    char name[16], uid[16];
    struct box boxes[BOXES];
    uint32_t shape, box_count, gpu_count;
    struct gs_charge charge;
    bool in_api, failed, assigned, recorded;
    gs_gpu_mask record; /* the annotation */
    gs_gpu_mask claim;  /* in the extender's ledger */
    bool in_kubelet, admitted, held;
    uint64_t revision, delivered;
};

/* What may go wrong in a world. */
struct kind {
    bool sure_kubelet; /* its checkpoint can be read at each Allocate; else every other time */
    bool any_order;    /* the kubelet takes pods in in an order of its own */
    bool gives_up;     /* and some fail midway */
    bool restarts;
    bool forced; /* pods are gone from the API first */
    bool ghosts; /* and kubelet 1.20 allocates anew for those that were to start */
    bool names;  /* and equal ones get their names */
    bool twice;  /* ids are given away that another pod holds (kubernetes#137534) */
};

enum { NO_MORE = 1 << 16 }; /* in the queue: the kubelet hears that this pod is gone */

struct world {
    uint64_t seed, random;
    struct gs_names names;
    struct gs_allocator *alloc;
    struct model_pod pods[PODS];
    int pod_count;
    int queue[2 * PODS], queue_len; /* bound, not yet taken in by the kubelet */
    uint32_t ghost;                 /* units of a removed pod to be allocated anew, or 0 */
    bool id_used[IDS];
    uint64_t revision;
    struct kind kind;
    uint32_t held, no_room, starts;
    struct gs_moved entries[PODS]; /* of gpu-reassigned, on the node */
    uint32_t entry_count;
};

static uint32_t draw(struct world *w, uint32_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)((w->random >> 11) % below);
}

#define world_fail(w, ...)                                                                         \
    do {                                                                                           \
        print_error("seed %llu: ", (unsigned long long)(w)->seed);                                 \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

/* ---- the API ---- */

static bool runs(const struct model_pod *p)
{
    bool all = p->admitted && p->box_count;
    for (uint32_t b = 0; b < p->box_count; b++)
        all = all && p->boxes[b].started;
    return all;
}

static struct gs_pod spec_of(const struct model_pod *p, struct gs_container containers[BOXES])
{
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    for (uint32_t i = 0; i < p->box_count; i++)
        containers[i] =
            (struct gs_container){.kind = p->boxes[i].kind, .gpu_units = p->boxes[i].units};
    pod.containers = containers;
    pod.container_count = p->box_count;
    pod.count_kind = p->gpu_count > 1 ? GS_COUNT_VALID : GS_COUNT_ABSENT;
    pod.gpu_count = p->gpu_count;
    return pod;
}

static void tell_plugin(struct world *w, struct model_pod *p)
{
    struct gs_container containers[BOXES] = {0};
    char revision[24];
    struct gs_error err = {0};
    p->delivered = p->revision;
    if (!p->in_api) {
        gs_allocator_pod_gone(w->alloc, p->uid);
        return;
    }
    snprintf(revision, sizeof(revision), "%llu", (unsigned long long)p->revision);
    struct gs_pod pod = spec_of(p, containers);
    pod.uid = p->uid;
    pod.ns = "ns";
    pod.name = p->name;
    pod.resource_version = revision;
    pod.node_name = "n1";
    pod.phase = p->failed ? GS_PHASE_FAILED : runs(p) ? GS_PHASE_RUNNING : GS_PHASE_PENDING;
    pod.recorded = p->recorded ? GS_RECORDED_VALID : GS_RECORDED_NONE;
    pod.recorded_gpus = p->record;
    pod.assigned = p->assigned;
    pod.has_assigned = true;
    pod.assume_time_ns = 1;
    pod.created_s = p - w->pods;
    gs_pod_charge(&pod, &p->charge);
    if (gs_allocator_pod(w->alloc, &pod, &err) < 0)
        world_fail(w, "pod: %s", err.msg);
}

static void charge_of(struct model_pod *p)
{
    struct gs_container containers[BOXES] = {0};
    const struct gs_pod pod = spec_of(p, containers);
    gs_pod_charge(&pod, &p->charge);
}

static uint32_t claimed(const struct world *w, uint32_t gpu)
{
    uint32_t used = 0;
    for (int i = 0; i < w->pod_count; i++) {
        const struct model_pod *p = &w->pods[i];
        if (p->in_api && !p->failed && (p->claim & GS_GPU_BIT(gpu)))
            used += p->charge.units;
    }
    return used;
}

/* The extender: gpu_count GPUs with room, from a random one on. */
static gs_gpu_mask choose(struct world *w, const struct model_pod *p)
{
    gs_gpu_mask mask = 0;
    uint32_t first = draw(w, GPUS);
    for (uint32_t i = 0; i < GPUS && gs_gpu_mask_count(mask) < p->gpu_count; i++) {
        uint32_t gpu = (first + i) % GPUS;
        if (claimed(w, gpu) + p->charge.units <= SIZE)
            mask |= GS_GPU_BIT(gpu);
    }
    return gs_gpu_mask_count(mask) == p->gpu_count ? mask : 0;
}

/* A new name, or that of an equal pod that was force-deleted, as a StatefulSet makes them. */
static void name_pod(struct world *w, struct model_pod *p)
{
    const struct model_pod *old = w->pod_count ? &w->pods[draw(w, (uint32_t)w->pod_count)] : NULL;
    bool again = w->kind.names && old && !old->in_api && old->shape == p->shape && draw(w, 2);
    for (int i = 0; again && i < w->pod_count; i++)
        again = !w->pods[i].in_api || strcmp(w->pods[i].name, old->name) != 0;
    if (again)
        memcpy(p->name, old->name, sizeof(p->name));
    else
        snprintf(p->name, sizeof(p->name), "p%d", w->pod_count);
}

static void bind_one(struct world *w)
{
    static const struct {
        uint32_t gpu_count, count;
        struct {
            enum gs_container_kind kind;
            uint32_t units;
        } boxes[3];
    } shapes[] = {
        {1, 1, {{GS_CONTAINER_MAIN, 4}}},
        {1, 2, {{GS_CONTAINER_MAIN, 4}, {GS_CONTAINER_MAIN, 2}}},
        {1, 3, {{GS_CONTAINER_INIT, 2}, {GS_CONTAINER_INIT, 2}, {GS_CONTAINER_MAIN, 4}}},
        {1, 2, {{GS_CONTAINER_MAIN, 2}, {GS_CONTAINER_MAIN, 2}}},
        {2, 1, {{GS_CONTAINER_MAIN, 8}}},
        {2, 2, {{GS_CONTAINER_MAIN, 4}, {GS_CONTAINER_MAIN, 2}}},
        {1, 1, {{GS_CONTAINER_MAIN, 2}}},
        {1, 0, {{GS_CONTAINER_MAIN, 0}}},
    };
    if (w->pod_count == PODS)
        return;
    struct model_pod *p = &w->pods[w->pod_count];
    uint32_t shape = draw(w, GS_COUNT_OF(shapes));
    *p = (struct model_pod){
        .shape = shape, .gpu_count = shapes[shape].gpu_count, .box_count = shapes[shape].count};
    for (uint32_t i = 0; i < p->box_count; i++) {
        p->boxes[i].kind = shapes[shape].boxes[i].kind;
        p->boxes[i].units = shapes[shape].boxes[i].units;
    }
    charge_of(p);
    p->claim = choose(w, p);
    if (!p->claim)
        return;
    name_pod(w, p);
    snprintf(p->uid, sizeof(p->uid), "u%d", w->pod_count);
    p->record = p->claim;
    p->recorded = p->in_api = true;
    p->revision = ++w->revision;
    w->queue[w->queue_len++] = w->pod_count++;
}

static void end_pod(struct world *w, struct model_pod *p)
{
    for (uint32_t i = 0; i < p->box_count; i++) {
        for (uint32_t k = 0; k < p->boxes[i].id_count; k++)
            w->id_used[p->boxes[i].ids[k]] = false;
        p->boxes[i].id_count = 0;
        p->boxes[i].allocated = false;
    }
    p->admitted = false;
    p->in_kubelet = p->in_api; /* it still knows pods that failed */
    p->revision = ++w->revision;
}

static void delete_one(struct world *w)
{
    if (!w->pod_count)
        return;
    struct model_pod *p = &w->pods[draw(w, (uint32_t)w->pod_count)];
    if (!p->in_api || !(p->admitted || p->failed || w->kind.forced))
        return;
    p->in_api = false;
    if (w->kind.forced) {
        p->revision = ++w->revision;
        w->queue[w->queue_len++] = (int)(p - w->pods) | NO_MORE;
    } else {
        end_pod(w, p);
    }
}

/* The kubelet hears that a pod is gone; perhaps it was just starting its first container. */
static void forget_pod(struct world *w, struct model_pod *p)
{
    if (w->kind.ghosts && p->admitted && p->box_count && !p->boxes[0].started)
        w->ghost = p->boxes[0].units;
    end_pod(w, p);
    p->in_kubelet = false;
}

/* ---- the kubelet ---- */

static char id_texts[IDS][16];

/* What the kubelet wrote down. */
static void read_checkpoint(struct world *w, bool at_allocate)
{
    struct gs_given given[PODS * BOXES];
    size_t count = 0;
    for (int i = 0; i < w->pod_count; i++) {
        const struct model_pod *p = &w->pods[i];
        for (uint32_t b = 0; p->in_kubelet && b < p->box_count; b++) {
            const struct box *box = &p->boxes[b];
            const char *ids[IDS];
            for (uint32_t k = 0; k < box->id_count; k++)
                ids[k] = id_texts[box->ids[k]];
            if (box->allocated)
                given[count++] = (struct gs_given){.uid = p->uid,
                                                   .key = gs_allocate_key(ids, box->id_count),
                                                   .units = box->units,
                                                   .gpus = box->env};
        }
    }
    gs_allocator_observe(w->alloc, given, count, at_allocate);
}

/* All those of another pod's container. */
static bool take_ids_again(struct world *w, const struct model_pod *p, struct box *box)
{
    const struct model_pod *other = &w->pods[draw(w, (uint32_t)w->pod_count)];
    if (!w->kind.twice || other == p || !other->in_kubelet || !other->box_count)
        return false;
    const struct box *from = &other->boxes[other->box_count - 1];
    if (!from->allocated || from->units != box->units)
        return false;
    memcpy(box->ids, from->ids, sizeof(box->ids));
    box->id_count = from->id_count;
    return true;
}

/* Ids of the pod's init containers first, then any; false when there are too few. */
static bool take_ids(struct world *w, struct model_pod *p, struct box *box)
{
    bool mine[IDS] = {false};
    if (take_ids_again(w, p, box))
        return true;
    box->id_count = 0;
    for (struct box *at = p->boxes; at < box; at++) {
        for (uint32_t k = 0; at->kind == GS_CONTAINER_INIT && k < at->id_count; k++)
            mine[at->ids[k]] = true;
    }
    for (int i = 0; i < IDS && box->id_count < box->units; i++) {
        if (mine[i])
            box->ids[box->id_count++] = i;
    }
    uint32_t first = draw(w, IDS);
    for (uint32_t i = 0; i < IDS && box->id_count < box->units; i++) {
        uint32_t id = (first + i * 7) % IDS; /* 7 and 64 share no factor */
        if (!w->id_used[id])
            box->ids[box->id_count++] = (int)id;
    }
    if (box->id_count < box->units)
        return false;
    for (uint32_t k = 0; k < box->id_count; k++)
        w->id_used[box->ids[k]] = true;
    return true;
}

static bool kubelet_answers(struct world *w)
{
    return w->kind.sure_kubelet || draw(w, 2);
}

static void quick_list(struct world *w)
{
    gs_allocator_quick_begin(w->alloc);
    gs_allocator_quick_pods(w->alloc);
    for (int i = 0; i < w->pod_count; i++) {
        if (w->pods[i].in_api)
            tell_plugin(w, &w->pods[i]);
    }
    gs_allocator_quick_end(w->alloc);
}

static struct model_pod *find(struct world *w, const char *uid)
{
    for (int i = 0; i < w->pod_count; i++) {
        if (strcmp(w->pods[i].uid, uid) == 0)
            return &w->pods[i];
    }
    return NULL;
}

/* The node says who is where: all at once, and all of it. */
static void write_moved(struct world *w)
{
    struct gs_buf text = GS_BUF(GS_MOVED_TEXT_MAX);
    struct gs_arena arena = {0};
    struct gs_moved *moved;
    struct gs_error err = {0};
    uint32_t count;
    if (!gs_allocator_moved_due(w->alloc))
        return;
    uint64_t state = gs_allocator_moved_print(w->alloc, &text);
    if (gs_codec_moved_decode(gs_slice_of(text.data), &arena, &moved, &count, &err) < 0)
        world_fail(w, "gpu-reassigned: %s", err.msg);
    w->entry_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct model_pod *p = find(w, moved[i].uid);
        w->entries[i] = (struct gs_moved){p->uid, moved[i].gpus};
        p->claim = moved[i].gpus;
    }
    gs_allocator_moved_written(w->alloc, state);
    gs_arena_release(&arena);
    gs_buf_release(&text);
}

/* The order of the binds is the kubelet's, and it gives none up unasked: nothing misleads. */
static bool in_order(const struct world *w)
{
    return !w->kind.any_order && !w->kind.gives_up;
}

static bool allocate_box(struct world *w, struct model_pod *p, struct box *box)
{
    const char *ids[IDS];
    struct gs_allocate_answer answer = {0};
    struct gs_error err = {0};
    if (!take_ids(w, p, box))
        return false;
    for (uint32_t k = 0; k < box->id_count; k++)
        ids[k] = id_texts[box->ids[k]];
    struct gs_allocate_request request = {
        .ids = ids, .id_count = box->id_count, .told = kubelet_answers(w)};
    if (request.told)
        read_checkpoint(w, true);
    enum gs_allocate_result result = gs_allocator_allocate(w->alloc, &request, &answer, &err);
    if (result == GS_ALLOCATE_LIST_FIRST) {
        quick_list(w);
        request.api = GS_API_ANSWERED;
        result = gs_allocator_allocate(w->alloc, &request, &answer, &err);
    }
    if (result == GS_ALLOCATE_FAILED || result == GS_ALLOCATE_LIST_FIRST)
        world_fail(w, "%s: allocate says %d, %s", p->name, result, err.msg);
    if (result == GS_ALLOCATE_NO_ROOM) {
        if (!p->in_api)
            return false;
        if (in_order(w))
            world_fail(w, "%s: no room, although its choice was valid", p->name);
        w->no_room++;
        return false;
    }
    box->env = answer.gpus;
    box->allocated = true;
    if (w->kind.forced) /* a deleted pod's turn may have moved another: told before it is bound
                           around, or a bind in between comes to nothing */
        write_moved(w);
    return true;
}

/* Nobody waits for the answer. */
static void allocate_ghost(struct world *w)
{
    struct model_pod none = {0};
    struct box box = {.units = w->ghost};
    if (!w->ghost || draw(w, 2))
        return;
    w->ghost = 0;
    allocate_box(w, &none, &box);
    for (uint32_t k = 0; k < box.id_count; k++)
        w->id_used[box.ids[k]] = false;
}

/* Takes in one pod, mostly the oldest; now and then it fails midway for a reason of its own. */
static void admit_one(struct world *w)
{
    if (!w->queue_len)
        return;
    int at = draw(w, 3) || !w->kind.any_order ? 0 : (int)draw(w, (uint32_t)w->queue_len);
    bool no_more = w->queue[at] & NO_MORE;
    struct model_pod *p = &w->pods[w->queue[at] & ~NO_MORE];
    memmove(&w->queue[at], &w->queue[at + 1], sizeof(int) * (size_t)(--w->queue_len - at));
    if (no_more) {
        forget_pod(w, p);
        return;
    }
    p->in_kubelet = true;
    uint32_t give_up =
        draw(w, 10) || !p->box_count || !w->kind.gives_up ? BOXES : draw(w, p->box_count);
    for (uint32_t i = 0; i < p->box_count; i++) {
        allocate_ghost(w);
        if (i == give_up || !allocate_box(w, p, &p->boxes[i])) {
            p->failed = true;
            end_pod(w, p);
            return;
        }
    }
    p->admitted = true;
}

static void start_box(struct world *w, struct model_pod *p, struct box *box)
{
    const char *ids[IDS];
    struct gs_error err = {0};
    for (uint32_t k = 0; k < box->id_count; k++)
        ids[k] = id_texts[box->ids[k]];
    struct gs_start_request request = {.ids = ids, .id_count = box->id_count};
    read_checkpoint(w, false);
    enum gs_start_result result = gs_allocator_start(w->alloc, &request, &err);
    if (result == GS_START_LIST_FIRST) {
        quick_list(w);
        request.listed = true;
        result = gs_allocator_start(w->alloc, &request, &err);
    }
    if (result == GS_START_WRITE_FIRST) {
        write_moved(w);
        result = gs_allocator_start(w->alloc, &request, &err);
    }
    if (result == GS_START_HELD) {
        if (!p->in_api)
            return;
        if (in_order(w) && !w->kind.forced)
            world_fail(w, "%s: held back, although its choice was valid", p->name);
        w->held++;
        p->held = true;
        return;
    }
    w->starts++;
    p->held = false;
    box->started = true;
    if (runs(p))
        p->revision = ++w->revision;
}

static void start_one(struct world *w)
{
    if (!w->pod_count)
        return;
    struct model_pod *p = &w->pods[draw(w, (uint32_t)w->pod_count)];
    for (uint32_t i = 0; p->admitted && i < p->box_count; i++) {
        if (!p->boxes[i].started) {
            start_box(w, p, &p->boxes[i]);
            return;
        }
    }
}

/* ---- the plugin's writes, and its end ---- */

static void apply_patch(struct world *w, struct model_pod *p,
                        const struct gs_allocator_write *write)
{
    for (size_t i = 0; i < write->annotation_count; i++) {
        const struct gs_kv *kv = &write->annotations[i];
        if (strcmp(kv->key, w->names.idx) == 0) {
            if (!gs_codec_idx_parse(gs_slice_of(kv->value), &p->record))
                world_fail(w, "%s: index %s", p->name, kv->value);
            p->recorded = true;
        } else if (strcmp(kv->key, w->names.assigned) == 0) {
            p->assigned = strcmp(kv->value, "true") == 0;
        }
    }
    p->revision = ++w->revision;
}

static bool write_one(struct world *w, bool may_fail)
{
    struct gs_allocator_write write;
    if (!may_fail || draw(w, 4))
        write_moved(w);
    if (!gs_allocator_next_write(w->alloc, false, &write))
        return false;
    bool sent = !may_fail || draw(w, 4);
    struct model_pod *p = find(w, write.uid);
    if (sent && !write.event && p && p->in_api)
        apply_patch(w, p, &write);
    gs_allocator_write_done(w->alloc, write.number, sent);
    return true;
}

/* The next event of the watch. */
static void deliver_one(struct world *w)
{
    struct model_pod *next = NULL;
    for (int i = 0; i < w->pod_count; i++) {
        struct model_pod *p = &w->pods[i];
        if (p->delivered < p->revision && (!next || p->revision < next->revision))
            next = p;
    }
    if (next)
        tell_plugin(w, next);
}

static void full_list(struct world *w)
{
    gs_allocator_list_begin(w->alloc);
    for (int i = w->pod_count - 1; i >= 0; i--) {
        if (w->pods[i].in_api)
            tell_plugin(w, &w->pods[i]);
        w->pods[i].delivered = w->pods[i].revision;
    }
    gs_allocator_list_end(w->alloc);
}

static void start_plugin(struct world *w)
{
    struct gs_gpu gpus[GPUS];
    struct gs_error err = {0};
    const struct gs_allocator_config config = {.names = &w->names, .node = "n1"};
    gs_allocator_free(w->alloc);
    w->alloc = gs_allocator_new(&config);
    for (uint32_t i = 0; i < GPUS; i++)
        gpus[i] = (struct gs_gpu){.idx = i,
                                  .mem_units = SIZE,
                                  .numa = GS_NUMA_NONE,
                                  .healthy = true,
                                  .schedulable = true};
    assert_int_equal(gs_allocator_set_gpus(w->alloc, gpus, GPUS, 0, &err), 0);
    assert_int_equal(gs_allocator_moved_earlier(w->alloc, w->entries, w->entry_count, true, &err),
                     0);
    full_list(w);
    read_checkpoint(w, false);
}

/* ---- what must hold ---- */

/* Where all containers of a pod are, or 0 when they are not together. Of init containers the
 * kubelet's list says nothing: what was guessed wrong there stays unseen. */
static gs_gpu_mask env_of(const struct model_pod *p, bool inits)
{
    const struct box *last = &p->boxes[p->box_count - 1];
    for (uint32_t b = 0; b < p->box_count; b++) {
        if (p->boxes[b].env != last->env && (inits || p->boxes[b].kind == GS_CONTAINER_MAIN))
            return 0;
    }
    return last->env;
}

static bool has_started(const struct model_pod *p)
{
    for (uint32_t b = 0; b < p->box_count; b++) {
        if (p->boxes[b].started && p->boxes[b].kind == GS_CONTAINER_MAIN)
            return true;
    }
    return false;
}

/* With the kubelet's word, or in the order of binds, every pod that was taken in is where it should
 * be; else no pod that was let start is torn apart. */
static void check_environments(struct world *w)
{
    bool sure = in_order(w);
    uint32_t used[GPUS] = {0};
    for (int i = 0; i < w->pod_count; i++) {
        const struct model_pod *p = &w->pods[i];
        if (!p->in_api || !p->admitted || !p->box_count || !(sure || (has_started(p) && !p->held)))
            continue;
        gs_gpu_mask env = env_of(p, sure);
        if (gs_gpu_mask_count(env) != p->gpu_count)
            world_fail(w, "%s: its containers are on different GPUs", p->name);
        for (uint32_t g = 0; g < GPUS; g++)
            used[g] += env & GS_GPU_BIT(g) ? p->charge.units : 0;
    }
    for (uint32_t g = 0; sure && g < GPUS; g++) {
        if (used[g] > SIZE)
            world_fail(w, "GPU %u holds %u units", g, used[g]);
    }
}

static void settle(struct world *w)
{
    while (w->queue_len)
        admit_one(w);
    for (int round = 0; round < 4; round++) {
        full_list(w);
        read_checkpoint(w, true);
        for (int i = 0; i < w->pod_count; i++) {
            for (uint32_t b = 0; w->pods[i].admitted && b < w->pods[i].box_count; b++)
                start_box(w, &w->pods[i], &w->pods[i].boxes[b]);
        }
        while (write_one(w, false))
            ;
    }
}

static void check_records(struct world *w)
{
    struct gs_allocator_stats stats;
    uint64_t used[GPUS] = {0};
    for (int i = 0; i < w->pod_count; i++) {
        const struct model_pod *p = &w->pods[i];
        if (p->in_api && p->held && in_order(w))
            world_fail(w, "%s: held back for good", p->name);
        if (!p->in_api || !p->admitted || p->held || !p->box_count)
            continue;
        for (uint32_t b = 0; b < p->box_count; b++) {
            if (p->boxes[b].env != p->record &&
                (p->boxes[b].kind == GS_CONTAINER_MAIN || w->kind.sure_kubelet))
                world_fail(w, "%s: recorded on %llx, its container %u is on %llx", p->name,
                           (unsigned long long)p->record, b, (unsigned long long)p->boxes[b].env);
        }
        if (p->claim != p->record)
            world_fail(w, "%s: recorded on %llx, by the node's word on %llx", p->name,
                       (unsigned long long)p->record, (unsigned long long)p->claim);
        if (!p->assigned && in_order(w))
            world_fail(w, "%s: not marked as assigned", p->name);
        for (uint32_t g = 0; g < GPUS; g++)
            used[g] += p->record & GS_GPU_BIT(g) ? p->charge.units : 0;
    }
    gs_allocator_stats(w->alloc, &stats);
    for (uint32_t g = 0; g < GPUS && w->held == 0; g++) {
        if (stats.used_units[g] != used[g])
            world_fail(w, "GPU %u: the plugin counts %llu units, it is %llu", g,
                       (unsigned long long)stats.used_units[g], (unsigned long long)used[g]);
    }
}

static void run_world(uint64_t seed, struct kind kind)
{
    struct world *w = calloc(1, sizeof(*w));
    *w = (struct world){.seed = seed, .random = seed * 0x9e3779b97f4a7c15u + 1, .kind = kind};
    assert_int_equal(gs_names_init(&w->names, "aliyun.com", NULL), 0);
    start_plugin(w);
    for (int step = 0; step < STEPS; step++) {
        switch (draw(w, 12)) {
        case 0:
        case 1:
        case 2:
            bind_one(w);
            break;
        case 3:
        case 4:
            admit_one(w);
            break;
        case 5:
        case 6:
            start_one(w);
            break;
        case 7:
            delete_one(w);
            break;
        case 8:
        case 9:
            deliver_one(w);
            break;
        case 10:
            write_one(w, true);
            break;
        default:
            if (w->kind.restarts && !draw(w, 8))
                start_plugin(w);
            break;
        }
        check_environments(w);
    }
    settle(w);
    check_environments(w);
    check_records(w);
    gs_allocator_free(w->alloc);
    free(w);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WORLDS = 100 };
#else
enum { WORLDS = 600 };
#endif

static void run_worlds(struct kind kind)
{
    const char *seed = getenv("GS_SEED");
    for (int i = 0; i < IDS; i++)
        snprintf(id_texts[i], sizeof(id_texts[i]), "g-%d", i);
    if (seed)
        run_world(strtoull(seed, NULL, 10), kind);
    for (uint64_t i = 1; !seed && i <= WORLDS; i++)
        run_world(i, kind);
}

static void with_the_kubelets_word_every_record_equals_the_environment(void **state)
{
    run_worlds((struct kind){.sure_kubelet = true, .any_order = true, .gives_up = true});
}

static void restarts_of_the_plugin_change_nothing(void **state)
{
    run_worlds(
        (struct kind){.sure_kubelet = true, .any_order = true, .gives_up = true, .restarts = true});
}

static void what_lingers_of_deleted_pods_harms_nobody(void **state)
{
    run_worlds((struct kind){.sure_kubelet = true, .forced = true, .ghosts = true});
}

static void what_lingers_outlasts_the_plugin_and_harms_nobody(void **state)
{
    run_worlds((struct kind){
        .sure_kubelet = true, .forced = true, .ghosts = true, .names = true, .restarts = true});
}

static void ids_that_come_twice_are_two_allocations(void **state)
{
    run_worlds((struct kind){.sure_kubelet = true, .twice = true, .restarts = true});
}

static void in_the_order_of_binds_nothing_is_lost_without_the_kubelets_word(void **state)
{
    run_worlds((struct kind){0});
}

static void in_any_order_no_pod_starts_on_two_gpus_without_the_kubelets_word(void **state)
{
    run_worlds((struct kind){.any_order = true});
}

static void with_the_kubelets_notes_restarts_lose_nothing_in_the_order_of_binds(void **state)
{
    run_worlds((struct kind){.restarts = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_the_kubelets_word_every_record_equals_the_environment),
        cmocka_unit_test(restarts_of_the_plugin_change_nothing),
        cmocka_unit_test(what_lingers_of_deleted_pods_harms_nobody),
        cmocka_unit_test(what_lingers_outlasts_the_plugin_and_harms_nobody),
        cmocka_unit_test(ids_that_come_twice_are_two_allocations),
        cmocka_unit_test(in_the_order_of_binds_nothing_is_lost_without_the_kubelets_word),
        cmocka_unit_test(in_any_order_no_pod_starts_on_two_gpus_without_the_kubelets_word),
        cmocka_unit_test(with_the_kubelets_notes_restarts_lose_nothing_in_the_order_of_binds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
