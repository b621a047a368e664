/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filter, prioritize, bind, the watch's events and start-up with their n-th allocation failing, for
 * every n: an error or an answer, never a crash, and the ledger says what the API would: a bind
 * that was told to have failed charges nothing, one that was told to have succeeded is charged.
 */
#include "service_rig.h"

#include "alloc_fail.h"
#include "gpushare/base/log.h"

enum { N_MAX = 2000 };

static struct rig rig;
static char pending[1 << 13];

static void begin(void)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "8,8");
    rig_node(&rig, "n2", "16");
    snprintf(pending, sizeof(pending), "%s",
             rig_json(&rig, (struct rig_pod){.name = "p", .units = 6}));
    rig_feed(&rig, pending, false);
}

/* The accounts agree with the claims, whatever failed. */
static void end(void)
{
    struct gs_buf text = GS_BUF(1 << 20);
    service_tick(rig.service);
    gs_service_metrics(rig.service, &text);
    assert_non_null(strstr(text.data, "\ngpushare_ledger_drift 0\n"));
    assert_non_null(strstr(text.data, "\ngpushare_overcommitted_gpus 0\n"));
    gs_buf_release(&text);
    rig_stop(&rig);
}

static void a_verb_answers_or_says_that_memory_is_out(void **state)
{
    static const struct {
        const char *row;
        rig_verb *verb;
        const char *body; /* %s: the pod */
        bool charges;
    } rows[] = {
        {"filter", gs_service_filter, "{\"Pod\":%s,\"NodeNames\":[\"n1\",\"n2\",\"n3\"]}", false},
        {"prioritize", gs_service_prioritize, "{\"Pod\":%s,\"NodeNames\":[\"n1\",\"n2\"]}", false},
        {"bind", service_bind,
         "{\"PodName\":\"p\",\"PodNamespace\":\"default\",\"PodUID\":\"up\",\"Node\":\"n2\"}",
         true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        unsigned n = 1, failures = 0;
        for (bool failed = true; failed && n < N_MAX; n++) {
            char body[1 << 14];
            begin();
            rig.get_json = pending;
            const char *pod = strstr(r->body, "%s");
            int before = pod ? (int)(pod - r->body) : (int)strlen(r->body);
            snprintf(body, sizeof(body), "%.*s%s%s", before, r->body, pod ? pending : "",
                     pod ? pod + 2 : "");
            struct gs_buf answer = GS_BUF(1 << 20);
            struct gs_error err = {0};
            alloc_fail_begin(n);
            int rc = r->verb(rig.service, body, strlen(body), &answer, &err);
            failed = alloc_fail_end();
            if (rc < 0)
                assert_int_equal(err.code, GS_ENOMEM);
            failures += rc < 0;
            if (r->charges)
                assert_int_equal(rig_used(&rig, "n2", 0), rig.binds ? 6 : 0);
            gs_buf_release(&answer);
            end();
        }
        print_message("%s: %u allocations, %u attempts without answer\n", r->row, n - 2, failures);
        assert_in_range(n, 3, N_MAX - 1);
    }
}

/* The n-th allocation fails; *ret_failed: one did. */
static int feed_bound(unsigned n, bool gone, bool *ret_failed)
{
    struct gs_pod pod = {0};
    const struct rig_pod bound = {.name = "p", .units = 6, .node = "n2", .idx = "0"};
    assert_int_equal(gs_codec_pod(&rig.names, gs_slice_of(rig_json(&rig, bound)), &pod, NULL), 0);
    alloc_fail_begin(n);
    int rc = gone ? rig.sink.pod_gone(rig.sink.ctx, &pod) : rig.sink.pod(rig.sink.ctx, &pod);
    *ret_failed = alloc_fail_end();
    gs_pod_release(&pod);
    return rc;
}

static void an_event_is_taken_in_whole_or_asked_for_again(void **state)
{
    unsigned n = 1;
    for (bool failed = true; failed && n < N_MAX; n++) {
        bool unused;
        begin();
        int rc = feed_bound(n, false, &failed);
        /* -1 makes the watch list again, which tells it once more */
        assert_int_equal(rig_used(&rig, "n2", 0), rc < 0 ? 0 : 6);
        assert_int_equal(feed_bound(N_MAX, false, &unused), 0);
        assert_int_equal(rig_used(&rig, "n2", 0), 6);
        feed_bound(1, true, &unused);
        assert_int_equal(rig_used(&rig, "n2", 0), 0);
        end();
    }
    assert_in_range(n, 2, N_MAX - 1);
}

static void start_up_ends_cleanly(void **state)
{
    struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", NULL), 0);
    const struct gs_service_config config = {
        .names = &names, .clock = gs_clock_system(), .policy = GS_PLACEMENT_ROLLOUT};
    unsigned n = 1;
    for (bool failed = true; failed && n < N_MAX; n++) {
        struct gs_error err = {0};
        alloc_fail_begin(n);
        struct gs_service *service = gs_service_new(&config, &err);
        failed = alloc_fail_end();
        assert_true(failed ? !service && err.code == GS_ENOMEM : service != NULL);
        gs_service_free(service);
    }
    assert_in_range(n, 3, N_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verb_answers_or_says_that_memory_is_out),
        cmocka_unit_test(an_event_is_taken_in_whole_or_asked_for_again),
        cmocka_unit_test(start_up_ends_cleanly),
    };
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    return GS_RUN(tests);
}
