/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

/* Compute, gpu-core.percentage, through all verbs. One node, n1, with two GPUs of 16. */

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16,16");
    *state = &rig;
    return 0;
}

/* node NULL: it waits; mem 0: no such limit. */
static const char *pod(const char *uid, unsigned mem, unsigned cores, const char *node,
                       const char *idx, unsigned priority)
{
    static char json[1024];
    char annotations[64] = "", memory[64] = "";
    if (idx)
        snprintf(annotations, sizeof(annotations), "'ALIYUN_COM_GPU_MEM_IDX':'%s'", idx);
    if (mem)
        snprintf(memory, sizeof(memory), "'aliyun.com/gpu-mem':'%u',", mem);
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','namespace':'default','uid':'%s','resourceVersion':'%llu',"
             "'annotations':{%s}},'spec':{'nodeName':'%s','priority':%u,'containers':[{'name':'c',"
             "'resources':{'limits':{%s'aliyun.com/gpu-core.percentage':'%u'}}}]},"
             "'status':{'phase':'%s'}}",
             uid, uid, (unsigned long long)++rig.revision, annotations, node ? node : "", priority,
             memory, cores, node ? "Running" : "Pending");
    rig_quote(json);
    return json;
}

static void bind(const char *uid, unsigned mem, unsigned cores, const char *error)
{
    rig_feed(&rig, pod(uid, mem, cores, NULL, NULL, 0), false);
    rig_expect(rig_try_bind(&rig, uid, uid, "n1"), error);
}

static void compute_is_counted_at_bind_and_refused_in_its_own_words(void **state)
{
    bind("a", 4, 60, "{\"Error\":\"\"}");
    bind("b", 4, 40, "{\"Error\":\"\"}"); /* the tightest GPU has just that left */
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    bind("c", 4, 70, "{\"Error\":\"\"}"); /* the other GPU */
    assert_int_equal(rig_used(&rig, "n1", 1), 4);
    rig_expect(
        rig_filter(&rig, pod("d", 4, 50, NULL, NULL, 0), "\"n1\""),
        "\"FailedNodes\":{\"n1\":\"GPUs with enough free memory have too little free compute");
    bind("d", 4, 50, "too little free compute");
    rig_expect(rig_filter(&rig, pod("d", 4, 0, NULL, NULL, 0), "\"n1\""), "\"NodeNames\":[\"n1\"]");
    rig_pod_gone(&rig, "a", "a");
    bind("d", 4, 50, "{\"Error\":\"\"}");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
}

/* A service that starts finds bound pods by their specification: no annotation says it. */
static void what_is_bound_is_counted_by_its_specification(void **state)
{
    rig_feed(&rig, pod("a", 4, 60, "n1", "0", 0), false);
    rig_feed(&rig, pod("b", 4, 60, "n1", "1", 0), false);
    rig_expect(rig_filter(&rig, pod("c", 4, 50, NULL, NULL, 0), "\"n1\""), "free compute");
    rig_expect(rig_filter(&rig, pod("c", 4, 40, NULL, NULL, 0), "\"n1\""), "[\"n1\"]");
}

static char *preempt(const char *json)
{
    static char body[2048];
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[]}}}",
             json);
    return rig_ask(&rig, gs_service_preempt, body);
}

static void victims_are_those_who_have_the_compute(void **state)
{
    rig_feed(&rig, pod("a", 4, 60, "n1", "0", 1), false);
    rig_feed(&rig, pod("b", 4, 0, "n1", "0", 1), false);
    rig_feed(&rig, pod("c", 4, 60, "n1", "1", 99), false);
    rig_expect(preempt(pod("p", 4, 50, NULL, NULL, 10)), "\"Pods\":[{\"UID\":\"a\"}]");
    rig_expect(preempt(pod("p", 4, 50, NULL, NULL, 1)), "{\"NodeNameToMetaVictims\":{}}");
}

static void compute_without_memory_goes_nowhere(void **state)
{
    static const char words[] = "a container asks for gpu-core.percentage without gpu-mem";
    rig_expect(rig_filter(&rig, pod("a", 0, 60, NULL, NULL, 0), "\"n1\",\"elsewhere\""),
               "\"NodeNames\":[]");
    rig_expect(rig_filter(&rig, pod("a", 0, 60, NULL, NULL, 0), "\"n1\""), words);
    rig.get_json = pod("a", 0, 60, NULL, NULL, 0); /* it has no claim: it is read from the API */
    rig_expect(rig_try_bind(&rig, "a", "a", "n1"), words);
    assert_int_equal(rig.binds, 0);
    rig_expect(preempt(pod("a", 0, 60, NULL, NULL, 10)), "{\"NodeNameToMetaVictims\":{}}");
}

/* A nominated pod keeps compute, too, against those of its priority. */
static void compute_is_held_for_a_nominated_pod(void **state)
{
    rig_feed(&rig, pod("a", 4, 60, "n1", "1", 0), false);
    const char *json = pod("v", 4, 70, NULL, NULL, 10);
    char nominated[1024];
    const char *status = strstr(json, "\"phase\"");
    snprintf(nominated, sizeof(nominated), "%.*s\"nominatedNodeName\":\"n1\",%s",
             (int)(status - json), json, status);
    rig_feed(&rig, nominated, false);
    rig_expect(rig_filter(&rig, pod("p", 4, 50, NULL, NULL, 10), "\"n1\""), "nominated pod");
    rig_expect(rig_filter(&rig, pod("p", 4, 40, NULL, NULL, 10), "\"n1\""), "[\"n1\"]");
    rig_expect(rig_filter(&rig, pod("p", 4, 50, NULL, NULL, 11), "\"n1\""), "[\"n1\"]");
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(compute_is_counted_at_bind_and_refused_in_its_own_words),
        WITH_RIG(what_is_bound_is_counted_by_its_specification),
        WITH_RIG(victims_are_those_who_have_the_compute),
        WITH_RIG(compute_without_memory_goes_nowhere),
        WITH_RIG(compute_is_held_for_a_nominated_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
