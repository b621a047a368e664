/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

static struct rig rig;

/* kube-scheduler asks about n0 and n1: enough in all, not on one GPU. n2 and n3 have room. */
#define SAMPLE "\"n0\",\"n1\""

static int start_as(void **state, bool nominates)
{
    rig_start_as(&rig, (struct gs_service_config){.nominates = nominates});
    rig_lists(&rig);
    rig_node(&rig, "n0", "8,8");
    rig_node(&rig, "n1", "8,8");
    rig_node(&rig, "n2", "16");
    rig_node(&rig, "n3", "16");
    gs_service_tick(rig.service);
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
    rig_tick(&rig, 70 * GS_NS_PER_S); /* whatever the pause is */
    assert_string_equal(rig.nominated, node);
}

static void a_node_outside_the_sample_is_offered(void **state)
{
    show("");
    refuse("");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "n2");
}

static void without_the_option_nothing_is_offered(void **state)
{
    show("");
    refuse("");
    rig_tick(&rig, GS_NS_PER_S);
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
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1); /* no node is left, and n3 is not taken back yet */
}

static void all_nodes_are_offered_again_much_later(void **state)
{
    each_node_is_offered_once(state);
    show("");
    rig.now_ns += 301 * GS_NS_PER_S;
    refuse("");
    is_offered("n2");
}

/* n2 was offered, and no node has room any more. */
static void is_offered_in_vain(void)
{
    show("");
    refuse("");
    rig_tick(&rig, GS_NS_PER_S);
    show("n2");
    refuse("n2");
    rig_pod(&rig, "other", "u3", 16, "n3", "0", "Running");
    rig_pod(&rig, "more", "u2", 16, "n2", "0", "Running");
    rig.patches = 0;
}

static void an_offer_that_led_nowhere_is_taken_back(void **state)
{
    is_offered_in_vain();
    rig_tick(&rig, 4 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.patched, "default/p ");
    assert_string_equal(rig.nominated, "");
    show("");
    rig_tick(&rig, 60 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
}

static void it_is_taken_back_again_until_it_is_gone(void **state)
{
    is_offered_in_vain();
    rig.nominate_code = GS_EIO;
    rig_tick(&rig, 5 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    rig_tick(&rig, 4 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    rig.nominate_code = GS_OK;
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 2);
    assert_string_equal(rig.patched, "default/p ");
    assert_string_equal(rig.nominated, "");
    show("");
    rig_tick(&rig, 60 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 2);
}

static void who_is_nominated_long_after_it_was_nominated_by_others(void **state)
{
    is_offered_in_vain();
    rig_tick(&rig, 5 * GS_NS_PER_S);
    show("");
    rig.get_code = rig.list_code = GS_EIO; /* the comparison that is due then */
    rig_tick(&rig, 300 * GS_NS_PER_S);
    rig.patches = 0;
    show("n2");
    rig_tick(&rig, 60 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void a_place_given_up_is_no_news_to_its_own_pod(void **state)
{
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("");
    refuse("");
    rig_tick(&rig, GS_NS_PER_S);
    show("n2");
    refuse("n2"); /* something else is wrong with n2 */
    rig_tick(&rig, 5 * GS_NS_PER_S);
    assert_string_equal(rig.nominated, "");
    show("");
    rig.patches = 0;
    for (int s = 0; s < 100; s++)
        rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod(&rig, "c", "u4", 2, "n2", "0", "Running");
    rig_pod_gone(&rig, "c", "u4");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 1);
    assert_string_equal(rig.nominated, "n2");
}

static void a_nomination_of_kube_schedulers_stays(void **state)
{
    show("n1");
    refuse("n1");
    rig_tick(&rig, 70 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

static void an_offer_that_may_not_be_made_wakes_all_the_same(void **state)
{
    rig.nominate_code = GS_EDENIED;
    show("");
    refuse("");
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
    show("");
    rig_tick(&rig, GS_NS_PER_S);
    rig_tick(&rig, GS_NS_PER_S);
    assert_string_equal(rig.patched, "default/p aliyun.com/gpu-wake");
    assert_string_equal(rig.nominated, "-");
}

static void memory_that_comes_free_is_offered(void **state)
{
    rig_pod(&rig, "a", "u2", 16, "n2", "0", "Running");
    rig_pod(&rig, "b", "u3", 16, "n3", "0", "Running");
    show("");
    refuse("");
    rig_tick(&rig, GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
    rig_pod_gone(&rig, "b", "u3");
    rig_tick(&rig, GS_NS_PER_S);
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

static void show_beside_a_victim(void)
{
    rig_node(&rig, "n4", "16");
    rig_pod(&rig, "victim", "v", 16, "n4", "0", "Running");
    show("");
}

static void nobody_is_evicted_while_an_offer_is_young(void **state)
{
    show_beside_a_victim();
    assert_true(evicts(""));
    refuse("");
    assert_false(evicts(""));
    rig.now_ns += 5 * GS_NS_PER_S;
    assert_true(evicts(""));
}

static void whoever_was_offered_every_node_may_evict(void **state)
{
    show_beside_a_victim();
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
    rig_tick(&rig, 70 * GS_NS_PER_S);
    assert_int_equal(rig.patches, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_node_outside_the_sample_is_offered),
        cmocka_unit_test_setup_teardown(without_the_option_nothing_is_offered, setup_without,
                                        rig_teardown),
        T(each_node_is_offered_once),
        T(all_nodes_are_offered_again_much_later),
        T(an_offer_that_led_nowhere_is_taken_back),
        T(it_is_taken_back_again_until_it_is_gone),
        T(who_is_nominated_long_after_it_was_nominated_by_others),
        T(a_place_given_up_is_no_news_to_its_own_pod),
        T(a_nomination_of_kube_schedulers_stays),
        T(an_offer_that_may_not_be_made_wakes_all_the_same),
        T(a_pod_that_nobody_asked_about_is_woken_and_not_nominated),
        T(memory_that_comes_free_is_offered),
        T(nobody_is_evicted_while_an_offer_is_young),
        T(whoever_was_offered_every_node_may_evict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
