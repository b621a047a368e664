/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/service/service_internal.h"
#include "service_rig.h"

#include <time.h>

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig); /* sweep what they do not name: the objects come after them */
    rig_node(&rig, "n1", "16,24");
    rig_node(&rig, "n2", "16");
    *state = &rig;
    return 0;
}

/* API servers that ignore a Binding's uid would bind whatever has that name. */
static void a_uid_lets_no_pod_of_another_name_be_bound(void **state)
{
    static const char *const bodies[] = {
        "{\"PodName\":\"q\",\"PodNamespace\":\"default\",\"PodUID\":\"u1\",\"Node\":\"n1\"}",
        "{\"PodName\":\"p\",\"PodNamespace\":\"other\",\"PodUID\":\"u1\",\"Node\":\"n1\"}",
    };
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    GS_FOR_EACH_ROW (r, bodies) {
        _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(1 << 16);
        struct gs_error err = {0};
        assert_int_equal(service_bind(rig.service, *r, strlen(*r), &answer, &err), 0);
        assert_non_null(strstr(answer.data, "another pod"));
    }
    assert_int_equal(rig.binds, 0);
    assert_int_equal(rig_used(&rig, "n1", 0), 0);
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "{\"Error\":\"\"}");
}

static uint32_t unevaluated(const struct rig *of)
{
    struct gs_pending_stats stats;
    gs_pending_stats(of->service->pending, of->now_ns, &stats);
    return stats.unevaluated;
}

#define GPU(units) "'aliyun.com/gpu-mem':'" #units "'"

/* Others than kube-scheduler reach the port: bind looks at pod and node by itself. */
static void strangers_pods_are_refused(void **state)
{
    static const char ok[] = "{\"Error\":\"\"}";
    static const struct {
        const char *row;
        const char *schedulers; /* of --scheduler-name */
        const char *limits;
        const char *scheduler; /* of the pod */
        const char *answer;
    } rows[] = {
        {"nothing of ours", NULL, "'cpu':'1'", "x", "no GPU memory"},
        {"no limits", NULL, "", "x", "no GPU memory"},
        {"of another domain", NULL, "'example.com/gpu-mem':'4'", "x", "no GPU memory"},
        {"no GPU memory, said", NULL, GPU(0), "x", ok},
        {"compute alone", NULL, "'aliyun.com/gpu-core.percentage':'10'", "x", "gpu-core"},
        {"GPU memory", NULL, GPU(4), "x", ok},
        {"GPU memory, of no scheduler", NULL, GPU(4), "", ok},
        {"of this scheduler", "a,x", GPU(4), "x", ok},
        {"of another", "a,xx,yx", GPU(4), "x", "not in --scheduler-name"},
        {"of none", "a", GPU(4), "", "not in --scheduler-name"},
        {"nothing of ours, of another", "a", "", "x", "no GPU memory"},
        {"no GPU memory, said, of another", "a", GPU(0), "x", "not in --scheduler-name"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct rig open;
        char json[512];
        print_message("  %s\n", r->row);
        rig_start_as(&open, (struct gs_service_config){.scheduler_name = r->schedulers});
        rig_lists(&open);
        rig_node(&open, "n1", "16");
        snprintf(json, sizeof(json),
                 "{'metadata':{'name':'p','namespace':'default','uid':'u1'},'spec':{"
                 "'schedulerName':'%s','containers':[{'name':'c','resources':{'limits':{%s}}}]},"
                 "'status':{'phase':'Pending'}}",
                 r->scheduler, r->limits);
        rig_quote(json);
        open.get_json = json;
        rig_feed(&open, json, false);
        const uint32_t before = unevaluated(&open);
        rig_expect(rig_try_bind(&open, "p", "u1", "n1"), r->answer);
        assert_int_equal(open.binds, r->answer == ok);
        if (r->answer != ok) /* nobody evaluated it */
            row_equal(r->row, unevaluated(&open), before);
        rig_stop(&open);
    }
}

/* The node as its object says; its GPUs are those of rig_node(). */
static void node_says(struct rig *open, const char *labels, const char *spec)
{
    char json[1024];
    struct gs_node node = {0};
    struct gs_error err = {0};
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'n1','labels':{%s},'annotations':{'aliyun.com/gpu-inventory':"
             "'{\\'v\\':1,\\'unit\\':\\'GiB\\',\\'gpus\\':[{\\'idx\\':0,\\'mem\\':16}]}'}},"
             "'spec':{%s},'status':{'capacity':{'aliyun.com/gpu-mem':'16'},'allocatable':{"
             "'aliyun.com/gpu-mem':'16'}}}",
             labels, spec);
    rig_quote(json);
    assert_int_equal(gs_codec_node(&open->names, gs_slice_of(json), &node, &err), 0);
    assert_int_equal(open->sink.node(open->sink.ctx, &node), 0);
    gs_node_release(&node);
}

static void no_pod_is_bound_to_a_node_that_it_may_not_use(void **state)
{
    static const char ok[] = "{\"Error\":\"\"}", taint[] = "untolerated taint";
    static const char affinity[] = "node affinity/selector";
#define AFFINITY(op)                                                                               \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"               \
    "'nodeSelectorTerms':[{'matchExpressions':[{'key':'disk','operator':'" op "'}]}]}}},"
    static const struct {
        const char *row, *labels, *node, *pod, *answer;
    } rows[] = {
        {"any", "", "", "", ok},
        {"cordoned", "", "'unschedulable':true", "", "unschedulable"},
        {"cordoned, tolerated", "", "'unschedulable':true",
         "'tolerations':[{'operator':'Exists'}],", ok},
        {"tainted", "", "'taints':[{'key':'k','effect':'NoSchedule'}]", "", taint},
        {"tainted, running pods too", "", "'taints':[{'key':'k','effect':'NoExecute'}]", "", taint},
        {"rather not", "", "'taints':[{'key':'k','effect':'PreferNoSchedule'}]", "", ok},
        {"selected", "'disk':'ssd'", "", "'nodeSelector':{'disk':'ssd'},", ok},
        {"not selected", "'disk':'hdd'", "", "'nodeSelector':{'disk':'ssd'},", affinity},
        {"affine", "'disk':'hdd'", "", AFFINITY("Exists"), ok},
        {"not affine", "", "", AFFINITY("Exists"), affinity},
        {"nobody can say", "", "", AFFINITY("Newer"), ok},
    };
    static const char *const limits[] = {GPU(4), GPU(0)};
    for (size_t i = 0; i < 2 * GS_COUNT_OF(rows); i++) {
        const size_t row = i / 2;
        struct rig open;
        char json[1024];
        print_message("  %s, %s\n", rows[row].row, limits[i % 2]);
        rig_start_as(&open, (struct gs_service_config){0});
        rig_lists(&open);
        node_says(&open, rows[row].labels, rows[row].node);
        snprintf(json, sizeof(json),
                 "{'metadata':{'name':'p','namespace':'default','uid':'u1'},'spec':{%s"
                 "'containers':[{'name':'c','resources':{'limits':{%s}}}]},'status':{'phase':"
                 "'Pending'}}",
                 rows[row].pod, limits[i % 2]);
        rig_quote(json);
        open.get_json = json;
        rig_expect(rig_try_bind(&open, "p", "u1", "n1"), rows[row].answer);
        assert_int_equal(open.binds, rows[row].answer == ok);
        assert_int_equal(rig_used(&open, "n1", 0), rows[row].answer == ok && i % 2 == 0 ? 4 : 0);
        rig_stop(&open);
    }
}

static const char *const malformed[] = {
    "",
    "{",
    "[]",
    "null",
    "{\"PodName\":1}",
    "{\"PodName\":\"p\"}",
    "{\"PodName\":\"p\",\"PodNamespace\":\"d\",\"PodUID\":\"\",\"Node\":\"n\"}",
};

static void malformed_requests_are_refused_and_charge_nothing(void **state)
{
    GS_FOR_EACH_ROW (r, malformed) {
        struct gs_buf answer = GS_BUF(1 << 16);
        struct gs_error err = {0};
        assert_int_equal(service_bind(rig.service, *r, strlen(*r), &answer, &err), -1);
        assert_true(err.code == GS_EPROTO || err.code == GS_EINVAL);
        gs_buf_release(&answer);
    }
    assert_int_equal(rig.binds, 0);
}

static void a_standby_binds_nothing(void **state)
{
    const struct gs_election_config config = {.clock = &rig.clock};
    struct gs_election *other_leads = gs_election_new(&config);
    rig_stop(&rig);
    rig_start_with(&rig, other_leads);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    assert_true(gs_service_ready(rig.service, NULL));
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "standby");
    assert_int_equal(rig.binds, 0);
    rig_stop(&rig);
    gs_election_free(other_leads);
    rig_start(&rig);
}

/* The pod is read from the API, which takes longer than the lease has left, or than the next leader
 * waits for binds that have begun. */
static void a_leader_whose_lease_ends_during_a_bind_sends_none(void **state)
{
    const struct {
        const char *row;
        int64_t renewed_ns; /* so long before the bind begins */
        int64_t get_ns;
        const char *answer; /* NULL: it is bound */
        int64_t sent_within_ns;
    } rows[] = {
        {"in time", 0, GS_ELECTION_BIND_NS - 1, NULL, GS_ELECTION_BIND_NS},
        {"given up", 0, GS_ELECTION_BIND_NS, "timeout while reading", 0},
        {"leads no more", 0, GS_ELECTION_DEADLINE_NS, "no longer the leader", 0},
        {"leads a second more", GS_ELECTION_DEADLINE_NS - GS_NS_PER_S, 0, NULL, GS_NS_PER_S},
        {"and that is over", GS_ELECTION_DEADLINE_NS - GS_NS_PER_S, GS_NS_PER_S,
         "no longer the leader", 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char json[2048];
        rig_stop(&rig);
        struct gs_election *election = rig_election(&rig);
        rig_start_with(&rig, election);
        rig_lead(&rig, election);
        rig_node(&rig, "n1", "16");
        gs_election_step(election, NULL);
        rig.get_json = rig_pod_json(&rig, json, sizeof(json), "p", "u1", 8, NULL, NULL, "Pending");
        rig.now_ns += r->renewed_ns;
        int64_t begun_ns = rig.now_ns;
        rig.get_ns = r->get_ns;
        print_message("%s\n", r->row);
        rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), r->answer ? r->answer : "{\"Error\":\"\"}");
        assert_int_equal(rig.binds, !r->answer);
        assert_int_equal(rig.bind_deadline_ns, r->answer ? 0 : begun_ns + r->sent_within_ns);
        assert_int_equal(rig_used(&rig, "n1", 0), r->answer ? 0 : 8);
        gs_election_free(election);
    }
    rig_stop(&rig);
    rig_start(&rig);
}

/* What a process before this one sent may be carried out meanwhile. */
static void the_first_bind_waits_when_it_is_told_to(void **state)
{
    struct timespec before, after;
    rig_stop(&rig);
    rig_start_as(&rig,
                 (struct gs_service_config){.first_bind_ns = 1000000000000 + 50 * GS_NS_PER_MS});
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_pod(&rig, "p", "u1", 8, NULL, NULL, "Pending");
    clock_gettime(CLOCK_MONOTONIC, &before);
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "{\"Error\":\"\"}");
    clock_gettime(CLOCK_MONOTONIC, &after);
    int64_t took_ns = (after.tv_sec - before.tv_sec) * GS_NS_PER_S + after.tv_nsec - before.tv_nsec;
    assert_true(took_ns >= 50 * GS_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(strangers_pods_are_refused),
        T(a_uid_lets_no_pod_of_another_name_be_bound),
        T(no_pod_is_bound_to_a_node_that_it_may_not_use),
        T(malformed_requests_are_refused_and_charge_nothing),
        T(a_standby_binds_nothing),
        T(a_leader_whose_lease_ends_during_a_bind_sends_none),
        T(the_first_bind_waits_when_it_is_told_to),
    };
    return GS_RUN(tests);
}
