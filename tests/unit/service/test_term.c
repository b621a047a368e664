/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "service_rig.h"

static struct rig rig;
static struct gs_election *election;

static const struct gs_service_config with_pod = {
    .pod_ns = "kube", .pod_name = "own", .labels_leader = true};

/* A replica that stood by until now. */
static void start(struct gs_service_config config)
{
    election = rig_election(&rig);
    config.election = election;
    rig_start_as(&rig, config);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
}

static void stop(void)
{
    rig_stop(&rig);
    gs_election_free(election);
}

static int setup(void **state)
{
    start(with_pod);
    return 0;
}

static int teardown(void **state)
{
    stop();
    return 0;
}

/* So long later; the lease is renewed. */
static void pass(int64_t ns)
{
    rig.now_ns += ns;
    gs_election_step(election, NULL);
    gs_service_term_tick(rig.service);
}

static bool list_wanted(void)
{
    return atomic_load(gs_service_list_wanted(rig.service));
}

static void expect_bind(bool binds)
{
    int before = rig.binds;
    char *answer = rig_try_bind(&rig, "p", "u1", "n1");
    if ((strstr(answer, "\"Error\":\"\"") != NULL) != binds ||
        (!binds && !strstr(answer, "standby still")))
        fail_msg("answered %s", answer);
    assert_int_equal(rig.binds - before, binds);
    free(answer);
}

/* Some pod without GPU memory, at this version of history. */
static struct gs_pod other_pod(const char *revision)
{
    struct gs_pod pod = {0};
    gs_pod_reset(&pod);
    pod.uid = "uo";
    pod.ns = "d";
    pod.name = "other";
    pod.resource_version = revision;
    return pod;
}

static void show(const char *revision)
{
    struct gs_pod pod = other_pod(revision);
    assert_int_equal(rig.sink.pod(rig.sink.ctx, &pod), 0);
}

/* A pod with this mark. */
static void show_marked(const char *ns, const char *name, const char *mark, const char *revision)
{
    struct gs_pod pod = other_pod(revision);
    pod.ns = ns;
    pod.name = name;
    pod.term = mark;
    assert_int_equal(rig.sink.pod(rig.sink.ctx, &pod), 0);
}

/* Our own, as it was patched last. */
static void show_mark(void)
{
    show_marked("kube", "own", rig.patched_value, "");
}

static void list_begin(void)
{
    assert_int_equal(rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD), 0);
}

/* With the pod that is to be bound in it, or sweeping takes it away. */
static void list_end(void)
{
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    assert_int_equal(rig.sink.list_end(rig.sink.ctx, GS_KIND_POD), 0);
}

static void a_term_begins_when_the_watch_shows_its_mark(void **state)
{
    pass(0);
    assert_string_equal(rig.patched, "kube/own gpushare/term");
    assert_string_equal(rig.patched_label, "true");
    expect_bind(false);
    show_mark();
    pass(GS_NS_PER_S / 10);
    expect_bind(true);
    assert_int_equal(rig.patches, 1);
    assert_false(list_wanted());
}

static void nothing_else_is_the_mark(void **state)
{
    static const struct {
        const char *row, *ns, *name, *mark;
    } rows[] = {
        {"any pod, however late", "d", "other", ""},
        {"our pod, as it was", "kube", "own", "1"},
        {"no mark any more", "kube", "own", ""},
        {"the mark on another pod", "d", "own", NULL},
        {"on another replica's", "kube", "other", NULL},
    };
    pass(0);
    GS_FOR_EACH_ROW (r, rows) {
        show_marked(r->ns, r->name, r->mark ? r->mark : rig.patched_value, "");
        pass(GS_NS_PER_S / 10);
        print_message("%s\n", r->row);
        expect_bind(false);
    }
    show_mark();
    pass(0);
    expect_bind(true);
}

static void show_it(struct rig *patched, const struct gs_meta_patch *patch)
{
    show_mark();
}

static void a_mark_that_the_watch_showed_before_its_answer_came_counts(void **state)
{
    rig.during_patch = show_it;
    pass(0);
    expect_bind(true);
}

/* An etcd that was restored from a backup, and a watch that stands still: whatever version the
 * patch answers, the watch has shown a higher one. */
static void versions_are_not_compared(void **state)
{
    show("100000");
    pass(0);
    expect_bind(false);
    pass(2 * GS_NS_PER_S);
    assert_true(list_wanted());
    expect_bind(false);
    list_begin();
    list_end();
    pass(0);
    expect_bind(true);
}

static void a_version_that_falls_makes_it_list_anew_once_in_ten_seconds(void **state)
{
    pass(0);
    show_mark();
    show("100");
    pass(GS_NS_PER_S);
    show("50");
    expect_bind(false);
    assert_false(list_wanted()); /* the tick orders it */
    pass(0);
    assert_true(list_wanted());
    atomic_store(gs_service_list_wanted(rig.service), false); /* the watch took the order */
    pass(GS_NS_PER_S);
    assert_false(list_wanted());
    list_begin();
    list_end();
    pass(0);
    expect_bind(true);
    show("70");
    show("60"); /* again, within ten seconds */
    pass(GS_NS_PER_S);
    assert_false(list_wanted());
    pass(8 * GS_NS_PER_S); /* it is answered then */
    assert_true(list_wanted());
}

/* What is read elsewhere says nothing about the watch: the API answered it, not its cache. */
static void a_pod_that_was_read_does_not_end_the_wait(void **state)
{
    char read[1024];
    pass(0);
    snprintf(read, sizeof(read),
             "{'metadata':{'name':'own','namespace':'kube','uid':'ur','annotations':{"
             "'gpushare/term':'%s'}},'spec':{'nodeName':'n9','containers':[{'name':'c',"
             "'resources':{'limits':{'aliyun.com/gpu-mem':'2'}}}]},"
             "'status':{'phase':'Running'}}",
             rig.patched_value);
    rig_quote(read);
    rig.listed[0] = read;
    rig_node(&rig, "n9", "16"); /* a newcomer: its pods are listed */
    gs_service_tick(rig.service);
    assert_int_equal(rig.lists, 1);
    assert_int_equal(rig_used(&rig, "n9", 0), 2);
    pass(GS_NS_PER_S / 10);
    expect_bind(false);
}

static void a_list_counts_when_it_is_complete(void **state)
{
    pass(0);
    rig.now_ns++;
    list_begin();
    show_mark();
    pass(GS_NS_PER_S / 10);
    expect_bind(false); /* what was bound before may be further on in the list */
    list_end();
    pass(GS_NS_PER_S / 10);
    expect_bind(true);
}

static void a_list_that_began_before_the_term_is_none(void **state)
{
    list_begin();
    pass(GS_NS_PER_S);
    list_end();
    pass(GS_NS_PER_S / 10);
    expect_bind(false);
    list_begin();
    list_end();
    pass(0);
    expect_bind(true);
}

static void without_a_mark_the_pods_are_listed_anew(void **state)
{
    static const struct gs_service_config without;
    static const struct {
        const char *row;
        const struct gs_service_config *config;
        enum gs_code patch_code;
        int64_t patch_ns;
        int64_t after_ns; /* the list is asked for then, and not before */
        int patches;
    } rows[] = {
        {"no pod of our own is known", &without, 0, 0, 0, 0},
        {"no right to patch it", &with_pod, GS_EDENIED, 0, 0, 1},
        {"it does not exist", &with_pod, GS_ENOENT, 0, 0, 1},
        {"no answer", &with_pod, GS_ETIMEOUT, GS_NS_PER_S, 0, 1},
        {"not shown in time", &with_pod, 0, 0, 2 * GS_NS_PER_S, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stop();
        print_message("%s\n", rows[i].row);
        start(*rows[i].config);
        rig.patch_code = rows[i].patch_code;
        rig.patch_ns = rows[i].patch_ns;
        pass(0);
        assert_int_equal(list_wanted(), !rows[i].after_ns);
        if (rows[i].after_ns) {
            pass(rows[i].after_ns - 1);
            assert_false(list_wanted());
            pass(1);
        }
        assert_true(list_wanted());
        assert_int_equal(rig.watch_wakes, 1);
        rig.patch_ns = 0;
        pass(GS_NS_PER_S);
        assert_int_equal(rig.watch_wakes, 1); /* once: the watch goes on trying */
        expect_bind(false);
        list_begin();
        list_end();
        pass(GS_NS_PER_S / 10);
        expect_bind(true);
        assert_in_range(rig.patches, rows[i].patches, rows[i].patches + 1); /* and the label's */
    }
}

/* The lead was lost for a moment, and perhaps another replica's. */
static void each_term_begins_so(void **state)
{
    pass(0);
    show_mark();
    pass(0);
    gs_election_resign(election, true);
    pass(GS_ELECTION_RETRY_NS);
    expect_bind(false);
    show_mark();
    pass(0);
    expect_bind(true);
}

/* Versions may be higher than they were, of another history: the watch that goes on shows less. */
static void after_silence_a_mark_is_not_enough(void **state)
{
    pass(0);
    show_mark();
    pass(0);
    pass(GS_ELECTION_DEADLINE_NS);
    show_mark();
    pass(0);
    expect_bind(false);
    assert_true(list_wanted());
    list_begin();
    list_end();
    pass(0);
    expect_bind(true);
}

static void filter_waits_with_it(void **state)
{
    char json[2048];
    pass(0);
    rig_expect(
        rig_filter(&rig,
                   rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending"),
                   "\"n1\""),
        "standby still");
}

static void a_standby_takes_the_label_off_and_a_failure_is_tried_again(void **state)
{
    gs_service_term_tick(rig.service); /* what an earlier run of this container left */
    assert_string_equal(rig.patched, "kube/own ");
    assert_string_equal(rig.patched_label, "-");
    gs_service_term_tick(rig.service);
    assert_int_equal(rig.patches, 1);
    rig.patch_code = GS_EIO;
    pass(0);
    assert_int_equal(rig.patches, 2);
    rig.patch_code = GS_OK;
    pass(0);
    assert_int_equal(rig.patches, 3);
    assert_string_equal(rig.patched_label, "true");
    gs_election_resign(election, true);
    rig.patch_code = GS_EIO;
    gs_service_term_tick(rig.service);
    gs_service_term_tick(rig.service);
    assert_int_equal(rig.patches, 4); /* not ten times a second */
    rig.patch_code = GS_OK;
    rig.now_ns += 2 * GS_NS_PER_S;
    gs_service_term_tick(rig.service);
    assert_int_equal(rig.patches, 5);
    assert_string_equal(rig.patched_label, "-");
}

static void a_follower_has_no_label(void **state)
{
    stop();
    start((struct gs_service_config){.pod_ns = "kube", .pod_name = "own"});
    gs_service_term_tick(rig.service);
    assert_int_equal(rig.patches, 0);
    pass(0);
    assert_string_equal(rig.patched, "kube/own gpushare/term");
    assert_string_equal(rig.patched_label, "");
}

/* A leader whose last bind was done 4.9 s ago. */
static void lead_and_bind(void)
{
    pass(0);
    show_mark();
    pass(0);
    expect_bind(true);
    pass(4900 * GS_NS_PER_MS);
    assert_false(list_wanted());
}

static void show_bound(void)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Pending");
}

static void show_unbound(void)
{
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
}

static void show_deleted(void)
{
    rig_pod_gone(&rig, "p", "u1");
}

static void list_later(void)
{
    list_begin();
    rig_pod(&rig, "p", "u1", 8, "n1", "0", "Pending");
    assert_int_equal(rig.sink.list_end(rig.sink.ctx, GS_KIND_POD), 0);
}

static void nothing(void)
{
}

static void a_bind_that_does_not_come_back_makes_it_list_anew(void **state)
{
    static const struct {
        const char *row;
        void (*shown)(void);
        bool wanted;
    } rows[] = {
        {"nothing is shown", nothing, true}, {"shown as it was before", show_unbound, true},
        {"shown", show_bound, false},        {"its end is shown", show_deleted, false},
        {"listed since", list_later, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stop();
        start(with_pod);
        lead_and_bind();
        rows[i].shown();
        pass(GS_NS_PER_S / 10);
        if (list_wanted() != rows[i].wanted)
            fail_msg("%s: list wanted: %d", rows[i].row, list_wanted());
    }
}

/* A standby reads, too: what the next leader begins with is true. */
static void an_open_bind_is_settled_after_the_lead_was_lost(void **state)
{
    char json[2048];
    lead_and_bind();
    show_bound();
    rig_pod_json(&rig, json, sizeof(json), "q", "u2", 4, NULL, NULL, "Pending");
    rig_feed(&rig, json, false);
    rig.bind_code = GS_ETIMEOUT;
    rig.get_json = json;
    rig_expect(rig_try_bind(&rig, "q", "u2", "n1"), "no known outcome");
    assert_int_equal(rig_used(&rig, "n1", 0), 12);
    rig.now_ns += GS_ELECTION_DEADLINE_NS; /* nobody renews */
    for (int i = 0; i < 400; i++) {
        rig.now_ns += GS_NS_PER_S / 4;
        gs_service_tick(rig.service);
    }
    assert_false(gs_election_leads(election));
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

static void of_many_binds_the_last_is_waited_for_too(void **state)
{
    static const char *const uids[] = {"u2", "u3", "u4"};
    lead_and_bind();
    for (int i = 0; i < 3; i++) {
        rig_pod(&rig, "q", uids[i], 1, NULL, NULL, "Pending");
        rig_expect(rig_try_bind(&rig, "q", uids[i], "n1"), "\"Error\":\"\"");
    }
    show_bound();
    pass(4900 * GS_NS_PER_MS);
    assert_false(list_wanted());
    for (int i = 0; i < 2; i++)
        rig_pod(&rig, "q", uids[i], 1, "n1", "0", "Pending");
    pass(GS_NS_PER_S / 10);
    assert_true(list_wanted());
}

/* Without an election too: what went is seen sooner. */
static void a_bind_of_a_single_replica_comes_back_too(void **state)
{
    rig_stop(&rig);
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    expect_bind(true);
    pass(5 * GS_NS_PER_S);
    assert_true(list_wanted());
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_term_begins_when_the_watch_shows_its_mark),
        T(a_mark_that_the_watch_showed_before_its_answer_came_counts),
        T(nothing_else_is_the_mark),
        T(versions_are_not_compared),
        T(a_version_that_falls_makes_it_list_anew_once_in_ten_seconds),
        T(a_pod_that_was_read_does_not_end_the_wait),
        T(a_list_counts_when_it_is_complete),
        T(a_list_that_began_before_the_term_is_none),
        T(without_a_mark_the_pods_are_listed_anew),
        T(each_term_begins_so),
        T(after_silence_a_mark_is_not_enough),
        T(filter_waits_with_it),
        T(a_standby_takes_the_label_off_and_a_failure_is_tried_again),
        T(a_follower_has_no_label),
        T(a_bind_that_does_not_come_back_makes_it_list_anew),
        T(an_open_bind_is_settled_after_the_lead_was_lost),
        T(of_many_binds_the_last_is_waited_for_too),
        T(a_bind_of_a_single_replica_comes_back_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
