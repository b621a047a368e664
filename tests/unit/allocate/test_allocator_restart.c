/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that is started anew. What its predecessor answered is in the kubelet's checkpoint
 * ("notes"), if that can be read, and in the pods' records, as far as they were written.
 */
#include "allocate_rig.h"
#include "rows.h"

#define AB "{\"a\":[0],\"b\":[1]}"

enum { SIZE = 16 };

static void restart(struct rig *rig)
{
    int calls = rig->calls;
    gs_allocator_free(rig->alloc);
    rig_up(rig);
    rig->calls = calls;
}

static uint64_t key_of(int call, uint32_t units)
{
    char texts[64][24];
    const char *ids[64];
    make_ids(call, units, texts, ids);
    return gs_allocate_key(ids, units);
}

static uint64_t used(const struct rig *rig, int gpu)
{
    struct gs_allocator_stats stats;
    gs_allocator_stats(rig->alloc, &stats);
    return stats.used_units[gpu];
}

static const char *value_of(const struct gs_allocator_write *write, const char *key)
{
    for (size_t i = 0; i < write->annotation_count; i++) {
        if (strcmp(write->annotations[i].key, key) == 0)
            return write->annotations[i].value;
    }
    return NULL;
}

/* The next write, which must be the pod's, is done; its index, or NULL when it has none. */
static void expect_write(struct rig *rig, const char *row, const char *pod, const char *idx)
{
    struct gs_allocator_write write;
    expect_moved(rig, row, NULL);
    row_true(row, gs_allocator_next_write(rig->alloc, &write));
    row_text(row, write.name, pod);
    if (idx)
        row_text(row, value_of(&write, rig->names.idx), idx);
    gs_allocator_write_done(rig->alloc, write.number, true);
}

/* "next" was given GPU 0 on trust while the plugin still saw "old" there, and so does the next
 * plugin. */
static void a_start_on_trust_is_held_back_by_the_next_plugin_too(void **state)
{
    static const struct {
        const char *row;
        bool notes, assigned, old_is_later;
    } rows[] = {
        {"notes", true, false, false},
        {"notes, the record says assigned", true, true, false},
        {"notes, the other is listed later", true, true, true},
        {"records alone", false, false, false},
        {"records alone, assigned", false, true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        uint64_t key;
        const struct given_pod other = {"other", {24}, 1, .phase = GS_PHASE_RUNNING};
        const struct given_pod old = {"old", {SIZE}, 0, .phase = GS_PHASE_RUNNING};
        const struct given_pod next = {"next", {SIZE}, 0, .assigned = r->assigned};
        rig_up(&rig);
        give_pod(&rig, &other);
        give_pod(&rig, &old);
        give_pod(&rig, &next);
        const struct gs_observed_pod admitted = {"ns", "next", 0, NULL, 0};
        row_equal(r->row, allocate_told(&rig, SIZE, &admitted, 1, GS_API_TIMEOUT, &key, &err), 0);
        restart(&rig);
        gs_allocator_list_begin(rig.alloc);
        give_pod(&rig, &other);
        give_pod(&rig, r->old_is_later ? &next : &old);
        give_pod(&rig, r->old_is_later ? &old : &next);
        gs_allocator_list_end(rig.alloc);
        const struct gs_given given[] = {{"old", 77, SIZE, 1}, {"next", key, SIZE, 1}};
        if (r->notes)
            gs_allocator_restore(rig.alloc, given, 2);
        const struct gs_observed_pod observed[] = {{"ns", "next", SIZE, &key, 1}};
        row_equal(r->row, start(&rig, 0, SIZE, observed, 1, false, &err), GS_START_LIST_FIRST);
        row_equal(r->row, start(&rig, 0, SIZE, observed, 1, true, &err), GS_START_HELD);
        gs_allocator_pod_gone(rig.alloc, "old");
        row_equal(r->row, start(&rig, 0, SIZE, observed, 1, false, &err), GS_START_OK);
        row_equal(r->row, used(&rig, 0), SIZE);
        gs_allocator_free(rig.alloc);
    }
}

/* "p" has GPU 1 (number 1) in its record, but was given GPU 0. */
static void the_record_follows_the_environment_that_an_earlier_plugin_gave(void **state)
{
    static const struct {
        const char *row;
        enum gs_pod_phase phase;
        uint32_t beside; /* units of a pod that runs on GPU 0 */
        enum gs_start_result start;
    } rows[] = {
        {"has not run", GS_PHASE_PENDING, 0, GS_START_OK},
        {"has not run, there is room", GS_PHASE_PENDING, 8, GS_START_OK},
        {"has not run, there is none", GS_PHASE_PENDING, 9, GS_START_HELD},
        {"runs", GS_PHASE_RUNNING, 0, GS_START_OK},
        {"runs, there is no room", GS_PHASE_RUNNING, 9, GS_START_OK},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_error err = {0};
        struct gs_allocator_write write;
        bool held = r->start == GS_START_HELD;
        uint64_t key = key_of(0, 8);
        rig_up(&rig);
        give_pod(&rig, &(struct given_pod){"p", {8}, 1, .phase = r->phase, .assigned = true});
        if (r->beside)
            give_pod(&rig,
                     &(struct given_pod){
                         "beside", {r->beside}, 0, .phase = GS_PHASE_RUNNING, .assigned = true});
        const struct gs_given given = {"p", key, 8, 1};
        for (int i = 0; i < 2; i++) /* the second time changes nothing */
            gs_allocator_restore(rig.alloc, &given, 1);
        row_equal(r->row, used(&rig, 0), r->beside + (held ? 0 : 8));
        row_equal(r->row, used(&rig, 1), held ? 8 : 0);
        if (!held)
            expect_write(&rig, r->row, "p", "0");
        const struct gs_observed_pod observed = {"ns", "p", 8, &key, 1};
        row_equal(r->row, start(&rig, 0, 8, &observed, 1, true, &err), r->start);
        gs_allocator_pod_gone(rig.alloc, "beside");
        row_equal(r->row, start(&rig, 0, 8, &observed, 1, true, &err),
                  held ? GS_START_WRITE_FIRST : GS_START_OK);
        expect_moved(&rig, r->row, "{\"p\":[0]}");
        row_equal(r->row, start(&rig, 0, 8, &observed, 1, true, &err), GS_START_OK);
        row_equal(r->row, used(&rig, 0), 8);
        while (gs_allocator_next_write(rig.alloc, &write))
            gs_allocator_write_done(rig.alloc, write.number, true);
        gs_allocator_free(rig.alloc);
    }
}

static void an_exchange_that_was_not_written_is_written_by_the_next_plugin(void **state)
{
    static const struct {
        const char *row;
        int a, b; /* recorded */
        gs_gpu_mask env_a, env_b;
        uint32_t units_b;
        bool a_runs;
        const char *moved;
        const char *first, *idx, *second, *second_idx;
    } rows[] = {
        {"neither is written", 1, 0, 1, 2, 8, false, AB, "a", "0", "b", "1"},
        {"neither is written, one runs", 1, 0, 1, 2, 8, true, AB, "a", "0", "b", "1"},
        {"one is written", 0, 0, 1, 2, 8, false, "{\"b\":[1]}", "b", "1", NULL, NULL},
        {"both are written", 0, 1, 1, 2, 8, false, "{}", NULL, NULL, NULL, NULL},
        {"they are not equal", 1, 0, 1, 2, 7, false, AB, "a", "0", "b", "1"},
        {"the other stays where it is", 1, 0, 1, 1, 8, false, "{\"a\":[0]}", "a", "0", NULL, NULL},
        {"the other is there already", 1, 1, 1, 2, 8, false, "{\"a\":[0]}", "a", "0", NULL, NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_write write;
        rig_up(&rig);
        give_pod(&rig,
                 &(struct given_pod){
                     "a", {8}, r->a, .assigned = true, .phase = r->a_runs ? GS_PHASE_RUNNING : 0});
        give_pod(&rig, &(struct given_pod){"b", {r->units_b}, r->b, .assigned = true});
        const struct gs_given given[] = {{"b", 2, r->units_b, r->env_b}, {"a", 1, 8, r->env_a}};
        gs_allocator_restore(rig.alloc, given, 2);
        row_equal(r->row, used(&rig, 0) + used(&rig, 1), 8 + r->units_b);
        row_equal(r->row, used(&rig, 1), r->env_b == 2 ? r->units_b : 0);
        expect_moved(&rig, r->row, r->moved);
        if (r->first)
            expect_write(&rig, r->row, r->first, r->idx);
        if (r->second)
            expect_write(&rig, r->row, r->second, r->second_idx);
        row_true(r->row, !gs_allocator_next_write(rig.alloc, &write));
        gs_allocator_free(rig.alloc);
    }
}

/* The annotation as the last plugin left it; "p" was bound to GPU 1, or that is what it says. */
static void entries_of_pods_that_live_outlast_the_plugin(void **state)
{
    static const struct {
        const char *row;
        bool late, notes; /* the node's object is read after the pods were; the kubelet's notes */
        gs_gpu_mask entry, env;
        const char *moved;
        uint64_t used[2];
    } rows[] = {
        {"it is believed", false, false, 1, 0, "{\"p\":[0]}", {8, 0}},
        {"late", true, false, 1, 0, "{\"p\":[0]}", {8, 0}},
        {"the environment says the same", false, true, 1, 1, "{\"p\":[0]}", {8, 0}},
        {"the environment says more", false, true, 1, 2, "{\"p\":[1]}", {0, 8}},
        {"the environment says more, late", true, true, 1, 2, "{\"p\":[1]}", {0, 8}},
        {"of two GPUs", false, false, 3, 0, "{\"p\":[0,1]}", {4, 4}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        const struct gs_moved entries[] = {{"gone", 2}, {"p", r->entry}};
        const struct gs_given given = {"p", 5, 8, r->env};
        rig_up(&rig);
        if (!r->late)
            assert_int_equal(gs_allocator_moved_earlier(rig.alloc, entries, 2, true, NULL), 0);
        gs_allocator_list_begin(rig.alloc);
        give_pod(&rig,
                 &(struct given_pod){"p", {8}, 1, .phase = GS_PHASE_RUNNING, .assigned = true});
        gs_allocator_list_end(rig.alloc);
        if (r->notes)
            gs_allocator_restore(rig.alloc, &given, 1);
        if (r->late)
            assert_int_equal(gs_allocator_moved_earlier(rig.alloc, entries, 2, true, NULL), 0);
        row_true(r->row, gs_allocator_moved_due(rig.alloc));
        expect_moved(&rig, r->row, r->moved);
        for (int gpu = 0; gpu < 2; gpu++)
            row_equal(r->row, used(&rig, gpu), r->used[gpu]);
        gs_allocator_free(rig.alloc);
    }
}

/* Until the plugin names a pod whose record changed under the original's plugin, the ledger charges
 * it on both GPUs. Two that ran at the start, one that was bound, and one that comes later. */
static void a_plugin_after_one_that_told_of_no_moves_names_every_pod(void **state)
{
    static const struct {
        const char *row;
        bool told, late;
        const char *moved;
    } rows[] = {
        {"the first that tells", false, false, "{\"a\":[0],\"b\":[1]}"},
        {"the node's object is read late", false, true, "{\"a\":[0],\"b\":[1]}"},
        {"another told before", true, false, "{}"},
        {"another told before, late", true, true, "{}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        const struct gs_given given = {"b", 5, 8, 2};
        rig_up(&rig);
        if (!r->late)
            assert_int_equal(gs_allocator_moved_earlier(rig.alloc, NULL, 0, r->told, NULL), 0);
        gs_allocator_list_begin(rig.alloc);
        for (int gpu = 0; gpu < 2; gpu++)
            give_pod(&rig,
                     &(struct given_pod){
                         gpu ? "b" : "a", {8}, gpu, .phase = GS_PHASE_RUNNING, .assigned = true});
        give_pod(&rig, &(struct given_pod){"bound", {4}, 1});
        gs_allocator_list_end(rig.alloc);
        gs_allocator_restore(rig.alloc, &given, 1);
        if (r->late)
            assert_int_equal(gs_allocator_moved_earlier(rig.alloc, NULL, 0, r->told, NULL), 0);
        give_pod(&rig,
                 &(struct given_pod){"later", {2}, 0, .phase = GS_PHASE_RUNNING, .assigned = true});
        row_true(r->row, gs_allocator_moved_due(rig.alloc));
        expect_moved(&rig, r->row, r->moved);
        gs_allocator_free(rig.alloc);
    }
}

/* The kubelet's list does not name init containers, its checkpoint does. */
static void an_init_container_on_trust_is_held_back_as_well(void **state)
{
    struct rig rig;
    struct gs_error err = {0};
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"old", {SIZE}, 0, .phase = GS_PHASE_RUNNING});
    give_pod(&rig, &(struct given_pod){"next", {4, 8}, 0, .inits = 1, .assigned = true});
    const struct gs_given given[] = {{"next", key_of(0, 4), 4, 1}, {"next", key_of(1, 8), 8, 1}};
    gs_allocator_restore(rig.alloc, given, 2);
    const uint64_t key = key_of(1, 8);
    const struct gs_observed_pod observed = {"ns", "next", 8, &key, 1};
    assert_int_equal(start(&rig, 0, 4, &observed, 1, true, &err), GS_START_HELD);
    gs_allocator_pod_gone(rig.alloc, "old");
    assert_int_equal(start(&rig, 0, 4, &observed, 1, true, &err), GS_START_OK);
    gs_allocator_free(rig.alloc);
}

/* The plugin ended between the calls for two containers. */
static void a_pod_that_was_begun_goes_on_where_it_is(void **state)
{
    struct rig rig;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"first", {4, 4}, 1});
    give_pod(&rig, &(struct given_pod){"p", {4, 4}, 1});
    const struct gs_given given = {"p", key_of(0, 4), 4, 1};
    gs_allocator_restore(rig.alloc, &given, 1);
    rig.calls = 1;
    assert_int_equal(allocate(&rig, 4, NULL, 0, NULL, NULL), 0);
    assert_int_equal(allocate(&rig, 4, NULL, 0, NULL, NULL), 1);
    assert_int_equal(used(&rig, 0), 8);
    gs_allocator_free(rig.alloc);
}

/* Without the kubelet's list 4 and 2 would be how the other one begins, too. */
static void what_is_recalled_is_nobody_elses_beginning(void **state)
{
    struct rig rig;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){"p", {4, 2}, 0});
    give_pod(&rig, &(struct given_pod){"other", {4, 2, 2}, 1});
    const struct gs_given given = {"p", key_of(0, 4), 4, 1};
    gs_allocator_restore(rig.alloc, &given, 1);
    rig.calls = 1;
    assert_int_equal(allocate(&rig, 2, NULL, 0, NULL, NULL), 0);
    allocate(&rig, 2, NULL, 0, NULL, NULL);
    assert_int_equal(used(&rig, 1), 8);
    gs_allocator_free(rig.alloc);
}

static void containers_that_ran_start_again_whatever_room_there_is(void **state)
{
    for (int notes = 0; notes < 2; notes++) {
        struct rig rig;
        struct gs_error err = {0};
        uint64_t key = key_of(0, 10);
        rig_up(&rig);
        give_pod(&rig, &(struct given_pod){"p", {10}, 0, .phase = GS_PHASE_RUNNING});
        give_pod(&rig, &(struct given_pod){"q", {10}, 0, .phase = GS_PHASE_RUNNING});
        const struct gs_given given[] = {{"p", key, 10, 1}, {"q", key_of(1, 10), 10, 1}};
        gs_allocator_restore(rig.alloc, given, notes ? 2 : 0);
        const struct gs_observed_pod observed = {"ns", "p", 10, &key, 1};
        assert_int_equal(start(&rig, 0, 10, &observed, 1, true, &err), GS_START_OK);
        gs_allocator_free(rig.alloc);
    }
}

static void notes_that_say_nothing_are_passed_over(void **state)
{
    static const struct {
        const char *row;
        struct gs_given given;
    } rows[] = {
        {"of a pod that is gone", {"gone", 5, 4, 1}},
        {"of a GPU that is gone", {"p", 5, 4, 1 << 7}},
        {"without a GPU", {"p", 5, 4, 0}},
        {"of what this run answered", {"p", 1, 4, 1}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        struct gs_allocator_write write;
        uint64_t key;
        rig_up(&rig);
        gs_allocator_list_begin(rig.alloc);
        give_pod(&rig, &(struct given_pod){"p", {4}, 1});
        gs_allocator_list_end(rig.alloc);
        row_equal(r->row, allocate(&rig, 4, NULL, 0, &key, NULL), 1);
        while (gs_allocator_next_write(rig.alloc, &write))
            gs_allocator_write_done(rig.alloc, write.number, true);
        struct gs_given given = r->given;
        if (given.key == 1)
            given.key = key;
        gs_allocator_restore(rig.alloc, &given, 1);
        row_equal(r->row, used(&rig, 0), 0);
        row_equal(r->row, used(&rig, 1), 4);
        row_true(r->row, !gs_allocator_next_write(rig.alloc, &write));
        gs_allocator_free(rig.alloc);
    }
}

/* gpu-count is its owner's to edit; what the containers have is not. */
static void a_plugin_after_an_edit_of_gpu_count_finds_every_pod_as_it_is(void **state)
{
    static const struct {
        const char *row;
        struct given_pod edited;
        uint64_t used[2];
    } rows[] = {
        {"as bound", {"p", {12}, .gpus = 3, .gpu_count = 2}, {6, 6}},
        {"raised", {"p", {12}, 0, .gpu_count = 2}, {12, 0}},
        {"raised above what divides", {"p", {12}, 1, .gpu_count = 24}, {0, 12}},
        {"lowered", {"p", {12}, .gpus = 3, .gpu_count = 1}, {6, 6}},
        {"taken off", {"p", {12}, .gpus = 3}, {6, 6}},
        {"taken off a pod larger than any GPU", {"p", {32}, .gpus = 3}, {16, 16}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        for (enum gs_pod_phase phase = GS_PHASE_PENDING; phase <= GS_PHASE_RUNNING; phase++) {
            struct rig rig;
            struct gs_allocator_stats stats;
            struct given_pod edited = r->edited;
            const uint64_t larger = r->used[0] > r->used[1] ? r->used[0] : r->used[1];
            edited.phase = phase;
            edited.assigned = phase == GS_PHASE_RUNNING;
            rig_up(&rig);
            gs_allocator_list_begin(rig.alloc);
            give_pod(&rig, &edited);
            gs_allocator_list_end(rig.alloc);
            for (int gpu = 0; gpu < 2; gpu++)
                row_equal(r->row, used(&rig, gpu), r->used[gpu]);
            gs_allocator_stats(rig.alloc, &stats);
            row_equal(r->row, stats.largest_share, phase == GS_PHASE_RUNNING ? larger : 0);
            expect_moved(&rig, r->row, "{}");
            gs_allocator_free(rig.alloc);
        }
    }
}

/* Its owner forged the record too, while no plugin ran: the kubelet knows better. */
static void a_running_pod_is_where_the_kubelet_says_whatever_its_record_divides(void **state)
{
    struct rig rig;
    rig_up(&rig);
    give_pod(&rig, &(struct given_pod){
                       "p", {16}, .gpus = 3, .phase = GS_PHASE_RUNNING, .assigned = true});
    assert_int_equal(used(&rig, 0), 8);
    const struct gs_given given = {"p", 77, 16, 1};
    gs_allocator_restore(rig.alloc, &given, 1);
    assert_int_equal(used(&rig, 0), 16);
    assert_int_equal(used(&rig, 1), 0);
    expect_write(&rig, "forged", "p", "0");
    expect_moved(&rig, "forged", "{\"p\":[0]}");
    gs_allocator_free(rig.alloc);
}

/* The kubelet's notes name a static pod by the UID of its manifest, the API by its mirror's. The
 * plugin ended before it wrote the record, or somebody forged that while no plugin ran. */
static void a_static_pod_is_where_the_kubelet_says_too(void **state)
{
    static const char uid[] = "0123456789abcdef0123456789abcdef";
    static const struct {
        const char *row;
        int recorded;
        enum gs_pod_phase phase;
    } rows[] = {
        {"no record yet, has not run", -1, GS_PHASE_PENDING},
        {"no record yet, runs", -1, GS_PHASE_RUNNING},
        {"forged, runs", 0, GS_PHASE_RUNNING},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig rig;
        rig_up(&rig);
        gs_allocator_list_begin(rig.alloc);
        give_pod(&rig, &(struct given_pod){"p",
                                           {8},
                                           r->recorded,
                                           .phase = r->phase,
                                           .assigned = r->recorded >= 0,
                                           .static_uid = uid});
        gs_allocator_list_end(rig.alloc);
        const struct gs_given given = {uid, 77, 8, 2};
        gs_allocator_restore(rig.alloc, &given, 1);
        row_equal(r->row, used(&rig, 0), 0);
        row_equal(r->row, used(&rig, 1), 8);
        expect_moved(&rig, r->row, "{\"p\":[1]}");
        if (r->phase == GS_PHASE_PENDING)
            expect_write(&rig, r->row, "p", NULL); /* assigned */
        expect_write(&rig, r->row, "p", "1");
        gs_allocator_free(rig.alloc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_on_trust_is_held_back_by_the_next_plugin_too),
        cmocka_unit_test(the_record_follows_the_environment_that_an_earlier_plugin_gave),
        cmocka_unit_test(an_exchange_that_was_not_written_is_written_by_the_next_plugin),
        cmocka_unit_test(entries_of_pods_that_live_outlast_the_plugin),
        cmocka_unit_test(a_plugin_after_one_that_told_of_no_moves_names_every_pod),
        cmocka_unit_test(an_init_container_on_trust_is_held_back_as_well),
        cmocka_unit_test(a_pod_that_was_begun_goes_on_where_it_is),
        cmocka_unit_test(what_is_recalled_is_nobody_elses_beginning),
        cmocka_unit_test(containers_that_ran_start_again_whatever_room_there_is),
        cmocka_unit_test(notes_that_say_nothing_are_passed_over),
        cmocka_unit_test(a_plugin_after_an_edit_of_gpu_count_finds_every_pod_as_it_is),
        cmocka_unit_test(a_running_pod_is_where_the_kubelet_says_whatever_its_record_divides),
        cmocka_unit_test(a_static_pod_is_where_the_kubelet_says_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
