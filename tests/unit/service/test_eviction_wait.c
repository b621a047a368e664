/* SPDX-License-Identifier: Apache-2.0 */
/* A pod that others were evicted for comes to filter before the watch has shown that they went. */
#include "../../../src/service/service_internal.h"

#include <pthread.h>

#include "service_rig.h"

static struct rig rig;
static const struct gs_cluster_owner nobody = {0};

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "a", "ua", 16, "n1", "0", "Running");
    rig_pod(&rig, "b", "ub", 16, "n2", "0", "Running");
    *state = &rig;
    return 0;
}

/* Approves that a goes from n1, for the pod "up". */
static void approve(void)
{
    rig_expect(rig_ask(&rig, gs_service_preempt,
                       "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":"
                       "\"up\"},\"spec\":{\"priority\":10,\"containers\":[{\"name\":\"c\","
                       "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}]}},"
                       "\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"ua\"}]}}}"),
               "\"UID\":\"ua\"");
}

static char *filter(const char *uid, const char *names)
{
    char json[2048];
    rig_pod_json(&rig, json, sizeof(json), "p", uid, 8, NULL, NULL, "Pending");
    return rig_filter(&rig, json, names);
}

static uint64_t waits_begun(void)
{
    struct gs_eviction_waits *eviction_waits = &rig.service->eviction_waits;
    pthread_mutex_lock(&eviction_waits->lock);
    uint64_t begun = eviction_waits->waits;
    pthread_mutex_unlock(&eviction_waits->lock);
    return begun;
}

/* How long one filter waits, and all after an approval that is still to come. */
static void let_wait(int64_t each_ns, int64_t budget_ns)
{
    rig.service->eviction_waits.each_ns = each_ns;
    rig.service->eviction_waits.budget_ns = budget_ns;
}

struct late {
    const char *name, *uid;
    uint64_t after; /* so many waits have begun */
    char json[2048];
};

static void *show_the_end(void *ctx)
{
    const struct late *late = ctx;
    for (int i = 0; i < 10000 && waits_begun() < late->after; i++)
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL);
    rig_feed(&rig, late->json, true);
    return NULL;
}

/* The watch shows the ends of these pods while filter is asked about a pod. */
static char *filter_meanwhile(const char *uid, const char *names, struct late *ends, int count)
{
    pthread_t threads[2];
    char json[2048];
    rig_pod_json(&rig, json, sizeof(json), "p", uid, 8, NULL, NULL, "Pending");
    for (int i = 0; i < count; i++) /* before any thread: the rig counts revisions */
        rig_pod_json(&rig, ends[i].json, sizeof(ends[i].json), ends[i].name, ends[i].uid, 1, NULL,
                     NULL, "Running");
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, show_the_end, &ends[i]), 0);
    char *answer = rig_filter(&rig, json, names);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return answer;
}

static void filter_waits_for_the_end_of_a_victim(void **state)
{
    struct late end = {.name = "a", .uid = "ua", .after = 1};
    let_wait(3600 * GS_NS_PER_S, 3600 * GS_NS_PER_S);
    approve();
    rig_expect(filter_meanwhile("up", "\"n1\",\"n2\"", &end, 1), "\"NodeNames\":[\"n1\"]");
}

static void the_end_of_another_pod_does_not_end_the_wait(void **state)
{
    struct late ends[] = {{.name = "stranger", .uid = "us", .after = 1},
                          {.name = "a", .uid = "ua", .after = 2}};
    let_wait(3600 * GS_NS_PER_S, 3600 * GS_NS_PER_S);
    rig_node(&rig, "n3", "4");
    rig_pod(&rig, "stranger", "us", 4, "n3", "0", "Running");
    approve();
    rig_expect(filter_meanwhile("up", "\"n1\"", ends, 2), "\"NodeNames\":[\"n1\"]");
}

static void a_victim_that_stays_is_a_refusal_in_the_end(void **state)
{
    let_wait(GS_NS_PER_MS, GS_NS_PER_S);
    approve();
    rig_expect(filter("up", "\"n1\""), "\"FailedNodes\":{\"n1\":");
    assert_int_equal(waits_begun(), 1);
}

static void nobody_else_waits(void **state)
{
    approve();
    for (int i = 0; i < 10; i++) {
        rig_expect(filter("other", "\"n1\""), "\"FailedNodes\":{\"n1\":");
        rig_expect(filter("up", "\"n2\""), "\"FailedNodes\":{\"n2\":");
    }
    assert_int_equal(waits_begun(), 0);
}

static void all_waits_after_an_approval_have_a_budget(void **state)
{
    let_wait(10 * GS_NS_PER_MS, 25 * GS_NS_PER_MS);
    approve();
    for (int i = 0; i < 20; i++)
        rig_expect(filter("up", "\"n1\""), "\"FailedNodes\":{\"n1\":");
    assert_in_range(waits_begun(), 1, 3); /* each takes its time at least */
    approve();
    rig_expect(filter("up", "\"n1\""), "\"FailedNodes\":{\"n1\":");
    assert_in_range(waits_begun(), 2, 4);
}

static void where_it_fits_nobody_waits(void **state)
{
    approve();
    rig_node(&rig, "n3", "16");
    for (int i = 0; i < 10; i++)
        rig_expect(filter("up", "\"n1\",\"n3\""), "\"NodeNames\":[\"n3\"]");
    assert_int_equal(waits_begun(), 0);
}

/* On a thread that reads connections. */
static void it_may_be_asked_whether_it_would_wait(void **state)
{
    struct gs_buf answer = GS_BUF(1 << 16);
    struct gs_error err = {0};
    char json[2048], body[4096];
    bool waits = true;
    rig_pod_json(&rig, json, sizeof(json), "p", "up", 8, NULL, NULL, "Pending");
    int len = snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", json);
    assert_int_equal(
        gs_service_filter_at_once(rig.service, body, (size_t)len, &answer, &waits, &err), 0);
    assert_false(waits); /* nobody went for it */
    assert_non_null(strstr(answer.data, "FailedNodes"));
    gs_buf_reset(&answer);
    approve();
    assert_int_equal(
        gs_service_filter_at_once(rig.service, body, (size_t)len, &answer, &waits, &err), 0);
    assert_true(waits);
    assert_int_equal(answer.len, 0);
    rig_pod_gone(&rig, "a", "ua");
    assert_int_equal(
        gs_service_filter_at_once(rig.service, body, (size_t)len, &answer, &waits, &err), 0);
    assert_false(waits);
    assert_non_null(strstr(answer.data, "\"n1\""));
    assert_int_equal(waits_begun(), 0);
    gs_buf_release(&answer);
}

/* Workers that wait bind nobody. */
static void only_a_few_wait_at_a_time(void **state)
{
    struct gs_eviction_waits eviction_waits;
    struct gs_store store;
    const struct gs_victims cleared[] = {{.node = "n1"}, {.node = "n1"}, {.node = "n0"}};
    const struct gs_slice names[] = {GS_SLICE("n2"), GS_SLICE("n1")};
    int64_t left_ns = 10 * GS_NS_PER_MS;
    assert_int_equal(gs_store_init(&store, &nobody, NULL), 0);
    gs_eviction_waits_init(&eviction_waits);
    gs_eviction_waits_add(&eviction_waits, "up", cleared, 3);
    assert_true(gs_eviction_waits_due(&eviction_waits, "up", names, 2));
    assert_false(gs_eviction_waits_due(&eviction_waits, "up", names, 1));
    assert_false(gs_eviction_waits_due(&eviction_waits, "other", names, 2));
    eviction_waits.waiters = GS_EVICTION_WAITERS_MAX;
    assert_false(gs_eviction_waits_wait(&eviction_waits, &store, "up", names, 2, 0, &left_ns));
    assert_int_equal(left_ns, 10 * GS_NS_PER_MS); /* not a moment */
    eviction_waits.waiters--;
    assert_false(gs_eviction_waits_wait(&eviction_waits, &store, "up", names, 2, 0, &left_ns));
    assert_true(left_ns <= 0);
    assert_int_equal(eviction_waits.waiters, GS_EVICTION_WAITERS_MAX - 1);
    gs_eviction_waits_release(&eviction_waits);
    gs_store_release(&store);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(filter_waits_for_the_end_of_a_victim),
        T(the_end_of_another_pod_does_not_end_the_wait),
        T(a_victim_that_stays_is_a_refusal_in_the_end),
        T(nobody_else_waits),
        T(all_waits_after_an_approval_have_a_budget),
        T(where_it_fits_nobody_waits),
        T(it_may_be_asked_whether_it_would_wait),
        T(only_a_few_wait_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
