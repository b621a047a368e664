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

/* group: "" of none. */
static const char *pod_of(const char *name, unsigned units, const char *group)
{
    static _Thread_local char json[512];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','namespace':'default','uid':'u-%s','labels':{"
             "'scheduling.x-k8s.io/pod-group':'%s'}},'spec':{'containers':[{'name':'c','resources':"
             "{'limits':{'aliyun.com/gpu-mem':'%u'}}}]},'status':{'phase':'Pending'}}",
             name, name, group, units);
    rig_quote(json);
    return json;
}

static void filter(const char *pod_json, const char *nodes, const char *answers)
{
    rig_feed(&rig, pod_json, false);
    rig_expect(rig_filter(&rig, pod_json, nodes), answers);
}

static uint32_t promised(void)
{
    return gs_ledger_promises(rig.service->ledger);
}

/* As many as there are may be refused. */
static void refused_pods_without_a_group_take_nobodys_entry(void **state)
{
    rig.service->config.names_one = true;
    filter(pod_of("s", 17, ""), "\"n1\"", "\"NodeNames\":[]");
    assert_null(rig.service->gangs.groups);
    filter(pod_of("m", 17, "g"), "\"n1\"", "\"NodeNames\":[]");
    assert_non_null(rig.service->gangs.groups);
}

static bool would_wait(const char *name)
{
    char body[4096];
    struct gs_buf answer = GS_BUF(1 << 16);
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"n1\"]}", pod_of(name, 1, "g"));
    const enum gs_answered result =
        service_try(rig.service, GS_VERB_FILTER, body, strlen(body), &answer);
    gs_buf_release(&answer);
    return result == GS_WOULD_SLEEP;
}

/* Its namespace may have more pods than are kept. */
static void pods_that_are_not_shown_are_rarely_waited_for(void **state)
{
    assert_true(would_wait("m0"));
    rig_expect(rig_filter(&rig, pod_of("m0", 1, "g"), "\"n1\""), "has not shown");
    assert_false(would_wait("m1"));
    rig_tick(&rig, 5 * GS_NS_PER_S);
    assert_true(would_wait("m1"));
}

static void there_are_so_many_promises_at_most(void **state)
{
    enum { NODES = 64 }; /* each is judged beside the others of its node */
    char name[32], group[16], node[16];
    for (int i = 0; i < NODES; i++) {
        snprintf(node, sizeof(node), "n%d", i);
        rig_node(&rig, node, "1000");
    }
    for (int i = 0; i < GS_GANG_RESERVATIONS_MAX; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        snprintf(group, sizeof(group), "g%d", i);
        snprintf(node, sizeof(node), "\"n%d\"", i % NODES);
        filter(pod_of(name, 1, group), node, node);
    }
    assert_int_equal(promised(), GS_GANG_RESERVATIONS_MAX);
    filter(pod_of("more", 1, "g"), "\"n0\"", "\"NodeNames\":[\"n0\"]");
    assert_int_equal(promised(), GS_GANG_RESERVATIONS_MAX);
    rig_tick(&rig, GS_GANG_RESERVATION_NS);
    assert_int_equal(promised(), 0);
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
    char name[16], group[16];
    snprintf(name, sizeof(name), "m%d-%d", thread, i);
    snprintf(group, sizeof(group), "g%d", (thread + i) / GROUP);
    return pod_of(name, 1, group);
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
    assert_in_range(promised(), 5000, 10000);
    atomic_fetch_add(&now_ns, GS_GANG_RESERVATION_NS);
    gs_service_tick_part(rig.service, GS_TICK_CLOCK);
    assert_int_equal(promised(), 0);
    atomic_fetch_add(&now_ns, GS_GANG_RESERVATION_NS);
    gs_service_tick_part(rig.service, GS_TICK_CLOCK);
    assert_null(rig.service->gangs.groups);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(refused_pods_without_a_group_take_nobodys_entry),
        T(pods_that_are_not_shown_are_rarely_waited_for),
        T(there_are_so_many_promises_at_most),
        T(ten_thousand_members_from_many_threads),
    };
    return GS_RUN(tests);
}
