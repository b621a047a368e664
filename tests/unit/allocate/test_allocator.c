/* SPDX-License-Identifier: Apache-2.0 */
#include "allocate_rig.h"
#include "rows.h"

static const char *value_of(const struct gs_allocator_write *write, const char *key)
{
    for (size_t i = 0; i < write->annotation_count; i++) {
        if (strcmp(write->annotations[i].key, key) == 0)
            return write->annotations[i].value;
    }
    return NULL;
}

/* GPU 0 has 16 units, and two pods are recorded there that do not fit it together: the one that was
 * bound first keeps its place, also while it has not been asked for yet. */
static void a_record_is_believed_beside_those_of_older_pods(void **state)
{
    static const struct {
        const char *row;
        uint32_t first, second; /* units, in the order of binds */
        uint32_t calls[2];
        int gpus[2];
    } rows[] = {
        {"the older first", 10, 8, {10, 8}, {0, 1}},
        {"the younger first", 10, 8, {8, 10}, {1, 0}},
        {"they fit together", 10, 6, {6, 10}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rig rig;
        rig_up(&rig);
        give_pod(&rig, &(struct given_pod){"a", {rows[i].first}, 0});
        give_pod(&rig, &(struct given_pod){"b", {rows[i].second}, 0});
        for (int call = 0; call < 2; call++) {
            int gpu = allocate(&rig, rows[i].calls[call], NULL, 0, NULL, NULL);
            if (gpu != rows[i].gpus[call])
                fail_msg("%s: call %d got GPU %d", rows[i].row, call, gpu);
        }
        gs_allocator_free(rig.alloc);
    }
}

static void exchanged_pods_get_each_others_records(void **state)
{
    struct rig rig;
    struct gs_allocator_write write, writes[2];
    uint64_t key_a, key_b;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"b", {12}, 0});
    give_pod(&rig, &(struct given_pod){"a", {12}, 1});
    assert_int_equal(allocate(&rig, 12, NULL, 0, &key_a, NULL), 0); /* was for a */
    assert_int_equal(allocate(&rig, 12, NULL, 0, &key_b, NULL), 1);
    while (gs_allocator_next_write(rig.alloc, &write))
        gs_allocator_write_done(rig.alloc, write.number, true);
    const struct gs_observed_pod observed[] = {{"ns", "a", 12, &key_a, 1},
                                               {"ns", "b", 12, &key_b, 1}};
    gs_allocator_observe(rig.alloc, observed, 2);
    assert_false(gs_allocator_next_write(rig.alloc, &write)); /* the node says it first */
    expect_moved(&rig, "exchanged", "{\"a\":[0],\"b\":[1]}");
    for (int i = 0; i < 2; i++) {
        assert_true(gs_allocator_next_write(rig.alloc, &writes[i]));
        assert_string_equal(writes[i].name, i ? "b" : "a");
        assert_string_equal(value_of(&writes[i], rig.names.idx), i ? "1" : "0");
        assert_string_equal(value_of(&writes[i], rig.names.assigned), "true");
    }
    assert_false(gs_allocator_next_write(rig.alloc, &write)); /* told when it is true */
    for (int i = 0; i < 2; i++)
        gs_allocator_write_done(rig.alloc, writes[i].number, true);
    for (int i = 0; i < 2; i++) {
        assert_true(gs_allocator_next_write(rig.alloc, &write));
        assert_true(write.event && !write.warning);
        assert_string_equal(write.name, i ? "b" : "a");
        assert_string_equal(write.reason, "GpuRecordChanged");
        gs_allocator_write_done(rig.alloc, write.number, true);
    }
    assert_false(gs_allocator_next_write(rig.alloc, &write));
    gs_allocator_free(rig.alloc);
}

static void a_pod_without_a_true_record_gets_the_tightest_gpu(void **state)
{
    static const struct {
        const char *row;
        struct given_pod given;
        int gpu;
    } rows[] = {
        {"no record", {"p", {8}, -1}, 0},
        {"too large for GPU 0", {"p", {20}, -1}, 1},
        {"record of a GPU that is not there", {"p", {8}, 5}, 0},
        {"record of a GPU that is full", {"p", {12}, 0}, 1},
        {"fits nowhere", {"p", {25}, -1}, -1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        struct gs_allocator_write write;
        rig_up(&rig);
        if (strstr(r->row, "full")) {
            give_pod(&rig, &(struct given_pod){"before", {8}, 0});
            allocate(&rig, 8, NULL, 0, NULL, NULL);
            while (gs_allocator_next_write(rig.alloc, &write))
                gs_allocator_write_done(rig.alloc, write.number, true);
        }
        give_pod(&rig, &r->given);
        row_equal(r->row, allocate(&rig, r->given.units[0], NULL, 0, NULL, &err), r->gpu);
        if (r->gpu < 0) {
            row_text(r->row, err.msg, "no GPU on this node has that much left");
        } else {
            expect_moved(&rig, r->row, r->gpu ? "{\"p\":[1]}" : "{\"p\":[0]}");
            row_true(r->row, gs_allocator_next_write(rig.alloc, &write));
            row_text(r->row, value_of(&write, rig.names.idx), r->gpu ? "1" : "0");
            gs_allocator_write_done(rig.alloc, write.number, true);
        }
        gs_allocator_free(rig.alloc);
    }
}

static void a_quick_list_brings_nobody_back(void **state)
{
    struct rig rig;
    struct gs_allocator_stats stats;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, 0, .revision = 10});
    gs_allocator_pod_gone(rig.alloc, "p");
    give_pod(&rig, &(struct given_pod){"p", {8}, 0, .revision = 9});
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.pods, 0);
    give_pod(&rig, &(struct given_pod){"q", {8}, 1, .revision = 20});
    give_pod(&rig, &(struct given_pod){"q", {8}, 0, .revision = 19});
    assert_int_equal(allocate(&rig, 8, NULL, 0, NULL, NULL), 1);
    gs_allocator_free(rig.alloc);
}

static void pods_that_a_quick_list_does_not_name_are_gone(void **state)
{
    struct rig rig;
    struct gs_allocator_stats stats;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"stays", {4}, 0});
    give_pod(&rig, &(struct given_pod){"went", {4}, 0});
    gs_allocator_quick_begin(rig.alloc);
    give_pod(&rig, &(struct given_pod){"meanwhile", {4}, 0});
    gs_allocator_quick_pods(rig.alloc);
    give_pod(&rig, &(struct given_pod){"stays", {4}, 0, .revision = 1});
    gs_allocator_quick_end(rig.alloc);
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.pods, 2);
    assert_int_equal(stats.used_units[0], 8);
    gs_allocator_free(rig.alloc);
}

static void a_pod_that_sets_its_devices_itself_is_warned_of(void **state)
{
    struct rig rig;
    struct gs_allocator_write write;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, 0, .overrides = true});
    assert_true(gs_allocator_next_write(rig.alloc, &write));
    assert_true(write.event && write.warning);
    assert_string_equal(write.reason, "GpuEnvironmentOverridden");
    gs_allocator_write_done(rig.alloc, write.number, true);
    assert_false(gs_allocator_next_write(rig.alloc, &write));
    gs_allocator_free(rig.alloc);
}

static void a_pod_that_changes_what_mps_is_told_is_warned_of(void **state)
{
    static const struct {
        const char *row;
        bool mps, sets, warned;
    } rows[] = {
        {"it does, and there is a daemon", true, true, true},
        {"it does not", true, false, false},
        {"there is no daemon", false, true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_write write;
        rig_up(&rig);
        gs_allocator_free(rig.alloc);
        const struct gs_allocator_config config = {
            .names = &rig.names, .node = "n1", .clock = &rig.clock, .mps = r->mps};
        rig.alloc = gs_allocator_new(&config);
        give_gpus(&rig, true, true, 0);
        give_pod(&rig, &(struct given_pod){"p", {8}, 0, .sets_mps = r->sets});
        row_equal(r->row, gs_allocator_next_write(rig.alloc, &write), r->warned);
        row_true(r->row, !r->warned || strstr(write.message, "CUDA_MPS_"));
        gs_allocator_free(rig.alloc);
    }
}

static void an_unclaimed_call_is_charged_until_the_kubelet_forgets_it(void **state)
{
    struct rig rig;
    struct gs_allocator_stats stats;
    uint64_t key;
    rig_up(&rig);
    assert_int_equal(allocate(&rig, 10, NULL, 0, &key, NULL), 0);
    const struct gs_observed_pod observed = {"ns", "static-n1", 10, &key, 1};
    for (int i = 0; i < 5; i++)
        gs_allocator_observe(rig.alloc, &observed, 1);
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.used_units[0], 10);
    for (int i = 0; i < 3; i++)
        gs_allocator_observe(rig.alloc, NULL, 0);
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.used_units[0], 0);
    gs_allocator_free(rig.alloc);
}

/* GPU 0 has 16 units, GPU 1 has 24. A call that nobody claims gets 10 of GPU 0; then a pod comes
 * that the extender put there. */
static void a_call_that_the_kubelet_does_not_name_makes_way_for_a_placed_pod(void **state)
{
    static const struct {
        const char *row;
        bool named; /* by the list of the pod's own call */
        uint32_t units;
        int gpu;
    } rows[] = {
        {"of a pod that was removed", false, 8, 0},
        {"of a pod that was removed, the whole GPU", false, 16, 0},
        {"of a static pod", true, 8, 1},
        {"of a static pod, beside it", true, 6, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        uint64_t key;
        rig_up(&rig);
        row_equal(r->row, allocate(&rig, 10, NULL, 0, &key, NULL), 0);
        const struct gs_observed_pod observed[] = {
            {"ns", "placed", 0, NULL, 0},
            {"ns", "static-n1", 10, &key, 1},
        };
        give_pod(&rig, &(struct given_pod){"placed", {r->units}, 0});
        row_equal(r->row, allocate(&rig, r->units, observed, r->named ? 2 : 1, NULL, NULL), r->gpu);
        gs_allocator_free(rig.alloc);
    }
}

static void a_pod_is_placed_once_it_has_units_of_a_gpu(void **state)
{
    static const struct {
        const char *row;
        struct given_pod pod;
        uint32_t placed, largest_share;
        gs_gpu_mask place;
    } rows[] = {
        {"bound by hand", {"p", {8}, -1}, 0, 0, 0},
        {"bound by an extender", {"p", {8}, 1}, 1, 0, 2},
        {"on a GPU that is not there", {"p", {8}, 7}, 1, 0, 0},
        {"runs", {"p", {4, 2}, 0, .phase = GS_PHASE_RUNNING}, 1, 6, 1},
        {"runs without a record", {"p", {8}, -1, .phase = GS_PHASE_RUNNING}, 1, 8, 0},
        {"has ended", {"p", {8}, 0, .phase = GS_PHASE_SUCCEEDED}, 0, 0, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_stats stats;
        struct gs_buf names = GS_BUF(64);
        rig_up(&rig);
        give_pod(&rig, &r->pod);
        gs_allocator_stats(rig.alloc, &stats);
        row_equal(r->row, stats.placed, r->placed);
        row_equal(r->row, stats.largest_share, r->largest_share);
        row_equal(r->row, stats.running, r->pod.phase == GS_PHASE_RUNNING);
        gs_allocator_name_placed(rig.alloc, 0, &names);
        row_text(r->row, names.len ? names.data : "", r->placed ? "ns/p" : "");
        gs_buf_release(&names);
        gs_allocator_name_placed(rig.alloc, 2, &names);
        row_text(r->row, names.len ? names.data : "", r->place == 2 ? "ns/p" : "");
        gs_buf_release(&names);
        row_equal(r->row, gs_allocator_who(rig.alloc, "ns", "q"), 0);
        uint64_t who = gs_allocator_who(rig.alloc, "ns", "p");
        row_equal(r->row, who != 0, r->pod.phase != GS_PHASE_SUCCEEDED);
        row_equal(r->row, gs_allocator_lives(rig.alloc, who), who != 0);
        gs_allocator_pod_gone(rig.alloc, "p");
        row_true(r->row, !gs_allocator_lives(rig.alloc, who));
        gs_allocator_free(rig.alloc);
    }
}

static void of_many_placed_pods_some_are_named(void **state)
{
    struct rig rig;
    struct gs_buf names = GS_BUF(64);
    rig_up(&rig);
    for (const char *name = "abcde"; *name; name++)
        give_pod(&rig, &(struct given_pod){(const char[2]){*name}, {1}, 0});
    gs_allocator_name_placed(rig.alloc, 0, &names);
    assert_string_equal(names.data, "ns/a, ns/b, ns/c and 2 more");
    gs_buf_release(&names);
    gs_allocator_free(rig.alloc);
}

/* GPU 0 after the pod was bound, or before a pod came without a bind. */
static void a_pod_is_given_another_gpu_than_one_that_went_bad(void **state)
{
    static const struct {
        const char *row;
        int recorded;
        bool unknown; /* no pod claims the call */
        bool healthy, schedulable, gone;
        uint32_t beside; /* units of a pod on GPU 1 */
        int gpu;
        const char *why;
    } rows[] = {
        {"gone", 0, false, false, true, true, 0, 1, NULL},
        {"gone, no room elsewhere", 0, false, false, true, true, 20, -1,
         "the GPU that this pod was bound to is gone and no GPU on this node has that much left"},
        {"unhealthy", 0, false, false, true, false, 0, 1, NULL},
        {"unhealthy, no room elsewhere", 0, false, false, true, false, 20, 0, NULL},
        {"cordoned after the bind", 0, false, true, false, false, 0, 0, NULL},
        {"cordoned, bound by hand", -1, false, true, false, false, 0, 1, NULL},
        {"cordoned, a static pod", -1, true, true, false, false, 0, 1, NULL},
        {"cordoned, no room elsewhere", -1, false, true, false, false, 20, -1,
         "no GPU on this node has that much left"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        struct gs_allocator_write write;
        rig_up(&rig);
        if (r->beside) {
            give_pod(&rig, &(struct given_pod){"beside", {r->beside}, 1});
            allocate(&rig, r->beside, NULL, 0, NULL, NULL);
            while (gs_allocator_next_write(rig.alloc, &write))
                gs_allocator_write_done(rig.alloc, write.number, true);
        }
        give_gpus(&rig, r->healthy, r->schedulable, r->gone);
        if (!r->unknown)
            give_pod(&rig, &(struct given_pod){"p", {8}, r->recorded});
        row_equal(r->row, allocate(&rig, 8, NULL, 0, NULL, &err), r->gpu);
        row_text(r->row, err.msg, r->why ? r->why : "");
        bool moved = r->gpu >= 0 && r->gpu != r->recorded && !r->unknown;
        expect_moved(&rig, r->row, moved ? "{\"p\":[1]}" : "{}");
        while (moved && gs_allocator_next_write(rig.alloc, &write)) {
            row_text(r->row, value_of(&write, rig.names.idx), "1");
            gs_allocator_write_done(rig.alloc, write.number, true);
            moved = false;
        }
        row_true(r->row, !moved);
        gs_allocator_free(rig.alloc);
    }
}

static void what_one_pod_is_refused_delays_no_other(void **state)
{
    static const int64_t pauses_ms[] = {500, 1000, 2000, 4000, 8000, 16000, 32000, 32000};
    struct rig rig;
    struct gs_allocator_write write;
    struct gs_allocator_stats stats;
    rig_up(&rig);
    for (const char *name = "ab"; *name; name++) {
        give_pod(&rig, &(struct given_pod){(const char[2]){*name}, {4}, 0});
        allocate(&rig, 4, NULL, 0, NULL, NULL);
    }
    assert_true(gs_allocator_write_due_ns(rig.alloc) == INT64_MAX);
    assert_true(gs_allocator_next_write(rig.alloc, &write));
    assert_string_equal(write.name, "a");
    gs_allocator_write_done(rig.alloc, write.number, false);
    assert_true(gs_allocator_next_write(rig.alloc, &write));
    assert_string_equal(write.name, "b");
    gs_allocator_write_done(rig.alloc, write.number, true);
    GS_FOR_EACH_ROW (pause_ms, pauses_ms) {
        gs_allocator_stats(rig.alloc, &stats);
        assert_int_equal(stats.writes_queued, 1);
        assert_int_equal(stats.writes_untried, 0);
        assert_int_equal(gs_allocator_write_due_ns(rig.alloc) - rig.now_ns,
                         *pause_ms * GS_NS_PER_MS);
        rig.now_ns += *pause_ms * GS_NS_PER_MS - 1;
        assert_false(gs_allocator_next_write(rig.alloc, &write));
        rig.now_ns++;
        assert_true(gs_allocator_next_write(rig.alloc, &write));
        gs_allocator_write_done(rig.alloc, write.number, false);
    }
    gs_allocator_free(rig.alloc);
}

/* Its mirror in the API comes after the kubelet asked for its memory. */
static void a_static_pod_of_two_gpus_is_told_why_it_never_starts(void **state)
{
    struct rig rig;
    struct gs_error err = {0};
    uint64_t key;
    rig_up(&rig);
    assert_int_equal(allocate(&rig, 8, NULL, 0, &key, NULL), 0);
    give_pod(&rig, &(struct given_pod){"static-n1", {8}, -1, .gpu_count = 2});
    const struct gs_observed_pod observed = {"ns", "static-n1", 8, &key, 1};
    assert_int_equal(start(&rig, 0, 8, &observed, 1, true, &err), GS_START_HELD);
    assert_non_null(strstr(err.msg, "a static pod always gets one"));
    assert_non_null(strstr(err.msg, "delete it"));
    gs_allocator_free(rig.alloc);
}

/* A pod on GPU 1 after its bind, or without one. */
static void what_its_owner_writes_moves_no_pod(void **state)
{
    static const struct {
        const char *row;
        struct given_pod edited;
        bool written; /* the record, anew */
        const char *moved;
    } rows[] = {
        {"nothing", {"p", {8}, 1, .assigned = true}, false, "{}"},
        {"another GPU", {"p", {8}, 0, .assigned = true}, true, "{\"p\":[1]}"},
        {"no record", {"p", {8}, -1}, true, "{\"p\":[1]}"},
        {"the JSON", {"p", {8}, 1, .assigned = true, .allocation = 1}, true, "{\"p\":[1]}"},
        {"the index, not the JSON",
         {"p", {8}, -1, .assigned = true, .allocation = 2},
         true,
         "{\"p\":[1]}"},
        {"gpu-count", {"p", {8}, 1, .assigned = true, .gpu_count = 2}, false, "{}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_stats stats;
        struct gs_allocator_write write;
        rig_up(&rig);
        give_pod(&rig, &(struct given_pod){"p", {8}, 1});
        allocate(&rig, 8, NULL, 0, NULL, NULL);
        while (gs_allocator_next_write(rig.alloc, &write))
            gs_allocator_write_done(rig.alloc, write.number, true);
        for (int again = 0; again < 2; again++) {
            give_pod(&rig, &r->edited);
            gs_allocator_stats(rig.alloc, &stats);
            row_equal(r->row, stats.used_units[0], 0);
            row_equal(r->row, stats.used_units[1], 8);
            expect_moved(&rig, r->row, r->moved);
            row_equal(r->row, gs_allocator_next_write(rig.alloc, &write), r->written);
            if (r->written) {
                row_text(r->row, value_of(&write, rig.names.idx), "1");
                row_text(r->row, value_of(&write, rig.names.assigned), "true");
                gs_allocator_write_done(rig.alloc, write.number, true);
            }
            give_pod(&rig, &r->edited); /* who insists is not fought for in every event */
            row_true(r->row, !gs_allocator_next_write(rig.alloc, &write));
            rig.now_ns += 3 * GS_NS_PER_S;
            gs_allocator_put_right(rig.alloc);
            row_equal(r->row, gs_allocator_next_write(rig.alloc, &write), r->written);
            if (r->written)
                gs_allocator_write_done(rig.alloc, write.number, true);
            rig.now_ns += 3 * GS_NS_PER_S;
        }
        gs_allocator_pod_gone(rig.alloc, "p");
        expect_moved(&rig, r->row, "{}");
        gs_allocator_free(rig.alloc);
    }
}

/* Its owner edits the label while it is being bound. */
static void the_record_decides_how_many_gpus_a_pod_is_given(void **state)
{
    static const struct {
        const char *row;
        struct given_pod given;
        gs_gpu_mask gpus;
        uint64_t used[2];
    } rows[] = {
        {"one, the label says two", {"p", {8}, 1, .gpu_count = 2}, 2, {0, 8}},
        {"two, the label says one", {"p", {8}, .gpus = 3, .gpu_count = 1}, 3, {4, 4}},
        {"two, the label is gone", {"p", {8}, .gpus = 3}, 3, {4, 4}},
        {"a record that cannot be", {"p", {7}, .gpus = 3}, 1, {7, 0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_stats stats;
        rig_up(&rig);
        give_pod(&rig, &r->given);
        row_equal(r->row, allocate(&rig, r->given.units[0], NULL, 0, NULL, NULL),
                  __builtin_ctzll(r->gpus));
        gs_allocator_stats(rig.alloc, &stats);
        for (int gpu = 0; gpu < 2; gpu++)
            row_equal(r->row, stats.used_units[gpu], r->used[gpu]);
        gs_allocator_free(rig.alloc);
    }
}

/* Before it was asked for its memory, too: the first record counts. */
static void a_record_that_is_edited_before_allocate_moves_no_pod(void **state)
{
    struct rig rig;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, 1});
    give_pod(&rig, &(struct given_pod){"p", {8}, 0});
    assert_int_equal(allocate(&rig, 8, NULL, 0, NULL, NULL), 1);
    gs_allocator_free(rig.alloc);
}

/* The node says where it is before its container starts. */
/* A tenant that names the node himself says that his pod was given its GPU already, a full one. */
static void a_record_that_says_assigned_still_needs_room(void **state)
{
    static const struct {
        const char *row;
        uint32_t first, second; /* units of pods that run on GPU 0 and 1 */
        uint32_t units[3];
        int gpu; /* that he gets; -1: none */
    } rows[] = {
        {"there is room where it says", 8, 0, {8}, 0},
        {"there is room elsewhere", 12, 0, {8}, 1},
        {"of several containers", 12, 0, {4, 4}, 1},
        {"there is none", 12, 20, {8}, -1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        rig_up(&rig);
        give_pod(&rig, &(struct given_pod){
                           "a", {r->first}, 0, .phase = GS_PHASE_RUNNING, .assigned = true});
        if (r->second)
            give_pod(&rig, &(struct given_pod){
                               "b", {r->second}, 1, .phase = GS_PHASE_RUNNING, .assigned = true});
        give_pod(&rig,
                 &(struct given_pod){"forged", {r->units[0], r->units[1]}, 0, .assigned = true});
        const struct gs_observed_pod bare = {"ns", "forged", 0, NULL, 0};
        for (int i = 0; i < 3 && r->units[i]; i++)
            row_equal(r->row, allocate(&rig, r->units[i], &bare, 1, NULL, &err), r->gpu);
        gs_allocator_free(rig.alloc);
    }
}

/* Each has two containers; the second call was answered in the first pod's name. */
static void what_the_kubelet_has_confirmed_is_exchanged_no_more(void **state)
{
    struct rig rig;
    struct gs_allocator_write write;
    uint64_t first, second;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"a", {4, 4}, 0});
    give_pod(&rig, &(struct given_pod){"b", {4, 4}, 1});
    assert_int_equal(allocate(&rig, 4, NULL, 0, &first, NULL), 0);
    assert_int_equal(allocate(&rig, 4, NULL, 0, &second, NULL), 0);
    while (gs_allocator_next_write(rig.alloc, &write))
        gs_allocator_write_done(rig.alloc, write.number, true);
    const struct gs_observed_pod observed[] = {{"ns", "a", 4, &first, 1},
                                               {"ns", "b", 4, &second, 1}};
    gs_allocator_observe(rig.alloc, observed, 2);
    expect_moved(&rig, "the second call alone changes its owner", "{\"b\":[0]}");
    gs_allocator_free(rig.alloc);
}

static void a_start_waits_for_the_nodes_word(void **state)
{
    struct rig rig;
    struct gs_error err = {0};
    uint64_t key;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, -1});
    allocate(&rig, 8, NULL, 0, &key, NULL);
    const struct gs_observed_pod observed = {"ns", "p", 8, &key, 1};
    assert_int_equal(start(&rig, 0, 8, &observed, 1, false, &err), GS_START_WRITE_FIRST);
    char texts[64][24];
    const char *ids[64];
    make_ids(0, 8, texts, ids);
    const struct gs_start_request again = {.ids = ids, .id_count = 8, .write_tried = true};
    assert_int_equal(gs_allocator_start(rig.alloc, &again, &err), GS_START_OK); /* not for ever */
    expect_moved(&rig, "by hand", "{\"p\":[0]}");
    assert_int_equal(start(&rig, 0, 8, &observed, 1, false, &err), GS_START_OK);
    gs_allocator_free(rig.alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_believed_beside_those_of_older_pods),
        cmocka_unit_test(exchanged_pods_get_each_others_records),
        cmocka_unit_test(a_pod_without_a_true_record_gets_the_tightest_gpu),
        cmocka_unit_test(a_quick_list_brings_nobody_back),
        cmocka_unit_test(pods_that_a_quick_list_does_not_name_are_gone),
        cmocka_unit_test(a_pod_that_sets_its_devices_itself_is_warned_of),
        cmocka_unit_test(a_pod_that_changes_what_mps_is_told_is_warned_of),
        cmocka_unit_test(an_unclaimed_call_is_charged_until_the_kubelet_forgets_it),
        cmocka_unit_test(a_pod_is_placed_once_it_has_units_of_a_gpu),
        cmocka_unit_test(of_many_placed_pods_some_are_named),
        cmocka_unit_test(a_call_that_the_kubelet_does_not_name_makes_way_for_a_placed_pod),
        cmocka_unit_test(a_pod_is_given_another_gpu_than_one_that_went_bad),
        cmocka_unit_test(what_one_pod_is_refused_delays_no_other),
        cmocka_unit_test(what_its_owner_writes_moves_no_pod),
        cmocka_unit_test(the_record_decides_how_many_gpus_a_pod_is_given),
        cmocka_unit_test(a_record_that_is_edited_before_allocate_moves_no_pod),
        cmocka_unit_test(a_record_that_says_assigned_still_needs_room),
        cmocka_unit_test(what_the_kubelet_has_confirmed_is_exchanged_no_more),
        cmocka_unit_test(a_start_waits_for_the_nodes_word),
        cmocka_unit_test(a_static_pod_of_two_gpus_is_told_why_it_never_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
