/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bind reserves is what the ledger says fits then and for that pod, whatever was remembered of
 * other pods, or chosen for this one before.
 */
#include "gpushare/base/invariant.h"
#include "rows.h"
#include "service_rig.h"

#include "core/policy_internal.h"
#include "extender/service/service_internal.h"

static struct rig rig;

static int start_with(enum gs_placement policy)
{
    rig_start_as(&rig, (struct gs_service_config){.policy = policy});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,16,16");
    return 0;
}

static int setup(void **state)
{
    *state = &rig;
    return start_with(GS_PLACEMENT_BINPACK);
}

static const char *waiting(void)
{
    return rig_json(&rig, (struct rig_pod){.name = "p", .units = 16});
}

/* --- what is remembered --- */

/* Every result that is kept says now that the pod goes to these GPUs. */
static void spoil(struct gs_memo *memo, gs_gpu_mask gpus)
{
    for (uint64_t i = 0; i <= memo->mask; i++) {
        struct gs_memo_entry *entry = &memo->entries[i];
        if (!atomic_load(&entry->check))
            continue;
        atomic_store(&entry->check, atomic_load(&entry->check) ^ entry->second ^ gpus);
        atomic_store(&entry->second, gpus);
    }
}

static void learn(void)
{
    for (int i = 0; i < GS_LEARN_MIN; i++) { /* until the policy remembers */
        char uid[16];
        snprintf(uid, sizeof(uid), "seen-%d", i);
        rig_pod(&rig, uid, 4, NULL, NULL);
    }
    assert_int_equal(gs_policies_refresh(rig.service->cluster.policies, NULL), 0);
}

static void a_spoiled_memory_reserves_nothing_that_does_not_fit(void **state)
{
    static const struct {
        const char *row;
        gs_gpu_mask remembered;
        const char *idx;
    } rows[] = {
        {"a full GPU", 1, "IDX=1;"}, {"one that has room", 4, "IDX=2;"},     {"two", 6, "IDX=1;"},
        {"none", 0, "IDX=1;"},       {"one that is not there", 8, "IDX=1;"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        start_with(GS_PLACEMENT_ROLLOUT);
        learn();
        rig_pod(&rig, "full", 16, "n1", "0");
        rig_feed(&rig, waiting(), false);
        char body[1 << 14];
        snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", waiting());
        free(rig_ask(&rig, gs_service_prioritize, body));
        spoil(&rig.service->cluster.policies->choices, r->remembered);
        rig_expect(rig_try_bind(&rig, "p", "up", "n1"), "{\"Error\":\"\"}");
        row_true(r->row, strstr(rig.annotations, r->idx) != NULL);
        for (unsigned gpu = 0; gpu < 3; gpu++)
            row_true(r->row, rig_used(&rig, "n1", gpu) <= 16);
    }
}

/* Under load each request works one node out, and the others are as good as that. */
static void a_rest_ends_when_it_was_to_end(void **state)
{
    const int64_t ends_ns = rig.now_ns + GS_NS_PER_S;
    char body[1 << 14];
    rig_stop(&rig);
    start_with(GS_PLACEMENT_ROLLOUT);
    rig_node(&rig, "n2", "18");
    learn();
    atomic_store(&rig.service->rest_until_ns, ends_ns);
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"n1\",\"n2\"]}",
             rig_json(&rig, (struct rig_pod){.name = "p", .units = 10}));
    rig_expect(rig_ask(&rig, gs_service_prioritize, body), "[]");
    assert_true(atomic_load(&rig.service->rest_until_ns) == ends_ns);
    rig.now_ns = ends_ns;
    rig_expect(rig_ask(&rig, gs_service_prioritize, body), "[{\"Host\":\"n2\"");
}

/* --- what must never be --- */

static void a_reservation_that_breaks_an_invariant_is_refused_and_counted(void **state)
{
#ifndef GS_FATAL_INVARIANTS /* a sanitizer's build ends here, as it should */
    const uint64_t before = gs_invariants_broken();
    unsetenv("GPUSHARE_INVARIANTS");
    gs_invariants_survive();
    rig_pod(&rig, "p", 8, NULL, NULL);
    const struct gs_node_view *view = gs_ledger_view(rig.service->ledger, "n1");
    view->gpus[2].used_units++; /* by a bug, say */
    rig_expect(rig_try_bind(&rig, "p", "up", "n1"), "invariant violated");
    assert_int_equal(gs_invariants_broken(), before + 1);
    assert_int_equal(rig.binds, 0);
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    view->gpus[2].used_units--;
    rig_expect(rig_try_bind(&rig, "p", "up", "n1"), "{\"Error\":\"\"}");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_spoiled_memory_reserves_nothing_that_does_not_fit),
        T(a_rest_ends_when_it_was_to_end),
        T(a_reservation_that_breaks_an_invariant_is_refused_and_counted),
    };
    return GS_RUN(tests);
}
