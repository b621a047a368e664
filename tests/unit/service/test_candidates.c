/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

#include <stdlib.h>

#include "rows.h"

static struct rig rig;

static int setup(void **state)
{
    *state = &rig;
    rig_start_as(&rig, (struct gs_service_config){.candidates = 2});
    rig_lists(&rig);
    return 0;
}

/* One GPU; zone "" and taint "" are none. */
static void show(const char *name, unsigned units, const char *zone, const char *taint)
{
    char json[1024];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','labels':{'%s':'%s'}},'spec':{'taints':[{'effect':'%s'}]},"
             "'status':{'capacity':{'aliyun.com/gpu-mem':'%u','aliyun.com/gpu-count':'%u'},"
             "'allocatable':{'cpu':'64'}}}",
             name, zone[0] ? "topology.kubernetes.io/zone" : "a", zone, taint, units,
             units ? 1u : 0u);
    rig_quote(json);
    struct gs_node node = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_codec_node(&rig.names, gs_slice_of(json), &node, &err), 0);
    assert_int_equal(rig.sink.node(rig.sink.ctx, &node), 0);
    gs_node_release(&node);
}

static void gone(const char *name)
{
    struct gs_node node = {.name = name};
    rig.sink.node_gone(rig.sink.ctx, &node);
}

/* A pod of 8 units; spec and status are more of these objects. */
static const char *pod_in(const char *name, const char *ns, const char *spec, const char *status)
{
    static char json[2048];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','namespace':'%s','uid':'u-%s'},'spec':{%s'containers':[{"
             "'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'8'}}}]},'status':{%s"
             "'phase':'Pending'}}",
             name, ns, name, spec, status);
    rig_quote(json);
    return json;
}

static const char *pod(const char *spec)
{
    return pod_in("p", "default", spec, "");
}

/* Filter's NodeNames, between the brackets. */
static const char *named(const char *pod_json, const char *names)
{
    static char list[1024];
    char asked[1024];
    snprintf(asked, sizeof(asked), "%s", names);
    rig_quote(asked);
    char *answer = rig_filter(&rig, pod_json, asked);
    const char *at = strstr(answer, "\"NodeNames\":[");
    assert_non_null(at);
    at += strlen("\"NodeNames\":[");
    snprintf(list, sizeof(list), "%.*s", (int)strcspn(at, "]"), at);
    for (char *c = list; *c; c++)
        *c = *c == '"' ? '\'' : *c;
    free(answer);
    return list;
}

static void show_four(void)
{
    show("n20", 20, "", "");
    show("n10", 10, "", "");
    show("n40", 40, "", "");
    show("n30", 30, "", "");
}

static const char four[] = "'n20','n10','n40','n30'";

static void the_best_are_named_in_the_requests_order(void **state)
{
    show_four();
    row_text("best two", named(pod(""), four), "'n20','n10'");
    row_text("no more than two fit", named(pod(""), "'n40','n30'"), "'n40','n30'");
}

static void who_is_refused_is_told_and_who_is_left_out_is_not(void **state)
{
    show_four();
    show("n4", 4, "", "");
    rig_expect(
        rig_filter(&rig, pod(""), "\"n4\",\"n20\",\"n10\",\"n40\""),
        "\"NodeNames\":[\"n20\",\"n10\"],\"FailedNodes\":{\"n4\":\"no GPU is as large as the "
        "request\"},\"FailedAndUnresolvableNodes\":{\"n4\":");
}

static void the_only_node_with_room_is_named(void **state)
{
    char names[512] = "'last'";
    show("last", 8, "", "");
    for (int i = 0; i < 10; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%d", i);
        show(name, 4, "", "");
        snprintf(names + strlen(names), sizeof(names) - strlen(names), ",'%s'", name);
    }
    row_text("one of eleven", named(pod(""), names), "'last'");
}

static void equal_nodes_take_turns(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    int seen[5] = {0};
    GS_FOR_EACH_ROW (name, names)
        show(*name, 16, "", "");
    for (int turn = 0; turn < 5; turn++) {
        const char *list = named(pod(""), "'a','b','c','d','e'");
        assert_int_equal(strlen(list), strlen("'a','b'"));
        for (int i = 0; i < 5; i++)
            seen[i] += strchr(list, names[i][0]) != NULL;
    }
    for (int i = 0; i < 5; i++)
        row_equal(names[i], seen[i], 2);
}

static void the_best_of_each_zone_are_named(void **state)
{
    static const struct {
        const char *row, *names, *expected;
    } rows[] = {
        {"one of each zone", "'a10','a20','a30','b40','b50'", "'a10','b40'"},
        {"what a zone has not the other has more", "'none','a10','a20','a30'", "'a10','a20'"},
        {"more zones than are named", "'a10','b40','c60'", "'a10','b40'"},
        {"without a zone is a zone", "'a10','a20','x90'", "'a10','x90'"},
    };
    show("a10", 10, "a", "");
    show("a20", 20, "a", "");
    show("a30", 30, "a", "");
    show("b40", 40, "b", "");
    show("b50", 50, "b", "");
    show("c60", 60, "c", "");
    show("x90", 90, "", "");
    show("none", 4, "b", "");
    GS_FOR_EACH_ROW (r, rows)
        row_text(r->row, named(pod(""), r->names), r->expected);
}

#define TERM "{'topologyKey':'kubernetes.io/hostname'}"

static void a_pod_that_prefers_nodes_may_have_any(void **state)
{
    static const struct {
        const char *row, *spec;
        bool all;
    } rows[] = {
        {"preferred node affinity",
         "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{}]}},",
         true},
        {"an empty list of these",
         "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[]}},",
         false},
        {"required node affinity",
         "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{}}},",
         false},
        {"preferred pod affinity",
         "'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':"
         "[{'podAffinityTerm':" TERM "}]}},",
         true},
        {"preferred pod anti-affinity",
         "'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':"
         "[{'podAffinityTerm':" TERM "}]}},",
         true},
        {"required pod affinity",
         "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" TERM
         "]}},",
         false},
        {"spread anyway", "'topologySpreadConstraints':[{'whenUnsatisfiable':'ScheduleAnyway'}],",
         true},
        {"spread or wait", "'topologySpreadConstraints':[{'whenUnsatisfiable':'DoNotSchedule'}],",
         false},
    };
    show_four();
    GS_FOR_EACH_ROW (r, rows)
        row_text(r->row, named(pod(r->spec), four), r->all ? four : "'n20','n10'");
}

static void a_nominated_pod_may_have_any(void **state)
{
    show_four();
    row_text("nominated", named(pod_in("p", "default", "", "'nominatedNodeName':'n40',"), four),
             four);
}

static void node_objects_are_all_answered(void **state)
{
    static const char *const names[] = {"n20", "n10", "n40", "n30"};
    char body[4096];
    show_four();
    int len = snprintf(body, sizeof(body), "{\"Pod\":%s,\"Nodes\":{\"items\":[", pod(""));
    GS_FOR_EACH_ROW (name, names)
        len += snprintf(body + len, sizeof(body) - (size_t)len,
                        "%s{\"metadata\":{\"name\":\"%s\"},\"status\":{\"capacity\":{"
                        "\"aliyun.com/gpu-mem\":\"40\",\"aliyun.com/gpu-count\":\"1\"}}}",
                        name == names ? "" : ",", *name);
    snprintf(body + len, sizeof(body) - (size_t)len, "]}}");
    char *answer = rig_ask(&rig, gs_service_filter, body);
    GS_FOR_EACH_ROW (name, names)
        row_true(*name, strstr(answer, *name));
    free(answer);
}

/* A pod on a node, or not bound yet, with one term. */
static void other(const char *name, const char *ns, const char *kind, const char *when,
                  const char *term)
{
    char spec[1024];
    bool weighted = when[0] == 'p';
    snprintf(spec, sizeof(spec),
             "'affinity':{'%s':{'%sDuringSchedulingIgnoredDuringExecution':[%s%s%s]}},", kind, when,
             weighted ? "{'weight':1,'podAffinityTerm':" : "", term, weighted ? "}" : "");
    rig_feed(&rig, pod_in(name, ns, spec, ""), false);
}

static void what_other_pods_prefer_concerns_pods_of_their_namespaces(void **state)
{
    static const struct {
        const char *row, *ns, *kind, *when, *term;
        bool all;
    } rows[] = {
        {"drawn", "default", "podAffinity", "preferred", TERM, true},
        {"driven away", "default", "podAntiAffinity", "preferred", TERM, true},
        {"required also draws", "default", "podAffinity", "required", TERM, true},
        {"required to be away is filtered", "default", "podAntiAffinity", "required", TERM, false},
        {"another namespace's", "other", "podAffinity", "preferred", TERM, false},
        {"another's that names namespaces", "other", "podAffinity", "preferred",
         "{'namespaces':['default']}", true},
        {"that names none", "other", "podAffinity", "preferred", "{'namespaces':[]}", false},
        {"that selects them", "other", "podAffinity", "preferred", "{'namespaceSelector':{}}",
         true},
        {"null selects none", "other", "podAffinity", "preferred", "{'namespaceSelector':null}",
         false},
    };
    show_four();
    GS_FOR_EACH_ROW (r, rows) {
        char name[16]; /* who ended does not come back */
        snprintf(name, sizeof(name), "other-%d", (int)(r - rows));
        other(name, r->ns, r->kind, r->when, r->term);
        other(name, r->ns, r->kind, r->when, r->term); /* shown again: counted once */
        row_text(r->row, named(pod(""), four), r->all ? four : "'n20','n10'");
        rig_feed(&rig, pod_in(name, r->ns, "", ""), true);
        row_text(r->row, named(pod(""), four), "'n20','n10'");
    }
}

static void pods_that_a_list_does_not_show_prefer_nothing(void **state)
{
    show_four();
    other("stays", "default", "podAffinity", "preferred", TERM);
    other("goes", "default", "podAffinity", "preferred", TERM);
    for (int round = 0; round < 2; round++) {
        rig.sink.list_begin(rig.sink.ctx, GS_KIND_POD);
        if (round == 0)
            other("stays", "default", "podAffinity", "preferred", TERM);
        rig.sink.list_end(rig.sink.ctx, GS_KIND_POD);
        row_text("after the list", named(pod(""), four), round ? "'n20','n10'" : four);
    }
}

static void nodes_to_be_avoided_are_told_from_others_by_kube_scheduler(void **state)
{
    static const struct {
        const char *row, *name, *taint;
        unsigned units;
        bool all;
    } rows[] = {
        {"a node with a GPU", "tainted", "PreferNoSchedule", 40, true},
        {"shown again", "tainted", "PreferNoSchedule", 40, true},
        {"another taint", "tainted", "NoSchedule", 40, false},
        {"no GPU", "tainted", "PreferNoSchedule", 0, false},
        {"and again", "tainted", "PreferNoSchedule", 40, true},
    };
    show_four();
    GS_FOR_EACH_ROW (r, rows) {
        show(r->name, r->units, "", r->taint);
        row_text(r->row, named(pod(""), four), r->all ? four : "'n20','n10'");
    }
    gone("tainted");
    row_text("gone", named(pod(""), four), "'n20','n10'");
    show("tainted", 40, "", "PreferNoSchedule");
    rig.sink.list_begin(rig.sink.ctx, GS_KIND_NODE);
    show_four();
    rig.sink.list_end(rig.sink.ctx, GS_KIND_NODE);
    row_text("not in the list", named(pod(""), four), "'n20','n10'");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(the_best_are_named_in_the_requests_order),
        T(who_is_refused_is_told_and_who_is_left_out_is_not),
        T(the_only_node_with_room_is_named),
        T(equal_nodes_take_turns),
        T(the_best_of_each_zone_are_named),
        T(a_pod_that_prefers_nodes_may_have_any),
        T(a_nominated_pod_may_have_any),
        T(node_objects_are_all_answered),
        T(what_other_pods_prefer_concerns_pods_of_their_namespaces),
        T(pods_that_a_list_does_not_show_prefer_nothing),
        T(nodes_to_be_avoided_are_told_from_others_by_kube_scheduler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
