/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "sim_upset.h"
#include "watch_recorder.h"

/* gs_kube_ops.watch and .wake. */

static const struct gs_watch_spec all_pods = {.kind = GS_KIND_POD};
static const struct gs_watch_spec all_nodes = {.kind = GS_KIND_NODE};

static void stop_promptly(struct watch_recorder *recorder)
{
    assert_int_equal(recorder_stop(recorder), 0);
}

static void a_watch_lists_and_then_follows(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    size_t at = 0;
    make_pod(f, "default", "old", 2, "n1");
    struct watch_recorder *recorder = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(recorder, &at, "begin"));
    assert_true(recorder_wait(recorder, &at, "pod default/old node=n1 phase=Pending"));
    assert_true(recorder_wait(recorder, &at, "end"));
    assert_true(recorder_wait(recorder, &at, "live"));
    make_pod(f, "default", "new", 2, "");
    assert_true(recorder_wait(recorder, &at, "pod default/new node= phase=Pending"));
    expect_ok(gs_sim_patch(f->cluster, GS_SIM_PODS, GS_SIM_STATUS, GS_SIM_PATCH_MERGE, "default",
                           "old", GS_SLICE("{\"status\":{\"phase\":\"Succeeded\"}}"), NULL, &err),
              &err);
    assert_true(recorder_wait(recorder, &at, "pod default/old node=n1 phase=Succeeded"));
    delete_object(f, GS_SIM_PODS, "default", "old");
    assert_true(recorder_wait(recorder, &at, "pod gone default/old"));
    assert_int_equal(recorder_count(recorder, "begin"), 1);
    stop_promptly(recorder);
}

static void a_watch_of_an_empty_cluster_goes_live(void **state)
{
    struct scene *f = *state;
    size_t at = 0;
    struct watch_recorder *recorder = recorder_start(f->kube, &all_nodes);
    assert_true(recorder_wait(recorder, &at, "begin"));
    assert_true(recorder_wait(recorder, &at, "end"));
    assert_true(recorder_wait(recorder, &at, "live"));
    make_node(f, "n1", 8, 1);
    assert_true(recorder_wait(recorder, &at, "node n1 capacity=8"));
    delete_object(f, GS_SIM_NODES, "", "n1");
    assert_true(recorder_wait(recorder, &at, "node gone n1"));
    stop_promptly(recorder);
}

static void a_long_list_arrives_whole(void **state)
{
    struct scene *f = *state;
    size_t at = 0;
    for (unsigned i = 0; i < 1100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        make_pod(f, "default", name, 1, "");
    }
    struct watch_recorder *recorder = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(recorder, &at, "end"));
    assert_int_equal(recorder_count(recorder, "pod default/"), 1100);
    assert_int_equal(recorder_count(recorder, "begin"), 1);
    stop_promptly(recorder);
}

static void a_watch_sees_what_its_own_port_writes(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    size_t at = 0;
    char uid[UID_BYTES];
    make_pod(f, "default", "p1", 2, "");
    uid_of_pod(f, "default", "p1", uid);
    struct watch_recorder *recorder = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(recorder, &at, "live"));
    struct gs_binding binding = {.ns = "default", .name = "p1", .uid = uid, .node = "n1"};
    expect_ok(f->kube.ops->bind(f->kube.ctx, &binding, &err), &err);
    assert_true(recorder_wait(recorder, &at, "pod default/p1 node=n1"));
    stop_promptly(recorder);
}

static void other_pods_are_passed_over_when_asked(void **state)
{
    struct scene *f = *state;
    struct gs_watch_spec spec = {.kind = GS_KIND_POD, .skip_other_pods = true};
    size_t at = 0;
    make_pod(f, "default", "plain", 0, "n1");
    make_pod(f, "default", "gpu", 2, "n1");
    struct watch_recorder *recorder = recorder_start(f->kube, &spec);
    assert_true(recorder_wait(recorder, &at, "live"));
    make_pod(f, "default", "plain2", 0, "n1");
    make_pod(f, "default", "gpu2", 2, "n1");
    assert_true(recorder_wait(recorder, &at, "pod default/gpu2"));
    assert_int_equal(recorder_count(recorder, "pod default/gpu "), 1);
    assert_int_equal(recorder_count(recorder, "pod default/plain"), 0);
    stop_promptly(recorder);
}

static void pods_of_one_node_come_and_go_with_it(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct gs_watch_spec spec = {.kind = GS_KIND_POD, .node = "n1"};
    size_t at = 0;
    char uid[UID_BYTES];
    make_pod(f, "default", "mine", 1, "n1");
    make_pod(f, "default", "theirs", 1, "n2");
    make_pod(f, "default", "later", 1, "");
    uid_of_pod(f, "default", "later", uid);
    struct watch_recorder *recorder = recorder_start(f->kube, &spec);
    assert_true(recorder_wait(recorder, &at, "live"));
    struct gs_binding binding = {.ns = "default", .name = "later", .uid = uid, .node = "n1"};
    expect_ok(f->kube.ops->bind(f->kube.ctx, &binding, &err), &err);
    assert_true(recorder_wait(recorder, &at, "pod default/later node=n1"));
    delete_object(f, GS_SIM_PODS, "default", "later");
    assert_true(recorder_wait(recorder, &at, "pod gone default/later"));
    assert_int_equal(recorder_count(recorder, "pod default/mine"), 1);
    assert_int_equal(recorder_count(recorder, "pod default/theirs"), 0);
    stop_promptly(recorder);
}

static void one_node_is_watched_by_its_name(void **state)
{
    struct scene *f = *state;
    struct gs_watch_spec spec = {.kind = GS_KIND_NODE, .node = "n2"};
    size_t at = 0;
    make_node(f, "n1", 8, 1);
    make_node(f, "n2", 16, 1);
    struct watch_recorder *recorder = recorder_start(f->kube, &spec);
    assert_true(recorder_wait(recorder, &at, "node n2 capacity=16"));
    assert_true(recorder_wait(recorder, &at, "live"));
    make_node(f, "n3", 8, 1);
    delete_object(f, GS_SIM_NODES, "", "n2");
    assert_true(recorder_wait(recorder, &at, "node gone n2"));
    assert_int_equal(recorder_count(recorder, "node n1"), 0);
    assert_int_equal(recorder_count(recorder, "node n3"), 0);
    stop_promptly(recorder);
}

static void lost_history_is_listed_anew(void **state)
{
    struct scene *f = *state;
    size_t at = 0;
    make_pod(f, "default", "stays", 1, "n1");
    make_pod(f, "default", "goes", 1, "n1");
    struct watch_recorder *recorder = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(recorder, &at, "live"));
    at = recorder_position(recorder);
    gs_sim_cluster_compact(f->cluster);
    assert_true(recorder_wait(recorder, &at, "lost: "));
    assert_true(recorder_wait(recorder, &at, "begin"));
    assert_true(recorder_wait(recorder, &at, "pod default/stays"));
    assert_true(recorder_wait(recorder, &at, "end"));
    assert_true(recorder_wait(recorder, &at, "live"));
    delete_object(f, GS_SIM_PODS, "default", "goes");
    assert_true(recorder_wait(recorder, &at, "pod gone default/goes"));
    stop_promptly(recorder);
}

static void a_cut_watch_resumes_where_it_was(void **state)
{
    struct scene *f = *state;
    size_t at = 0;
    make_pod(f, "default", "old", 1, "n1");
    struct watch_recorder *recorder = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(recorder, &at, "live"));
    for (unsigned i = 0; i < 5; i++) {
        char name[16], line[64];
        snprintf(name, sizeof(name), "p%u", i);
        snprintf(line, sizeof(line), "pod default/%s ", name);
        gs_sim_cluster_cut_watches(f->cluster);
        make_pod(f, "default", name, 1, "");
        assert_true(recorder_wait(recorder, &at, line));
        assert_int_equal(recorder_count(recorder, line), 1);
    }
    assert_int_equal(recorder_count(recorder, "begin"), 1);
    assert_int_equal(recorder_count(recorder, "pod default/old"), 1);
    stop_promptly(recorder);
}

/* A sink without memory answers -1; nothing that it missed may stay unknown. */
static void a_refused_object_is_listed_again(void **state)
{
    struct scene *f = *state;
    size_t at = 0;
    make_pod(f, "default", "p1", 1, "n1");
    struct watch_recorder *recorder = recorder_start_refusing(f->kube, &all_pods, 1);
    assert_true(recorder_wait(recorder, &at, "pod default/p1"));
    assert_true(recorder_wait(recorder, &at, "begin"));
    assert_true(recorder_wait(recorder, &at, "pod default/p1"));
    assert_true(recorder_wait(recorder, &at, "end"));
    assert_true(recorder_wait(recorder, &at, "live"));
    stop_promptly(recorder);
}

static void two_watches_stop_with_one_wake(void **state)
{
    struct scene *f = *state;
    make_node(f, "n1", 8, 1);
    make_pod(f, "default", "p1", 1, "n1");
    struct watch_recorder *nodes = recorder_start(f->kube, &all_nodes);
    struct watch_recorder *pods = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(nodes, NULL, "live"));
    assert_true(recorder_wait(pods, NULL, "live"));
    atomic_store(&nodes->stop, true);
    stop_promptly(pods); /* its wake is for both */
    stop_promptly(nodes);
}

static void a_wake_alone_stops_nothing(void **state)
{
    struct scene *f = *state;
    size_t at = 0;
    struct watch_recorder *recorder = recorder_start(f->kube, &all_pods);
    assert_true(recorder_wait(recorder, &at, "live"));
    for (int i = 0; i < 3; i++)
        f->kube.ops->wake(f->kube.ctx);
    make_pod(f, "default", "p1", 1, "");
    assert_true(recorder_wait(recorder, &at, "pod default/p1"));
    assert_int_equal(recorder_count(recorder, "begin"), 1);
    stop_promptly(recorder);
}

static void a_watch_that_is_told_to_lists_anew(void **state)
{
    struct scene *f = *state;
    atomic_bool list_wanted = false;
    const struct gs_watch_spec spec = {.kind = GS_KIND_POD, .list_wanted = &list_wanted};
    size_t at = 0;
    make_pod(f, "default", "p1", 1, "n1");
    struct watch_recorder *recorder = recorder_start(f->kube, &spec);
    assert_true(recorder_wait(recorder, &at, "live"));
    for (int i = 0; i < 3; i++) {
        atomic_store(&list_wanted, true);
        f->kube.ops->wake(f->kube.ctx);
        assert_true(recorder_wait(recorder, &at, "begin"));
        assert_false(atomic_load(&list_wanted));
        assert_true(recorder_wait(recorder, &at, "pod default/p1"));
        assert_true(recorder_wait(recorder, &at, "end"));
    }
    assert_int_equal(recorder_count(recorder, "lost: "), 0);
    make_pod(f, "default", "p2", 1, "");
    assert_true(recorder_wait(recorder, &at, "pod default/p2"));
    stop_promptly(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(a_watch_lists_and_then_follows),
        IN_SCENE(a_watch_of_an_empty_cluster_goes_live),
        IN_SCENE(a_long_list_arrives_whole),
        IN_SCENE(a_watch_sees_what_its_own_port_writes),
        IN_SCENE(other_pods_are_passed_over_when_asked),
        IN_SCENE(pods_of_one_node_come_and_go_with_it),
        IN_SCENE(one_node_is_watched_by_its_name),
        IN_SCENE(lost_history_is_listed_anew),
        IN_SCENE(a_cut_watch_resumes_where_it_was),
        IN_SCENE(a_refused_object_is_listed_again),
        IN_SCENE(two_watches_stop_with_one_wake),
        IN_SCENE(a_wake_alone_stops_nothing),
        IN_SCENE(a_watch_that_is_told_to_lists_anew),
    };
    return GS_RUN(tests);
}
