/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>

#include "gpushare/base/splitmix.h"

#include "alloc_fail.h"

uint64_t rng_next(struct rng *rng)
{
    return gs_splitmix_next(&rng->state);
}

uint32_t rng_below(struct rng *rng, uint32_t below)
{
    return (uint32_t)((rng_next(rng) >> 32) * below >> 32);
}

bool rng_once_in(struct rng *rng, uint32_t n)
{
    return rng_below(rng, n) == 0;
}

bool world_start(struct world *world, uint64_t config)
{
    struct rng rng = {config};
    *world = (struct world){.ledger = gs_ledger_new()};
    world->node_count = 1 + rng_below(&rng, M_NODES);
    world->tidy = rng_once_in(&rng, 2);
    world->uid_count = 4 + rng_below(&rng, M_UIDS - 3);
    return world->ledger != NULL;
}

void world_end(struct world *world)
{
    gs_ledger_free(world->ledger);
    world->ledger = NULL;
}

void differ(struct world *world, const char *fmt, ...)
{
    if (world->wrong)
        return;
    world->wrong = true;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(world->difference, sizeof(world->difference), fmt, ap);
    va_end(ap);
}

bool runs_out(struct world *world, int result, const struct gs_error *err)
{
    const bool failed = alloc_fail_end();
    alloc_fail_begin(0);
    if (result != (failed ? -1 : 0) || err->code != (failed ? GS_ENOMEM : GS_OK))
        differ(world, "%s memory a call says %d, %s", failed ? "without" : "with", result,
               err->msg);
    if (failed)
        compare_all(world);
    return failed && !world->wrong;
}

void tell(struct world *world, const char *fmt, ...)
{
    world->acted = true;
    if (!world->tell)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(world->said, sizeof(world->said), fmt, ap);
    va_end(ap);
}

static const struct {
    const char *name;
    uint32_t weight;
    void (*run)(struct world *world, struct rng *rng);
} kinds[] = {
#define ROW(name, weight) {#name, weight, op_##name},
    NODE_OPS(ROW) POD_OPS(ROW) ASK_OPS(ROW)
#undef ROW
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

uint32_t op_kinds(void)
{
    return KINDS;
}

const char *op_name(uint32_t kind)
{
    return kinds[kind].name;
}

uint8_t op_choose(struct rng *rng)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < KINDS; i++)
        total += kinds[i].weight;
    uint32_t at = rng_below(rng, total);
    uint8_t kind = 0;
    while (at >= kinds[kind].weight)
        at -= kinds[kind++].weight;
    return kind;
}

void op_run(struct world *world, struct op op)
{
    struct rng rng = {op.seed};
    world->node = rng_below(&rng, world->node_count);
    world->uid = rng_below(&rng, world->uid_count);
    world->said[0] = '\0';
    world->acted = false;
    const uint32_t fails = rng_once_in(&rng, 16) ? 1 + rng_below(&rng, 6) : 0;
    alloc_fail_begin(fails);
    if (fails && rng_once_in(&rng, 2))
        alloc_fail_begin_from(fails);
    kinds[op.kind].run(world, &rng);
    if (alloc_fail_end())
        differ(world, "what must not fail allocates");
    world->acted_by_kind[op.kind] += world->acted;
}
