/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that are removed while others wait for their memory: of a force-deleted pod the API knows
 * nothing any more while the kubelet, its list, the watch or the quick list still may. Both GPUs
 * are full, so that whoever is counted wrongly fails the pod that the extender put in the other's
 * place.
 */
#include "allocate_rig.h"
#include "rows.h"

enum { SIZE = 16, OTHER = 24 };

/* "old" holds all of GPU 0, and "other" all of GPU 1. *ret_key: of old's call, which is number 0;
 * other's is number 1. */
static void fill_node(struct rig *rig, const char *old, uint64_t *ret_key)
{
    rig_up(rig);
    give_pod(rig, &(struct given_pod){old, {SIZE}, 0, .uid = "uid-old"});
    assert_int_equal(allocate(rig, SIZE, NULL, 0, ret_key, NULL), 0);
    give_pod(rig, &(struct given_pod){"other", {OTHER}, 1});
    assert_int_equal(allocate(rig, OTHER, NULL, 0, NULL, NULL), 1);
}

static uint64_t used(const struct rig *rig, int gpu)
{
    struct gs_allocator_stats stats;
    gs_allocator_stats(rig->alloc, &stats);
    return stats.used_units[gpu];
}

/* The watch still shows the pod whose place the next one was given. */
static void without_everybodys_word_a_placed_pod_waits_at_its_start(void **state)
{
    static const struct {
        const char *row;
        bool kubelet;
        enum gs_api_outcome api;
        int recorded, gpu;
    } rows[] = {
        {"the API does not answer", true, GS_API_TIMEOUT, 0, 0},
        {"the kubelet does not answer", false, GS_API_ANSWERED, 0, 0},
        {"nobody answers", false, GS_API_TIMEOUT, 0, 0},
        {"all say that it is full", true, GS_API_ANSWERED, 0, -1},
        {"the extender did not place it", true, GS_API_TIMEOUT, -1, -1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        uint64_t key;
        fill_node(&rig, "old", NULL);
        give_pod(&rig, &(struct given_pod){"next", {SIZE}, r->recorded});
        const struct gs_observed_pod admitted[] = {{"ns", "other", OTHER, NULL, 0},
                                                   {"ns", "next", 0, NULL, 0}};
        row_equal(r->row,
                  allocate_told(&rig, SIZE, r->kubelet ? admitted : NULL, r->kubelet ? 2 : 0,
                                r->api, &key, &err),
                  r->gpu);
        if (r->gpu < 0) {
            row_text(r->row, err.msg, "no GPU on this node has that much left");
            gs_allocator_free(rig.alloc);
            continue;
        }
        const struct gs_observed_pod observed = {"ns", "next", SIZE, &key, 1};
        row_equal(r->row, start(&rig, 2, SIZE, &observed, 1, false, &err), GS_START_LIST_FIRST);
        row_equal(r->row, start(&rig, 2, SIZE, &observed, 1, true, &err), GS_START_HELD);
        gs_allocator_pod_gone(rig.alloc, "uid-old");
        row_equal(r->row, start(&rig, 2, SIZE, &observed, 1, false, &err), GS_START_OK);
        row_equal(r->row, used(&rig, 0), SIZE);
        gs_allocator_free(rig.alloc);
    }
}

/* The pod that the kubelet takes in is not known yet, nor that the old one is gone. */
static void a_patient_caller_asks_again_before_a_pod_fails(void **state)
{
    struct rig rig;
    struct gs_allocator_stats stats;
    struct gs_allocate_answer answer;
    fill_node(&rig, "old", NULL);
    const char *ids[SIZE];
    char texts[SIZE][24];
    make_ids(9, SIZE, texts, ids);
    const struct gs_observed_pod observed[] = {{"ns", "other", OTHER, NULL, 0},
                                               {"ns", "next", 0, NULL, 0}};
    struct gs_allocate_request request = {.ids = ids,
                                          .id_count = SIZE,
                                          .observed = observed,
                                          .observed_count = 2,
                                          .api = GS_API_TIMEOUT,
                                          .patient = true};
    for (int i = 0; i < 2; i++)
        assert_int_equal(gs_allocator_allocate(rig.alloc, &request, &answer, NULL),
                         GS_ALLOCATE_LIST_FIRST);
    request.patient = false;
    assert_int_equal(gs_allocator_allocate(rig.alloc, &request, &answer, NULL),
                     GS_ALLOCATE_NO_ROOM);
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.no_room, 1);
    request.patient = true;
    request.api = GS_API_ANSWERED;
    assert_int_equal(gs_allocator_allocate(rig.alloc, &request, &answer, NULL),
                     GS_ALLOCATE_NO_ROOM);
    gs_allocator_free(rig.alloc);
}

static void news_of_a_late_watch_save_nobody_from_a_quick_list(void **state)
{
    struct rig rig;
    fill_node(&rig, "old", NULL);
    gs_allocator_quick_begin(rig.alloc);
    give_pod(&rig, &(struct given_pod){"old", {SIZE}, 0, .uid = "uid-old", .revision = 900});
    gs_allocator_quick_pods(rig.alloc);
    give_pod(&rig, &(struct given_pod){"other", {OTHER}, 1, .revision = 901});
    give_pod(&rig, &(struct given_pod){"next", {SIZE}, 0, .revision = 902});
    gs_allocator_quick_end(rig.alloc);
    const struct gs_observed_pod observed[] = {{"ns", "next", 0, NULL, 0}};
    assert_int_equal(allocate(&rig, SIZE, observed, 1, NULL, NULL), 0);
    assert_int_equal(used(&rig, 1), OTHER);
    gs_allocator_free(rig.alloc);
}

/* Kubelet 1.20 allocates anew for a pod that was removed while its container started, perhaps while
 * it takes in the next one; or the kubelet's list did not come, and the order of binds misled. */
static void a_turn_that_was_taken_for_a_removed_pod_comes_again(void **state)
{
    static const struct {
        const char *row;
        uint32_t units[3]; /* of the pod taken in */
        uint32_t calls[4];
        bool listed[4];  /* the kubelet's list has the devices of the calls before */
        bool silent;     /* the kubelet, at the first call */
        uint32_t stored; /* units that it lists in the end */
    } rows[] = {
        {"before its own", {SIZE}, {SIZE, SIZE}, {false, false}, false, 0},
        {"before its own, no list", {SIZE}, {SIZE, SIZE}, {false, false}, true, 0},
        {"before its first of two", {8, 8}, {8, 8, 8}, {false, false, true}, false, 8},
        {"between its two", {8, 8}, {8, 8, 8}, {false, true, true}, false, 8},
        {"before its second of two", {6, 10}, {6, 10, 10}, {false, true, true}, false, 6},
        {"before the first of unlike ones", {6, 10}, {6, 6, 10}, {false, false, true}, false, 6},
        {"twice before its own", {SIZE}, {SIZE, SIZE, SIZE}, {false}, false, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        uint64_t key = 0, first = 0;
        fill_node(&rig, "old", NULL);
        gs_allocator_pod_gone(rig.alloc, "uid-old");
        give_pod(&rig,
                 &(struct given_pod){"next", {r->units[0], r->units[1]}, 0, .uid = "uid-next"});
        for (int i = 0; i < 4 && r->calls[i]; i++) {
            const struct gs_observed_pod observed = {"ns", "next", r->listed[i] ? r->stored : 0,
                                                     &first, r->listed[i] ? 1 : 0};
            bool silent = r->silent && i == 0;
            row_equal(
                r->row,
                allocate(&rig, r->calls[i], silent ? NULL : &observed, silent ? 0 : 1, &key, &err),
                0);
            if (i == 0)
                first = key;
        }
        row_equal(r->row, used(&rig, 0), r->units[0] + r->units[1]);
        const struct gs_observed_pod observed = {"ns", "next", r->units[0], &key, 1};
        row_equal(r->row, start(&rig, rig.calls - 1, r->units[0], &observed, 1, false, &err),
                  GS_START_OK);
        const struct gs_observed_pod whole = {"ns", "next", r->units[0] + r->units[1], &key, 1};
        row_equal(r->row, allocate(&rig, r->calls[0], &whole, 1, NULL, &err), -1);
        gs_allocator_pod_gone(rig.alloc, "uid-next");
        row_equal(r->row, used(&rig, 0), 0);
        gs_allocator_free(rig.alloc);
    }
}

/* The kubelet died between our last answer and its note of it; it lists sidecars, not init
 * containers that end. Best fit would be GPU 0. */
static void a_turn_comes_again_beside_a_sidecar(void **state)
{
    for (int restarted = 0; restarted < 2; restarted++) {
        struct rig rig;
        struct gs_allocator_stats stats;
        uint64_t keys[2];
        const struct given_pod given = {"p", {4, 4, 4}, 1, .sidecars = 1};
        rig_up(&rig);
        gs_allocator_list_begin(rig.alloc);
        give_pod(&rig, &given);
        gs_allocator_list_end(rig.alloc);
        const struct gs_observed_pod observed[] = {{"ns", "p", 0, NULL, 0},
                                                   {"ns", "p", 8, keys, 2}};
        for (int i = 0; i < 3; i++)
            assert_int_equal(allocate(&rig, 4, observed, 1, i < 2 ? &keys[i] : NULL, NULL), 1);
        if (restarted) {
            gs_allocator_free(rig.alloc);
            rig_up(&rig);
            rig.calls = 3;
            gs_allocator_list_begin(rig.alloc);
            give_pod(&rig, &given);
            gs_allocator_list_end(rig.alloc);
            gs_allocator_observe(rig.alloc, &observed[1], 1);
            gs_allocator_stats(rig.alloc, &stats);
            assert_int_equal(stats.waiting, 1);
        }
        assert_int_equal(allocate(&rig, 4, &observed[1], 1, NULL, NULL), 1);
        assert_int_equal(used(&rig, 1), 12);
        gs_allocator_free(rig.alloc);
    }
}

/* The first turn was a static pod's, of which the API knows nothing yet. */
static void the_pod_that_a_turn_came_again_for_stays_whole(void **state)
{
    struct rig rig;
    struct gs_allocator_stats stats;
    uint64_t keys[2];
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"next", {SIZE / 2}, 0});
    assert_int_equal(allocate(&rig, SIZE / 2, NULL, 0, &keys[0], NULL), 0);
    const struct gs_observed_pod observed[] = {{"ns", "next", 0, NULL, 0},
                                               {"ns", "next", SIZE / 2, &keys[1], 1},
                                               {"ns", "static-n1", SIZE / 2, &keys[0], 1}};
    assert_int_equal(allocate(&rig, SIZE / 2, observed, 1, &keys[1], NULL), 0);
    gs_allocator_observe(rig.alloc, observed + 1, 2);
    gs_allocator_stats(rig.alloc, &stats);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.used_units[0], SIZE);
    gs_allocator_free(rig.alloc);
}

/* The kubelet's list has names, no UIDs: what it says of a StatefulSet's pod may be said of the one
 * that was deleted. */
static void a_pod_is_not_taken_for_a_deleted_one_of_its_name(void **state)
{
    static const struct {
        const char *row;
        bool confirmed; /* the kubelet had named the old one's ids before it was deleted */
        bool restarted; /* the plugin, meanwhile */
        bool late;      /* it names them once more when the new one is known */
        bool silent;    /* and does not answer at the new one's call */
    } rows[] = {
        {"a list in time", false, false, false, false},
        {"a late list", false, false, true, false},
        {"a late list, known ids", true, false, true, false},
        {"a late list, another plugin", true, true, true, false},
        {"a late list, then none", false, false, true, true},
        {"a late list, known ids, then none", true, false, true, true},
        {"a late list, another plugin, then none", true, true, true, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        uint64_t key, next;
        struct gs_error err = {0};
        fill_node(&rig, "web-0", &key);
        const struct gs_observed_pod old[] = {{"ns", "web-0", SIZE, &key, 1},
                                              {"ns", "other", OTHER, NULL, 0}};
        if (r->restarted) {
            gs_allocator_free(rig.alloc);
            rig_up(&rig);
            gs_allocator_list_begin(rig.alloc);
            give_pod(&rig, &(struct given_pod){"web-0", {SIZE}, 0, .uid = "uid-old"});
            give_pod(&rig, &(struct given_pod){"other", {OTHER}, 1});
            gs_allocator_list_end(rig.alloc);
            rig.calls = 2;
        }
        if (r->confirmed)
            gs_allocator_observe(rig.alloc, old, 2);
        gs_allocator_pod_gone(rig.alloc, "uid-old");
        give_pod(&rig, &(struct given_pod){"web-0", {SIZE}, 0, .uid = "uid-new"});
        if (r->late)
            gs_allocator_observe(rig.alloc, old, 2);
        const struct gs_observed_pod now[] = {{"ns", "web-0", 0, NULL, 0},
                                              {"ns", "other", OTHER, NULL, 0}};
        row_equal(r->row,
                  allocate(&rig, SIZE, r->silent ? NULL : now, r->silent ? 0 : 2, &next, &err), 0);
        const struct gs_observed_pod held = {"ns", "web-0", SIZE, &next, 1};
        row_equal(r->row, start(&rig, 2, SIZE, &held, 1, true, &err), GS_START_OK);
        row_equal(r->row, used(&rig, 0), SIZE);
        gs_allocator_free(rig.alloc);
    }
}

/* The kubelet still lists the deleted pod by name and devices, while another of that name waits:
 * its turn has not come, although it begins like the calls that were answered, of which the first
 * was a removed pod's. */
static void a_turn_is_not_taken_by_the_name_of_a_deleted_pod(void **state)
{
    static const uint32_t calls[] = {2, 2, 2, SIZE};
    struct rig rig;
    struct gs_error err = {0};
    uint64_t old, key;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"web-0", {4}, 1, .uid = "uid-old"});
    assert_int_equal(allocate(&rig, 4, NULL, 0, &old, NULL), 1);
    const struct gs_observed_pod observed[] = {{"ns", "web-0", 4, &old, 1},
                                               {"ns", "next", 0, NULL, 0}};
    gs_allocator_observe(rig.alloc, observed, 1);
    give_pod(&rig, &(struct given_pod){"next", {2, 2, SIZE}, 0, .inits = 2});
    gs_allocator_pod_gone(rig.alloc, "uid-old");
    give_pod(&rig, &(struct given_pod){"web-0", {2, 2, 2}, 1, .inits = 2, .uid = "uid-new"});
    for (int i = 0; i < 4; i++)
        assert_int_equal(allocate(&rig, calls[i], observed, 2, &key, &err), 0);
    const struct gs_observed_pod whole = {"ns", "next", SIZE, &key, 1};
    assert_int_equal(start(&rig, rig.calls - 1, SIZE, &whole, 1, false, &err), GS_START_OK);
    assert_int_equal(used(&rig, 0), SIZE);
    assert_int_equal(used(&rig, 1), 2);
    gs_allocator_free(rig.alloc);
}

/* A pod of two containers that failed with its second; then one of its name, of the same shape. */
static void a_name_that_comes_again_begins_anew(void **state)
{
    struct rig rig;
    uint64_t key;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"web-0", {4, 4}, 0, .uid = "uid-old"});
    const struct gs_observed_pod empty = {"ns", "web-0", 0, NULL, 0};
    assert_int_equal(allocate(&rig, 4, &empty, 1, &key, NULL), 0);
    gs_allocator_pod_gone(rig.alloc, "uid-old");
    give_pod(&rig, &(struct given_pod){"web-0", {4, 4}, 1, .uid = "uid-new"});
    assert_int_equal(allocate(&rig, 4, &empty, 1, &key, NULL), 1);
    const struct gs_observed_pod begun = {"ns", "web-0", 4, &key, 1};
    assert_int_equal(allocate(&rig, 4, &begun, 1, NULL, NULL), 1);
    assert_int_equal(used(&rig, 1), 8);
    assert_int_equal(used(&rig, 0), 0);
    gs_allocator_free(rig.alloc);
}

/* The watch is ahead of the kubelet, which has not yet heard that the pod is gone. */
static void what_a_late_kubelet_says_of_a_deleted_pod_is_not_charged(void **state)
{
    struct rig rig;
    uint64_t key;
    fill_node(&rig, "old", &key);
    gs_allocator_pod_gone(rig.alloc, "uid-old");
    const struct gs_observed_pod late[] = {
        {"ns", "old", SIZE, &key, 1}, {"ns", "other", OTHER, NULL, 0}, {"ns", "next", 0, NULL, 0}};
    gs_allocator_observe(rig.alloc, late, 2);
    assert_int_equal(used(&rig, 0), 0);
    give_pod(&rig, &(struct given_pod){"next", {SIZE}, 0});
    assert_int_equal(allocate(&rig, SIZE, late, 3, NULL, NULL), 0);
    gs_allocator_free(rig.alloc);
}

/* A pod that was bound while the API server was away is given what fits, starts and runs. Until the
 * list that tells of it is whole, a pod that has ended is known there, or one that was bound there.
 */
static void a_stranger_that_runs_is_where_it_was_given_a_gpu(void **state)
{
    static const struct {
        const char *row;
        uint32_t ended, bound; /* units of pods on GPU 0, of the first list and of the second */
        bool late;             /* its first state is from before it ran */
        uint64_t used;
    } rows[] = {
        {"it is alone", 0, 0, false, 6},
        {"another ended there", 10, 0, false, 6},
        {"another ended there, one was bound", 9, 8, false, 14},
        {"another was bound there", 0, 12, false, 18},
        {"that it runs is told later", 9, 8, true, 14},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        struct gs_allocator_stats stats;
        uint64_t key;
        rig_up(&rig);
        gs_allocator_list_begin(rig.alloc);
        if (r->ended)
            give_pod(&rig, &(struct given_pod){"ended", {r->ended}, 0, .assigned = true});
        gs_allocator_list_end(rig.alloc);
        const struct gs_observed_pod bare = {"ns", "p", 0, NULL, 0};
        row_equal(r->row, allocate_told(&rig, 6, &bare, 1, GS_API_TIMEOUT, &key, &err), 0);
        const struct gs_observed_pod observed = {"ns", "p", 6, &key, 1};
        row_equal(r->row, start(&rig, 0, 6, &observed, 1, true, &err), GS_START_OK);
        gs_allocator_list_begin(rig.alloc);
        if (r->bound)
            give_pod(&rig, &(struct given_pod){"bound", {r->bound}, 0});
        give_pod(&rig, &(struct given_pod){
                           "p", {6}, 1, .phase = r->late ? GS_PHASE_PENDING : GS_PHASE_RUNNING});
        gs_allocator_list_end(rig.alloc);
        give_pod(&rig, &(struct given_pod){"p", {6}, 1, .phase = GS_PHASE_RUNNING});
        gs_allocator_stats(rig.alloc, &stats);
        row_equal(r->row, stats.used_units[0], r->used);
        row_equal(r->row, stats.used_units[1], 0);
        gs_allocator_free(rig.alloc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_everybodys_word_a_placed_pod_waits_at_its_start),
        cmocka_unit_test(a_patient_caller_asks_again_before_a_pod_fails),
        cmocka_unit_test(news_of_a_late_watch_save_nobody_from_a_quick_list),
        cmocka_unit_test(a_turn_that_was_taken_for_a_removed_pod_comes_again),
        cmocka_unit_test(a_turn_comes_again_beside_a_sidecar),
        cmocka_unit_test(the_pod_that_a_turn_came_again_for_stays_whole),
        cmocka_unit_test(a_pod_is_not_taken_for_a_deleted_one_of_its_name),
        cmocka_unit_test(a_turn_is_not_taken_by_the_name_of_a_deleted_pod),
        cmocka_unit_test(a_name_that_comes_again_begins_anew),
        cmocka_unit_test(what_a_late_kubelet_says_of_a_deleted_pod_is_not_charged),
        cmocka_unit_test(a_stranger_that_runs_is_where_it_was_given_a_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
