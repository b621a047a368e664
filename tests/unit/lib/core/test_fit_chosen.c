/* SPDX-License-Identifier: Apache-2.0 */
/* The last word on a choice that was remembered, or made for the pod a while ago. */
#include "gpushare/core/placement.h"
#include "ledgers.h"

static const struct {
    const char *row;
    const char *gpus; /* of the node; GPU 0 has 8 units of the pod's own claim, where `own` says */
    gs_gpu_mask chosen;
    uint32_t units, gpu_count, cores_pct;
    const char *model, *uuid, *uuid_deny;
    bool own;
    uint32_t held; /* by a nominated pod of the same priority */
    bool fits;
} rows[] = {
    {"room", "16 16", 1, 8, 1, .fits = true},
    {"all of it", "16 16", 2, 16, 1, .fits = true},
    {"none", "16 16", 1, 17, 1},
    {"room on another alone", "8 16", 1, 16, 1},
    {"two of two", "16 16", 3, 8, 2, .fits = true},
    {"one of two", "16 16", 1, 8, 2},
    {"two of one", "16 16", 3, 8, 1},
    {"no GPU", "16 16", 0, 8, 1},
    {"one that is not there", "16 16", 4, 8, 1},
    {"one of them is not there", "16 16", 5, 8, 2},
    {"not healthy, or cordoned", "16x 16", 1, 8, 1},
    {"compute", "16 16", 1, 8, 1, 100, .fits = true},
    {"the model", "16 16", 2, 8, 1, .model = "T4", .fits = true},
    {"another model", "16 16", 1, 8, 1, .model = "T4"},
    {"the UUID", "16 16", 1, 8, 1, .uuid = "GPU-0", .fits = true},
    {"another UUID", "16 16", 2, 8, 1, .uuid = "GPU-0"},
    {"a denied UUID", "16 16", 1, 8, 1, .uuid_deny = "GPU-0"},
    {"its own claim is not in its way", "8 16", 1, 8, 1, .own = true, .fits = true},
    {"without it there is no room", "8 16", 1, 8, 1},
    {"more than its claim", "8 16", 1, 9, 1, .own = true},
    {"a hold takes the other one", "16 16", 2, 16, 1, .held = 16, .fits = true},
    {"a hold takes that one", "16 16", 1, 16, 1, .held = 16},
};

static void a_choice_fits_when_its_gpus_take_the_pod_now(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        static struct test_node t;
        test_node_init(&t, "n1", r->gpus);
        snprintf(t.gpus[1].model, sizeof(t.gpus[1].model), "T4");
        for (int i = 0; i < 2; i++)
            snprintf(t.gpus[i].uuid, sizeof(t.gpus[i].uuid), "GPU-%d", i);
        row_equal(r->row, gs_ledger_set_node(ledger, &t.node, NULL), 0);
        const bool charged = r->own || strcmp(r->row, "without it there is no room") == 0;
        if (charged)
            test_reserve(ledger, "own", "n1", 1, 8);
        const struct gs_hold hold = {
            {.uid = "held", .units = r->held, .gpu_count = 1, .priority = 5}, "n1"};
        if (r->held)
            row_equal(r->row, gs_ledger_hold(ledger, &hold, NULL), 0);
        struct gs_claim own = {0};
        row_equal(r->row, gs_ledger_find_claim(ledger, "own", &own), charged);
        struct gs_ask ask = {.units = r->units,
                             .gpu_count = r->gpu_count,
                             .cores_pct = r->cores_pct,
                             .priority = 5,
                             .model = gs_slice_of(r->model ? r->model : ""),
                             .uuid = gs_slice_of(r->uuid ? r->uuid : ""),
                             .uuid_deny = gs_slice_of(r->uuid_deny ? r->uuid_deny : "")};
        ask.selects = ask.model.len || ask.uuid.len || ask.uuid_deny.len;
        const struct gs_node_view *view = gs_ledger_view(ledger, "n1");
        const enum gs_reason reason =
            gs_fit_chosen(ledger, view, &ask, r->chosen, r->own ? &own : NULL);
        row_equal(r->row, reason == GS_FITS, r->fits);
        row_equal(r->row, gs_ledger_audit(ledger, view->slot), 0); /* asking changes nothing */
    }
}

static void compute_and_a_ceiling_of_pods_count(void **state)
{
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
    test_set_node(ledger, "n1", "16/1 16");
    test_set_claim(ledger, (struct gs_claim){.uid = "a", .node = "n1", .gpus = 1, .units = 1});
    test_set_claim(ledger, (struct gs_claim){
                               .uid = "b", .node = "n1", .gpus = 2, .units = 1, .cores_pct = 60});
    const struct gs_node_view *view = gs_ledger_view(ledger, "n1");
    struct gs_ask ask = {.units = 1, .gpu_count = 1};
    assert_int_not_equal(gs_fit_chosen(ledger, view, &ask, 1, NULL), GS_FITS);
    ask.cores_pct = 40;
    assert_int_equal(gs_fit_chosen(ledger, view, &ask, 2, NULL), GS_FITS);
    ask.cores_pct = 41;
    assert_int_not_equal(gs_fit_chosen(ledger, view, &ask, 2, NULL), GS_FITS);
    ask.broken = GS_REASON_BAD_MODEL;
    assert_int_equal(gs_fit_chosen(ledger, view, &ask, 2, NULL), GS_REASON_BAD_MODEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_choice_fits_when_its_gpus_take_the_pod_now),
        cmocka_unit_test(compute_and_a_ceiling_of_pods_count),
    };
    return GS_RUN(tests);
}
