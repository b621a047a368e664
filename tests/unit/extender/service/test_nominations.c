/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "service_rig.h"

static struct rig rig;

/* kube-scheduler asks about n0 and n1: enough in all, not on one GPU. n2 and n3 have room, n4 has
 * when its pod, of less priority, is evicted. */
#define SAMPLE "\"n0\",\"n1\""

/* What the API server shows of the pod. */
static struct {
    const char *nominated, *mark;
} shown;

static int setup(void **state)
{
    rig_start_as(&rig, (struct gs_service_config){.nominates = true});
    rig_lists(&rig);
    rig_node(&rig, "n0", "8,8");
    rig_node(&rig, "n1", "8,8");
    rig_node(&rig, "n2", "16");
    rig_node(&rig, "n3", "16");
    rig_node(&rig, "n4", "16");
    rig_pod(&rig, "victim", "v", 16, "n4", "0", "Running");
    service_tick(rig.service);
    shown = (__typeof__(shown)){"", ""};
    *state = &rig;
    return 0;
}

static const char *pod_json(void)
{
    static char json[1024];
    snprintf(
        json, sizeof(json),
        "{'metadata':{'name':'p','namespace':'default','uid':'up','resourceVersion':'%llu',"
        "'annotations':{'aliyun.com/gpu-nominated':'%s'}},'spec':{'priority':10,'containers':[{"
        "'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'12'}}}]},'status':{'phase':"
        "'Pending','nominatedNodeName':'%s'}}",
        (unsigned long long)rig.revision, shown.mark, shown.nominated);
    rig_quote(json);
    return json;
}

/* The next event of the pod. */
static void show(const char *nominated, const char *mark)
{
    shown.nominated = nominated;
    shown.mark = mark;
    rig.revision++;
    rig_feed(&rig, pod_json(), false);
}

static void refuse(void)
{
    rig_expect(rig_filter(&rig, pod_json(), SAMPLE), "\"NodeNames\":[]");
}

/* What kube-scheduler would evict on n4. */
static bool evicts(void)
{
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n4\":{\"Pods\":[{\"UID\":\"v\"}]}}}",
             pod_json());
    char *answer = rig_ask(&rig, gs_service_preempt, body);
    bool any = strstr(answer, "\"n4\"") != NULL;
    free(answer);
    return any;
}

/* Ticks until a patch, or so long; whether there was one. */
static bool patched_within(int64_t ns)
{
    int before = rig.patches;
    for (int64_t end = rig.now_ns + ns; rig.now_ns < end && rig.patches == before;)
        rig_tick(&rig, GS_NS_PER_S / 10);
    return rig.patches > before;
}

/* The node is offered within so long, and shown. */
static void is_offered(const char *node, int64_t ns)
{
    assert_true(patched_within(ns));
    assert_string_equal(rig.nominated, node);
    assert_string_equal(rig.marked, node);
    show(node, node);
}

/* Whoever reaches the port may name any pod there, with any mark. */
static void a_mark_that_filter_alone_told_of_stays(void **state)
{
    static const char *const nominated[] = {"n2", "n3", ""};
    GS_FOR_EACH_ROW (r, nominated) {
        rig_stop(&rig);
        setup(state);
        shown.nominated = *r;
        shown.mark = "n2";
        refuse();
        evicts();
        assert_false(patched_within(60 * GS_NS_PER_S));
        assert_int_equal(gs_service_nominations(rig.service), 0);
        show(*r, "n2");
        while (rig.marked[0]) /* it is woken, too */
            assert_true(patched_within(2 * GS_NS_PER_S));
    }
}

/* Another pod that fits on n2 and n3 only. */
static const char *other_json(const char *name, const char *uid)
{
    static char json[1024];
    rig_pod_json(&rig, json, sizeof(json), name, uid, 12, NULL, NULL, "Pending");
    return json;
}

enum { VAIN = 8 }; /* nominations.h */

/* A new one of these pods is refused; whether n2 is offered to it within a second. */
static bool n2_is_offered_to(const char *name)
{
    rig_feed(&rig, other_json(name, name), false);
    rig_expect(rig_filter(&rig, other_json(name, name), SAMPLE), "\"NodeNames\":[]");
    snprintf(rig.nominated, sizeof(rig.nominated), "-");
    for (int i = 0; i < 10 && strcmp(rig.nominated, "n2") != 0; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    return strcmp(rig.nominated, "n2") == 0;
}

/* Other filters than ours refuse them there. A bind of one of them shows that it can be used. */
static void a_node_that_led_many_nowhere_is_not_offered_for_a_while(void **state)
{
    static const struct {
        const char *row;
        unsigned count, bound; /* each so-manieth is bound */
        bool offered;          /* the next */
    } rows[] = {{"none is bound", VAIN, 100, false}, {"some are bound", 3 * VAIN, 4, true}};
    GS_FOR_EACH_ROW (r, rows) {
        char name[16];
        rig_stop(&rig);
        setup(state);
        rig_pod(&rig, "full", "ufull", 16, "n3", "0", "Running");
        for (unsigned i = 0; i < r->count; i++) {
            snprintf(name, sizeof(name), "q%u", i);
            row_true(r->row, n2_is_offered_to(name));
            if (i % r->bound == r->bound - 1)
                rig_expect(rig_try_bind(&rig, name, name, "n2"), "\"Error\":\"\"");
            for (int64_t ns = 0; ns < 4 * GS_NS_PER_S; ns += GS_NS_PER_S / 10)
                rig_tick(&rig, GS_NS_PER_S / 10);
            rig_pod_gone(&rig, name, name);
        }
        row_equal(r->row, n2_is_offered_to("next"), r->offered);
        rig_pod_gone(&rig, "next", "next");
        rig_tick(&rig, 60 * GS_NS_PER_S);
        row_true(r->row, n2_is_offered_to("last"));
    }
}

static void whoever_was_held_up_is_woken_when_the_time_is_over(void **state)
{
    show("", "");
    refuse();
    assert_false(evicts());
    is_offered("n2", GS_NS_PER_S);
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    int wakes = 0;
    for (int i = 0; i < 50; i++) {
        snprintf(rig.patched, sizeof(rig.patched), "-");
        rig_tick(&rig, GS_NS_PER_S / 10);
        wakes += strstr(rig.patched, "gpu-requeue") != NULL;
    }
    assert_int_equal(wakes, 1);
}

static struct gs_election *election;

static void lose_lease(struct rig *r, const struct gs_meta_patch *patch)
{
    gs_election_resign(election, false);
}

static void who_lost_the_lease_writes_nothing(void **state)
{
    rig_stop(&rig);
    rig_start_as(&rig, (struct gs_service_config){.nominates = true});
    election = rig_election(&rig);
    gs_service_free(rig.service);
    struct gs_service_config config = {.names = &rig.names,
                                       .clock = &rig.clock,
                                       .kube = {&rig_ops, &rig},
                                       .policy = GS_PLACEMENT_BINPACK,
                                       .election = election,
                                       .nominates = true};
    rig.service = gs_service_new(&config, NULL);
    rig.sink = gs_service_sink(rig.service);
    rig_lead(&rig, election);
    rig_node(&rig, "n0", "8,8");
    rig_node(&rig, "n2", "16");
    service_tick(rig.service);
    show("", "");
    rig_expect(rig_filter(&rig, pod_json(), "\"n0\""), "\"NodeNames\":[]");
    is_offered("n2", GS_NS_PER_S);
    char json[1024];
    snprintf(json, sizeof(json), "%s", pod_json());
    char *uid = strstr(json, "\"up\"");
    uid[1] = 'q';
    rig_feed(&rig, json, false); /* another replica's */
    rig.patches = 0;
    rig.during_patch = lose_lease;
    for (int i = 0; i < 600; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 1);
    rig.during_patch = NULL;
    rig.patches = 0;
    show("n2", "n2");
    for (int i = 0; i < 100; i++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    gs_service_free(rig.service);
    gs_election_free(election);
    setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_mark_that_filter_alone_told_of_stays),
        T(a_node_that_led_many_nowhere_is_not_offered_for_a_while),
        T(whoever_was_held_up_is_woken_when_the_time_is_over),
        T(who_lost_the_lease_writes_nothing),
    };
    return GS_RUN(tests);
}
