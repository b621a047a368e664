/* SPDX-License-Identifier: Apache-2.0 */
/* A pod that others were evicted for comes to filter before the watch has shown that they went. */
#include "extender/service/service_internal.h"

#include <pthread.h>

#include "rows.h"
#include "service_rig.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "a", 16, "n1", "0");
    rig_pod(&rig, "b", 16, "n2", "0");
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
    const struct rig_pod pod = {.name = "p", .uid = uid, .units = 8};
    return rig_filter(&rig, rig_json(&rig, pod), names);
}

static uint64_t waits_begun(void)
{
    gs_service_read(rig.service);
    uint64_t begun = rig.service->eviction_waits.waits;
    gs_service_unlock(rig.service);
    return begun;
}

/* How long one filter waits, and all after an approval that is still to come. */
static void let_wait(int64_t each_ns, int64_t budget_ns)
{
    rig.service->eviction_waits.each_ns = each_ns;
    rig.service->eviction_waits.budget_ns = budget_ns;
}

/* The watch shows that a ended while filter waits. */
static void *show_the_end(void *unused)
{
    for (int i = 0; i < 10000 && waits_begun() < 1; i++)
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL);
    rig_pod_gone(&rig, "a");
    return NULL;
}

static void filter_waits_for_the_end_of_a_victim(void **state)
{
    pthread_t thread;
    let_wait(3600 * GS_NS_PER_S, 3600 * GS_NS_PER_S);
    approve();
    assert_int_equal(pthread_create(&thread, NULL, show_the_end, NULL), 0);
    rig_expect(filter("up", "\"n1\",\"n2\""), "\"NodeNames\":[\"n1\"]");
    pthread_join(thread, NULL);
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

/* Workers that wait bind nobody. */
static void only_a_few_wait_at_a_time(void **state)
{
    struct gs_service *service = rig.service;
    const struct gs_victims cleared[] = {{.node = "n1"}, {.node = "n1"}, {.node = "n0"}};
    const struct gs_slice names[] = {GS_SLICE("n2"), GS_SLICE("n3"), GS_SLICE("n1")};
    const uint64_t frees = service->gains.frees;
    int64_t left_ns = 10 * GS_NS_PER_MS;
    gs_eviction_waits_add(service, &(struct gs_pod){.uid = "up", .ns = "d"}, cleared, 3);
    assert_true(gs_eviction_waits_left_ns(service, "up", names, 3) > 0);
    assert_int_equal(gs_eviction_waits_left_ns(service, "up", names, 2), 0);
    assert_int_equal(gs_eviction_waits_left_ns(service, "other", names, 3), 0);
    service->eviction_waits.waiters = GS_EVICTION_WAITERS_MAX;
    assert_false(gs_eviction_waits_wait(service, "up", GS_NS_PER_S, frees, &left_ns));
    assert_int_equal(left_ns, 10 * GS_NS_PER_MS); /* not a moment */
    service->eviction_waits.waiters--;
    assert_false(gs_eviction_waits_wait(service, "up", GS_NS_PER_S, frees, &left_ns));
    assert_true(left_ns <= 0);
    assert_true(gs_eviction_waits_left_ns(service, "up", names, 3) > 0); /* in its next filter */
    left_ns = GS_NS_PER_MS; /* nor does one stay whose pod is gone meanwhile */
    assert_false(gs_eviction_waits_wait(service, "gone", GS_NS_PER_S, frees, &left_ns));
    assert_int_equal(service->eviction_waits.waiters, GS_EVICTION_WAITERS_MAX - 1);
}

/* Pods p and q are pending, and their UIDs are their names. */
static void start(void)
{
    void *unused;
    rig_stop(&rig);
    setup(&unused);
    for (const char *uid = "p\0q\0r\0"; *uid; uid += 2)
        rig_feed(&rig, rig_json(&rig, (struct rig_pod){.name = uid, .uid = uid}), false);
}

/* By pod, "p" is the first: the digit of the node where its victim went. */
static const char *where(void)
{
    static char at[4];
    for (int i = 0; i < 3; i++) {
        struct gs_waiter *waiter =
            gs_pending_lock(rig.service->pending, (char[2]){(char)('p' + i)});
        at[i] = waiter->freed ? waiter->freed[1] : '-';
        gs_pending_unlock(rig.service->pending, waiter);
    }
    return at;
}

static struct gs_slice node_named(char digit)
{
    static const char names[] = "n1\0n2\0n3";
    return gs_slice_of(&names[3 * (digit - '1')]);
}

/* "p1a+2bc": approved for p are a on n1, and b and c on n2. "-a1": a goes from n1. "p>1": p is
 * nominated there. "p.": it ended. */
static void step(const char *text)
{
    struct gs_service *service = rig.service;
    static char uids[8][2];
    const char pod[2] = {text[0]};
    struct gs_victim victims[8];
    struct gs_victims nodes[4] = {0};
    uint32_t count = 0, to = 0;
    for (const char *c = text + 1; *c && *c != ' '; c++) {
        if (*c >= '1' && *c <= '3') {
            nodes[count++] = (struct gs_victims){.node = node_named(*c).at, .pods = &victims[to]};
        } else if (*c >= 'a' && *c <= 'd') {
            uids[to][0] = *c;
            victims[to] = (struct gs_victim){.uid = uids[to]};
            nodes[count ? count - 1 : 0].pod_count++;
            to++;
        }
    }
    const struct gs_pod going = {.uid = uids[0], .node_name = nodes[0].node};
    if (*text != '-' && text[1] != '>' && text[1] != '.') {
        gs_eviction_waits_add(service, &(struct gs_pod){.uid = pod, .ns = "d"}, nodes, count);
        return;
    }
    gs_service_write(service);
    if (*text == '-')
        gs_eviction_waits_go(service, &going);
    else
        gs_eviction_waits_settle(service, pod, nodes[0].node);
    gs_service_unlock(service);
}

/* Each is approved in that order; what is not at any node is '-'. */
static const struct {
    const char *row, *steps, *at;
} chosen[] = {
    {"the first of the pod's victims", "p1a+2b -b2 -a1", "2--"},
    {"all of one node", "p1ab -a1 -b1", "1--"},
    {"none of its own", "p1a -b1 -a2", "---"},
    /* what was chosen for p is not among q's */
    {"two at a time", "p1a+2b q2b -a1 -b2", "12-"},
    {"two, the other order", "p1a+2b q2b -b2 -a1", "12-"},
    {"two on one node", "p1a q1ab -a1 -b1", "11-"},
    {"three on one node", "p1a q1ab r1abc -a1 -b1 -c1", "111"},
    {"each goes twice, as it is marked first", "p1a+2b q1a+2b -a1 -a1", "-1-"},
    {"a nomination shows which it was", "p1a+2b q1a+2b -a1 -b2 p>1", "22-"},
    {"a pod with two victims takes none of another's", "p1ab q1b+2c -a1 -b1 -c2", "12-"},
    {"asked again meanwhile, its order stays", "p1a+2b q2b p2b -b2 -a1", "12-"},
    {"a second preemption", "p1a -a1 p2b -b2", "2--"},
    {"asked again after it went, it takes nobody's", "p1a+2b q2b -a1 p2b -b2", "12-"},
    {"a second preemption while the first victim goes", "p1a -a1 p2b -a1 -b2", "2--"},
    {"a third before a victim went", "p1a p2b p3c -c3", "3--"},
    {"what it took was another's of that node", "p1ab q1b+2c r1b+3d -a1 -c2 -b1 -d3", "123"},
    {"no second preemption", "p1a+2b -a1 -b2", "1--"},
    {"it ended", "p1a q1a q. -a1", "1--"},
    {"it is not known", "x1a -a1", "---"},
    {"nor one that was approved later", "p1a x1a -a1", "1--"},
    {"10 seconds later", "p1a ~ -a1", "---"},
};

static void a_victim_goes_for_one_pod(void **state)
{
    GS_FOR_EACH_ROW (row, chosen) {
        start();
        for (const char *step_at = row->steps; step_at; step_at = strchr(step_at + 1, ' ')) {
            step_at += *step_at == ' ';
            if (*step_at == '~')
                rig.now_ns += GS_EVICTION_BEGINS_NS;
            else
                step(step_at);
        }
        row_text(row->row, where(), row->at);
    }
}

static void the_oldest_approval_of_the_largest_namespace_makes_room(void **state)
{
    for (int others = 0; others < 2; others++) {
        start();
        step("p1a");
        step("q2b");
        for (int i = 0; i < GS_EVICTION_WAITS_MAX - 1 + others; i++) {
            const struct gs_pod pod = {.uid = (char[3]){'x', (char)('0' + i)},
                                       .ns = others ? "e" : "d"};
            gs_eviction_waits_add(rig.service, &pod, NULL, 0);
        }
        step("-a1");
        step("-b2");
        assert_string_equal(where(), others ? "12-" : "-2-");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(filter_waits_for_the_end_of_a_victim),
        T(a_victim_that_stays_is_a_refusal_in_the_end),
        T(nobody_else_waits),
        T(all_waits_after_an_approval_have_a_budget),
        T(where_it_fits_nobody_waits),
        T(only_a_few_wait_at_a_time),
        T(a_victim_goes_for_one_pod),
        T(the_oldest_approval_of_the_largest_namespace_makes_room),
    };
    return GS_RUN(tests);
}
