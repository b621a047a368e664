/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,16");
    *state = &rig;
    return 0;
}

static void expect_metric(const char *line)
{
    struct gs_buf metrics = GS_BUF(1 << 20);
    gs_service_metrics(rig.service, &metrics);
    if (!strstr(metrics.data, line))
        fail_msg("no \"%s\" in %s", line, metrics.data);
    gs_buf_release(&metrics);
}

static void a_bound_pod_is_charged_until_it_ends_whatever_deletion_timestamp_says(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    rig_feed(&rig,
             "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u1\","
             "\"resourceVersion\":\"50\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
             "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n1\","
             "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
             "\"8\"}}}]},\"status\":{\"phase\":\"Running\"}}",
             false);
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    rig_pod_gone(&rig, "p", "u1");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
}

static void terminal_phases_free_memory(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    rig_pod(&rig, "q", "u2", 4, "n1", "0", "Running");
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Failed");
    assert_int_equal(rig_used(&rig, "n1", 0), 4);
    rig_pod(&rig, "q", "u2", 4, "n1", "0", "Succeeded");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
}

/* The watch's events come in order: what it shows after an end is newer. */
static void a_phase_that_goes_back_is_charged_again(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Failed");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Failed");
    rig_pod_gone(&rig, "p", "u1");
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running"); /* an object that is gone does not */
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
}

static void a_late_event_of_an_ended_pod_charges_nothing(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    rig_pod_gone(&rig, "p", "u1");
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
}

static void an_older_event_does_not_move_a_claim_back(void **state)
{
    char older[2048];
    rig_pod_json(&rig, older, sizeof(older), "p", "u1", 8, "n1", NULL, "Running");
    rig_pod(&rig, "p", "u1", 8, "n2", "1", "Running");
    rig_feed(&rig, older, false);
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    assert_int_equal(rig_used(&rig, "n1", 1), 0);
}

static void a_full_list_is_believed_even_when_it_is_older(void **state)
{
    char older[2048];
    rig_pod_json(&rig, older, sizeof(older), "p", "u1", 8, "n1", "0", "Running");
    rig_pod(&rig, "p", "u1", 8, "n1", "1", "Running");
    rig_pod_gone(&rig, "p", "u1");
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig_feed(&rig, older, false);
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

static void what_a_list_does_not_name_is_gone(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    expect_metric("\ngpushare_claims_swept_total 1\n");
}

static const struct {
    const char *row;
    const char *idx;
} forged[] = {
    {"no index", NULL},
    {"out of range", "7"},
    {"no number", "x"},
    {"negative", "-1"},
    {"far out of range", "999999999999"},
    {"empty entry", "0,"},
};

static void a_pod_without_a_valid_index_is_charged_on_every_gpu(void **state)
{
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        rig_pod_gone(&rig, "p", "u1");
        rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD); /* a UID that ended may come again */
        rig_pod(&rig, "p", "u1", 8, "n1", forged[i].idx, "Running");
        rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
        if (rig_used(&rig, "n1", 0) != 8 || rig_used(&rig, "n1", 1) != 8)
            fail_msg("%s", forged[i].row);
        expect_metric("\ngpushare_unplaced_claims 1\n");
    }
    rig_pod(&rig, "p", "u1", 8, "n1", "1", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    expect_metric("\ngpushare_unplaced_claims 0\n");
}

static void a_record_of_two_gpus_is_two_shares(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0,1", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 4);
    assert_int_equal(rig_used(&rig, "n1", 1), 4);
    expect_metric("\ngpushare_unplaced_claims 0\n");
}

static void a_record_that_cannot_be_is_charged_wherever_it_may_hold(void **state)
{
    rig_pod(&rig, "p", "u1", 7, "n1", "0,1", "Running"); /* bind divides nothing unequally */
    assert_int_equal(rig_used(&rig, "n1", 0), 7);
    assert_int_equal(rig_used(&rig, "n1", 1), 7);
    expect_metric("\ngpushare_unplaced_claims 1\n");
}

static void a_count_edited_later_makes_room_for_nobody(void **state)
{
    rig_pod(&rig, "p", "u1", 16, "n1", "0", "Running");
    rig_feed(&rig,
             "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u1\","
             "\"resourceVersion\":\"50\",\"labels\":{\"aliyun.com/gpu-count\":\"16\"},"
             "\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n1\","
             "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
             "\"16\"}}}]},\"status\":{\"phase\":\"Running\"}}",
             false);
    assert_int_equal(rig_used(&rig, "n1", 0), 16);
}

static void a_node_that_leaves_and_returns_finds_its_claims(void **state)
{
    struct gs_node gone = {.name = "n1"};
    struct gs_buf answer = GS_BUF(1 << 16);
    struct gs_error err = {0};
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    rig.sink.node_gone(rig.sink.ctx, &gone);
    assert_int_equal(gs_service_inspect(rig.service, "n1", &answer, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    rig_node(&rig, "n1", "16,16");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    gs_buf_release(&answer);
}

/* A node that the API did not show is known by its claims alone, and its name goes with the last.
 */
static void a_pod_may_leave_a_node_that_was_never_shown(void **state)
{
    rig_pod(&rig, "p", "u1", 8, "nowhere", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    rig_pod(&rig, "p", "u1", 8, "nowhere else", "0", "Running");
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
}

static void cpu_of_pods_that_were_there_before_the_gpus_is_read_again(void **state)
{
    static const char *const other =
        "{\"metadata\":{\"name\":\"o\",\"namespace\":\"default\",\"uid\":\"uo\"},\"spec\":{"
        "\"nodeName\":\"late\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
        "\"cpu\":\"2\"}}}]},\"status\":{\"phase\":\"Running\"}}";
    rig_feed(&rig, other, false);
    rig.listed[0] = other;
    gs_service_tick(rig.service); /* n1 is read: it gained its GPUs after the lists */
    expect_metric("\ngpushare_other_pods 0\n");
    rig_node(&rig, "late", "16");
    gs_service_tick(rig.service);
    expect_metric("\ngpushare_other_pods 1\n");
}

static void so_is_that_of_pods_listed_just_before_the_gpus_came(void **state)
{
    static const char *const other =
        "{\"metadata\":{\"name\":\"o\",\"namespace\":\"default\",\"uid\":\"uo\"},\"spec\":{"
        "\"nodeName\":\"late\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
        "\"cpu\":\"2\"}}}]},\"status\":{\"phase\":\"Running\"}}";
    rig_stop(&rig);
    rig_start(&rig);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_NODE);
    rig.sink.list_end(rig.sink.ctx, GS_KIND_NODE);
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig_feed(&rig, other, false);
    rig_node(&rig, "late", "16");
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    rig.listed[0] = other;
    gs_service_tick(rig.service);
    expect_metric("\ngpushare_other_pods 1\n");
}

static void pods_that_cannot_be_read_again_are_not_asked_for_at_every_tick(void **state)
{
    rig.list_code = GS_EDENIED;
    for (int tenths = 0; tenths < 300; tenths++) {
        rig_tick(&rig, GS_NS_PER_S / 10);
    }
    assert_in_range(rig.lists, 2, 7);
}

/* The list of a newcomer's pods was answered before the pod was deleted, and is taken in by another
 * thread than the watch's: during a list that does not show the pod, or after it. */
static void what_was_read_before_a_pod_ended_does_not_bring_it_back(void **state)
{
    static const char *const rows[] = {"before the list", "during the list", "after the list"};
    for (int when = 0; when < 3; when++) {
        char json[2048];
        rig_stop(&rig);
        rig_start(&rig);
        rig_lists(&rig);
        rig_node(&rig, "n5", "16");
        rig_pod(&rig, "old", "u0", 8, "n5", "0", "Running");
        rig.listed[0] =
            rig_pod_json(&rig, json, sizeof(json), "old", "u0", 8, "n5", "0", "Running");
        rig_pod_gone(&rig, "old", "u0");
        if (when > 0)
            rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
        if (when > 1)
            rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
        gs_service_tick(rig.service);
        assert_int_equal(rig.lists, 1);
        if (when == 1)
            rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
        if (rig_used(&rig, "n5", 0) != 0)
            fail_msg("%s: charged %ld", rows[when], rig_used(&rig, "n5", 0));
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_bound_pod_is_charged_until_it_ends_whatever_deletion_timestamp_says),
        T(terminal_phases_free_memory),
        T(a_phase_that_goes_back_is_charged_again),
        T(a_late_event_of_an_ended_pod_charges_nothing),
        T(an_older_event_does_not_move_a_claim_back),
        T(a_full_list_is_believed_even_when_it_is_older),
        T(what_a_list_does_not_name_is_gone),
        T(a_pod_without_a_valid_index_is_charged_on_every_gpu),
        T(a_record_of_two_gpus_is_two_shares),
        T(a_record_that_cannot_be_is_charged_wherever_it_may_hold),
        T(a_count_edited_later_makes_room_for_nobody),
        T(a_node_that_leaves_and_returns_finds_its_claims),
        T(a_pod_may_leave_a_node_that_was_never_shown),
        T(cpu_of_pods_that_were_there_before_the_gpus_is_read_again),
        T(so_is_that_of_pods_listed_just_before_the_gpus_came),
        T(pods_that_cannot_be_read_again_are_not_asked_for_at_every_tick),
        T(what_was_read_before_a_pod_ended_does_not_bring_it_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
