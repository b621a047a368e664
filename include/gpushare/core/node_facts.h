/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"

/*
 * What node objects say beside their GPUs: which pods may use them, by the slots of a ledger, under
 * whose lock it is. A zeroed struct knows no node.
 */
struct gs_node_facts {
    struct gs_node_fact {
        struct gs_node_rules *rules; /* NULL: no node */
        uint64_t hash;               /* of them and of what is allocatable */
        bool ready;                  /* condition Ready is True */
        uint64_t allocatable_units;  /* 0: its device plugin does not run; without an inventory it
                                        may be less than its GPUs have, UINT64_MAX: no matter */
    } * of;
    uint32_t cap;
};

void gs_node_facts_release(struct gs_node_facts *facts);

/* Notes them. *ret_news, when not NULL: labels, taints, unschedulable or what is allocatable
 * changed. NULL: the node is gone. -1: out of memory, what was known stays. */
int gs_node_facts_set(struct gs_node_facts *facts, uint32_t slot, const struct gs_node *node,
                      bool *ret_news);

/* NULL for a node that is not known. Borrowed until it is set. */
static inline const struct gs_node_fact *gs_node_fact(const struct gs_node_facts *facts,
                                                      uint32_t slot)
{
    return slot < facts->cap && facts->of[slot].rules ? &facts->of[slot] : NULL;
}

/* GS_ELIGIBLE_UNKNOWN for a node that is not known. */
enum gs_eligible gs_node_facts_eligible(const struct gs_node_facts *facts, uint32_t slot,
                                        const struct gs_pod *pod);

/* Another number after a change; 0: not known. */
uint64_t gs_node_facts_hash(const struct gs_node_facts *facts, uint32_t slot);
