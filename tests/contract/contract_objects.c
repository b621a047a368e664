/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"

/* gs_kube_ops one object at a time: reads, binding, patches, events, leases. */

#define OPS(f) ((f)->kube.ops)
#define CTX(f) ((f)->kube.ctx)

static void get_pod_fills_what_the_cluster_knows(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct gs_pod pod = {0};
    make_pod(f, "team", "p1", 7, "");
    expect_ok(OPS(f)->get_pod(CTX(f), "team", "p1", &pod, &err), &err);
    assert_string_equal(pod.ns, "team");
    assert_string_equal(pod.name, "p1");
    assert_string_equal(pod.node_name, "");
    assert_true(pod.uid[0] != '\0');
    assert_true(pod.resource_version[0] != '\0');
    assert_int_equal(pod.phase, GS_PHASE_PENDING);
    assert_int_equal(pod.container_count, 1);
    assert_int_equal(pod.containers[0].gpu_units, 7);
    gs_pod_release(&pod);
}

static void get_node_fills_what_the_cluster_knows(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct gs_node node = {0};
    make_node(f, "n1", 32, 2);
    expect_ok(OPS(f)->get_node(CTX(f), "n1", &node, &err), &err);
    assert_string_equal(node.name, "n1");
    assert_string_equal(node.address, "10.0.0.1");
    assert_true(node.ready && node.labelled);
    assert_int_equal(node.capacity_units, 32);
    assert_int_equal(node.gpu_count, 2);
    assert_int_equal(node.gpus[1].mem_units, 16);
    gs_node_release(&node);
}

static void what_does_not_exist_is_enoent(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct gs_pod pod = {0};
    struct gs_node node = {0};
    struct gs_lease lease = {.ns = "default", .name = "nothing"};
    struct gs_binding binding = {.ns = "default", .name = "nothing", .node = "n1", .uid = "u"};
    struct gs_meta_patch patch = {.ns = "default", .name = "nothing"};
    struct gs_meta_patch node_patch = {.name = "nothing"};
    struct gs_kv capacity = {f->names.gpu_count, "1"};
    struct gs_node_status_patch status = {
        .node = "nothing", .capacity = &capacity, .capacity_count = 1};
    make_pod(f, "default", "other", 1, "");
    expect_code(OPS(f)->get_pod(CTX(f), "default", "nothing", &pod, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->get_pod(CTX(f), "elsewhere", "other", &pod, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->get_node(CTX(f), "nothing", &node, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->get_lease(CTX(f), &lease, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->bind(CTX(f), &binding, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->patch_pod(CTX(f), &patch, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->patch_node(CTX(f), &node_patch, &err), &err, GS_ENOENT);
    expect_code(OPS(f)->patch_node_status(CTX(f), &status, &err), &err, GS_ENOENT);
    gs_pod_release(&pod);
    gs_node_release(&node);
}

struct tally {
    unsigned calls;
    unsigned stop_after; /* 0: never */
    char names[4096];
};

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    struct tally *tally = ctx;
    size_t len = strlen(tally->names);
    snprintf(tally->names + len, sizeof(tally->names) - len, "%s ", pod->name);
    tally->calls++;
    return tally->stop_after && tally->calls >= tally->stop_after ? -1 : 0;
}

static void lists_name_every_pod(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct tally pods = {0}, of_n1 = {0}, of_none = {0};
    make_pod(f, "a", "p1", 1, "n1");
    make_pod(f, "b", "p2", 0, "n2");
    make_pod(f, "b", "p3", 1, "");
    int64_t timeout = 10 * GS_NS_PER_S;
    expect_ok(OPS(f)->list_pods(CTX(f), NULL, timeout, on_pod, &pods, &err), &err);
    assert_string_equal(pods.names, "p1 p2 p3 ");
    expect_ok(OPS(f)->list_pods(CTX(f), "n1", timeout, on_pod, &of_n1, &err), &err);
    assert_string_equal(of_n1.names, "p1 ");
    expect_ok(OPS(f)->list_pods(CTX(f), "n9", timeout, on_pod, &of_none, &err), &err);
    assert_string_equal(of_none.names, "");
}

static void lists_of_an_empty_cluster_are_empty(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct tally tally = {0};
    expect_ok(OPS(f)->list_pods(CTX(f), NULL, GS_NS_PER_S, on_pod, &tally, &err), &err);
    assert_int_equal(tally.calls, 0);
}

static void a_list_stops_when_its_receiver_says_so(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct tally tally = {.stop_after = 2};
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        make_pod(f, "default", name, 1, "");
    }
    expect_code(OPS(f)->list_pods(CTX(f), NULL, 10 * GS_NS_PER_S, on_pod, &tally, &err), &err,
                GS_ENOMEM);
    assert_int_equal(tally.calls, 2);
}

static int count_pod(void *ctx, const struct gs_pod *pod)
{
    ++*(unsigned *)ctx;
    return 0;
}

/* Larger than the pages that API servers are asked for. */
static void a_long_list_is_complete(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    unsigned seen = 0;
    for (unsigned i = 0; i < 1201; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        make_pod(f, "default", name, 1, "");
    }
    expect_ok(OPS(f)->list_pods(CTX(f), NULL, 30 * GS_NS_PER_S, count_pod, &seen, &err), &err);
    assert_int_equal(seen, 1201);
}

static void bind_puts_node_and_annotations_on_the_pod_at_once(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    char uid[UID_BYTES];
    make_node(f, "n1", 16, 2);
    make_pod(f, "default", "p1", 3, "");
    uid_of_pod(f, "default", "p1", uid);
    struct gs_kv annotations[] = {{f->names.idx, "1"}, {"note", "a \"quoted\" \\ word"}};
    struct gs_binding binding = {.ns = "default",
                                 .name = "p1",
                                 .uid = uid,
                                 .node = "n1",
                                 .annotations = annotations,
                                 .annotation_count = 2};
    expect_ok(OPS(f)->bind(CTX(f), &binding, &err), &err);
    struct gs_pod pod = {0};
    expect_ok(OPS(f)->get_pod(CTX(f), "default", "p1", &pod, &err), &err);
    assert_string_equal(pod.node_name, "n1");
    assert_string_equal(pod.uid, uid);
    assert_int_equal(pod.recorded, GS_RECORDED_VALID);
    assert_true(pod.recorded_gpus == GS_GPU_BIT(1));
    gs_pod_release(&pod);
    assert_true(pod_says(f, "default", "p1", "\"note\":\"a \\\"quoted\\\" \\\\ word\""));
}

static void a_bound_pod_is_not_bound_again(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    char uid[UID_BYTES];
    make_pod(f, "default", "p1", 3, "");
    uid_of_pod(f, "default", "p1", uid);
    struct gs_kv before = {f->names.idx, "0"}, after = {f->names.idx, "5"};
    struct gs_binding binding = {.ns = "default",
                                 .name = "p1",
                                 .uid = uid,
                                 .node = "n1",
                                 .annotations = &before,
                                 .annotation_count = 1};
    expect_ok(OPS(f)->bind(CTX(f), &binding, &err), &err);
    binding.annotations = &after;
    expect_code(OPS(f)->bind(CTX(f), &binding, &err), &err, GS_ECONFLICT);
    binding.node = "n2";
    expect_code(OPS(f)->bind(CTX(f), &binding, &err), &err, GS_ECONFLICT);
    struct gs_pod pod = {0};
    expect_ok(OPS(f)->get_pod(CTX(f), "default", "p1", &pod, &err), &err);
    assert_string_equal(pod.node_name, "n1");
    assert_true(pod.recorded_gpus == GS_GPU_BIT(0));
    gs_pod_release(&pod);
}

static void patch_pod_sets_and_removes(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    make_pod(f, "default", "p1", 3, "");
    struct gs_kv set[] = {{"one", "1"}, {"two", "2"}}, label = {"tier", "gold"};
    struct gs_meta_patch patch = {.ns = "default",
                                  .name = "p1",
                                  .annotations = set,
                                  .annotation_count = 2,
                                  .labels = &label,
                                  .label_count = 1};
    expect_ok(OPS(f)->patch_pod(CTX(f), &patch, &err), &err);
    assert_true(pod_says(f, "default", "p1", "\"one\":\"1\""));
    assert_true(pod_says(f, "default", "p1", "\"two\":\"2\""));
    assert_true(pod_says(f, "default", "p1", "\"tier\":\"gold\""));
    struct gs_kv removal = {"one", NULL};
    patch = (struct gs_meta_patch){
        .ns = "default", .name = "p1", .annotations = &removal, .annotation_count = 1};
    expect_ok(OPS(f)->patch_pod(CTX(f), &patch, &err), &err);
    assert_false(pod_says(f, "default", "p1", "\"one\":"));
    assert_true(pod_says(f, "default", "p1", "\"two\":\"2\""));
}

static void patches_keep_their_preconditions(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct gs_pod pod = {0};
    make_pod(f, "default", "p1", 3, "");
    expect_ok(OPS(f)->get_pod(CTX(f), "default", "p1", &pod, &err), &err);
    struct gs_kv set = {"one", "1"}, again = {"one", "2"};
    struct gs_meta_patch patch = {
        .ns = "default", .name = "p1", .annotations = &set, .annotation_count = 1};
    patch.uid = "00000000-0000-4000-8000-000000000000";
    expect_code(OPS(f)->patch_pod(CTX(f), &patch, &err), &err, GS_ECONFLICT);
    assert_false(pod_says(f, "default", "p1", "\"one\":"));
    patch.uid = pod.uid;
    patch.resource_version = pod.resource_version;
    expect_ok(OPS(f)->patch_pod(CTX(f), &patch, &err), &err);
    assert_true(pod_says(f, "default", "p1", "\"one\":\"1\""));
    patch.annotations = &again; /* the version is an old one by now */
    expect_code(OPS(f)->patch_pod(CTX(f), &patch, &err), &err, GS_ECONFLICT);
    assert_true(pod_says(f, "default", "p1", "\"one\":\"1\""));
    gs_pod_release(&pod);
}

static void a_nomination_comes_with_an_annotation_and_goes(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    struct gs_pod pod = {0};
    make_pod(f, "default", "p1", 3, "");
    struct gs_kv set = {"one", "1"};
    struct gs_meta_patch patch = {.ns = "default",
                                  .name = "p1",
                                  .annotations = &set,
                                  .annotation_count = 1,
                                  .nominated_node = "n1"};
    expect_ok(OPS(f)->patch_pod(CTX(f), &patch, &err), &err);
    assert_true(pod_says(f, "default", "p1", "\"one\":\"1\""));
    expect_ok(OPS(f)->get_pod(CTX(f), "default", "p1", &pod, &err), &err);
    assert_string_equal(pod.nominated_node, "n1");
    patch =
        (struct gs_meta_patch){.ns = "default", .name = "p1", .uid = pod.uid, .nominated_node = ""};
    expect_ok(OPS(f)->patch_pod(CTX(f), &patch, &err), &err);
    assert_true(pod_says(f, "default", "p1", "\"one\":\"1\""));
    assert_false(pod_says(f, "default", "p1", "nominatedNodeName"));
    gs_pod_release(&pod);
}

static void patch_node_sets_an_annotation(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    make_node(f, "n1", 16, 1);
    struct gs_kv set = {f->names.inventory,
                        "{\"v\":1,\"unit\":\"GiB\",\"gpus\":[{\"idx\":0,\"uuid\":\"GPU-1\","
                        "\"mem\":16,\"memMiB\":16384,\"model\":\"m\",\"healthy\":true,\"numa\":0,"
                        "\"schedulable\":true}]}"};
    struct gs_meta_patch patch = {.name = "n1", .annotations = &set, .annotation_count = 1};
    expect_ok(OPS(f)->patch_node(CTX(f), &patch, &err), &err);
    struct gs_node node = {0};
    expect_ok(OPS(f)->get_node(CTX(f), "n1", &node, &err), &err);
    assert_true(node.inventory);
    assert_string_equal(node.gpus[0].uuid, "GPU-1");
    gs_node_release(&node);
}

static void node_status_takes_resources(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    make_node(f, "n1", 16, 1);
    struct gs_kv capacity = {f->names.gpu_count, "4"};
    struct gs_node_status_patch patch = {.node = "n1", .capacity = &capacity, .capacity_count = 1};
    expect_ok(OPS(f)->patch_node_status(CTX(f), &patch, &err), &err);
    struct gs_node node = {0};
    expect_ok(OPS(f)->get_node(CTX(f), "n1", &node, &err), &err);
    assert_int_equal(node.capacity_count, 4);
    assert_int_equal(node.capacity_units, 16); /* the others stay */
    assert_true(node.ready);
    gs_node_release(&node);

    capacity.value = NULL;
    expect_ok(OPS(f)->patch_node_status(CTX(f), &patch, &err), &err);
    expect_ok(OPS(f)->get_node(CTX(f), "n1", &node, &err), &err);
    assert_int_equal(node.capacity_count, 0);
    gs_node_release(&node);
}

/* *Caller frees*. */
static char *events_of(struct scene *f, const char *ns)
{
    struct gs_error err = {0};
    const struct gs_sim_query query = {.kind = GS_SIM_EVENTS, .ns = ns};
    struct gs_sim_list list;
    struct gs_buf text = GS_BUF(16 << 20);
    expect_ok(gs_sim_list(f->cluster, &query, 0, NULL, &list, &err), &err);
    for (size_t i = 0; i < list.count; i++)
        gs_buf_append(&text, list.items[i]->json, list.items[i]->json_len);
    gs_sim_list_release(&list);
    return gs_buf_steal(&text);
}

static void events_can_be_read_back(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    char uid[UID_BYTES];
    make_node(f, "n1", 16, 1);
    make_pod(f, "team", "p1", 3, "");
    uid_of_pod(f, "team", "p1", uid);
    struct gs_event about_pod = {.kind = "Pod",
                                 .ns = "team",
                                 .name = "p1",
                                 .uid = uid,
                                 .warning = true,
                                 .reason = "ForgedAllocation",
                                 .message = "100 % \"forged\"",
                                 .component = "contract"};
    struct gs_event about_node = {.kind = "Node",
                                  .name = "n1",
                                  .uid = "n1",
                                  .reason = "Overfull",
                                  .message = "GPU 0",
                                  .component = "contract"};
    expect_ok(OPS(f)->create_event(CTX(f), &about_pod, &err), &err);
    expect_ok(OPS(f)->create_event(CTX(f), &about_pod, &err), &err); /* twice is two events */
    expect_ok(OPS(f)->create_event(CTX(f), &about_node, &err), &err);
    _cleanup_free_ char *team = events_of(f, "team");
    _cleanup_free_ char *other = events_of(f, "default");
    assert_non_null(team);
    assert_non_null(other);
    assert_non_null(strstr(team, "ForgedAllocation"));
    assert_non_null(strstr(team, "100 % \\\"forged\\\""));
    assert_non_null(strstr(team, "Warning"));
    assert_non_null(strstr(other, "Overfull"));
    assert_non_null(strstr(other, "Normal"));
}

static void a_lease_is_created_once_and_replaced_under_its_version(void **state)
{
    struct scene *f = *state;
    struct gs_error err = {0};
    int64_t now_ns = (int64_t)1790000000 * GS_NS_PER_S + 123456000;
    struct gs_lease mine = {.ns = "default",
                            .name = "leader",
                            .holder = "me",
                            .duration_s = 15,
                            .transitions = 1,
                            .acquire_ns = now_ns,
                            .renew_ns = now_ns};
    struct gs_lease late = mine, read = {.ns = "default", .name = "leader"};
    expect_ok(OPS(f)->put_lease(CTX(f), &mine, &err), &err);
    assert_true(mine.resource_version[0] != '\0');
    expect_code(OPS(f)->put_lease(CTX(f), &late, &err), &err, GS_ECONFLICT);
    expect_ok(OPS(f)->get_lease(CTX(f), &read, &err), &err);
    assert_string_equal(read.holder, "me");
    assert_string_equal(read.resource_version, mine.resource_version);
    assert_int_equal(read.duration_s, 15);
    assert_int_equal(read.transitions, 1);
    assert_true(read.renew_ns == now_ns);
    assert_true(read.acquire_ns == now_ns);

    snprintf(mine.holder, sizeof(mine.holder), "%s", "");
    mine.renew_ns += GS_NS_PER_S;
    expect_ok(OPS(f)->put_lease(CTX(f), &mine, &err), &err);
    assert_string_not_equal(mine.resource_version, read.resource_version);
    snprintf(read.holder, sizeof(read.holder), "%s", "thief");
    expect_code(OPS(f)->put_lease(CTX(f), &read, &err), &err, GS_ECONFLICT);
    expect_ok(OPS(f)->get_lease(CTX(f), &read, &err), &err);
    assert_string_equal(read.holder, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(get_pod_fills_what_the_cluster_knows),
        IN_SCENE(get_node_fills_what_the_cluster_knows),
        IN_SCENE(what_does_not_exist_is_enoent),
        IN_SCENE(lists_name_every_pod),
        IN_SCENE(lists_of_an_empty_cluster_are_empty),
        IN_SCENE(a_list_stops_when_its_receiver_says_so),
        IN_SCENE(a_long_list_is_complete),
        IN_SCENE(bind_puts_node_and_annotations_on_the_pod_at_once),
        IN_SCENE(a_bound_pod_is_not_bound_again),
        IN_SCENE(patch_pod_sets_and_removes),
        IN_SCENE(patches_keep_their_preconditions),
        IN_SCENE(a_nomination_comes_with_an_annotation_and_goes),
        IN_SCENE(patch_node_sets_an_annotation),
        IN_SCENE(node_status_takes_resources),
        IN_SCENE(events_can_be_read_back),
        IN_SCENE(a_lease_is_created_once_and_replaced_under_its_version),
    };
    return GS_RUN(tests);
}
