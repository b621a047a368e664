/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_NODE_FACTS_H
#define GPUSHARE_SERVICE_NODE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/model/node.h"
#include "gpushare/model/pod.h"

/*
 * What node objects say beside their GPUs: which pods may use them, by the ledger's slots. Guarded
 * by the store's lock. A zeroed struct knows no node.
 */
struct gs_node_facts {
    struct gs_node_fact {
        struct gs_node_rules *rules; /* NULL: no node */
        uint64_t hash;               /* of them and of what is allocatable */
    } * of;
    uint32_t cap;
};

void gs_node_facts_release(struct gs_node_facts *facts);

/* True when labels, taints, unschedulable or what is allocatable changed. Out of memory: what was
 * known stays. NULL: the node is gone. */
bool gs_node_facts_set(struct gs_node_facts *facts, uint32_t slot, const struct gs_node *node);

/* GS_ELIGIBLE_UNKNOWN for a node that is not known. */
enum gs_eligible gs_node_facts_eligible(const struct gs_node_facts *facts, uint32_t slot,
                                        const struct gs_pod *pod);

/* Another number after a change; 0: not known. */
uint64_t gs_node_facts_hash(const struct gs_node_facts *facts, uint32_t slot);

#endif
