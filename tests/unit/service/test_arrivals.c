/* SPDX-License-Identifier: Apache-2.0 */
/* Binds that wait for their turn: counted from when they were read. */
#include "rows.h"

#include "service_rig.h"

#include "../../../src/service/arrivals.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start_two_nodes(&rig);
    *state = &rig;
    return 0;
}

#define BOUND "{\"Error\":\"\"}"

static void arrives(const char *name, const char *uid, const char *node)
{
    char body[512];
    snprintf(body, sizeof(body),
             "{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\",\"Node\":\"%s\"}",
             name, uid, node);
    gs_service_bind_arrived(rig.service, body, strlen(body));
    assert_int_equal(rig.binds, 0);
}

static void pod(const char *name, const char *uid, unsigned units)
{
    rig_pod(&rig, name, uid, units, NULL, NULL, "Pending");
}

static bool fits_on_n2(unsigned units)
{
    char json[2048];
    char *answer = rig_filter(
        &rig, rig_pod_json(&rig, json, sizeof(json), "q", "uq", units, NULL, NULL, "Pending"),
        "\"n2\"");
    const bool fits = strstr(answer, "\"NodeNames\":[\"n2\"]") != NULL;
    free(answer);
    return fits;
}

static void what_arrived_is_counted_before_its_turn(void **state)
{
    pod("p", "u1", 8);
    assert_true(fits_on_n2(16));
    arrives("p", "u1", "n2");
    assert_false(fits_on_n2(9));
    assert_true(fits_on_n2(8));
    arrives("p", "u1", "n2");
    assert_int_equal(rig_used(&rig, "n2", 0), 8);
    rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), BOUND);
    assert_int_equal(rig.binds, 1);
    assert_int_equal(rig_used(&rig, "n2", 0), 8);
    rig_tick(&rig, 2 * GS_ARRIVAL_NS);
    assert_int_equal(rig_used(&rig, "n2", 0), 8);
}

/* By the process before, whose bind the watch shows while this one waits. */
static void a_place_that_was_taken_meanwhile_is_chosen_anew(void **state)
{
    pod("p", "u1", 8);
    arrives("p", "u1", "n1");
    assert_int_equal(rig_used(&rig, "n1", 0), 8);
    rig_pod(&rig, "x", "ux", 16, "n1", "0", "Running");
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), BOUND);
    assert_non_null(strstr(rig.annotations, "GPU_MEM_IDX=1;"));
    assert_int_equal(rig_used(&rig, "n1", 0), 16);
    assert_int_equal(rig_used(&rig, "n1", 1), 8);
}

static void the_same_gpus_are_kept_where_they_still_take_it(void **state)
{
    rig_pod(&rig, "x", "ux", 4, "n1", "1", "Running");
    rig_pod(&rig, "y", "uy", 10, "n1", "0", "Running");
    pod("p", "u1", 8);
    arrives("p", "u1", "n1");
    assert_int_equal(rig_used(&rig, "n1", 1), 12);
    rig_pod_gone(&rig, "y", "uy"); /* now GPU 0 would be the tighter one */
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), BOUND);
    assert_non_null(strstr(rig.annotations, "GPU_MEM_IDX=1;"));
}

static void take_all_of_n2(void)
{
    rig_pod(&rig, "x", "ux", 16, "n2", "0", "Running");
}

static void end_pod(void)
{
    rig_pod_gone(&rig, "p", "u1");
    rig.get_code = GS_ENOENT;
}

static void end_node(void)
{
    const struct gs_node gone = {.name = "n2"};
    rig.sink.node_gone(rig.sink.ctx, &gone);
}

static void bind_elsewhere(void)
{
    rig_pod(&rig, "p", "u1", 8, "n1", "1", "Running");
}

static void bind_there(void)
{
    rig_pod(&rig, "p", "u1", 8, "n2", "0", "Running");
}

static void nothing(void)
{
}

static void what_is_not_bound_in_its_turn_is_given_back(void **state)
{
    static const struct {
        const char *row;
        void (*meanwhile)(void);
        enum gs_code code;
        const char *answer;
        int binds;
        long used; /* of n2 */
    } rows[] = {
        {"nothing", nothing, GS_OK, BOUND, 1, 8},
        {"its place was taken", take_all_of_n2, GS_OK, "insufficient", 0, 16},
        {"the pod ended", end_pod, GS_OK, "bind failed", 0, 0},
        {"the node went", end_node, GS_OK, "not known", 0, 0},
        {"bound elsewhere", bind_elsewhere, GS_OK, "another node", 0, 0},
        {"bound there", bind_there, GS_OK, BOUND, 0, 8},
        {"the API server refuses", nothing, GS_EBUSY, "bind failed", 1, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        rig_stop(&rig);
        setup(state);
        pod("p", "u1", 8);
        arrives("p", "u1", "n2");
        r->meanwhile();
        rig.bind_code = r->code;
        rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), r->answer);
        row_equal(r->row, rig.binds, r->binds);
        rig_node(&rig, "n2", "16");
        row_equal(r->row, rig_used(&rig, "n2", 0), r->used);
        rig_tick(&rig, 2 * GS_ARRIVAL_NS);
        row_equal(r->row, rig_used(&rig, "n2", 0), r->used);
    }
}

static void who_was_refused_beside_it_is_woken(void **state)
{
    rig_node(&rig, "n1", "4"); /* nothing for them */
    gs_service_tick(rig.service);
    pod("p", "u1", 12);
    pod("q", "uq", 8);
    arrives("p", "u1", "n2");
    assert_false(fits_on_n2(8));
    rig_pod(&rig, "x", "ux", 8, "n2", "0", "Running");
    rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), "insufficient");
    for (int i = 0; i < 5; i++)
        rig_tick(&rig, 200 * GS_NS_PER_MS);
    assert_int_equal(rig.patches, 1);
    assert_non_null(strstr(rig.patched, "default/q "));
}

static void the_own_nomination_holds_again(void **state)
{
    char json[] = "{'metadata':{'name':'p','namespace':'default','uid':'u1','resourceVersion':'1'},"
                  "'spec':{'containers':[{'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':"
                  "'8'}}}]},'status':{'phase':'Pending','nominatedNodeName':'n2'}}";
    rig_quote(json);
    rig_feed(&rig, json, false);
    assert_false(fits_on_n2(9));
    arrives("p", "u1", "n2");
    rig_pod(&rig, "x", "ux", 12, "n2", "0", "Running");
    rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), "insufficient");
    rig_pod_gone(&rig, "x", "ux");
    assert_int_equal(rig_used(&rig, "n2", 0), 0);
    assert_true(fits_on_n2(8));
    assert_false(fits_on_n2(9));
}

static void a_turn_that_never_comes_ends(void **state)
{
    pod("p", "u1", 8);
    arrives("p", "u1", "n2");
    rig_tick(&rig, GS_ARRIVAL_NS - 1);
    assert_int_equal(rig_used(&rig, "n2", 0), 8);
    rig_tick(&rig, 1);
    assert_int_equal(rig_used(&rig, "n2", 0), 0);
    rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), BOUND);
    assert_int_equal(rig_used(&rig, "n2", 0), 8);
}

/* kube-scheduler gave up waiting for the first, and found another node. */
static void of_two_binds_of_a_pod_the_first_has_the_place(void **state)
{
    pod("p", "u1", 8);
    arrives("p", "u1", "n2");
    arrives("p", "u1", "n1");
    rig_expect(rig_try_bind(&rig, "p", "u1", "n1"), "another bind of this pod is under way");
    assert_int_equal(rig_used(&rig, "n2", 0), 8);
    rig_expect(rig_try_bind(&rig, "p", "u1", "n2"), BOUND);
    assert_int_equal(rig_used(&rig, "n1", 0) + rig_used(&rig, "n1", 1), 0);
}

static void what_is_not_to_be_bound_reserves_nothing(void **state)
{
    static const struct {
        const char *row, *body;
    } rows[] = {
        {"nothing", ""},
        {"no JSON", "{\"PodName\":"},
        {"unknown", "{'PodName':'p','PodNamespace':'default','PodUID':'other','Node':'n2'}"},
        {"another's name", "{'PodName':'q','PodNamespace':'default','PodUID':'u1','Node':'n2'}"},
        {"another namespace", "{'PodName':'p','PodNamespace':'other','PodUID':'u1','Node':'n2'}"},
        {"an unknown node", "{'PodName':'p','PodNamespace':'default','PodUID':'u1','Node':'n3'}"},
        {"too large", "{'PodName':'big','PodNamespace':'default','PodUID':'u2','Node':'n2'}"},
    };
    pod("p", "u1", 8);
    pod("big", "u2", 17);
    GS_FOR_EACH_ROW (r, rows) {
        char body[256];
        snprintf(body, sizeof(body), "%s", r->body);
        rig_quote(body);
        gs_service_bind_arrived(rig.service, body, strlen(body));
        row_equal(r->row, rig_used(&rig, "n2", 0), 0);
    }
    assert_int_equal(rig.gets, 0);
    rig_stop(&rig);
    rig_start(&rig); /* nothing is loaded */
    pod("p", "u1", 8);
    arrives("p", "u1", "n2");
    rig_lists(&rig);
    rig_node(&rig, "n2", "16");
    assert_int_equal(rig_used(&rig, "n2", 0), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(what_arrived_is_counted_before_its_turn),
        T(a_place_that_was_taken_meanwhile_is_chosen_anew),
        T(the_same_gpus_are_kept_where_they_still_take_it),
        T(what_is_not_bound_in_its_turn_is_given_back),
        T(who_was_refused_beside_it_is_woken),
        T(the_own_nomination_holds_again),
        T(a_turn_that_never_comes_ends),
        T(of_two_binds_of_a_pod_the_first_has_the_place),
        T(what_is_not_to_be_bound_reserves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
