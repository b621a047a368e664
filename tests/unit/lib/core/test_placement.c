/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "views.h"

#include "gpushare/core/placement.h"

static const struct {
    const char *row;
    const char *gpus;
    uint32_t units, gpu_count;
    enum gs_reason reason;
    gs_gpu_mask candidates;
    uint32_t cores_pct;
} fits[] = {
    {"no GPU memory asked", "", 0, 1, GS_FITS, 0},
    {"exactly the room", "16:8", 8, 1, GS_FITS, 1},
    {"one unit too many", "16:8", 9, 1, GS_REASON_NO_ROOM, 0},
    {"the largest GPU", "16 24 8", 24, 1, GS_FITS, 2},
    {"no GPUs", "", 1, 1, GS_REASON_NO_GPUS, 0},
    {"GPUs without memory", "0 0", 1, 1, GS_REASON_NO_GPUS, 0},
    {"larger than any GPU", "16 24", 25, 1, GS_REASON_GPU_TOO_SMALL, 0},
    {"largest request", "16 24", INT32_MAX, 1, GS_REASON_GPU_TOO_SMALL, 0},
    {"full node", "16:16 16:16", 1, 1, GS_REASON_NO_ROOM, 0},
    {"overfull node", "16:99 16:16", 1, 1, GS_REASON_NO_ROOM, 0},
    {"the sum would do", "16:8 16:8", 9, 1, GS_REASON_FRAGMENTED, 0},
    {"the sum would just do", "16:10 16:10", 12, 1, GS_REASON_FRAGMENTED, 0},
    {"the sum would not do", "16:10 16:11", 12, 1, GS_REASON_NO_ROOM, 0},
    {"room only where unusable", "16x 16:16", 8, 1, GS_REASON_NOT_USABLE, 0},
    {"unusable and full", "16:16x 16:16", 8, 1, GS_REASON_NO_ROOM, 0},
    {"an unusable GPU's free memory helps no sum", "16:10x 16:10", 12, 1, GS_REASON_NO_ROOM, 0},
    {"large enough only where unusable", "80:80x 16", 20, 1, GS_REASON_NO_ROOM, 0},

    {"one pod more", "16:4p1/2", 8, 1, GS_FITS, 1},
    {"as many pods as there may be", "16:4p2/2", 8, 1, GS_REASON_MAX_PODS, 0},
    {"more pods than there may be", "16:4p3/2", 8, 1, GS_REASON_MAX_PODS, 0},
    {"pods that nobody counts", "16:4p99", 8, 1, GS_FITS, 1},
    {"a pod too many, and no memory", "16:9p2/2", 8, 1, GS_REASON_NO_ROOM, 0},
    {"all pods here, room there", "16:4p2/2 16:8", 8, 1, GS_FITS, 2},
    {"all pods here, too little there", "16:4p2/2 16:9", 8, 1, GS_REASON_MAX_PODS, 0},
    {"all pods here, unusable there", "16:4p2/2 16x", 8, 1, GS_REASON_NOT_USABLE, 0},
    {"memory beside all pods helps no sum", "16:4p1/1 16:10", 14, 1, GS_REASON_NO_ROOM, 0},
    {"too small, and all pods", "16p1/1", 17, 1, GS_REASON_GPU_TOO_SMALL, 0},
    {"two, one of them with all pods", "16p1/1 16", 8, 2, GS_REASON_MAX_PODS, 2},

    {"two of two", "16:8 16:4", 8, 2, GS_FITS, 3},
    {"two of three", "16:8 16:12 16", 8, 2, GS_FITS, 5},
    {"two of one", "16", 8, 2, GS_REASON_TOO_FEW_GPUS, 1},
    {"two, but only one is large enough", "16 80", 20, 2, GS_REASON_TOO_FEW_GPUS, 2},
    {"two, and none is large enough", "16 16", 20, 2, GS_REASON_GPU_TOO_SMALL, 0},
    {"two, only one has room", "16:9 16:8", 8, 2, GS_REASON_TOO_FEW_FREE, 2},
    {"two, none has room", "16:9 16:9", 8, 2, GS_REASON_NO_ROOM, 0},
    {"two, one of them unusable", "16x 16", 8, 2, GS_REASON_NOT_USABLE, 2},
    {"no GPUs for two", "", 8, 2, GS_REASON_NO_GPUS, 0},
    {"sixty-four of two", "16 16", 1, 64, GS_REASON_TOO_FEW_GPUS, 3},

    {"exactly the compute", "16:4c40", 8, 1, GS_FITS, 1, 60},
    {"a percent too much", "16:4c41", 8, 1, GS_REASON_NO_CORES, 0, 60},
    {"all of a GPU's compute", "16:4c1 16:4", 8, 1, GS_FITS, 2, 100},
    {"compute used up is nothing to others", "16:4c100", 8, 1, GS_FITS, 1},
    {"more than used up", "16:4c130", 8, 1, GS_FITS, 1},
    {"compute here, room there", "16:9 16c60", 8, 1, GS_REASON_NO_CORES, 0, 60},
    {"room without compute, and unusable", "16c60 16x", 8, 1, GS_REASON_NO_CORES, 0, 60},
    {"compute, but no room", "16:9", 8, 1, GS_REASON_NO_ROOM, 0, 60},
    {"compute, and a sum that would do", "16:9 16:9", 8, 1, GS_REASON_FRAGMENTED, 0, 60},
    {"compute, and all pods", "16p1/1", 8, 1, GS_REASON_MAX_PODS, 0, 60},
};

static void every_refusal_has_its_reason(void **state)
{
    static struct test_node t;
    GS_FOR_EACH_ROW (r, fits) {
        struct gs_node_view *view = test_view_init(&t, r->gpus);
        struct gs_ask ask = {
            .units = r->units, .gpu_count = r->gpu_count, .cores_pct = r->cores_pct};
        row_equal(r->row, gs_fit(view, &ask), r->reason);
        if (ask.units)
            row_equal(r->row, gs_fit_candidates(view, &ask), r->candidates);
        if (ask.units) {
            row_equal(r->row, gs_pick_tightest(view, &ask) != 0, r->reason == GS_FITS);
            row_equal(r->row, gs_pick_emptiest(view, &ask) != 0, r->reason == GS_FITS);
        }
    }
}

/* A selector that allows GPU 0 and 1 by UUID. */
static void selectors_change_the_reason(void **state)
{
    static const struct {
        const char *row;
        const char *gpus;
        uint32_t units, gpu_count;
        enum gs_reason reason;
    } rows[] = {
        {"allowed ones fit", "16 16 16", 8, 2, GS_FITS},
        {"allowed ones are full", "16:16 16:16 16", 8, 1, GS_REASON_NO_ROOM},
        {"allowed ones are too small", "8 8 16", 16, 1, GS_REASON_GPU_TOO_SMALL},
        {"more wanted than allowed", "16 16 16", 8, 3, GS_REASON_NO_MATCH},
        {"more wanted than there are", "16 16 16", 8, 4, GS_REASON_TOO_FEW_GPUS},
        {"none allowed", "16@2 16@3", 8, 1, GS_REASON_NO_MATCH},
        {"none allowed, more wanted than there are", "16@2", 8, 2, GS_REASON_TOO_FEW_GPUS},
        {"free memory of others does not fragment", "16:10 16:16 16:10", 12, 1, GS_REASON_NO_ROOM},
    };
    static struct test_node t;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_node_view *view = test_view_init(&t, r->gpus);
        for (uint32_t i = 0; i < view->gpu_count; i++)
            snprintf(t.gpus[i].uuid, sizeof(t.gpus[i].uuid), "GPU-%u", t.gpus[i].idx);
        struct gs_ask ask = {.units = r->units,
                             .gpu_count = r->gpu_count,
                             .selects = true,
                             .uuid = GS_SLICE("GPU-0,GPU-1")};
        row_equal(r->row, gs_fit(view, &ask), r->reason);
        row_equal(r->row, gs_pick_tightest(view, &ask) != 0, r->reason == GS_FITS);
    }
}

static const struct {
    const char *row;
    const char *gpus;
    uint32_t units, gpu_count;
    gs_gpu_mask tightest, emptiest;
    uint32_t cores_pct;
} picks[] = {
    {"one GPU", "16", 8, 1, 1, 1},
    {"least and most free", "16:2 16:8 16:1", 8, 1, 1 << 1, 1 << 2},
    {"lowest index on ties", "16:8 16:8 16:8", 8, 1, 1 << 0, 1 << 0},
    {"lowest index on ties among the rest", "16:15 16:4 16:4", 8, 1, 1 << 1, 1 << 1},
    {"the tightest is too tight", "16:9 16:8 16", 8, 1, 1 << 1, 1 << 2},
    {"unusable ones are passed over", "16:8x 16 16:1x 16:4", 8, 1, 1 << 3, 1 << 1},
    {"size does not matter, room does", "80:70 16", 10, 1, 1 << 0, 1 << 1},
    {"index, not position", "16:8@7 16@9", 8, 1, 1 << 7, 1 << 9},
    {"last index", "16 16:8@63", 8, 1, GS_GPU_BIT(63), 1},
    {"does not fit", "16:9 16:9", 8, 1, 0, 0},
    {"least compute on ties", "16c20 16c60 16c90", 8, 1, 1 << 1, 1 << 0, 30},
    {"memory before compute", "16:8 16:7c60 16", 8, 1, 1 << 0, 1 << 2, 30},
    {"compute is nothing to others", "16c20 16c60 16", 8, 1, 1 << 0, 1 << 0},

    {"the two tightest", "16:1 16:8 16:2 16:7", 4, 2, 1 << 1 | 1 << 3, 1 << 0 | 1 << 2},
    {"all of them", "16 16 16", 16, 3, 7, 7},
    {"too few", "16 16:1 16", 16, 3, 0, 0},
    {"one NUMA node before the tightest", "16:8n0 16:1n1 16:2n0 16:7n1", 4, 2, 1 << 0 | 1 << 2,
     1 << 1 | 1 << 3},
    {"the NUMA node with the least free in all", "16:1n0 16:2n0 16:3n1 16:4n1", 4, 2,
     1 << 2 | 1 << 3, 1 << 0 | 1 << 1},
    {"equal NUMA nodes: the first", "16n0 16n1 16n0 16n1", 4, 2, 1 << 0 | 1 << 2, 1 << 0 | 1 << 2},
    {"no NUMA node has enough", "16:4n0 16:5n1", 4, 2, 3, 3},
    {"a NUMA node without room does not count", "16:13n0 16n0 16:1n1 16:2n1", 4, 2, 1 << 2 | 1 << 3,
     1 << 2 | 1 << 3},
    {"unknown NUMA nodes are no node together", "16:8 16:7 16:1n1 16:1n1", 4, 2, 1 << 2 | 1 << 3,
     1 << 2 | 1 << 3},
    {"equal NUMA nodes: the lowest chosen index", "16:9n0 16n1 16n1 16n0 16n0", 8, 2,
     1 << 1 | 1 << 2, 1 << 1 | 1 << 2},
    {"one GPU is not bound to NUMA", "16:1n0 16:1n0 16:8n1", 4, 1, 1 << 2, 1 << 0},
};

static void picks_are_tight_or_empty_and_repeatable(void **state)
{
    static struct test_node t;
    GS_FOR_EACH_ROW (r, picks) {
        struct gs_node_view *view = test_view_init(&t, r->gpus);
        struct gs_ask ask = {
            .units = r->units, .gpu_count = r->gpu_count, .cores_pct = r->cores_pct};
        row_true(r->row, gs_pick_tightest(view, &ask) == r->tightest);
        row_true(r->row, gs_pick_emptiest(view, &ask) == r->emptiest);
    }
}

/* --- nominated pods --- */

struct ids_in_use {
    const char *uid;
    uint32_t units, gpu_count;
    int32_t priority;
};

static const struct {
    const char *row;
    const char *gpus;
    struct ids_in_use holds[3];
    uint32_t units;
    int32_t priority;
    const char *uid;
    enum gs_reason reason;
    uint64_t free_after; /* sum over the view that the pod is judged by */
} beside[] = {
    {"no holds", "16", {{0}}, 16, 0, "me", GS_FITS, 16},
    {"room for both", "16", {{"a", 8, 1, 5}}, 8, 0, "me", GS_FITS, 8},
    {"the hold needs the room", "16", {{"a", 9, 1, 5}}, 8, 0, "me", GS_REASON_NOMINATED, 7},
    {"lower priority waits", "16", {{"a", 16, 1, 5}}, 16, 6, "me", GS_FITS, 16},
    {"equal priority holds", "16", {{"a", 16, 1, 5}}, 16, 5, "me", GS_REASON_NOMINATED, 0},
    {"its own hold is no obstacle", "16", {{"me", 16, 1, 5}}, 16, 5, "me", GS_FITS, 16},
    {"nobody's name", "16", {{"a", 16, 1, 5}}, 16, 5, NULL, GS_REASON_NOMINATED, 0},
    {"a hold takes the tightest GPU", "16 16:8", {{"a", 8, 1, 5}}, 16, 0, "me", GS_FITS, 16},
    {"two holds", "16 16", {{"a", 10, 1, 5}, {"b", 10, 1, 5}}, 8, 0, "me", GS_REASON_NOMINATED, 12},
    {"a hold over two GPUs", "16 16 16", {{"a", 10, 2, 5}}, 16, 0, "me", GS_FITS, 28},
    {"a hold over all GPUs", "16 16", {{"a", 1, 2, 5}}, 16, 0, "me", GS_REASON_NOMINATED, 30},
    {"a hold that does not fit yet holds nothing",
     "16:8",
     {{"a", 9, 1, 5}},
     8,
     0,
     "me",
     GS_FITS,
     8},
    {"the higher priority is seated first",
     "16 8",
     {{"a", 8, 1, 5}, {"b", 16, 1, 9}},
     8,
     0,
     "me",
     GS_REASON_NOMINATED,
     0},
    {"does not fit anyhow", "16:9", {{"a", 1, 1, 5}}, 8, 0, "me", GS_REASON_NO_ROOM, 7},
    {"asks for nothing", "16", {{"a", 16, 1, 5}}, 0, 0, "me", GS_FITS, 16},
};

static void nominated_pods_hold_their_places(void **state)
{
    static struct test_node t;
    GS_FOR_EACH_ROW (r, beside) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        assert_int_equal(gs_ledger_set_node(ledger, test_node_init(&t, "n1", r->gpus), NULL), 0);
        for (uint32_t i = 0; i < t.node.gpu_count; i++) {
            char uid[16];
            snprintf(uid, sizeof(uid), "used%u", i);
            struct gs_claim claim = {.uid = uid,
                                     .node = "n1",
                                     .gpus = GS_GPU_BIT(t.gpus[i].idx),
                                     .units = t.used_units[i],
                                     .gpu_count = 1};
            if (claim.units)
                assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
        }
        for (int i = 0; i < 3 && r->holds[i].uid; i++) {
            const struct ids_in_use *held = &r->holds[i];
            struct gs_hold hold = {{.uid = held->uid,
                                    .units = held->units,
                                    .gpu_count = held->gpu_count,
                                    .priority = held->priority},
                                   "n1"};
            assert_int_equal(gs_ledger_hold(ledger, &hold, NULL), 0);
        }
        const struct gs_node_view *view = gs_ledger_view(ledger, "n1");
        uint64_t version = view->version, free_before = view->sum_free_units;
        struct gs_ask ask = {
            .units = r->units, .gpu_count = 1, .priority = r->priority, .uid = r->uid};
        struct gs_beside judged;
        row_equal(r->row, gs_fit_beside_holds(ledger, view, &ask, &judged), r->reason);
        row_equal(r->row, judged.view.sum_free_units, r->free_after);
        row_equal(r->row, gs_fit_beside_holds(ledger, view, &ask, NULL), r->reason);
        row_equal(r->row, view->version, version); /* the ledger itself does not change */
        row_equal(r->row, view->sum_free_units, free_before);
    }
}

/*
 * GPU 0 has 10 of 16 taken by a pod on its way out (or not), GPU 1 has 2 of 16 taken. A nominated
 * pod waits for `held` units: what is left to others on each GPU.
 */
static void a_nominated_pod_keeps_the_gpu_of_its_victims(void **state)
{
    static const struct {
        const char *row;
        bool leaving;
        uint32_t held;
        uint32_t left[2];
    } rows[] = {
        {"it fits beside the victim", true, 4, {2, 14}},
        {"it fits on the other GPU now", true, 8, {6, 6}},
        {"it will fill the GPU", true, 16, {0, 14}},
        {"its victim stays: nothing to hold yet", false, 16, {6, 14}},
        {"it will never fit", true, 17, {6, 14}},
        {"it will leave less than is free now", true, 15, {1, 14}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        static struct test_node t;
        const struct gs_claim victim = {.uid = "victim",
                                        .node = "n1",
                                        .gpus = GS_GPU_BIT(0),
                                        .units = 10,
                                        .gpu_count = 1,
                                        .leaving = r->leaving};
        const struct gs_claim other = {
            .uid = "other", .node = "n1", .gpus = GS_GPU_BIT(1), .units = 2, .gpu_count = 1};
        const struct gs_hold hold = {
            {.uid = "v", .units = r->held, .gpu_count = 1, .priority = 100}, "n1"};
        const struct gs_ask ask = {.units = 1, .gpu_count = 1, .uid = "me"};
        struct gs_beside judged;
        assert_int_equal(gs_ledger_set_node(ledger, test_node_init(&t, "n1", "16 16"), NULL), 0);
        assert_int_equal(gs_ledger_set_claim(ledger, &victim, NULL), 0);
        assert_int_equal(gs_ledger_set_claim(ledger, &other, NULL), 0);
        assert_int_equal(gs_ledger_hold(ledger, &hold, NULL), 0);
        const struct gs_node_view *view = gs_ledger_view(ledger, "n1");
        row_equal(r->row, gs_fit_beside_holds(ledger, view, &ask, &judged), GS_FITS);
        row_equal(r->row, judged.view.gpus[0].free_units, r->left[0]);
        row_equal(r->row, judged.view.gpus[1].free_units, r->left[1]);
    }
}

/* GPU 0 is an A100 with 16 free, GPU 1 a T4 with 8: without its lists the pod of 8 would sit on
 * the second. */
static void a_nominated_pod_is_seated_on_a_gpu_that_it_allows(void **state)
{
    static const struct {
        const char *row;
        struct gs_ask held;
        uint32_t left[2];
    } rows[] = {
        {"no lists", {.uid = "v", .units = 8, .gpu_count = 1, .priority = 100}, {16, 0}},
        {"model",
         {.uid = "v",
          .units = 8,
          .gpu_count = 1,
          .priority = 100,
          .selects = true,
          .model = GS_SLICE("a100")},
         {8, 8}},
        {"model denied",
         {.uid = "v",
          .units = 8,
          .gpu_count = 1,
          .priority = 100,
          .selects = true,
          .model_deny = GS_SLICE("t4")},
         {8, 8}},
        {"UUID",
         {.uid = "v",
          .units = 8,
          .gpu_count = 1,
          .priority = 100,
          .selects = true,
          .uuid = GS_SLICE("GPU-0")},
         {8, 8}},
        {"UUID denied",
         {.uid = "v",
          .units = 8,
          .gpu_count = 1,
          .priority = 100,
          .selects = true,
          .uuid_deny = GS_SLICE("GPU-1")},
         {8, 8}},
        {"no GPU allowed",
         {.uid = "v",
          .units = 8,
          .gpu_count = 1,
          .priority = 100,
          .selects = true,
          .model = GS_SLICE("H100")},
         {16, 8}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
        static struct test_node t;
        const struct gs_ask ask = {.units = 1, .gpu_count = 1, .uid = "me"};
        struct gs_beside judged;
        test_node_init(&t, "n1", "16 8");
        for (int i = 0; i < 2; i++) {
            snprintf(t.gpus[i].model, sizeof(t.gpus[i].model), "%s", i ? "T4" : "A100");
            snprintf(t.gpus[i].uuid, sizeof(t.gpus[i].uuid), "GPU-%d", i);
        }
        assert_int_equal(gs_ledger_set_node(ledger, &t.node, NULL), 0);
        assert_int_equal(gs_ledger_hold(ledger, &((struct gs_hold){r->held, "n1"}), NULL), 0);
        const struct gs_node_view *view = gs_ledger_view(ledger, "n1");
        row_equal(r->row, gs_fit_beside_holds(ledger, view, &ask, &judged), GS_FITS);
        row_equal(r->row, judged.view.gpus[0].free_units, r->left[0]);
        row_equal(r->row, judged.view.gpus[1].free_units, r->left[1]);
    }
}

/* n0 is full, n1 has room, n2 is gone, n3 is held for another pod, n4 has room. */
static void the_first_node_with_room_is_looked_for_from_a_slot_on(void **state)
{
    static const struct {
        const char *row;
        uint32_t from, units, slot;
    } rows[] = {
        {"past the full one", 0, 8, 1},
        {"itself", 1, 8, 1},
        {"past the one that is gone, and the one that is held", 2, 8, 4},
        {"more than any has", 0, 17, GS_INDEX_NONE},
        {"after the last", 5, 8, GS_INDEX_NONE},
        {"far after the last", GS_INDEX_NONE, 8, GS_INDEX_NONE},
    };
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4"};
    const struct gs_claim claim = {
        .uid = "used", .node = "n0", .gpus = GS_GPU_BIT(0), .units = 16, .gpu_count = 1};
    const struct gs_hold hold = {{.uid = "nominated", .units = 16, .gpu_count = 1, .priority = 100},
                                 "n3"};
    _cleanup_(gs_ledger_freep) struct gs_ledger *ledger = gs_ledger_new();
    static struct test_node t;
    for (size_t i = 0; i < GS_COUNT_OF(names); i++)
        assert_int_equal(gs_ledger_set_node(ledger, test_node_init(&t, names[i], "16"), NULL), 0);
    assert_int_equal(gs_ledger_set_claim(ledger, &claim, NULL), 0);
    assert_int_equal(gs_ledger_hold(ledger, &hold, NULL), 0);
    gs_ledger_drop_node(ledger, "n2");
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_ask ask = {.units = r->units, .gpu_count = 1, .uid = "me"};
        row_equal(r->row, gs_fit_first(ledger, &ask, r->from), r->slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refusal_has_its_reason),
        cmocka_unit_test(selectors_change_the_reason),
        cmocka_unit_test(picks_are_tight_or_empty_and_repeatable),
        cmocka_unit_test(nominated_pods_hold_their_places),
        cmocka_unit_test(the_first_node_with_room_is_looked_for_from_a_slot_on),
        cmocka_unit_test(a_nominated_pod_keeps_the_gpu_of_its_victims),
        cmocka_unit_test(a_nominated_pod_is_seated_on_a_gpu_that_it_allows),
    };
    return GS_RUN(tests);
}
