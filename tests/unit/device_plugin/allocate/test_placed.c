/* SPDX-License-Identifier: Apache-2.0 */
#include "allocate_rig.h"
#include "rows.h"

#define HASH "0123456789abcdef0123456789abcdef"

struct seen {
    struct gs_placed pod;
    uint32_t count;
};

static void note(void *ctx, const struct gs_placed *pod)
{
    struct seen *seen = ctx;
    seen->pod = *pod;
    seen->count++;
}

static struct seen look(const struct rig *rig)
{
    struct seen seen = {0};
    gs_allocator_each_placed(rig->alloc, note, &seen);
    return seen;
}

static void a_bound_pod_is_told_with_its_share(void **state)
{
    static const struct {
        const char *row;
        struct given_pod given;
        gs_gpu_mask gpus; /* 0: it is not told */
        uint32_t units;
        const char *cgroup_uid;
        bool runs;
    } rows[] = {
        {"as its bind says", {"p", {8}, 1}, 2, 8, "p", false},
        {"no place yet", {"p", {8}, -1}, 0, 0, "", false},
        {"a static pod", {"p", {8}, 0, .static_uid = HASH}, 1, 8, HASH, false},
        {"running when it was first seen",
         {"p", {8}, 0, .phase = GS_PHASE_RUNNING},
         1,
         8,
         "p",
         true},
        {"it sets MPS' variables itself", {"p", {8}, 0, .sets_mps = true}, 1, 8, "p", false},
        {"it requires its limit",
         {"p", {8}, 0, .qos = GS_QOS_BURSTABLE, .enforce_required = true},
         1,
         8,
         "p",
         false},
        {"ended", {"p", {8}, 0, .phase = GS_PHASE_SUCCEEDED}, 0, 0, "", false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig);
        give_pod(&rig, &r->given);
        struct seen seen = look(&rig);
        row_equal(r->row, seen.count, r->gpus != 0);
        if (seen.count) {
            row_true(r->row, seen.pod.gpus == r->gpus);
            row_equal(r->row, seen.pod.units, r->units);
            row_text(r->row, seen.pod.cgroup_uid, r->cgroup_uid);
            row_equal(r->row, seen.pod.runs, r->runs);
            row_equal(r->row, seen.pod.sets_mps, r->given.sets_mps);
            row_equal(r->row, seen.pod.qos, r->given.qos);
            row_equal(r->row, seen.pod.enforce_required, r->given.enforce_required);
        }
        gs_allocator_free(rig.alloc);
    }
}

static void containers_that_run_at_a_time_are_counted(void **state)
{
    static const struct {
        const char *row;
        struct given_pod given;
        uint32_t containers;
    } rows[] = {
        {"one", {"p", {8}, 0}, 1},
        {"an init container before two", {"p", {4, 3, 1}, 0, .inits = 1}, 2},
        {"init containers alone", {"p", {4, 4}, 0, .inits = 2}, 1},
        {"a sidecar beside an init container and one",
         {"p", {2, 2, 2}, 0, .inits = 1, .sidecars = 1},
         2},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig);
        give_pod(&rig, &r->given);
        row_equal(r->row, look(&rig).pod.containers, r->containers);
        gs_allocator_free(rig.alloc);
    }
}

/* If the kubelet's checkpoint says that an earlier run answered it. */
static void a_pod_of_the_first_list_may_have_begun(void **state)
{
    struct rig rig;
    const struct gs_given given = {"p", 1, 8, GS_GPU_BIT(0)};
    rig_up(&rig);
    gs_allocator_list_begin(rig.alloc);
    give_pod(&rig, &(struct given_pod){"p", {8}, 0});
    gs_allocator_list_end(rig.alloc);
    assert_false(look(&rig).pod.runs);
    gs_allocator_observe(rig.alloc, &given, 1, false);
    assert_true(look(&rig).pod.runs);
    gs_allocator_pod_gone(rig.alloc, "p");
    give_pod(&rig, &(struct given_pod){"q", {8}, 0});
    assert_false(look(&rig).pod.runs);
    gs_allocator_free(rig.alloc);
}

static void a_start_names_its_pod(void **state)
{
    struct rig rig;
    struct gs_placed pod;
    uint64_t key;
    char texts[64][24];
    const char *ids[64];
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, 0});
    assert_int_equal(allocate(&rig, 8, &key, NULL), 0);
    make_ids(0, 8, texts, ids);
    const struct gs_given mine = {"p", key, 8, 1}, other = {"q", key, 8, 1};
    const struct {
        const char *row;
        struct gs_start_request request;
        const struct gs_given *given;
        bool known;
    } rows[] = {
        {"as it was answered", {ids, 8}, NULL, true},
        {"the kubelet names it", {ids, 8}, &mine, true},
        {"ids that nobody knows", {ids + 1, 7}, NULL, false},
        {"another one is named", {ids, 8}, &other, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        if (r->given)
            gs_allocator_observe(rig.alloc, r->given, 1, false);
        gs_allocator_starting(rig.alloc, &r->request, 0, &pod);
        row_equal(r->row, pod.uid != NULL, r->known);
        if (r->known)
            row_text(r->row, pod.name, "p");
    }
    gs_allocator_free(rig.alloc);
}

/* A tenant's own mirror of it, with a small share. */
static void a_static_pod_has_one_share(void **state)
{
    struct rig rig;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, 0, .static_uid = HASH});
    give_pod(&rig,
             &(struct given_pod){"forged", {1}, 0, .static_uid = HASH, .phase = GS_PHASE_RUNNING});
    const struct seen seen = look(&rig);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.pod.name, "p");
    gs_allocator_free(rig.alloc);
}

static void an_owner_is_told_too(void **state)
{
    static const struct {
        const char *row;
        struct given_pod pod;
        const char *cgroup_uid;
        int told;
    } rows[] = {
        {"a ReplicaSet's", {"p", {8}, 0, .replica_set = "web-7f"}, "p", 2},
        {"nobody's", {"p", {8}, 0}, "p", 1},
        {"its node's", {"p", {8}, 0, .replica_set = "n", .static_uid = HASH}, HASH, 1},
        {"not its cgroup's name", {"p", {8}, 0, .static_uid = HASH}, "p", 0},
        {"another's cgroup", {"p", {8}, 0, .replica_set = "web-7f"}, "q", 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_write write;
        rig_up(&rig);
        give_pod(&rig, &r->pod);
        gs_allocator_warn(rig.alloc, r->cgroup_uid, true, "Why", "because");
        gs_allocator_warn(rig.alloc, r->cgroup_uid, true, "Why", "again");
        gs_allocator_pod_gone(rig.alloc, "p"); /* they are told all the same */
        for (int i = 0; i < r->told; i++) {
            row_true(r->row, gs_allocator_next_write(rig.alloc, false, &write));
            row_true(r->row, write.event && write.warning);
            row_text(r->row, write.ns, "ns");
            row_text(r->row, write.name, "p");
            row_text(r->row, write.reason, "Why");
            row_text(r->row, write.message, i ? "pod p because" : "because");
            row_text(r->row, write.about.api, i ? "apps/v1" : "v1");
            row_text(r->row, write.about.kind, i ? "ReplicaSet" : "Pod");
            row_text(r->row, write.about.name, i ? "web-7f" : "p");
            row_text(r->row, write.about.uid, i ? "web-7f" : "p");
            gs_allocator_write_done(rig.alloc, write.number, true);
        }
        row_true(r->row, !gs_allocator_next_write(rig.alloc, false, &write));
        gs_allocator_free(rig.alloc);
    }
}

/* Also before it is known where the pods are; one that is refused keeps no pod's waiting. */
static void a_node_is_told(void **state)
{
    struct rig rig;
    struct gs_allocator_write write;
    struct gs_allocator_stats stats;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {8}, 0, .phase = GS_PHASE_RUNNING}); /* ASSIGNED */
    gs_allocator_tell_node(rig.alloc, true, "Why", "because");
    gs_allocator_warn(rig.alloc, "p", false, "Why", "too");
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.node_events, 1);
    assert_int_equal(stats.writes_queued, 3);
    assert_true(gs_allocator_next_write(rig.alloc, true, &write));
    assert_true(write.event && write.warning);
    assert_string_equal(write.ns, "");
    assert_string_equal(write.message, "because");
    assert_string_equal(write.about.kind, "Node");
    assert_string_equal(write.about.name, "n1");
    assert_string_equal(write.about.uid, "n1");
    gs_allocator_write_done(rig.alloc, write.number, false);
    assert_true(gs_allocator_next_write(rig.alloc, true, &write));
    assert_string_equal(write.message, "too");
    gs_allocator_free(rig.alloc);
}

static void a_pod_is_placed_once_it_has_units_of_a_gpu(void **state)
{
    static const struct {
        const char *row;
        struct given_pod pod;
        uint32_t placed;
        gs_gpu_mask place;
    } rows[] = {
        {"bound by hand", {"p", {8}, -1}, 0, 0},
        {"bound by an extender", {"p", {8}, 1}, 1, 2},
        {"on two", {"p", {8}, 0, .gpus = 3}, 1, 2},
        {"on a GPU that is not there", {"p", {8}, 7}, 1, 0},
        {"runs", {"p", {4, 2}, 0, .phase = GS_PHASE_RUNNING}, 1, 1},
        {"runs without a record", {"p", {8}, -1, .phase = GS_PHASE_RUNNING}, 1, 0},
        {"has ended", {"p", {8}, 0, .phase = GS_PHASE_SUCCEEDED}, 0, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_stats stats;
        struct gs_buf names = GS_BUF(64);
        rig_up(&rig);
        give_pod(&rig, &r->pod);
        gs_allocator_stats(rig.alloc, &stats);
        row_equal(r->row, stats.placed, r->placed);
        gs_allocator_name_placed(rig.alloc, 0, &names);
        row_text(r->row, names.len ? names.data : "", r->placed ? "ns/p" : "");
        gs_buf_release(&names);
        gs_allocator_name_placed(rig.alloc, 2, &names);
        row_text(r->row, names.len ? names.data : "", r->place == 2 ? "ns/p" : "");
        gs_buf_release(&names);
        gs_allocator_free(rig.alloc);
    }
}

static void of_many_placed_pods_some_are_named(void **state)
{
    struct rig rig;
    struct gs_buf names = GS_BUF(64);
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"a", {1}, 0, .ns = "other", .uid = "z"});
    for (const char *name = "abc"; *name; name++)
        give_pod(&rig, &(struct given_pod){(const char[2]){*name}, {1}, 0});
    gs_allocator_name_placed(rig.alloc, 0, &names);
    assert_string_equal(names.data, "other/a, ns/a, ns/b and 1 more");
    gs_buf_release(&names);
    gs_allocator_free(rig.alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bound_pod_is_told_with_its_share),
        cmocka_unit_test(containers_that_run_at_a_time_are_counted),
        cmocka_unit_test(a_pod_of_the_first_list_may_have_begun),
        cmocka_unit_test(a_start_names_its_pod),
        cmocka_unit_test(a_static_pod_has_one_share),
        cmocka_unit_test(an_owner_is_told_too),
        cmocka_unit_test(a_node_is_told),
        cmocka_unit_test(a_pod_is_placed_once_it_has_units_of_a_gpu),
        cmocka_unit_test(of_many_placed_pods_some_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
