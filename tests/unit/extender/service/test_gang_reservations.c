/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

#include <pthread.h>
#include <stdatomic.h>

#include "rows.h"

#include "extender/service/service_internal.h"

static struct rig rig;

/* One node with 16 and 6 units free. */
static int setup(void **state)
{
    rig_start_as(&rig, (struct gs_service_config){.nominates = true});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,6");
    service_tick(rig.service);
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
    rig_feed(&rig, pod_json, false);
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
    snprintf(line, sizeof(line), "\ngpushare_reserved_pods %u\n", count);
    if (!strstr(page.data, line))
        fail_msg("not %u: %.60s", count, strstr(page.data, "\ngpushare_reserved_pods "));
    gs_buf_release(&page);
}

static void expect_no_promise_for_whole_nodes(const char *pod)
{
    char body[4096], nodes[] = "{'metadata':{'name':'n1'},'status':{'capacity':{"
                               "'aliyun.com/gpu-mem':'22','aliyun.com/gpu-count':'2'}}}";
    rig_quote(nodes);
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"Nodes\":{\"items\":[%s]}}", pod, nodes);
    rig_expect(rig_ask(&rig, gs_service_filter, body), "\"n1\"");
    expect_promised(0);
}

static void whole_nodes_that_are_asked_about_promise_nothing(void **state)
{
    expect_no_promise_for_whole_nodes(member("m0", 10));
    assert_true(fits(single("s", 16)));
    rig.service->config.names_one = true;
    rig_feed(&rig, single("t", 10), false);
    expect_no_promise_for_whole_nodes(single("t", 10));
}

/* As many as there are may be refused. */
static void refused_pods_without_a_group_take_nobodys_entry(void **state)
{
    rig.service->config.names_one = true;
    assert_false(fits(single("s", 17)));
    assert_null(rig.service->gangs.groups);
    assert_false(fits(member("m", 17)));
    assert_non_null(rig.service->gangs.groups);
}

static bool would_wait(const char *name)
{
    char body[4096];
    struct gs_buf answer = GS_BUF(1 << 16);
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", member(name, 1));
    const enum gs_answered result =
        service_try(rig.service, GS_VERB_FILTER, body, strlen(body), &answer);
    gs_buf_release(&answer);
    return result == GS_WOULD_SLEEP;
}

/* Its namespace may have more pods than are kept. */
static void pods_that_are_not_shown_are_rarely_waited_for(void **state)
{
    assert_true(would_wait("m0"));
    rig_expect(rig_filter(&rig, member("m0", 1), "\"n1\""), "has not shown");
    assert_false(would_wait("m1"));
    rig_tick(&rig, 5 * GS_NS_PER_S);
    assert_true(would_wait("m1"));
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
    const char *found = strstr(answer.data, ",\"reservations\"");
    assert_string_equal(found ? found : "", wanted);
    gs_buf_release(&answer);
    snprintf(of_all, sizeof(of_all), "{%s,'policy':'binpack'}\n",
             promised[0] ? promised + 1 : "'reservations':[]");
    rig_quote(of_all);
    assert_int_equal(gs_service_reservations(rig.service, &all, NULL), 0);
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
        ",'reservations':[{'uid':'u-m0','node':'n1','group':'default/"
        "g','gpus':[0],'requestedGPU':10,"
        "'millisecondsLeft':3000},{'uid':'u-m1','node':'n1','group':'default/g','gpus':[0],"
        "'requestedGPU':6,'millisecondsLeft':3000}]");
    assert_false(fits(member("m2", 10)));
    rig_tick(&rig, 100 * GS_NS_PER_MS);
    expect_inspected(
        ",'reservations':[{'uid':'u-m0','node':'n1','group':'default/"
        "g','gpus':[0],'requestedGPU':10,"
        "'millisecondsLeft':200},{'uid':'u-m1','node':'n1','group':'default/g','gpus':[0],"
        "'requestedGPU':6,'millisecondsLeft':200}]");
    rig_tick(&rig, GS_GANG_RESERVATION_NS);
    expect_inspected("");
    rig.service->config.names_one = true;
    assert_true(fits(single("s", 10)));
    expect_inspected(",'reservations':[{'uid':'u-s','node':'n1','group':'','gpus':[0],"
                     "'requestedGPU':10,'millisecondsLeft':5000}]");
}

static void there_are_so_many_promises_at_most(void **state)
{
    enum { NODES = 64 }; /* each is judged beside the others of its node */
    char name[32], labels[96], node[16], asked[24];
    for (int i = 0; i < NODES; i++) {
        snprintf(node, sizeof(node), "n%d", i);
        rig_node(&rig, node, "1000");
    }
    for (int i = 0; i < GS_GANG_RESERVATIONS_MAX; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        snprintf(labels, sizeof(labels), "'labels':{'scheduling.x-k8s.io/pod-group':'g%d'}", i);
        snprintf(node, sizeof(node), "n%d", i % NODES);
        snprintf(asked, sizeof(asked), "'%s'", node);
        assert_true(fits_on(pod_of(name, 1, 0, labels, "", ""), asked, node));
    }
    expect_promised(GS_GANG_RESERVATIONS_MAX);
    assert_true(fits_on(member("more", 1), "'n0'", "n0"));
    expect_promised(GS_GANG_RESERVATIONS_MAX);
    rig_tick(&rig, GS_GANG_RESERVATION_NS);
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

static const char *one_of_many(int thread, int i)
{
    static _Thread_local char json[512];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'m%d-%d','namespace':'default','uid':'u%d-%d','labels'"
             ":{'scheduling.x-k8s.io/pod-group':'g%d'}},'spec':{'containers':[{'name':'c',"
             "'resources':{'limits':{'aliyun.com/gpu-mem':'1'}}}]},'status':{'phase':'Pending'}}",
             thread, i, thread, i, (thread + i) / GROUP);
    rig_quote(json);
    return json;
}

static void *ask_many(void *arg)
{
    const int thread = (int)(intptr_t)arg;
    char body[1024];
    for (int i = 0; i < PER_THREAD; i++) {
        struct gs_buf answer = GS_BUF(1 << 16);
        const int node = (thread * 7 + i) % 40;
        snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"n%d\",\"n%d\"]}",
                 one_of_many(thread, i), node, (node + 1) % 40);
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
        service_tick(rig.service);
        nanosleep(&(const struct timespec){.tv_nsec = GS_NS_PER_MS}, NULL); /* they are few */
    }
    return NULL;
}

static void ten_thousand_members_from_many_threads(void **state)
{
    pthread_t schedulers[THREADS], ticker;
    char name[16];
    atomic_store(&now_ns, rig.now_ns);
    atomic_store(&done, false);
    rig.clock = (struct gs_clock){many_now, many_now, NULL};
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        rig_node(&rig, name, "200,200");
    }
    for (int i = 0; i < THREADS * PER_THREAD; i++)
        rig_feed(&rig, one_of_many(i % THREADS, i / THREADS), false);
    pthread_create(&ticker, NULL, tick_many, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&schedulers[i], NULL, ask_many, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(schedulers[i], NULL);
    atomic_store(&done, true);
    pthread_join(ticker, NULL);
    struct gs_ledger_stats stats;
    gs_ledger_stats(rig.service->ledger, &stats);
    assert_in_range(stats.promised, 5000, 10000);
    atomic_fetch_add(&now_ns, GS_GANG_RESERVATION_NS);
    gs_service_tick_part(rig.service, GS_TICK_CLOCK);
    expect_promised(0);
    atomic_fetch_add(&now_ns, GS_GANG_RESERVATION_NS);
    gs_service_tick_part(rig.service, GS_TICK_CLOCK);
    assert_null(rig.service->gangs.groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(whole_nodes_that_are_asked_about_promise_nothing),
        T(refused_pods_without_a_group_take_nobodys_entry),
        T(pods_that_are_not_shown_are_rarely_waited_for),
        T(inspect_names_group_and_time_left),
        T(there_are_so_many_promises_at_most),
        T(ten_thousand_members_from_many_threads),
    };
    return GS_RUN(tests);
}
