/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

#include "gpushare/base/clock.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,16");
    gs_service_tick(rig.service); /* the first comparison is five minutes from here */
    *state = &rig;
    return 0;
}

static void pass(int64_t seconds)
{
    rig_tick(&rig, seconds * GS_NS_PER_S);
}

static long metric(const char *name)
{
    struct gs_buf text = GS_BUF(1 << 20);
    gs_service_metrics(rig.service, &text);
    char key[64];
    long value = 0;
    snprintf(key, sizeof(key), "\n%s ", name);
    const char *at = strstr(text.data, key);
    assert_non_null(at);
    for (at += strlen(key); *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (*at - '0');
    gs_buf_release(&text);
    return value;
}

enum { TEXT = 1024 };

/* One pod of 4 units: what the ledger was told, what the list says, what get_pod says later. */
struct side {
    const char *node; /* NULL: unbound */
    const char *idx;
    const char *phase; /* NULL: there is no such pod */
    unsigned revision;
};

static const char *pod_json(char *text, const struct side *side)
{
    rig.revision = side->revision - 1;
    return rig_pod_json(&rig, text, TEXT, "p", "u1", 4, side->node, side->idx, side->phase);
}

static void only_a_difference_that_persists_is_drift_and_it_is_mended(void **state)
{
    static const struct {
        const char *row;
        struct side ledger, list, later;
        long drift;
        long used[2]; /* of GPU 0 and 1, at the end */
    } rows[] = {
        {"equal", {"n1", "0", "Running", 5}, {"n1", "0", "Running", 5}, {0}, 0, {4, 0}},
        {"a bound pod was never told",
         {0},
         {"n1", "0", "Running", 5},
         {"n1", "0", "Running", 5},
         1,
         {4, 0}},
        {"it changed in between: its event is under way",
         {0},
         {"n1", "0", "Running", 5},
         {"n1", "0", "Running", 6},
         0,
         {0, 0}},
        {"a deletion was never told", {"n1", "1", "Running", 5}, {0}, {0}, 1, {0, 0}},
        {"the list was older than the pod",
         {"n1", "1", "Running", 5},
         {0},
         {"n1", "1", "Running", 5},
         0,
         {0, 4}},
        {"an end was never told",
         {"n1", "0", "Running", 5},
         {"n1", "0", "Succeeded", 6},
         {"n1", "0", "Succeeded", 6},
         1,
         {0, 0}},
        {"another GPU was recorded, under the original's plugin",
         {"n1", "0", "Running", 5},
         {"n1", "1", "Running", 6},
         {"n1", "1", "Running", 6},
         1,
         {4, 4}},
        {"an unbound pod", {0}, {NULL, NULL, "Pending", 5}, {NULL, NULL, "Pending", 5}, 0, {0, 0}},
        {"the end of a pod was told that lives",
         {"n1", "0", "Failed", 5},
         {"n1", "0", "Running", 5},
         {"n1", "0", "Running", 5},
         1,
         {4, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char told[TEXT], list[TEXT], later[TEXT];
        setup(state);
        print_message("%s\n", rows[i].row);
        if (rows[i].ledger.phase)
            rig_feed(&rig, pod_json(told, &rows[i].ledger), false);
        rig.listed[0] = rows[i].list.phase ? pod_json(list, &rows[i].list) : NULL;
        rig.get_json = rows[i].later.phase ? pod_json(later, &rows[i].later) : NULL;
        rig.get_code = rows[i].later.phase ? GS_OK : GS_ENOENT;
        pass(300);
        assert_int_equal(metric("gpushare_ledger_drift"), 0);
        pass(5);
        assert_int_equal(metric("gpushare_ledger_drift"), rows[i].drift);
        assert_int_equal(metric("gpushare_ledger_mended_total"), rows[i].drift);
        assert_int_equal(rig_used(&rig, "n1", 0), rows[i].used[0]);
        assert_int_equal(rig_used(&rig, "n1", 1), rows[i].used[1]);
        rig_stop(&rig);
    }
}

static void drift_is_forgotten_when_the_next_comparison_finds_none(void **state)
{
    char list[TEXT];
    rig.listed[0] = rig.get_json = pod_json(list, &(struct side){"n1", "0", "Running", 5});
    pass(300);
    pass(5);
    assert_int_equal(metric("gpushare_ledger_drift"), 1);
    pass(300);
    pass(5);
    assert_int_equal(metric("gpushare_ledger_drift"), 0);
    assert_int_equal(metric("gpushare_ledger_comparisons_total"), 2);
}

static void an_unknown_bind_is_not_drift(void **state)
{
    char json[TEXT];
    rig_pod(&rig, "p", "u1", 4, NULL, NULL, "Pending");
    rig.bind_code = GS_ETIMEOUT;
    rig.get_json = pod_json(json, &(struct side){NULL, NULL, "Pending", 9});
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "no known outcome");
    pass(30);
    rig.listed[0] = json;
    rig.now_ns += 270 * GS_NS_PER_S; /* the comparison comes before open_binds is looked at */
    gs_service_tick(rig.service);
    assert_int_equal(metric("gpushare_ledger_comparisons_total"), 1);
    pass(5);
    assert_int_equal(metric("gpushare_ledger_mended_total"), 0);
}

static void a_pod_whose_bind_is_open_fits_only_where_its_place_is_kept(void **state)
{
    char json[TEXT];
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "p", "u1", 16, NULL, NULL, "Pending");
    rig_pod(&rig, "q", "u2", 16, "n1", "0", "Running");
    rig.bind_code = GS_ETIMEOUT;
    const char *pending =
        rig_pod_json(&rig, json, sizeof(json), "p", "u1", 16, NULL, NULL, "Pending");
    rig.get_json = pending;
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "no known outcome");
    char *answer = rig_filter(&rig, pending, "\"n1\",\"n2\"");
    assert_non_null(strstr(answer, "\"n2\":\"an earlier bind to another node has no known"));
    rig_expect(answer, "\"NodeNames\":[\"n1\"]");
    rig.bind_code = GS_OK;
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "\"Error\":\"\"");
    assert_int_equal(rig_used(&rig, "n1", 1), 16);
}

static void a_list_is_believed_although_its_versions_are_older(void **state)
{
    char before[TEXT], after[TEXT];
    rig_feed(&rig, pod_json(before, &(struct side){"n1", "0", "Running", 100}), false);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD); /* from a backup of etcd */
    rig_feed(&rig, pod_json(after, &(struct side){"n1", "1", "Running", 50}), false);
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    assert_int_equal(rig_used(&rig, "n1", 0), 4);
    assert_int_equal(rig_used(&rig, "n1", 1), 4); /* heard: charged on both */
}

static void a_forged_index_is_told_once(void **state)
{
    static const struct {
        const char *row;
        const char *idx;
        int events;
    } rows[] = {
        {"valid", "1", 0},
        {"none", NULL, 1},
        {"out of range", "7", 1},
        {"no number", "x", 1},
        {"two, with an equal share of each", "0,1", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setup(state);
        print_message("%s\n", rows[i].row);
        rig_pod(&rig, "p", "u1", 4, "n1", rows[i].idx, "Running");
        pass(11);
        pass(11);
        assert_int_equal(rig.events, rows[i].events);
        if (rows[i].events)
            assert_string_equal(rig.event, "default/p GpuIndexNotBelieved");
        rig_stop(&rig);
    }
}

static void many_forged_pods_are_told_a_few_at_a_time(void **state)
{
    for (int i = 0; i < 12; i++) {
        char uid[16];
        snprintf(uid, sizeof(uid), "f%d", i);
        rig_pod(&rig, uid, uid, 1, "n1", "9", "Running");
    }
    pass(11);
    assert_in_range(rig.events, 1, 5);
    for (int i = 0; i < 4; i++)
        pass(11);
    assert_int_equal(rig.events, 12);
}

static void watch(bool stands)
{
    rig.sink.live(rig.sink.ctx, GS_KIND_POD, stands, "cut");
}

/* What the ledger does not know then is no bug: the watch will tell it when it stands again. */
static void an_interrupted_watch_is_no_drift(void **state)
{
    static const struct {
        const char *row;
        bool at_list, at_look;
        int lists;
        long drift;
    } rows[] = {
        {"the watch stands", true, true, 1, 1},
        {"interrupted before the list", false, false, 0, 0},
        {"interrupted before the second look", true, false, 1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[TEXT];
        rig_stop(&rig);
        setup(state);
        rig.listed[0] = pod_json(text, &(struct side){"n1", "0", "Running", 5});
        rig.get_json = text;
        rig.lists = 0;
        watch(rows[i].at_list);
        pass(300);
        watch(rows[i].at_look);
        pass(6);
        watch(true);
        if (rig.lists != rows[i].lists || metric("gpushare_ledger_drift") != rows[i].drift ||
            metric("gpushare_ledger_mended_total") != rows[i].drift)
            fail_msg("%s: %d lists", rows[i].row, rig.lists);
        pass(1); /* late, but compared */
        assert_int_equal(rig.lists, 1);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_difference_that_persists_is_drift_and_it_is_mended),
        T(drift_is_forgotten_when_the_next_comparison_finds_none),
        T(an_unknown_bind_is_not_drift),
        T(an_interrupted_watch_is_no_drift),
        T(a_pod_whose_bind_is_open_fits_only_where_its_place_is_kept),
        T(a_list_is_believed_although_its_versions_are_older),
        cmocka_unit_test(a_forged_index_is_told_once),
        T(many_forged_pods_are_told_a_few_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
