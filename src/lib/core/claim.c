/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/num.h"
#include "gpushare/core/ledger.h"
#include "gpushare/core/placement.h"

struct gs_claim gs_claim_of_ask(const struct gs_ask *ask, gs_gpu_mask gpus)
{
    return (struct gs_claim){
        .gpus = gpus,
        .each = ask->each,
        .gpu_count = ask->gpu_count,
        .priority = ask->priority,
        .cpu_milli = gs_clamp_u32(ask->cpu_milli),
    };
}

void gs_claim_of_pod(const struct gs_pod *pod, struct gs_claim *ret)
{
    struct gs_charge charge;
    const gs_gpu_mask gpus = gs_pod_recorded(pod);
    const uint32_t named = gs_gpu_mask_count(pod->recorded_gpus);
    const uint32_t asked = gs_pod_asked_gpus(pod);
    gs_pod_charge(pod, &charge);
    *ret = (struct gs_claim){
        .uid = pod->uid,
        .ns = pod->ns,
        .name = pod->name,
        .node = pod->node_name,
        .gpus = gpus,
        .also = gpus ? 0 : pod->recorded_gpus, /* it cannot be, as it stands */
        .each = charge.each,
        .gpu_count = charge.gpu_count,
        .gpus_max = named > asked ? named : asked,
        .total_units = gs_pod_total_units(pod),
        .priority = pod->priority,
        .cpu_milli = gs_clamp_u32(gs_pod_cpu_milli(pod)),
        .revision = gs_pod_revision(pod),
        .state = GS_CLAIM_CONFIRMED,
        .leaving = pod->deleting,
        .assigned = pod->assigned,
        .labels = pod->labels,
    };
}

/* Bound before our own bind was answered, and perhaps not by it: another replica chose for itself,
 * by the gpu-count of its moment. */
static void doubt(struct gs_claim *claim, gs_gpu_mask said)
{
    const uint32_t units =
        said ? gs_units_each(claim->total_units, gs_gpu_mask_count(said)) : claim->total_units;
    claim->also |= said ? said : ~(gs_gpu_mask)0;
    claim->units = units > claim->units ? units : claim->units;
}

void gs_claim_follow(const struct gs_ledger *ledger, struct gs_claim *claim, bool is_binding)
{
    struct gs_claim known;
    if (!gs_ledger_find_claim(ledger, claim->uid, &known) || strcmp(known.node, claim->node) != 0)
        return;
    const gs_gpu_mask said = claim->gpus;
    claim->gpus = known.gpus;
    claim->also = known.also;
    claim->from_moved = known.from_moved;
    claim->each = known.each;
    claim->gpu_count = known.gpu_count;
    claim->gpus_max = known.gpus_max;
    claim->total_units = known.total_units;
    if (known.from_moved)
        return;
    const struct gs_node_view *view = gs_ledger_view(ledger, claim->node);
    const bool tells_moved = view && view->tells_moved;
    if (said && (is_binding || (known.also && claim->assigned && tells_moved)))
        gs_claim_move(&claim->body, said);
    if (said == claim->gpus)
        return;
    const bool shows_gpus = view && view->gpu_count; /* else nothing contradicts what is known */
    const bool placed = gs_gpu_mask_count(known.gpus) == known.gpu_count &&
                        !(shows_gpus && known.gpus & ~gs_view_present(view));
    if (known.state == GS_CLAIM_RESERVED)
        doubt(claim, said);
    else if (!said || tells_moved)
        return;
    else if (placed)
        claim->also |= said;
    else
        gs_claim_move(&claim->body, said);
}
