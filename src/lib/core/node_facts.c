/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/core/node_facts.h"

#include <stdlib.h>

#include "gpushare/base/array.h"

void gs_node_facts_release(struct gs_node_facts *facts)
{
    for (uint32_t slot = 0; slot < facts->cap; slot++)
        free(facts->of[slot].rules);
    free(facts->of);
    *facts = (struct gs_node_facts){0};
}

static uint64_t hash_of(const struct gs_node *node)
{
    uint64_t hash = gs_node_rules_hash(&node->rules);
    hash = hash * 31 + node->allocatable_units;
    hash = hash * 31 + (uint64_t)node->cpu_milli;
    hash = hash * 31 + (uint64_t)node->memory_bytes;
    return hash ? hash : 1;
}

int gs_node_facts_set(struct gs_node_facts *facts, uint32_t slot, const struct gs_node *node,
                      bool *ret_news)
{
    const bool room = slot < facts->cap ||
                      (node && gs_array_reach(&facts->of, &facts->cap, slot, sizeof(*facts->of)));
    struct gs_node_fact *fact = room ? &facts->of[slot] : NULL;
    uint64_t hash = node ? hash_of(node) : 0;
    bool news = fact && fact->hash != hash;
    if (ret_news)
        *ret_news = news;
    if (fact && node) {
        fact->ready = node->ready;
        fact->allocatable_units =
            node->inventory && node->allocatable_units ? UINT64_MAX : node->allocatable_units;
    }
    if (!news)
        return fact || !node ? 0 : -1;
    struct gs_node_rules *rules = node ? gs_node_rules_dup(&node->rules) : NULL;
    if (node && !rules)
        return -1;
    free(fact->rules);
    fact->rules = rules;
    fact->hash = hash;
    return 0;
}

enum gs_eligible gs_node_facts_eligible(const struct gs_node_facts *facts, uint32_t slot,
                                        const struct gs_pod *pod)
{
    const struct gs_node_fact *fact = gs_node_fact(facts, slot);
    return fact ? gs_eligible(&pod->rules, fact->rules) : GS_ELIGIBLE_UNKNOWN;
}

uint64_t gs_node_facts_hash(const struct gs_node_facts *facts, uint32_t slot)
{
    return slot < facts->cap ? facts->of[slot].hash : 0;
}
