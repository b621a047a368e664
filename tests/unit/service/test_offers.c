/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

static struct rig rig;

/* kube-scheduler asks about n0 and n1: enough in all, not on one GPU. n2 and n3 have room. */
#define SAMPLE "\"n0\",\"n1\""

static int start_as(bool nominates)
{
    rig_start_as(&rig, (struct gs_service_config){.nominates = nominates});
    rig_lists(&rig);
    rig_node(&rig, "n0", "8,8");
    rig_node(&rig, "n1", "8,8");
    rig_node(&rig, "n2", "16");
    rig_node(&rig, "n3", "16");
    gs_service_tick(rig.service);
    return 0;
}

static int setup(void **state)
{
    return start_as(true);
}

static int setup_without(void **state)
{
    return start_as(false);
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static void tick(int64_t ns)
{
    rig.now_ns += ns;
    gs_service_tick(rig.service);
}

/* The pod as it is shown with that nomination. */
static const char *pod_json(const char *nominated)
{
    static char json[1024];
    snprintf(
        json, sizeof(json),
        "{'metadata':{'name':'p','namespace':'default','uid':'up','resourceVersion':'%llu'},"
        "'spec':{'priority':10,'containers':[{'name':'c','resources':{'limits':{"
        "'aliyun.com/gpu-mem':'12'}}}]},'status':{'phase':'Pending','nominatedNodeName':'%s'}}",
        (unsigned long long)++rig.revision, nominated);
    rig_quote(json);
    return json;
}

static void show(const char *nominated)
{
    rig_feed(&rig, pod_json(nominated), false);
}

static void refuse(const char *nominated)
{
    rig_expect(rig_filter(&rig, pod_json(nominated), SAMPLE), "\"NodeNames\":[]");
}

static void is_offered(const char *node)
{
    rig.patches = 0;
    tick(70 * GS_NS_PER_S); /* whatever the pause is */
    assert_string_equal(rig.nominated, node);
}

static void a_node_outside_the_sample_is_offered(void **state)
{
    show("");
    refuse("");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "n2");
}

static void without_the_option_nothing_is_offered(void **state)
{
    show("");
    refuse("");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void each_node_is_offered_once(void **state)
{
    show("");
    refuse("");
    is_offered("n2");
    show("n2");
    refuse("n2");
    is_offered("n3");
    show("n3");
    refuse("n3");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1); /* n3 is taken back: it led nowhere */
}

static void all_nodes_are_offered_again_much_later(void **state)
{
    each_node_is_offered_once(state);
    show("");
    rig.now_ns += 301 * GS_NS_PER_S;
    refuse("");
    is_offered("n2");
}

static void an_offer_that_led_nowhere_is_taken_back(void **state)
{
    show("");
    refuse("");
    tick(GS_NS_PER_S);
    show("n2");
    refuse("n2");
    rig_pod(&rig, "other", "u3", 16, "n3", "0", "Running"); /* nothing to offer any more */
    rig_pod(&rig, "more", "u2", 16, "n2", "0", "Running");
    rig.patches = 0;
    tick(4 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/p ");
    assert_string_equal(rig.nominated, "");
    show("");
    tick(60 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void a_place_given_up_is_no_news_to_its_own_pod(void **state)
{
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("");
    refuse("");
    tick(GS_NS_PER_S);
    show("n2");
    refuse("n2"); /* something else is wrong with n2 */
    tick(5 * GS_NS_PER_S);
    assert_string_equal(rig.nominated, "");
    show("");
    rig.patches = 0;
    for (int s = 0; s < 100; s++)
        tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod(&rig, "c", "u4", 2, "n2", "0", "Running");
    rig_pod_gone(&rig, "c", "u4");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.nominated, "n2");
}

static void a_nomination_of_kube_schedulers_stays(void **state)
{
    show("n1");
    refuse("n1");
    tick(70 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void an_offer_that_may_not_be_made_wakes_all_the_same(void **state)
{
    rig.nominate_code = GS_EDENIED;
    show("");
    refuse("");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 2);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "-");
}

static void memory_that_comes_free_is_offered(void **state)
{
    rig_pod(&rig, "a", "u2", 16, "n2", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("");
    refuse("");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod_gone(&rig, "b", "u3");
    tick(GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.nominated, "n3");
}

/* What kube-scheduler would evict on n0: a pod of 8 on one of its GPUs, which is too little; n4 is
 * of one pod that can go. */
static bool evicts(const char *nominated)
{
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"Pod\":%s,\"NodeNameToMetaVictims\":{\"n4\":{\"Pods\":[{\"UID\":\"v\"}]}}}",
             pod_json(nominated));
    char *answer = rig_ask(&rig, gs_service_preempt, body);
    bool any = strstr(answer, "\"n4\"") != NULL;
    free(answer);
    return any;
}

static void nobody_is_evicted_while_an_offer_is_young(void **state)
{
    rig_node(&rig, "n4", "16");
    rig_pod(&rig, "victim", "v", 16, "n4", "0", "Running");
    show("");
    assert_true(evicts(""));
    refuse("");
    assert_false(evicts(""));
    rig.now_ns += 5 * GS_NS_PER_S;
    assert_true(evicts(""));
}

static void whoever_was_offered_every_node_may_evict(void **state)
{
    rig_node(&rig, "n4", "16");
    rig_pod(&rig, "victim", "v", 16, "n4", "0", "Running");
    show("");
    refuse("");
    is_offered("n2");
    assert_false(evicts("n2"));
    show("n2");
    refuse("n2");
    assert_false(evicts("n2"));
    is_offered("n3");
    show("n3");
    refuse("n3");
    assert_true(evicts("n3"));
    rig.patches = 0;
    show("n4"); /* kube-scheduler's own now, and it stays */
    tick(70 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_node_outside_the_sample_is_offered, setup, teardown),
        cmocka_unit_test_setup_teardown(without_the_option_nothing_is_offered, setup_without,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_node_is_offered_once, setup, teardown),
        cmocka_unit_test_setup_teardown(all_nodes_are_offered_again_much_later, setup, teardown),
        cmocka_unit_test_setup_teardown(an_offer_that_led_nowhere_is_taken_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_place_given_up_is_no_news_to_its_own_pod, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_nomination_of_kube_schedulers_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(an_offer_that_may_not_be_made_wakes_all_the_same, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(memory_that_comes_free_is_offered, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_evicted_while_an_offer_is_young, setup, teardown),
        cmocka_unit_test_setup_teardown(whoever_was_offered_every_node_may_evict, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
