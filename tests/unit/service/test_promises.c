/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rows.h"

#include "../../../src/service/service_internal.h"

static struct rig rig;

/* One node with 16 and 6 units free. */
static int setup(void **state)
{
    rig_start_as(&rig, (struct gs_service_config){.nominates = true});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,6");
    gs_service_tick(rig.service);
    *state = &rig;
    return 0;
}

#define COSCHEDULING "'labels':{'scheduling.x-k8s.io/pod-group':'g'}"

static const char *pod_of(const char *name, unsigned units, int priority, const char *labels,
                          const char *spec, const char *nominated)
{
    static char json[2048];
    snprintf(
        json, sizeof(json),
        "{'metadata':{'name':'%s','namespace':'default','uid':'u-%s','resourceVersion':'%llu'"
        "%s%s},'spec':{%s'priority':%d,'containers':[{'name':'c','resources':{'limits':{"
        "'aliyun.com/gpu-mem':'%u'}}}]},'status':{'phase':'Pending','nominatedNodeName':'%s'}}",
        name, name, (unsigned long long)++rig.revision, labels[0] ? "," : "", labels, spec,
        priority, units, nominated);
    rig_quote(json);
    return json;
}

static const char *member(const char *name, unsigned units)
{
    return pod_of(name, units, 0, COSCHEDULING, "", "");
}

static const char *single(const char *name, unsigned units)
{
    return pod_of(name, units, 0, "", "", "");
}

static bool fits_on(const char *pod_json, const char *names, const char *node)
{
    char wanted[80], asked[4096];
    snprintf(asked, sizeof(asked), "%s", names);
    rig_quote(asked);
    char *answer = rig_filter(&rig, pod_json, asked);
    snprintf(wanted, sizeof(wanted), "\"NodeNames\":[\"%s\"]", node);
    const bool fits = strstr(answer, wanted) != NULL;
    if (!fits && !strstr(answer, "\"NodeNames\":[]"))
        fail_msg("neither %s alone nor none: %s", node, answer);
    free(answer);
    return fits;
}

static bool fits(const char *pod_json)
{
    return fits_on(pod_json, "'n1'", "n1");
}

static void expect_promised(unsigned count)
{
    struct gs_buf page = GS_BUF(1 << 20);
    char line[64];
    gs_service_metrics(rig.service, &page);
    gs_buf_putc(&page, '\0');
    snprintf(line, sizeof(line), "\ngpushare_promised_pods %u\n", count);
    if (!strstr(page.data, line))
        fail_msg("not %u: %.60s", count, strstr(page.data, "\ngpushare_promised_pods "));
    gs_buf_release(&page);
}

static void bind(const char *name, const char *part)
{
    char uid[64];
    snprintf(uid, sizeof(uid), "u-%s", name);
    rig_expect(rig_try_bind(&rig, name, uid, "n1"), part);
}

#define BOUND "\"Error\":\"\""

static void the_next_member_is_judged_beside_the_first(void **state)
{
    static const struct {
        const char *row, *labels, *spec;
        bool group;
    } rows[] = {
        {"no group", "", "", false},
        {"another label", "'labels':{'pod-group':'g'}", "", false},
        {"a group without a name", "", "'schedulingGroup':{},", false},
        {"an empty label", "'labels':{'scheduling.x-k8s.io/pod-group':''}", "", false},
        {"PodGroup", "", "'schedulingGroup':{'podGroupName':'g'},", true},
        {"Coscheduling", COSCHEDULING, "", true},
        {"Coscheduling before", "'labels':{'pod-group.scheduling.sigs.k8s.io':'g'}", "", true},
        {"both", COSCHEDULING, "'schedulingGroup':{'podGroupName':'h'},", true},
    };
    GS_FOR_EACH_ROW (row, rows) {
        rig_stop(&rig);
        setup(state);
        row_true(row->row, fits(pod_of("m0", 10, 0, row->labels, row->spec, "")));
        expect_promised(row->group);
        row_equal(row->row, fits(pod_of("m1", 10, 0, row->labels, row->spec, "")), !row->group);
        row_true(row->row, fits(pod_of("m2", 6, 0, row->labels, row->spec, "")));
        row_equal(row->row, fits(single("s", 7)), !row->group);
    }
}

/* The launcher of a job is often worth more than its workers. */
static void a_member_keeps_off_its_group_whatever_its_priority(void **state)
{
    assert_true(fits(pod_of("m0", 10, 0, COSCHEDULING, "", "")));
    assert_false(fits(pod_of("m1", 10, 5, COSCHEDULING, "", "")));
    assert_true(fits(pod_of("m2", 6, 5, COSCHEDULING, "", "")));
    assert_false(fits(pod_of("s", 16, 4, "", "", "n1")));
    assert_true(fits(pod_of("o", 10, 5, "", "'schedulingGroup':{'podGroupName':'other'},", "")));
}

static void whole_nodes_that_are_asked_about_promise_nothing(void **state)
{
    char body[4096], nodes[] = "{'metadata':{'name':'n1'},'status':{'capacity':{"
                               "'aliyun.com/gpu-mem':'22','aliyun.com/gpu-count':'2'}}}";
    rig_quote(nodes);
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"Nodes\":{\"items\":[%s]}}", member("m0", 10),
             nodes);
    rig_expect(rig_ask(&rig, gs_service_filter, body), "\"n1\"");
    expect_promised(0);
    assert_true(fits(single("s", 16)));
}

static void the_best_node_alone_is_named(void **state)
{
    rig_node(&rig, "n2", "12");
    rig_node(&rig, "n3", "10");
    assert_true(fits_on(member("m0", 10), "'n1','n2','n3'", "n3"));
    assert_true(fits_on(member("m1", 10), "'n1','n2','n3'", "n2"));
    assert_true(fits_on(member("m2", 10), "'n1','n2','n3'", "n1"));
    assert_false(fits_on(member("m3", 10), "'n1','n2','n3'", "n1"));
}

/* m1 alone would be bound to the GPU on which m0 has its place. */
static void members_are_bound_to_the_gpus_that_they_were_promised(void **state)
{
    rig_node(&rig, "n1", "16,12");
    assert_true(fits(member("m0", 12)));
    assert_true(fits(member("m1", 8)));
    for (int i = 1; i >= 0; i--) {
        const char *name = i ? "m1" : "m0";
        rig_feed(&rig, member(name, i ? 8 : 12), false);
        bind(name, BOUND);
        assert_non_null(strstr(rig.annotations, i ? "GPU_MEM_IDX=0;" : "GPU_MEM_IDX=1;"));
        expect_promised((unsigned)i);
    }
}

/* Where it would go by what is free when it is bound, another may have been judged beside it. */
static void a_promise_is_of_the_gpus_that_were_best_when_it_was_made(void **state)
{
    rig_node(&rig, "n1", "16,16");
    rig_pod(&rig, "x", "ux", 4, "n1", "1", "Running");
    assert_true(fits(member("m0", 8)));
    rig_pod_gone(&rig, "x", "ux");
    rig_feed(&rig, member("m0", 8), false);
    bind("m0", BOUND);
    assert_non_null(strstr(rig.annotations, "GPU_MEM_IDX=1;"));
}

/* Whoever is nominated to the node sits down where nothing is promised: to m0 as well, whose own
 * place is no obstacle to itself. */
static void nominated_pods_do_not_sit_where_a_member_is_promised(void **state)
{
    rig_node(&rig, "n1", "16,16");
    assert_true(fits(member("m0", 12)) && fits(member("m1", 4)));
    rig_feed(&rig, pod_of("s0", 8, 0, "", "", "n1"), false);
    rig_feed(&rig, pod_of("s1", 8, 0, "", "", "n1"), false);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "m1" : "m0";
        rig_feed(&rig, member(name, i ? 4 : 12), false);
        bind(name, BOUND);
        assert_non_null(strstr(rig.annotations, "GPU_MEM_IDX=0;"));
    }
}

/* In inspect of the node, and among the promises of all nodes. */
static void expect_inspected(const char *promised)
{
    struct gs_buf answer = GS_BUF(1 << 20), all = GS_BUF(1 << 20);
    char wanted[512], of_all[600];
    snprintf(wanted, sizeof(wanted), "%s%s", promised, promised[0] ? "}]}\n" : "");
    rig_quote(wanted);
    assert_int_equal(gs_service_inspect(rig.service, "n1", &answer, NULL), 0);
    gs_buf_putc(&answer, '\0');
    const char *found = strstr(answer.data, ",\"promised\"");
    assert_string_equal(found ? found : "", wanted);
    gs_buf_release(&answer);
    snprintf(of_all, sizeof(of_all), "{%s,'policy':'binpack'}\n",
             promised[0] ? promised + 1 : "'promised':[]");
    rig_quote(of_all);
    assert_int_equal(gs_service_promised(rig.service, &all, NULL), 0);
    gs_buf_putc(&all, '\0');
    assert_string_equal(all.data, of_all);
    gs_buf_release(&all);
}

static void inspect_names_group_and_time_left(void **state)
{
    expect_inspected("");
    assert_true(fits(member("m0", 10)) && fits(member("m1", 6)));
    rig_tick(&rig, 2 * GS_NS_PER_S);
    expect_inspected(
        ",'promised':[{'uid':'u-m0','node':'n1','group':'default/g','devs':[0],'usedGPU':10,"
        "'millisecondsLeft':3000},{'uid':'u-m1','node':'n1','group':'default/g','devs':[0],"
        "'usedGPU':6,'millisecondsLeft':3000}]");
    assert_false(fits(member("m2", 10)));
    rig_tick(&rig, 100 * GS_NS_PER_MS);
    expect_inspected(
        ",'promised':[{'uid':'u-m0','node':'n1','group':'default/g','devs':[0],'usedGPU':10,"
        "'millisecondsLeft':200},{'uid':'u-m1','node':'n1','group':'default/g','devs':[0],"
        "'usedGPU':6,'millisecondsLeft':200}]");
    rig_tick(&rig, GS_PROMISE_NS);
    expect_inspected("");
}

static void binds_beside_promises_are_refused(void **state)
{
    assert_true(fits(member("m0", 10)));
    rig_feed(&rig, single("s", 10), false);
    bind("s", "held for a nominated pod or a member of a pod group");
    rig_feed(&rig, pod_of("low", 10, -1, "", "", ""), false);
    bind("low", "member of a pod group");
    rig_feed(&rig, pod_of("high", 10, 1, "", "", ""), false);
    assert_true(fits(pod_of("high", 10, 1, "", "", "")));
    bind("high", BOUND);
    rig_feed(&rig, member("m0", 10), false);
    bind("m0", "no single GPU has enough");
}

static void a_new_cycle_ends_all_promises_of_its_group(void **state)
{
    rig_node(&rig, "n1", "16,16,16");
    assert_true(fits(member("m0", 10)) && fits(member("m1", 10)));
    assert_true(
        fits(pod_of("other", 10, 0, "'labels':{'scheduling.x-k8s.io/pod-group':'h'}", "", "")));
    expect_promised(3);
    assert_true(fits(member("m1", 10)));
    expect_promised(2);
    assert_true(fits(member("m0", 10)));
    expect_promised(3);
    assert_false(fits(member("m2", 10)));
    assert_true(fits(member("m2", 3)));
    expect_promised(2); /* refused before, and asked again */
}

/* kube-scheduler comes back when the first place of a cycle is over and the last one is not. */
static void a_retry_beside_places_of_the_last_cycle_is_a_new_one(void **state)
{
    assert_true(fits(member("m0", 16)));
    rig_tick(&rig, 3 * GS_NS_PER_S);
    assert_true(fits(member("m1", 6)));
    rig_tick(&rig, 3 * GS_NS_PER_S);
    expect_promised(1);
    assert_true(fits(member("m0", 6)));
    expect_promised(1);
    assert_true(fits(member("m1", 6)));
    expect_promised(2);
    assert_false(fits(member("m2", 11)));
}

static void after_a_refusal_promises_last_a_moment(void **state)
{
    char waiter[2048];
    assert_true(fits(member("m0", 10)));
    snprintf(waiter, sizeof(waiter), "%s", single("s", 16));
    rig_feed(&rig, waiter, false);
    assert_false(fits(waiter));
    rig_feed(&rig, member("m1", 10), false);
    assert_false(fits(member("m1", 10)));
    rig_tick(&rig, 290 * GS_NS_PER_MS);
    expect_promised(1);
    rig_tick(&rig, 20 * GS_NS_PER_MS);
    expect_promised(0);
    for (int i = 0; i < 5; i++)
        rig_tick(&rig, 100 * GS_NS_PER_MS);
    assert_int_equal(rig.patches, 1); /* m1 is not woken for its own group's room */
    assert_non_null(strstr(rig.patched, "default/s "));
    assert_true(fits(waiter));
}

static void promises_last_five_seconds_at_most(void **state)
{
    char waiter[2048];
    assert_true(fits(member("m0", 10)));
    snprintf(waiter, sizeof(waiter), "%s", single("s", 16));
    rig_feed(&rig, waiter, false);
    assert_false(fits(waiter));
    for (int i = 0; i < 49; i++)
        rig_tick(&rig, 100 * GS_NS_PER_MS);
    expect_promised(1);
    assert_int_equal(rig.patches, 0);
    for (int i = 0; i < 10; i++)
        rig_tick(&rig, 100 * GS_NS_PER_MS);
    expect_promised(0);
    assert_int_equal(rig.patches, 1);
    assert_non_null(strstr(rig.patched, "default/s "));
}

static void a_bind_or_the_end_of_the_pod_ends_its_promise(void **state)
{
    assert_true(fits(member("m0", 10)));
    rig_feed(&rig, member("m0", 10), false);
    bind("m0", BOUND);
    expect_promised(0);
    assert_int_equal(rig_used(&rig, "n1", 0), 10);
    rig_pod_gone(&rig, "m0", "u-m0");

    assert_true(fits(member("m1", 10)));
    rig_pod_gone(&rig, "m1", "u-m1");
    expect_promised(0);
    assert_true(fits(single("s", 16)));
    assert_true(fits(member("m1", 10))); /* kube-scheduler's caches are behind */
    expect_promised(0);
    rig_tick(&rig, GS_NS_PER_S);

    assert_true(fits(member("m2", 10)));
    rig_feed(&rig, member("m2", 10), false);
    rig.bind_code = GS_EBUSY;
    bind("m2", "bind failed");
    expect_promised(0);
    assert_true(fits(single("s", 16)));
    assert_true(fits(member("m2", 10))); /* its own bind is no new cycle */
    expect_promised(1);
}

static void the_own_nomination_counts_again(void **state)
{
    char nominated[2048];
    rig_node(&rig, "n2", "12");
    snprintf(nominated, sizeof(nominated), "%s", pod_of("m0", 10, 0, COSCHEDULING, "", "n2"));
    rig_feed(&rig, nominated, false);
    assert_false(fits_on(single("s", 12), "'n2'", "n2"));
    assert_true(fits(nominated));
    assert_true(fits_on(single("s", 12), "'n2'", "n2"));
    rig_feed(&rig, nominated, false); /* an event changes nothing */
    expect_promised(1);
    assert_false(fits(single("s", 16)));
    rig_tick(&rig, GS_PROMISE_NS);
    expect_promised(0);
    assert_true(fits(single("s", 16)));
    assert_false(fits_on(single("s", 12), "'n2'", "n2"));
}

/* kube-scheduler asks about the nominated node first, and then about all. */
static void a_nominated_member_that_is_asked_about_twice_ends_no_cycle(void **state)
{
    rig_node(&rig, "n2", "6");
    assert_true(fits(member("m0", 10)));
    assert_false(fits_on(pod_of("m1", 6, 0, COSCHEDULING, "", "n1"), "'n1'", "n1") &&
                 fits_on(pod_of("m2", 12, 0, COSCHEDULING, "", "n2"), "'n2'", "n2"));
    expect_promised(2);
    assert_false(fits_on(pod_of("m2", 12, 0, COSCHEDULING, "", "n2"), "'n1','n2'", "n2"));
    expect_promised(2);
    assert_true(fits_on(pod_of("m2", 12, 0, COSCHEDULING, "", "n2"), "'n1','n2'", "n1"));
    expect_promised(1);
}

static void a_list_ends_no_promise(void **state)
{
    assert_true(fits(member("m0", 10)));
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
    expect_promised(1);
    assert_false(fits(single("s", 16)));
}

static void members_are_woken_and_not_nominated(void **state)
{
    for (int group = 0; group < 2; group++) {
        char json[2048];
        rig_stop(&rig);
        setup(state);
        rig_node(&rig, "n2", "2");
        snprintf(json, sizeof(json), "%s", pod_of("m0", 10, 0, group ? COSCHEDULING : "", "", ""));
        rig_feed(&rig, json, false);
        assert_false(fits_on(json, "'n2'", "n2"));
        for (int i = 0; i < 5; i++)
            rig_tick(&rig, 200 * GS_NS_PER_MS);
        assert_int_equal(rig.patches, 1);
        assert_string_equal(rig.nominated, group ? "-" : "n1");
    }
}

/* What docs/pods.md says of a tenant who has no gang at all. */
static void a_thousand_labelled_pods_hold_what_they_ask_for_and_for_five_seconds(void **state)
{
    char name[32];
    rig_node(&rig, "n1", "1000,1000");
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        assert_true(fits(member(name, 1)));
    }
    expect_promised(1000);
    assert_true(fits(single("s", 1000)));
    assert_false(fits(single("s", 1001)));
    assert_true(fits(pod_of("high", 1000, 1, "", "", "")));
    assert_true(fits(member("m0", 1))); /* ... all of the group's go */
    expect_promised(1);
    rig_tick(&rig, GS_PROMISE_NS);
    expect_promised(0);
}

static void there_are_so_many_promises_at_most(void **state)
{
    char name[32], labels[96];
    rig_node(&rig, "n0", "60000");
    for (int i = 0; i < GS_PROMISES_MAX; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        snprintf(labels, sizeof(labels), "'labels':{'scheduling.x-k8s.io/pod-group':'g%d'}", i);
        /* priorities that rise look through the places of those before: quicker to judge */
        assert_true(fits_on(pod_of(name, 1, i, labels, "", ""), "'n0'", "n0"));
    }
    expect_promised(GS_PROMISES_MAX);
    assert_true(fits_on(member("more", 1), "'n0'", "n0"));
    expect_promised(GS_PROMISES_MAX);
    rig_tick(&rig, GS_PROMISE_NS);
    expect_promised(0);
}

/* --- many at once --- */

enum { THREADS = 4, PER_THREAD = 2500, GROUP = 20 };

static atomic_llong now_ns;
static atomic_bool done;

static int64_t many_now(void *ctx)
{
    return atomic_load(&now_ns);
}

static void *ask_many(void *arg)
{
    const int thread = (int)(intptr_t)arg;
    char body[1024];
    for (int i = 0; i < PER_THREAD; i++) {
        struct gs_buf answer = GS_BUF(1 << 16);
        const int node = (thread * 7 + i) % 40;
        snprintf(body, sizeof(body),
                 "{'Pod':{'metadata':{'name':'m%d-%d','namespace':'default','uid':'u%d-%d','labels'"
                 ":{'scheduling.x-k8s.io/pod-group':'g%d'}},'spec':{'containers':[{'name':'c',"
                 "'resources':{'limits':{'aliyun.com/gpu-mem':'1'}}}]},'status':{'phase':'Pending'}"
                 "},'NodeNames':['n%d','n%d']}",
                 thread, i, thread, i, (thread + i) / GROUP, node, (node + 1) % 40);
        rig_quote(body);
        assert_int_equal(gs_service_filter(rig.service, body, strlen(body), &answer, NULL), 0);
        gs_buf_release(&answer);
        atomic_fetch_add(&now_ns, 200000);
        if (i % 250 == 0) { /* some are asked about again */
            assert_int_equal(gs_service_filter(rig.service, body, strlen(body), &answer, NULL), 0);
            gs_buf_release(&answer);
        }
    }
    return NULL;
}

static void *tick_many(void *arg)
{
    while (!atomic_load(&done)) {
        gs_service_promises_tick(rig.service);
        gs_service_tick(rig.service);
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL); /* they are few */
    }
    return NULL;
}

static void ten_thousand_members_from_many_threads(void **state)
{
    pthread_t askers[THREADS], ticker;
    char name[16];
    atomic_store(&now_ns, rig.now_ns);
    atomic_store(&done, false);
    rig.clock = (struct gs_clock){many_now, many_now, NULL};
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        rig_node(&rig, name, "200,200");
    }
    pthread_create(&ticker, NULL, tick_many, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&askers[i], NULL, ask_many, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(askers[i], NULL);
    atomic_store(&done, true);
    pthread_join(ticker, NULL);
    struct gs_ledger_stats stats;
    gs_ledger_stats(rig.service->store.cluster.ledger, &stats);
    assert_in_range(stats.promised, 5000, 10000);
    atomic_fetch_add(&now_ns, GS_PROMISE_NS);
    gs_service_promises_tick(rig.service);
    expect_promised(0);
    atomic_fetch_add(&now_ns, GS_PROMISE_NS);
    gs_service_promises_tick(rig.service);
    assert_null(rig.service->promises.groups);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(the_next_member_is_judged_beside_the_first),
        T(a_member_keeps_off_its_group_whatever_its_priority),
        T(whole_nodes_that_are_asked_about_promise_nothing),
        T(the_best_node_alone_is_named),
        T(members_are_bound_to_the_gpus_that_they_were_promised),
        T(a_promise_is_of_the_gpus_that_were_best_when_it_was_made),
        T(nominated_pods_do_not_sit_where_a_member_is_promised),
        T(inspect_names_group_and_time_left),
        T(binds_beside_promises_are_refused),
        T(a_new_cycle_ends_all_promises_of_its_group),
        T(a_retry_beside_places_of_the_last_cycle_is_a_new_one),
        T(after_a_refusal_promises_last_a_moment),
        T(promises_last_five_seconds_at_most),
        T(a_bind_or_the_end_of_the_pod_ends_its_promise),
        T(the_own_nomination_counts_again),
        T(a_nominated_member_that_is_asked_about_twice_ends_no_cycle),
        T(a_list_ends_no_promise),
        T(members_are_woken_and_not_nominated),
        T(a_thousand_labelled_pods_hold_what_they_ask_for_and_for_five_seconds),
        T(there_are_so_many_promises_at_most),
        T(ten_thousand_members_from_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
