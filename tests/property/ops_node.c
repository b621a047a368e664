/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_uid(const void *a, const void *b)
{
    return strcmp(((const struct gs_moved *)a)->uid, ((const struct gs_moved *)b)->uid);
}

/* As the codec gives it: sorted by UID; nothing when it could not be read. */
static uint32_t list_moved(const struct m_node *node, struct gs_moved moved[M_UIDS])
{
    uint32_t count = 0;
    for (uint32_t uid = 0; uid < M_UIDS && !node->unread; uid++) {
        if (node->moved[uid])
            moved[count++] = (struct gs_moved){m_uid(uid), node->moved[uid]};
    }
    qsort(moved, count, sizeof(*moved), by_uid);
    return count;
}

void put_node(struct world *world, uint32_t node, const struct m_node *as)
{
    struct gs_gpu gpus[M_GPUS]; /* the ledger must not keep a pointer to it */
    memcpy(gpus, as->gpus, sizeof(gpus));
    struct gs_moved moved[M_UIDS];
    struct gs_node event = {.name = m_node_name(node),
                            .moved = moved,
                            .moved_count = list_moved(as, moved),
                            .moved_error = as->unread ? "JSON: unexpected end of input" : "",
                            .tells_moved = as->tells_moved,
                            .gpus = gpus,
                            .gpu_count = as->gpu_count,
                            .cpu_milli = as->cpu_milli,
                            .unit = as->unit};
    struct gs_error err = {0};
    while (runs_out(world, gs_ledger_set_node(world->ledger, &event, &err), &err))
        err = (struct gs_error){0};
    m_set_node(&world->model, node, as);
    memset(gpus, 0xAA, sizeof(gpus));
    memset(moved, 0xAA, sizeof(moved));
    world->node = node;
    tell(world, "%s: %u GPUs, cpu %lld, %u moved", event.name, as->gpu_count,
         (long long)as->cpu_milli, event.moved_count);
}

/* Few sizes, so that equal GPUs, ties and exact fits are common. */
static struct gs_gpu random_gpu(struct rng *rng, uint32_t idx)
{
    static const uint32_t sizes[] = {16, 16, 8, 24, 4, 80, 0, UINT32_MAX};
    static const char *const models[] = {"T4", "A100 80GB", "A10", ""};
    struct gs_gpu gpu = {.idx = idx, .numa = (int16_t)((int)rng_below(rng, 3) - 1)};
    gpu.mem_units = sizes[rng_below(rng, rng_once_in(rng, 20) ? 8 : 6)];
    gpu.mem_mib = gpu.mem_units;
    gpu.healthy = !rng_once_in(rng, 8);
    gpu.schedulable = !rng_once_in(rng, 8);
    gpu.max_pods = rng_once_in(rng, 3) ? 1 + rng_below(rng, 3) : 0;
    snprintf(gpu.model, sizeof(gpu.model), "%s", models[rng_below(rng, 4)]);
    snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%u", idx);
    return gpu;
}

static struct m_node random_node(struct rng *rng)
{
    struct m_node node = {.cpu_milli = 1000 * (int64_t)rng_below(rng, 9)};
    node.unit = (enum gs_unit)rng_below(rng, GS_UNIT_GIB + 1);
    node.gpu_count = rng_below(rng, M_GPUS - 1);
    node.tells_moved = rng_once_in(rng, 2);
    uint32_t idx = 0;
    for (uint32_t i = 0; i < node.gpu_count; i++) {
        idx += rng_once_in(rng, 6);
        if (i && i + 1 == node.gpu_count && rng_once_in(rng, 6))
            idx = GS_GPUS_MAX - 1;
        node.gpus[i] = random_gpu(rng, idx++);
    }
    return node;
}

/* The node as it is, to be changed a little; a new one when there is none. */
static struct m_node current(struct world *world, struct rng *rng)
{
    const struct m_node *node = &world->model.nodes[world->node];
    return node->present ? *node : random_node(rng);
}

void op_node_new(struct world *world, struct rng *rng)
{
    struct m_node node = random_node(rng);
    put_node(world, world->node, &node);
}

static void drop(struct world *world, uint32_t node)
{
    gs_ledger_drop_node(world->ledger, m_node_name(node));
    m_drop_node(&world->model, node);
    tell(world, "%s", m_node_name(node));
}

/* A GPU comes, goes, has another size or health; the list of moved pods cannot be read; or the
 * object is made anew. */
void op_node_changed(struct world *world, struct rng *rng)
{
    struct m_node node = current(world, rng);
    struct gs_gpu *end = &node.gpus[node.gpu_count];
    struct gs_gpu *gpu = node.gpu_count ? &node.gpus[rng_below(rng, node.gpu_count)] : NULL;
    switch (gpu ? rng_below(rng, 7) : 5) {
    case 0:
        if (node.gpu_count < M_GPUS && end[-1].idx < GS_GPUS_MAX - 1) {
            *end = random_gpu(rng, end[-1].idx + 1);
            node.gpu_count++;
        }
        break;
    case 1:
        memmove(gpu, gpu + 1, (size_t)(end - gpu - 1) * sizeof(*gpu));
        node.gpu_count--;
        break;
    case 2:
        gpu->mem_units = rng_below(rng, 33);
        break;
    case 3:
        gpu->healthy = !gpu->healthy;
        break;
    case 4:
        gpu->schedulable = !gpu->schedulable;
        break;
    case 5:
        node.unread = true;
        break;
    default:
        drop(world, world->node);
    }
    put_node(world, world->node, &node);
}

/* One or several at GPUs, as many as may be, that the node has, or not any more; or not in the list
 * any more. Pods that are not there (yet), or on another node, are no different. */
void op_node_moves_pods(struct world *world, struct rng *rng)
{
    struct m_node node = current(world, rng);
    for (uint32_t n = 1 + rng_below(rng, 2); n; n--)
        node.moved[rng_below(rng, world->uid_count)] =
            rng_once_in(rng, 4) ? 0 : random_claim(world, rng).gpus;
    put_node(world, world->node, &node);
}

void op_node_dropped(struct world *world, struct rng *rng)
{
    drop(world, world->node);
}

void op_node_list_round(struct world *world, struct rng *rng)
{
    gs_ledger_begin_nodes(world->ledger);
    for (uint32_t i = 0; i < M_NODES; i++)
        world->model.nodes[i].seen = false;
    for (uint32_t i = 0; i < world->node_count; i++) {
        world->node = i;
        if (rng_once_in(rng, 4))
            continue; /* gone */
        struct m_node node = rng_once_in(rng, 4) ? random_node(rng) : current(world, rng);
        put_node(world, i, &node);
    }
    gs_ledger_sweep_nodes(world->ledger);
    m_sweep_nodes(&world->model);
    compare_all(world);
}

/* Everything is learnt again from the API, in another order: first nodes, then pods. */
void op_restart(struct world *world, struct rng *rng)
{
    struct gs_ledger *fresh = gs_ledger_new();
    if (runs_out(world, fresh ? 0 : -1, &(struct gs_error){.code = fresh ? GS_OK : GS_ENOMEM}))
        return;
    gs_ledger_free(world->ledger);
    world->ledger = fresh;
    memset(world->seen, 0, sizeof(world->seen));
    struct model old = world->model;
    memset(&world->model, 0, sizeof(world->model));
    for (uint32_t i = 0; i < M_NODES; i++) {
        if (old.nodes[i].present)
            put_node(world, i, &old.nodes[i]);
    }
    uint32_t start = rng_below(rng, M_UIDS);
    for (uint32_t i = 0; i < M_UIDS; i++) {
        uint32_t uid = (start + i * 7) % M_UIDS; /* 7 and M_UIDS have no common factor */
        if (old.claims[uid].there)
            put_claim(world, uid, &old.claims[uid]);
        if (old.others[uid].there)
            put_other(world, uid, old.others[uid].node, old.others[uid].cpu_milli);
        if (old.holds[uid].there)
            put_hold(world, uid, &old.holds[uid]);
    }
    compare_all(world);
}
