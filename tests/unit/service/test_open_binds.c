/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,24");
    rig_node(&rig, "n2", "16");
    *state = &rig;
    return 0;
}

/* Of pod p to n1, which takes 8 of GPU 0; the API shows p unbound from now on. */
static void bind_without_answer(void)
{
    static char json[2048];
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    rig.bind_code = GS_ETIMEOUT;
    rig.get_json = rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending");
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "no known outcome");
}

static void an_unanswered_bind_keeps_its_place_until_the_api_shows_its_end(void **state)
{
    bind_without_answer();
    rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), "no known outcome");
    for (int s = 0; s < 60; s++) {
        rig_tick(&rig, GS_NS_PER_S);
        assert_int_equal(rig_used(&rig, "n1", 0), 8);
    }
    rig_tick(&rig, 10 * GS_NS_PER_S);
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
}

static void a_repeated_unanswered_bind_takes_the_same_gpu(void **state)
{
    bind_without_answer();
    rig_pod(&rig, "q", "u2", 8, "n1", "1", "Running");
    rig.bind_code = GS_OK;
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "{\"Error\":\"\"}");
    assert_non_null(strstr(rig.annotations, "GPU_MEM_IDX=0;"));
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

/* The place is given back only when no attempt can bind the pod any more. */
static void a_refused_repetition_does_not_undo_an_unanswered_bind(void **state)
{
    static const struct {
        const char *row;
        enum gs_code code;
        long charged;
    } rows[] = {
        {"throttled", GS_EBUSY, 8},        {"not allowed", GS_EDENIED, 8},
        {"no login", GS_EAUTH, 8},         {"refused", GS_EINVAL, 8},
        {"conflict", GS_ECONFLICT, 8},     {"lost", GS_EIO, 8},
        {"the pod is gone", GS_ENOENT, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_stop(&rig);
        setup(state);
        print_message("%s\n", rows[i].row);
        bind_without_answer();
        rig.bind_code = rows[i].code;
        free(rig_try_bind(&rig, "p", "u1", "n1"));
        assert_int_equal(rig_used(&rig, "n1", 0), rows[i].charged);
        rig_tick(&rig, 66 * GS_NS_PER_S);
        assert_int_equal(rig_used(&rig, "n1", 0), 0);
    }
}

/* Whatever ends it, nobody goes on asking the API about it, and a replica that ends gives its lease
 * back. */
static void an_unanswered_bind_is_open_until_its_end_is_known(void **state)
{
    enum { SHOWN, DELETED, REPEATED, READ_BOUND, READ_GONE, EXPIRED, ENDS };
    static const char *const rows[ENDS] = {"shown",      "deleted",   "repeated",
                                           "read bound", "read gone", "expired"};
    for (int end = SHOWN; end < ENDS; end++) {
        char json[2048];
        rig_stop(&rig);
        setup(state);
        bind_without_answer();
        assert_int_equal(gs_service_open_binds(rig.service), 1);
        rig.bind_code = GS_OK;
        if (end == SHOWN)
            rig_pod(&rig, "p", "u1", 8, "n1", "0", "Pending");
        else if (end == DELETED)
            rig_pod_gone(&rig, "p", "u1");
        else if (end == REPEATED)
            rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "{\"Error\":\"\"}");
        else if (end == READ_BOUND)
            rig.get_json =
                rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, "n1", "0", "Pending");
        else if (end == READ_GONE)
            rig.get_code = GS_ENOENT;
        if (end >= READ_BOUND)
            rig.now_ns += end == EXPIRED ? 65 * GS_NS_PER_S : GS_NS_PER_S;
        if (end >= READ_BOUND)
            gs_service_tick(rig.service);
        long charged = end == DELETED || end == READ_GONE || end == EXPIRED ? 0 : 8;
        if (gs_service_open_binds(rig.service) != 0 || rig_used(&rig, "n1", 0) != charged)
            fail_msg("%s: %u open, charged %ld", rows[end], gs_service_open_binds(rig.service),
                     rig_used(&rig, "n1", 0));
    }
}

/* A webhook that fails each bind of one pod: its place is free most of the time between attempts.
 */
static void a_bind_that_was_answered_with_a_failure_is_open_for_seconds(void **state)
{
    static char json[2048];
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    rig.get_json = rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending");
    rig.bind_code = GS_EIO;
    rig.bind_answered = true;
    for (int i = 0; i < 3; i++) {
        rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "no known outcome");
        for (int s = 1; s <= 6; s++) {
            rig_tick(&rig, GS_NS_PER_S);
            assert_int_equal(rig_used(&rig, "n1", 0), s < 5 ? 8 : 0);
        }
    }
    /* one that was not answered keeps its minute, whatever is answered later */
    rig.bind_answered = false;
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "no known outcome");
    rig.bind_answered = true;
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "no known outcome");
    rig_tick(&rig, 60 * GS_NS_PER_S);
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

static void open_binds_are_counted_during(struct rig *r)
{
    assert_int_equal(gs_service_open_binds(r->service), 1);
}

static void a_bind_is_open_from_before_it_is_sent(void **state)
{
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    rig.bind_code = GS_ETIMEOUT;
    rig.get_code = GS_EIO;
    rig.during_bind = open_binds_are_counted_during;
    rig.during_get = open_binds_are_counted_during;
    free(rig_try_bind(&rig, "p", "u1", "n1"));
    assert_int_equal(rig.gets, 1);
    assert_int_equal(gs_service_open_binds(rig.service), 1);
}

static void a_minute_passes_during(struct rig *r)
{
    rig_tick(r, 2 * GS_NS_PER_S);
    assert_int_equal(rig_used(r, "n1", 0), 8);
}

/* The first attempt can succeed no more, but the second one still can. */
static void a_repetition_under_way_keeps_its_place(void **state)
{
    bind_without_answer();
    rig.now_ns += 64 * GS_NS_PER_S;
    rig.bind_code = GS_OK;
    rig.during_bind = a_minute_passes_during;
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "{\"Error\":\"\"}");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

static void bind_again_during(struct rig *r)
{
    r->during_get = NULL;
    rig_expect(rig_try_bind(r, "p", "u1", "n1"), "no known outcome");
}

static void a_look_that_a_repetition_overtook_undoes_nothing(void **state)
{
    bind_without_answer();
    rig.now_ns += 66 * GS_NS_PER_S;
    rig.during_get = bind_again_during;
    gs_service_tick(rig.service);
    assert_int_equal(rig.binds, 2);
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

/* Each look takes longer than the pause to the next: all of them must have their turn. */
static void every_unanswered_bind_is_looked_at(void **state)
{
    char json[2048];
    rig.bind_code = GS_ETIMEOUT;
    rig.get_json = json;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "q" : "p", *uid = i ? "u2" : "u1";
        rig_pod(&rig, name, uid, 8, NULL, NULL, "Pending");
        rig_pod_json(&rig, json, sizeof(json), name, uid, 8, NULL, NULL, "Pending");
        rig_expect(rig_try_bind(&rig, name, uid, i ? "n2" : "n1"), "no known outcome");
    }
    bool seen[2] = {false, false};
    rig.get_code = GS_EIO;
    rig.get_ns = 2 * GS_NS_PER_S;
    rig.now_ns += 2 * GS_NS_PER_S;
    for (int i = 0; i < 4; i++) {
        gs_service_tick(rig.service);
        seen[strcmp(rig.got, "q") == 0] = true;
    }
    assert_true(seen[0] && seen[1]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(an_unanswered_bind_keeps_its_place_until_the_api_shows_its_end),
        T(a_repeated_unanswered_bind_takes_the_same_gpu),
        T(a_refused_repetition_does_not_undo_an_unanswered_bind),
        T(an_unanswered_bind_is_open_until_its_end_is_known),
        T(a_bind_that_was_answered_with_a_failure_is_open_for_seconds),
        T(a_bind_is_open_from_before_it_is_sent),
        T(a_repetition_under_way_keeps_its_place),
        T(a_look_that_a_repetition_overtook_undoes_nothing),
        T(every_unanswered_bind_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
