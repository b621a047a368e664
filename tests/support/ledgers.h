/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/ledger.h"
#include "rows.h"
#include "views.h"

/* Short words for tests of the ledger; each fails the test when the ledger refuses. */

static inline void test_set_node(struct gs_ledger *ledger, const char *name, const char *gpus)
{
    static struct test_node t;
    struct gs_error err = {0};
    if (gs_ledger_set_node(ledger, test_node_init(&t, name, gpus), &err) < 0)
        fail_msg("node %s: %s", name, err.msg);
}

/* On the GPUs of its mask, as many as it has (at least one). */
static inline void test_set_claim(struct gs_ledger *ledger, struct gs_claim claim)
{
    struct gs_error err = {0};
    claim.gpu_count = claim.gpus ? gs_gpu_mask_count(claim.gpus) : 1;
    if (gs_ledger_set_claim(ledger, &claim, &err) < 0)
        fail_msg("claim %s: %s", claim.uid, err.msg);
}

static inline uint32_t test_audit(const struct gs_ledger *ledger)
{
    uint32_t differing = 0;
    for (uint32_t slot = 0; slot < gs_ledger_slots(ledger); slot++)
        differing += gs_ledger_audit(ledger, slot);
    return differing;
}

/* "0:8/16 3:0/24" for index:used/total; "none" without a node object; borrowed until the next call.
 * The accounts must survive an audit. */
static inline const char *test_accounts(const struct gs_ledger *ledger, const char *node)
{
    static char text[1000];
    size_t len = 0;
    const struct gs_node_view *view = gs_ledger_view(ledger, node);
    assert_int_equal(test_audit(ledger), 0);
    if (!view)
        return "none";
    text[0] = '\0';
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        uint64_t free_units =
            gpu->used_units < gpu->total_units ? gpu->total_units - gpu->used_units : 0;
        assert_int_equal(gpu->free_units, free_units);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u:%llu/%u", i ? " " : "",
                                gpu->idx, (unsigned long long)gpu->used_units, gpu->total_units);
        assert_true(len < sizeof(text));
    }
    return text;
}

static inline struct gs_ledger_stats test_stats(const struct gs_ledger *ledger)
{
    struct gs_ledger_stats stats;
    gs_ledger_stats(ledger, &stats);
    return stats;
}
