/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "service_rig.h"

static struct rig rig;

/* kube-scheduler asks about n0 and n1: enough in all, not on one GPU. n2 and n3 have room, n4 has
 * when its pod, of less priority, is evicted. */
#define SAMPLE "\"n0\",\"n1\""

/* What the API server shows of the pod. */
static struct {
    const char *nominated, *mark, *spec;
} shown;

static int start_as(void **state, bool nominates)
{
    rig_start_as(&rig, (struct gs_service_config){.nominates = nominates});
    rig_lists(&rig);
    rig_node(&rig, "n0", "8,8");
    rig_node(&rig, "n1", "8,8");
    rig_node(&rig, "n2", "16");
    rig_node(&rig, "n3", "16");
    rig_node(&rig, "n4", "16");
    rig_pod(&rig, "victim", "v", 16, "n4", "0", "Running");
    gs_service_tick(rig.service);
    shown = (__typeof__(shown)){"", "", ""};
    *state = &rig;
    return 0;
}

static int setup(void **state)
{
    return start_as(state, true);
}

static int setup_without(void **state)
{
    return start_as(state, false);
}

static const char *pod_json(void)
{
    static char json[1024];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'p','namespace':'default','uid':'up','resourceVersion':'%llu',"
             "'annotations':{'aliyun.com/gpu-offer':'%s'}},'spec':{'priority':10,%s'containers':[{"
             "'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'12'}}}]},'status':{'phase':"
             "'Pending','nominatedNodeName':'%s'}}",
             (unsigned long long)rig.revision, shown.mark, shown.spec, shown.nominated);
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

/* The API server takes it, or not. */
static void is_taken_back(int64_t ns)
{
    assert_true(patched_within(ns));
    assert_string_equal(rig.nominated, "");
    assert_string_equal(rig.marked, "");
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-offer");
}

static void a_node_outside_the_sample_is_offered(void **state)
{
    char revision[32];
    show("", "");
    refuse();
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 0); /* not before kube-scheduler has parked it */
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "n2");
    assert_string_equal(rig.marked, "n2");
    snprintf(revision, sizeof(revision), "%llu", (unsigned long long)rig.revision);
    assert_string_equal(rig.expected, revision);
}

static void without_the_option_nothing_is_offered(void **state)
{
    show("", "");
    refuse();
    assert_true(evicts());
    assert_false(patched_within(60 * GS_NS_PER_S));
}

static void each_node_is_offered_until_it_led_nowhere(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    refuse();
    is_taken_back(GS_NS_PER_S);
    show("", "");
    is_offered("n3", 2 * GS_NS_PER_S);
    refuse();
    is_taken_back(GS_NS_PER_S);
    show("", "");
    rig.get_code = rig.list_code = GS_EIO; /* the comparison that is due then */
    for (int i = 0; i < 10; i++) {
        refuse();
        assert_false(patched_within(60 * GS_NS_PER_S));
    }
}

static void node_says(const char *metadata, const char *spec, const char *allocatable)
{
    char json[2048];
    struct gs_node node = {0};
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'n2',%s'annotations':{'aliyun.com/gpu-inventory':'{\\'v\\':1,"
             "\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':0,\\'mem\\':16,\\'healthy\\':true,"
             "\\'schedulable\\':true}]}'}},'spec':{%s},'status':{'capacity':{'aliyun.com/gpu-mem':"
             "'16','aliyun.com/gpu-count':'1'},'allocatable':{%s}}}",
             metadata, spec, allocatable);
    rig_quote(json);
    assert_int_equal(gs_codec_node(&rig.names, gs_slice_of(json), &node, NULL), 0);
    assert_int_equal(rig.sink.node(rig.sink.ctx, &node), 0);
    gs_node_release(&node);
}

static void change_labels(void)
{
    node_says("'labels':{'a':'b'},", "", "'cpu':'64'");
}

static void change_taints(void)
{
    node_says("", "'taints':[{'key':'a','effect':'PreferNoSchedule'}]", "'cpu':'64'");
}

static void change_allocatable(void)
{
    node_says("", "", "'cpu':'65'");
}

static void change_memory(void)
{
    rig_pod(&rig, "c", "u4", 2, "n2", "0", "Running");
}

static void heartbeat(void)
{
    node_says("", "", "'cpu':'64'");
}

static void list_again(void)
{
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
    rig_pod(&rig, "victim", "v", 16, "n4", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    rig_feed(&rig, pod_json(), false);
    rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
}

static void a_node_that_changed_is_offered_again(void **state)
{
    static const struct {
        const char *row;
        void (*change)(void);
        bool again;
    } rows[] = {
        {"labels", change_labels, true},   {"taints", change_taints, true},
        {"CPU", change_allocatable, true}, {"free GPU memory", change_memory, true},
        {"a heartbeat", heartbeat, false}, {"a list", list_again, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        setup(state);
        rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
        show("", "");
        refuse();
        is_offered("n2", GS_NS_PER_S);
        refuse();
        is_taken_back(GS_NS_PER_S);
        show("", "");
        r->change();
        refuse();
        row_equal(r->row, patched_within(10 * GS_NS_PER_S) && strcmp(rig.nominated, "n2") == 0,
                  r->again);
    }
}

/* What the pod's own words exclude; n3 is the one that is not. */
static void only_nodes_that_the_pod_may_use_are_offered(void **state)
{
    static const struct {
        const char *row, *node, *pod;
        const char *offered;
    } rows[] = {
        {"nothing", "", "", "n2"},
        {"cordoned", "'unschedulable':true", "", "n3"},
        {"tainted", "'taints':[{'key':'k','effect':'NoSchedule'}]", "", "n3"},
        {"tolerated", "'taints':[{'key':'k','effect':'NoExecute'}]",
         "'tolerations':[{'operator':'Exists'}],", "n2"},
        {"selected", "",
         "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
         "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In',"
         "'values':['n3']}]}]}}},",
         "n3"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        setup(state);
        node_says("", r->node, "'cpu':'64'");
        shown.spec = r->pod;
        show("", "");
        refuse();
        is_offered(r->offered, GS_NS_PER_S);
    }
    shown.spec = "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
                 "'nodeSelectorTerms':[{'matchExpressions':[{'key':'k','operator':'Near'}]}]}}},";
    rig_stop(&rig);
    start_as(state, true);
    shown.spec = "'nodeSelector':{'no':'such'},";
    show("", "");
    refuse();
    assert_true(evicts()); /* nothing holds it up */
    assert_false(patched_within(60 * GS_NS_PER_S));
}

static void who_cannot_use_an_offer_gets_none(void **state)
{
    static const struct {
        const char *row, *spec;
        int wakes; /* in 10 s */
    } rows[] = {
        {"a gate", "'schedulingGates':[{'name':'g'}],", 0},
        /* it preempts nobody, and its nomination would stay: it is woken for the next sample */
        {"never preempts", "'preemptionPolicy':'Never',", 4},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        setup(state);
        shown.spec = r->spec;
        show("", "");
        refuse();
        row_true(r->row, evicts());
        for (int i = 0; i < 100; i++)
            rig_tick(&rig, GS_NS_PER_S / 10);
        row_equal(r->row, rig.patches, r->wakes);
        if (r->wakes)
            row_text(r->row, rig.nominated, "-");
    }
}

static void an_offer_that_led_nowhere_is_taken_back(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    int64_t begun = rig.now_ns;
    is_taken_back(5 * GS_NS_PER_S);
    assert_in_range((rig.now_ns - begun) / GS_NS_PER_MS, 2800, 3200);
    show("", "");
    assert_false(patched_within(60 * GS_NS_PER_S));
}

static void bind_stays_open(const char *node)
{
    rig.get_json = pod_json();
    rig.bind_code = GS_ETIMEOUT;
    rig_expect(rig_try_bind(&rig, "p", "up", node), "no known outcome");
}

/* A bind without an answer may take its place at any moment: an offer of that node stays until the
 * outcome is known, one of another node has led nowhere. */
static void an_open_bind_keeps_the_offer_of_its_node_alone(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    bind_stays_open("n2");
    assert_false(patched_within(60 * GS_NS_PER_S));
    is_taken_back(6 * GS_NS_PER_S);
    show("", "");
    refuse();
    is_offered("n3", 2 * GS_NS_PER_S);
    bind_stays_open("n2");
    is_taken_back(GS_NS_PER_S);
}

static void at_the_end_an_open_bind_keeps_no_offer(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    bind_stays_open("n2");
    gs_service_withdraw(rig.service);
    assert_int_equal(gs_service_offers(rig.service), 1);
    is_taken_back(GS_NS_PER_S / 5);
    show("", "");
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(gs_service_offers(rig.service), 0);
}

static void it_is_taken_back_when_its_place_is_none(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    node_says("", "'unschedulable':true", "'cpu':'64'");
    is_taken_back(GS_NS_PER_S / 5);
}

/* The old one's place is held as long as the pod shows it. */
static void nothing_is_offered_before_the_last_offer_is_taken_back(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    refuse();
    rig.nominate_code = GS_EIO;
    for (int i = 0; i < 100; i++) {
        rig_tick(&rig, GS_NS_PER_S / 10);
        assert_string_equal(rig.marked, rig.patches > 1 ? "" : "n2");
    }
    rig.nominate_code = GS_OK;
    is_taken_back(2 * GS_NS_PER_S);
    show("", "");
    is_offered("n3", 2 * GS_NS_PER_S);
}

static void it_is_taken_back_again_until_it_is_gone(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    rig.nominate_code = GS_EIO;
    is_taken_back(4 * GS_NS_PER_S);
    is_taken_back(2 * GS_NS_PER_S);
    rig.nominate_code = GS_OK;
    is_taken_back(2 * GS_NS_PER_S);
    assert_false(patched_within(60 * GS_NS_PER_S)); /* its event is on its way */
    show("", "");
    assert_false(patched_within(60 * GS_NS_PER_S));
}

/* The next leader knows it by the mark alone. */
static void what_another_replica_offered_is_taken_back(void **state)
{
    static const struct {
        const char *row, *nominated, *mark;
        int patches; /* in a minute, with nothing shown in between */
        const char *now_nominated;
    } rows[] = {
        {"an offer", "n2", "n2", 1, ""},
        {"kube-scheduler's", "n2", "", 0, ""},
        {"kube-scheduler's, later", "n3", "n2", 1, "-"},
        {"taken back by kube-scheduler", "", "n2", 1, "-"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        setup(state);
        show(r->nominated, r->mark);
        int marks = 0;
        for (int i = 0; i < 600; i++) {
            int before = rig.patches;
            snprintf(rig.marked, sizeof(rig.marked), "-");
            rig_tick(&rig, GS_NS_PER_S / 10);
            if (rig.patches > before && strcmp(rig.marked, "-") != 0) {
                marks++;
                row_text(r->row, rig.nominated, r->now_nominated);
                row_text(r->row, rig.marked, "");
            }
        }
        row_equal(r->row, marks, r->patches);
    }
}

/* Whoever reaches the port may name any pod there, with any mark. */
static void a_mark_that_filter_alone_told_of_stays(void **state)
{
    static const char *const nominated[] = {"n2", "n3", ""};
    for (size_t i = 0; i < sizeof(nominated) / sizeof(nominated[0]); i++) {
        rig_stop(&rig);
        setup(state);
        shown.nominated = nominated[i];
        shown.mark = "n2";
        refuse();
        evicts();
        assert_false(patched_within(60 * GS_NS_PER_S));
        assert_int_equal(gs_service_offers(rig.service), 0);
        show(nominated[i], "n2");
        while (rig.marked[0]) /* it is woken, too */
            assert_true(patched_within(2 * GS_NS_PER_S));
    }
}

static void a_mark_that_its_owner_writes_again_is_taken_off_once(void **state)
{
    show("", "n2");
    assert_true(patched_within(GS_NS_PER_S));
    assert_string_equal(rig.marked, "");
    show("", "");
    show("", "n2");
    assert_false(patched_within(60 * GS_NS_PER_S));
}

static void a_nomination_of_kube_schedulers_stays(void **state)
{
    show("n1", "");
    refuse();
    assert_false(patched_within(60 * GS_NS_PER_S));
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    show("n4", "n2"); /* it evicted somebody there */
    for (int i = 0; i < 600; i++) {
        rig_tick(&rig, GS_NS_PER_S / 10);
        assert_true(strcmp(rig.nominated, "") != 0);
    }
    assert_int_equal(rig.patches, 2);
    assert_string_equal(rig.marked, ""); /* that is all */
}

static void a_pod_that_changed_meanwhile_is_decided_anew(void **state)
{
    show("", "");
    refuse();
    rig.nominate_code = GS_ECONFLICT;
    assert_true(patched_within(GS_NS_PER_S));
    assert_false(patched_within(60 * GS_NS_PER_S)); /* not before its next event */
    rig.nominate_code = GS_OK;
    show("", "");
    is_offered("n2", 10 * GS_NS_PER_S);
}

static void kube_scheduler_was_faster(struct rig *r, const struct gs_meta_patch *patch)
{
    r->during_patch = NULL;
    show("n4", "");
    r->nominate_code = GS_ECONFLICT;
}

static void a_nomination_that_came_meanwhile_stays(void **state)
{
    show("", "");
    refuse();
    rig.during_patch = kube_scheduler_was_faster;
    assert_true(patched_within(GS_NS_PER_S));
    rig.nominate_code = GS_OK;
    assert_false(patched_within(60 * GS_NS_PER_S));
}

static void an_offer_that_may_not_be_made_wakes_all_the_same(void **state)
{
    rig.nominate_code = GS_EDENIED;
    show("", "");
    refuse();
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 2);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "-");
}

/* Another scheduler's, or kube-scheduler will ask once it is woken. */
static void a_pod_that_nobody_asked_about_is_woken_and_not_nominated(void **state)
{
    rig_stop(&rig);
    rig_start_as(&rig, (struct gs_service_config){.nominates = true});
    rig_lists(&rig);
    rig_node(&rig, "n2", "16");
    show("", "");
    rig_tick(&rig, GS_NS_PER_S);
    rig_tick(&rig, GS_NS_PER_S);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "-");
    rig_pod(&rig, "a", "ua", 16, "n2", "0", "Running");
    assert_false(patched_within(10 * GS_NS_PER_S));
    rig_pod_gone(&rig, "a", "ua");
    assert_true(patched_within(10 * GS_NS_PER_S));
    assert_string_equal(rig.nominated, "-");
}

static void memory_that_comes_free_is_offered(void **state)
{
    rig_pod(&rig, "a", "u2", 16, "n2", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("", "");
    refuse();
    assert_false(patched_within(5 * GS_NS_PER_S));
    rig_pod_gone(&rig, "b", "u3");
    is_offered("n3", GS_NS_PER_S);
}

/* Another pod that fits on n2 and n3 only. */
static const char *other_json(const char *name, const char *uid)
{
    static char json[1024];
    rig_pod_json(&rig, json, sizeof(json), name, uid, 12, NULL, NULL, "Pending");
    return json;
}

enum { VAIN = 8 }; /* offers.h */

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

static void one_place_is_offered_to_one_pod(void **state)
{
    show("", "");
    refuse();
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof(name), "q%d", i);
        rig_feed(&rig, other_json(name, name), false);
        rig_expect(rig_filter(&rig, other_json(name, name), SAMPLE), "\"NodeNames\":[]");
    }
    for (int i = 0; i < 20; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 2); /* n2 and n3, and none is offered twice */
    rig_expect(rig_filter(&rig, other_json("r", "r"), "\"n2\",\"n3\""), "\"NodeNames\":[]");
    rig_feed(&rig, other_json("q1", "q1"), false); /* events change nothing */
    show("", "");
    rig_expect(rig_filter(&rig, other_json("r", "r"), "\"n2\",\"n3\""), "\"NodeNames\":[]");
}

static void nobody_is_evicted_while_a_node_may_be_offered(void **state)
{
    show("", "");
    assert_true(evicts()); /* nobody was refused */
    refuse();
    assert_false(evicts());
    is_offered("n2", GS_NS_PER_S);
    refuse();              /* n2 is full of CPU, say */
    assert_true(evicts()); /* though n3 has room: that is offered beside */
    show("", "");
    rig_node(&rig, "n5", "16");
    refuse();
    assert_true(evicts());
}

/* An attempt that had begun before the nomination was shown. */
static void nobody_is_evicted_right_after_an_offer(void **state)
{
    show("", "");
    refuse();
    assert_false(evicts());
    assert_true(patched_within(GS_NS_PER_S));
    refuse();
    assert_false(evicts());
    assert_true(evicts()); /* twice in a pod's life */
}

static void eviction_is_held_up_for_three_seconds_once(void **state)
{
    show("", "");
    refuse();
    assert_false(evicts());
    rig.now_ns += 3 * GS_NS_PER_S;
    refuse();
    assert_true(evicts());
}

/* kube-scheduler's watch may be ahead of ours. */
static void a_pod_that_filter_alone_told_of_is_offered_a_node_when_it_is_shown(void **state)
{
    refuse();
    assert_false(evicts());
    assert_false(patched_within(GS_NS_PER_S));
    show("", "");
    is_offered("n2", GS_NS_PER_S / 2);
}

static void no_node_to_offer_holds_nothing_up(void **state)
{
    rig_pod(&rig, "a", "u2", 16, "n2", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("", "");
    refuse();
    assert_true(evicts());
}

/* The room that it was held up for is taken before it was offered. */
static void whoever_was_held_up_is_woken_though_nothing_fits_any_more(void **state)
{
    show("", "");
    refuse();
    assert_false(evicts());
    rig_pod(&rig, "a", "u2", 16, "n2", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    assert_true(patched_within(GS_NS_PER_S / 2));
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "-");
    assert_false(patched_within(60 * GS_NS_PER_S));
    refuse();
    assert_true(evicts());
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
        wakes += strstr(rig.patched, "gpu-wake") != NULL;
    }
    assert_int_equal(wakes, 1);
}

/* It evicts on the very node that it was offered, for want of CPU there. */
static void a_node_that_kube_scheduler_nominates_after_the_offer_stays(void **state)
{
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    rig_pod(&rig, "small", "us", 2, "n2", "0", "Running");
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n2\":{\"Pods\":[{\"UID\":\"us\"}]}}}",
             pod_json());
    refuse();
    rig_expect(rig_ask(&rig, gs_service_preempt, body), "\"n2\"");
    for (int i = 0; i < 600; i++) {
        rig_tick(&rig, GS_NS_PER_S / 10);
        assert_true(strcmp(rig.nominated, "") != 0);
    }
    assert_string_equal(rig.marked, ""); /* nobody takes it for an offer later */
}

/* Memory comes free where it evicts, before it has nominated the pod to that node: an offer of the
 * same node could not be told from that nomination, and would take it back. */
static void where_kube_scheduler_evicts_nothing_is_offered(void **state)
{
    rig_pod(&rig, "a", "u2", 16, "n2", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("", "");
    refuse();
    assert_true(evicts());
    rig_pod_gone(&rig, "v", "v");
    assert_true(patched_within(GS_NS_PER_S));
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "-");
    refuse();
    is_offered("n4", 2 * GS_NS_PER_S);
}

static void at_the_end_every_offer_is_taken_back(void **state)
{
    show("", "");
    refuse();
    is_offered("n2", GS_NS_PER_S);
    gs_service_withdraw(rig.service);
    assert_int_equal(gs_service_offers(rig.service), 1);
    rig.patches = 0;
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.nominated, "");
    show("", "");
    rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(gs_service_offers(rig.service), 0);
    refuse();
    assert_true(evicts());
    rig.patches = 0;
    for (int i = 0; i < 600; i++)
        rig_tick(&rig, GS_NS_PER_S / 10);
    assert_int_equal(rig.patches, 0);
}

static void lose_lease(struct rig *r, const struct gs_meta_patch *patch)
{
    r->now_ns += 60 * GS_NS_PER_S;
}

static void who_lost_the_lease_writes_nothing(void **state)
{
    rig_stop(&rig);
    rig_start_as(&rig, (struct gs_service_config){.nominates = true});
    struct gs_election *election = rig_election(&rig);
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
    gs_service_tick(rig.service);
    show("", "");
    rig_expect(rig_filter(&rig, pod_json(), "\"n0\""), "\"NodeNames\":[]");
    is_offered("n2", GS_NS_PER_S);
    char json[1024];
    snprintf(json, sizeof(json), "%s", pod_json());
    char *uid = strstr(json, "\"up\"");
    uid[1] = 'q';
    rig_feed(&rig, json, false); /* another replica's */
    rig.patches = 0;
    rig.during_patch = lose_lease; /* nobody renews it */
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
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_node_outside_the_sample_is_offered),
        cmocka_unit_test_setup_teardown(without_the_option_nothing_is_offered, setup_without,
                                        rig_teardown),
        T(each_node_is_offered_until_it_led_nowhere),
        T(a_node_that_changed_is_offered_again),
        T(only_nodes_that_the_pod_may_use_are_offered),
        T(who_cannot_use_an_offer_gets_none),
        T(an_offer_that_led_nowhere_is_taken_back),
        T(an_open_bind_keeps_the_offer_of_its_node_alone),
        T(at_the_end_an_open_bind_keeps_no_offer),
        T(it_is_taken_back_when_its_place_is_none),
        T(nothing_is_offered_before_the_last_offer_is_taken_back),
        T(it_is_taken_back_again_until_it_is_gone),
        T(what_another_replica_offered_is_taken_back),
        T(a_mark_that_filter_alone_told_of_stays),
        T(a_mark_that_its_owner_writes_again_is_taken_off_once),
        T(a_nomination_of_kube_schedulers_stays),
        T(a_pod_that_changed_meanwhile_is_decided_anew),
        T(a_nomination_that_came_meanwhile_stays),
        T(an_offer_that_may_not_be_made_wakes_all_the_same),
        T(a_pod_that_nobody_asked_about_is_woken_and_not_nominated),
        T(memory_that_comes_free_is_offered),
        T(a_node_that_led_many_nowhere_is_not_offered_for_a_while),
        T(one_place_is_offered_to_one_pod),
        T(nobody_is_evicted_while_a_node_may_be_offered),
        T(nobody_is_evicted_right_after_an_offer),
        T(eviction_is_held_up_for_three_seconds_once),
        T(a_pod_that_filter_alone_told_of_is_offered_a_node_when_it_is_shown),
        T(no_node_to_offer_holds_nothing_up),
        T(whoever_was_held_up_is_woken_though_nothing_fits_any_more),
        T(whoever_was_held_up_is_woken_when_the_time_is_over),
        T(a_node_that_kube_scheduler_nominates_after_the_offer_stays),
        T(where_kube_scheduler_evicts_nothing_is_offered),
        T(at_the_end_every_offer_is_taken_back),
        T(who_lost_the_lease_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
