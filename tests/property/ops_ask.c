/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

/* Half of the pods ask for none. */
uint32_t random_cores(struct rng *rng)
{
    static const uint32_t cores[] = {0, 0, 0, 0, 10, 40, 60, 100};
    return cores[rng_below(rng, 8)];
}

void random_ask(struct world *world, struct rng *rng, struct gs_ask *ask)
{
    static const uint32_t units[] = {1, 2, 4, 8, 8, 12, 16, 20, 24, 80};
    static const char *const models[] = {"T4", "A100", "A1", "H100"};
    *ask = (struct gs_ask){.units = units[rng_below(rng, 10)],
                           .gpu_count = 1,
                           .priority = (int32_t)rng_below(rng, 4) - 1};
    if (rng_once_in(rng, 4))
        ask->gpu_count = 2 + rng_below(rng, 3);
    if (rng_once_in(rng, 40))
        ask->units = 0;
    if (rng_once_in(rng, 40))
        ask->broken = GS_REASON_NOT_DIVISIBLE;
    if (rng_once_in(rng, 5)) {
        ask->selects = true;
        ask->model = gs_slice_of(models[rng_below(rng, 4)]);
    }
    if (rng_once_in(rng, 3))
        ask->uid = m_uid(world->uid);
    if (ask->gpu_count == 1)
        ask->cores_pct = random_cores(rng);
    tell(world, "%u units x %u, %u cores, priority %d, model %.*s on %s", ask->units,
         ask->gpu_count, ask->cores_pct, ask->priority, (int)ask->model.len,
         ask->model.at ? ask->model.at : "", m_node_name(world->node));
}

static void compare_answers(struct world *world, const struct m_node *node,
                            const struct gs_node_view *view, const struct gs_node_view *expected,
                            const struct gs_ask *ask)
{
    enum gs_reason reason = gs_fit(view, ask), should = m_fit(node, expected, ask);
    world->questions++;
    if (reason != should)
        differ(world, "fit says %s instead of %s", gs_reason_label(reason),
               gs_reason_label(should));
    if (!ask->units)
        return;
    gs_gpu_mask none = ask->broken != GS_FITS ? 0 : ~(gs_gpu_mask)0;
    gs_gpu_mask tight = m_pick(node, expected, ask, true) & none;
    gs_gpu_mask empty = m_pick(node, expected, ask, false) & none;
    if (gs_pick_tightest(view, ask) != tight)
        differ(world, "tightest GPUs %#llx instead of %#llx",
               (unsigned long long)gs_pick_tightest(view, ask), (unsigned long long)tight);
    if (gs_pick_emptiest(view, ask) != empty)
        differ(world, "emptiest GPUs %#llx instead of %#llx",
               (unsigned long long)gs_pick_emptiest(view, ask), (unsigned long long)empty);
    if ((reason == GS_FITS) != (tight != 0))
        differ(world, "fits, but nothing to pick, or the other way round");
}

void op_ask_fit(struct world *world, struct rng *rng)
{
    struct gs_ask ask;
    struct gs_node_view expected;
    struct gs_gpu_state states[M_GPUS];
    random_ask(world, rng, &ask);
    const struct gs_node_view *view = gs_ledger_view(world->ledger, m_node_name(world->node));
    world->acted = view != NULL;
    if (m_view(&world->model, world->node, &expected, states) != (view != NULL))
        differ(world, "node %s is there, or is not", m_node_name(world->node));
    else if (view)
        compare_answers(world, &world->model.nodes[world->node], view, &expected, &ask);
}

void op_ask_beside_holds(struct world *world, struct rng *rng)
{
    struct gs_ask ask;
    struct gs_node_view expected;
    struct gs_beside beside;
    struct gs_gpu_state states[M_GPUS];
    random_ask(world, rng, &ask);
    const struct gs_node_view *view = gs_ledger_view(world->ledger, m_node_name(world->node));
    world->acted = view && m_view(&world->model, world->node, &expected, states);
    if (!world->acted)
        return;
    enum gs_reason reason = gs_fit_beside_holds(world->ledger, view, &ask, &beside);
    const struct gs_node_view judged = beside.view;
    enum gs_reason should = m_fit_beside_holds(&world->model, world->node, &expected, &ask);
    world->questions++;
    if (reason != should)
        differ(world, "beside holds: %s instead of %s", gs_reason_label(reason),
               gs_reason_label(should));
    for (uint32_t i = 0; i < expected.gpu_count && i < judged.gpu_count; i++) {
        if (judged.gpus[i].free_units != expected.gpus[i].free_units)
            differ(world, "beside holds GPU %u has %u free instead of %u", judged.gpus[i].idx,
                   judged.gpus[i].free_units, expected.gpus[i].free_units);
        if (judged.gpus[i].free_cores_pct != expected.gpus[i].free_cores_pct)
            differ(world, "beside holds GPU %u has %u cores free instead of %u", judged.gpus[i].idx,
                   judged.gpus[i].free_cores_pct, expected.gpus[i].free_cores_pct);
    }
    if (judged.sum_free_units != expected.sum_free_units)
        differ(world, "beside holds the node's free sum differs");
}

/* A node that the ledger does not know, as the Cluster Autoscaler offers it. */
void op_ask_node_outside(struct world *world, struct rng *rng)
{
    struct gs_ask ask;
    struct gs_node_view view, expected;
    struct gs_gpu_state states[M_GPUS], expected_states[M_GPUS];
    random_ask(world, rng, &ask);
    struct m_node from = world->model.nodes[world->node];
    struct gs_node node = {
        .name = "new", .gpus = from.gpus, .gpu_count = from.gpu_count, .cpu_milli = from.cpu_milli};
    struct model empty = {0};
    m_set_node(&empty, 0, &from);
    m_view(&empty, 0, &expected, expected_states);
    gs_view_of_node(&view, &node, states);
    compare_answers(world, &empty.nodes[0], &view, &expected, &ask);
}
