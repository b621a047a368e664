/* SPDX-License-Identifier: Apache-2.0 */
/* gpushare-sim schedule against an embedded cluster and an extender that does as it is told. */
#include "rows.h"

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "common/process.h"
#include "gpushare/base/clock.h"
#include "gpushare/http/server.h"
#include "gpushare/model/names.h"
#include "sim/api_server.h"
#include "sim/commands.h"

enum { CALLS_MAX = 128 };

/* One cluster, one extender. What the extender answers depends on the pod's name: "frag-*" fits
 * nowhere, "twice-*" is refused in both maps, "late-*" fails to bind once, all others fit; node
 * "best" scores highest. */
struct world {
    struct gs_sim_cluster *cluster;
    struct gs_names names;
    struct api_server *api;
    struct gs_http_server *extender;
    char api_url[64];
    char extender_url[64];
    pthread_mutex_t lock;
    char calls[CALLS_MAX][64]; /* "filter frag-1 n1,n2" */
    size_t call_count;
    size_t late_binds;
};

/* ---- the extender ---- */

static void note(struct world *world, const char *verb, const char *pod, const json_t *nodes)
{
    pthread_mutex_lock(&world->lock);
    assert_true(world->call_count < CALLS_MAX);
    char *line = world->calls[world->call_count++];
    int len = snprintf(line, 64, "%s %s", verb, pod);
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)nodes, i, name) len +=
        snprintf(line + len, (size_t)(64 - len), "%c%s", i ? ',' : ' ', json_string_value(name));
    pthread_mutex_unlock(&world->lock);
}

static const char *pod_name(const json_t *args)
{
    const char *name = json_string_value(
        json_object_get(json_object_get(json_object_get(args, "Pod"), "metadata"), "name"));
    return name ? name : "";
}

static void answer(struct gs_http_response *res, json_t *tree)
{
    char *text = json_dumps(tree, JSON_COMPACT);
    gs_buf_puts(&res->body, text);
    free(text);
    json_decref(tree);
}

static json_t *refuse_all(const json_t *nodes, const char *reason)
{
    json_t *failed = json_object(), *name;
    size_t i;
    json_array_foreach((json_t *)nodes, i, name)
        json_object_set_new(failed, json_string_value(name), json_string(reason));
    return failed;
}

static void handle_filter(void *ctx, const struct gs_http_request *req,
                          struct gs_http_response *res)
{
    json_auto_t *args = json_loadb(req->body, req->body_len, 0, NULL);
    json_t *nodes = json_object_get(args, "NodeNames"), *result = json_object();
    const char *pod = pod_name(args);
    note(ctx, "filter", pod, nodes);
    if (strncmp(pod, "frag-", 5) == 0) {
        json_object_set_new(result, "NodeNames", json_array());
        json_object_set_new(result, "FailedNodes", refuse_all(nodes, "no single GPU"));
    } else if (strncmp(pod, "twice-", 6) == 0) {
        json_object_set_new(result, "NodeNames", json_array());
        json_object_set_new(result, "FailedNodes", refuse_all(nodes, "never"));
        json_object_set_new(result, "FailedAndUnresolvableNodes", refuse_all(nodes, "never"));
    } else if (strncmp(pod, "error-", 6) == 0) {
        json_object_set_new(result, "Error", json_string("not loaded yet"));
    } else {
        json_object_set(result, "NodeNames", nodes);
    }
    answer(res, result);
}

static void handle_prioritize(void *ctx, const struct gs_http_request *req,
                              struct gs_http_response *res)
{
    json_auto_t *args = json_loadb(req->body, req->body_len, 0, NULL);
    json_t *nodes = json_object_get(args, "NodeNames"), *scores = json_array(), *name;
    size_t i;
    note(ctx, "prioritize", pod_name(args), nodes);
    json_array_foreach(nodes, i, name)
    {
        bool best = strcmp(json_string_value(name), "best") == 0;
        json_array_append_new(scores, json_pack("{s:O,s:i}", "Host", name, "Score", best ? 9 : 3));
    }
    answer(res, scores);
}

static void handle_bind(void *ctx, const struct gs_http_request *req, struct gs_http_response *res)
{
    struct world *world = ctx;
    json_auto_t *args = json_loadb(req->body, req->body_len, 0, NULL);
    const char *pod = json_string_value(json_object_get(args, "PodName"));
    char body[256];
    struct gs_error err = {0};
    note(world, "bind", pod, NULL);
    snprintf(body, sizeof(body), "{\"metadata\":{\"uid\":\"%s\"},\"target\":{\"name\":\"%s\"}}",
             json_string_value(json_object_get(args, "PodUID")),
             json_string_value(json_object_get(args, "Node")));
    if (strncmp(pod, "late-", 5) == 0 && world->late_binds++ == 0)
        gs_fail(&err, GS_EIO, "the API server did not answer");
    else
        gs_sim_bind(world->cluster, "default", pod, gs_slice_of(body), &err);
    answer(res, json_pack("{s:s}", "Error", err.msg));
}

static const struct gs_http_route routes[] = {
    {"POST", "/gpushare-scheduler/filter", handle_filter, GS_HTTP_BLOCKING},
    {"POST", "/gpushare-scheduler/prioritize", handle_prioritize, GS_HTTP_BLOCKING},
    {"POST", "/gpushare-scheduler/bind", handle_bind, GS_HTTP_BLOCKING},
};

/* ---- the world ---- */

static int open_world(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    *state = world;
    config.routes = routes;
    config.route_count = GS_COUNT_OF(routes);
    config.ctx = world;
    config.workers = 2;
    pthread_mutex_init(&world->lock, NULL);
    if (gs_names_init(&world->names, "aliyun.com", NULL) < 0 ||
        gs_sim_cluster_new(&(struct gs_sim_options){0}, &world->cluster, NULL) < 0 ||
        api_server_start(world->cluster, NULL, "127.0.0.1:0", &world->api, NULL) < 0 ||
        gs_http_server_start(&config, &world->extender, NULL) < 0)
        return -1;
    snprintf(world->api_url, sizeof(world->api_url), "http://127.0.0.1:%u",
             api_server_port(world->api));
    snprintf(world->extender_url, sizeof(world->extender_url), "http://127.0.0.1:%u",
             gs_http_server_port(world->extender));
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    gs_http_server_stop(world->extender, 0);
    gs_http_server_free(world->extender);
    api_server_stop(world->api);
    gs_sim_cluster_free(world->cluster);
    pthread_mutex_destroy(&world->lock);
    free(world);
    return 0;
}

#define test_with_world(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

static void add_node(struct world *world, const char *name, int gpu_units, const char *spec)
{
    char body[400];
    struct gs_error err = {0};
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"zone\":\"%s\"}},\"spec\":{%s},"
             "\"status\":{\"capacity\":{\"aliyun.com/gpu-core.percentage\":\"100\"},"
             "\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"10\","
             "\"aliyun.com/gpu-mem\":\"%d\",\"aliyun.com/gpu-core.percentage\":\"100\"}}}",
             name, name, spec, gpu_units);
    if (gs_sim_load_object(world->cluster, "v1", "Node", gs_slice_of(body), &err) < 0)
        fail_msg("%s", err.msg);
}

/* spec goes beside the containers, "\"priority\":5," or "". */
static void add_pod(struct world *world, const char *name, int gpu_units, const char *cpu,
                    const char *spec)
{
    char body[600], gpu[64] = "";
    struct gs_error err = {0};
    if (gpu_units)
        snprintf(gpu, sizeof(gpu), "\"aliyun.com/gpu-mem\":%d,", gpu_units);
    snprintf(body, sizeof(body),
             "{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s\"containers\":[{\"name\":\"c\","
             "\"resources\":{\"limits\":{%s\"cpu\":\"%s\"}}}]}}",
             name, spec, gpu, cpu);
    if (gs_sim_create(world->cluster, GS_SIM_PODS, "default", gs_slice_of(body), NULL, &err) < 0)
        fail_msg("%s", err.msg);
}

static int run_schedule(struct world *world, const char *extra, const char *value)
{
    char *argv[] = {(char *)"schedule",       (char *)"--api",          world->api_url,
                    (char *)"--extender",     world->extender_url,      (char *)"--settle",
                    (char *)"150ms",          (char *)"--backoff",      (char *)"20ms",
                    (char *)(uintptr_t)extra, (char *)(uintptr_t)value, NULL};
    return cmd_schedule(extra ? value ? 11 : 10 : 9, argv);
}

/* The node a pod is bound to; "" while it is not. The answer is good until the next call. */
static const char *node_of(struct world *world, const char *name)
{
    static char node[64];
    struct gs_sim_object *object;
    assert_int_equal(gs_sim_get(world->cluster, GS_SIM_PODS, "default", name, &object, NULL), 0);
    snprintf(node, sizeof(node), "%s", object->node);
    gs_sim_object_unref(object);
    return node;
}

static void expect_condition(struct world *world, const char *name, const char *reason,
                             const char *message)
{
    struct gs_sim_object *object;
    assert_int_equal(gs_sim_get(world->cluster, GS_SIM_PODS, "default", name, &object, NULL), 0);
    json_auto_t *tree = json_loadb(object->json, object->json_len, 0, NULL);
    gs_sim_object_unref(object);
    json_t *condition =
        json_array_get(json_object_get(json_object_get(tree, "status"), "conditions"), 0);
    row_text(name, json_string_value(json_object_get(condition, "status")), "False");
    row_text(name, json_string_value(json_object_get(condition, "reason")), reason);
    row_text(name, json_string_value(json_object_get(condition, "message")), message);
}

static size_t count_events(struct world *world, const char *fields)
{
    struct gs_sim_query query = {.kind = GS_SIM_EVENTS, .field_selector = fields};
    struct gs_sim_list list;
    assert_int_equal(gs_sim_list(world->cluster, &query, 0, NULL, &list, NULL), 0);
    size_t count = list.count;
    gs_sim_list_release(&list);
    return count;
}

static size_t count_calls(struct world *world, const char *begin)
{
    size_t count = 0;
    pthread_mutex_lock(&world->lock);
    for (size_t i = 0; i < world->call_count; i++)
        count += strncmp(world->calls[i], begin, strlen(begin)) == 0;
    pthread_mutex_unlock(&world->lock);
    return count;
}

/* ---- one pass ---- */

#define ZONE(zone)      "\"nodeSelector\":{\"zone\":\"" zone "\"},"
#define COMPUTE(amount) "1\",\"aliyun.com/gpu-core.percentage\":\"" amount

/* Nodes "a:64 off:64! tainted:64~", by their GPU memory, "!" cordoned. Of each pod where it is
 * bound
 * ("" nowhere) and what its condition says; how often the extender was called, by the call's
 * beginning; and how many Events there are. */
static const struct {
    const char *row, *nodes;
    struct {
        const char *name;
        int gpu_units;
        const char *cpu, *spec, *node, *why;
    } pods[5];
    struct {
        const char *begin;
        size_t count;
    } calls[4], events[1];
} passes[] = {
    {"a GPU pod goes where the extender scores highest",
     "a:64 best:64 z:64",
     {{"p", 8, "1", "", "best"}},
     {{"filter p a,best,z", 1}, {"prioritize p a,best,z", 1}, {"bind p", 1}},
     {{"reason=Scheduled,involvedObject.name=p,type=Normal", 1}}},
    /* one candidate needs no score */
    {"the extender is asked only about GPU pods and nodes that could",
     "full:4 off:64! ok:64 tainted:64~",
     {{"gpu", 8, "1", "", "ok"},
      {"plain", 0, "1", ZONE("full"), "full"},
      {"tolerant", 8, "1", "\"tolerations\":[{\"operator\":\"Exists\"}]," ZONE("tainted"),
       "tainted"}},
     {{"filter gpu ok", 1}, {"prioritize", 0}, {"filter plain", 0}, {"bind plain", 0}}},
    {"a refused pod is told why in kube-scheduler's words",
     "a:64 b:64 c:4 d:64!",
     {{"frag-1", 8, "1", "", "",
       "0/4 nodes are available: 1 Insufficient aliyun.com/gpu-mem, 1 node(s) were unschedulable, "
       "2 "
       "no single GPU."},
      {"twice-1", 8, "1", "", "",
       "0/4 nodes are available: 1 Insufficient aliyun.com/gpu-mem, 1 node(s) were unschedulable, "
       "2 "
       "never."},
      {"huge", 100, "9", "", "",
       "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient aliyun.com/gpu-mem, "
       "3 "
       "Insufficient cpu."},
      {"nowhere", 0, "1", ZONE("none"), "",
       "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match Pod's node "
       "affinity/selector."}},
     {{"filter huge", 0}, {"bind", 0}},
     {{"reason=FailedScheduling,type=Warning", 4}}},
    {"a cluster without nodes", "", {{"p", 8, "1", "", "", "0/0 nodes are available."}}},
    {"what is bound uses up its node",
     "n:16",
     {{"p0", 8, "1", "", "n"}, {"p1", 8, "1", "", "n"}, {"p2", 8, "1", "", ""}}},
    /* as any resource; the extender is asked only beyond that */
    {"compute is counted by the node's sum",
     "n:16",
     {{"p0", 1, COMPUTE("60"), "", "n"},
      {"p1", 1, COMPUTE("40"), "", "n"},
      {"p2", 1, COMPUTE("1"), "", "",
       "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-core.percentage."},
      {"p3", 0, COMPUTE("1"), "", "n"}, /* what asks for no memory is nobody's */
      {"p4", 1, "1", "", "n"}}},
    {"priority goes before age",
     "n:8",
     {{"old", 8, "1", "", ""}, {"important", 8, "1", "\"priority\":10,", "n"}}},
    {"other schedulers' pods are left alone",
     "n:64",
     {{"theirs", 8, "1", "\"schedulerName\":\"other\",", ""},
      {"gated", 8, "1", "\"schedulingGates\":[{\"name\":\"x\"}],", ""}},
     {{"", 0}},
     {{"type!=none", 0}}},
    {"a failed bind is tried again",
     "n:64",
     {{"late-1", 8, "1", "", "n"}},
     {{"bind late-1", 2}},
     {{"reason=FailedScheduling", 1}}},
};

static void add_nodes(struct world *world, const char *nodes)
{
    char name[32], *end;
    for (const char *at = nodes; *at; at += *at == ' ') {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ":"), at);
        const int units = (int)strtol(strchr(at, ':') + 1, &end, 10);
        add_node(world, name, units,
                 *end == '!'   ? "\"unschedulable\":true"
                 : *end == '~' ? "\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]"
                               : "");
        at = end + (*end == '!' || *end == '~');
    }
}

static void every_pass_ends_as_kube_schedulers(void **state)
{
    GS_FOR_EACH_ROW (r, passes) {
        assert_int_equal(open_world(state), 0);
        struct world *world = *state;
        add_nodes(world, r->nodes);
        for (size_t i = 0; i < GS_COUNT_OF(r->pods) && r->pods[i].name; i++)
            add_pod(world, r->pods[i].name, r->pods[i].gpu_units, r->pods[i].cpu, r->pods[i].spec);
        row_equal(r->row, run_schedule(world, NULL, NULL), 0);
        for (size_t i = 0; i < GS_COUNT_OF(r->pods) && r->pods[i].name; i++) {
            row_text(r->pods[i].name, node_of(world, r->pods[i].name), r->pods[i].node);
            if (r->pods[i].why)
                expect_condition(world, r->pods[i].name, "Unschedulable", r->pods[i].why);
        }
        for (size_t i = 0; i < GS_COUNT_OF(r->calls) && r->calls[i].begin; i++)
            row_equal(r->calls[i].begin, count_calls(world, r->calls[i].begin), r->calls[i].count);
        if (r->events[0].begin)
            row_equal(r->row, count_events(world, r->events[0].begin), r->events[0].count);
        close_world(state);
    }
}

static void a_scheduler_has_its_name(void **state)
{
    struct world *world = *state;
    add_node(world, "n", 64, "");
    add_pod(world, "theirs", 8, "1", "\"schedulerName\":\"other\",");
    assert_int_equal(run_schedule(world, "--scheduler-name", "other"), 0);
    assert_string_equal(node_of(world, "theirs"), "n");
}

static void equal_scores_are_drawn_by_seed(void **state)
{
    static const char *const seeds[] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    struct world *world = *state;
    add_node(world, "a", 640, "");
    add_node(world, "b", 640, "");
    char drawn[2][GS_COUNT_OF(seeds) + 1] = {"", ""};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < GS_COUNT_OF(seeds); i++) {
            add_pod(world, "p", 1, "100m", "");
            assert_int_equal(run_schedule(world, "--seed", seeds[i]), 0);
            drawn[round][i] = node_of(world, "p")[0];
            gs_sim_delete(world->cluster, GS_SIM_PODS, "default", "p", (struct gs_slice){0}, NULL,
                          NULL);
        }
    }
    assert_string_equal(drawn[0], drawn[1]);
    assert_non_null(strchr(drawn[0], 'a'));
    assert_non_null(strchr(drawn[0], 'b'));
}

static void pods_come_from_files(void **state)
{
    struct world *world = *state;
    assert_int_equal(run_schedule(world, "--pods", GS_SOURCE_DIR "/examples/demo/pods.yaml"), 0);
    assert_int_equal(gs_sim_count(world->cluster, GS_SIM_PODS), 21);
    assert_int_equal(run_schedule(world, "--pods", GS_SOURCE_DIR "/examples/demo/cluster.yaml"), 2);
    assert_int_equal(run_schedule(world, "--pods", "/nowhere"), 1);
}

/* ---- following ---- */

static void *follow(void *ctx)
{
    return run_schedule(ctx, "--follow", NULL) == 0 ? ctx : NULL;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5 * GS_NS_PER_MS}, NULL);
}

static bool wait_for_calls(struct world *world, const char *begin, size_t count)
{
    for (int i = 0; i < 2000; i++, nap()) {
        if (count_calls(world, begin) >= count)
            return true;
    }
    return false;
}

static void patch_pod(struct world *world, const char *name, enum gs_sim_part part,
                      const char *body)
{
    assert_int_equal(gs_sim_patch(world->cluster, GS_SIM_PODS, part, GS_SIM_PATCH_MERGE, "default",
                                  name, gs_slice_of(body), NULL, NULL),
                     0);
}

static void a_parked_pod_is_tried_again_for_a_reason_only(void **state)
{
    struct world *world = *state;
    pthread_t thread;
    void *result;
    add_node(world, "n", 16, "");
    add_pod(world, "first", 16, "1", "");
    assert_int_equal(run_schedule(world, NULL, NULL), 0);
    add_pod(world, "waits", 8, "1", "");
    assert_int_equal(pthread_create(&thread, NULL, follow, world), 0);
    for (int i = 0; i < 2000 && count_events(world, "reason=FailedScheduling") < 1; i++)
        nap();
    /* Its own status, also as others write it, is no reason. */
    patch_pod(world, "waits", GS_SIM_STATUS, "{\"status\":{\"message\":\"hello\"}}");
    for (int i = 0; i < 40; i++)
        nap();
    assert_int_equal(count_events(world, "reason=FailedScheduling"), 1);
    /* An annotation is: that is how the extender wakes a pod. */
    patch_pod(world, "waits", GS_SIM_MAIN, "{\"metadata\":{\"annotations\":{\"wake\":\"1\"}}}");
    for (int i = 0; i < 2000 && count_events(world, "reason=FailedScheduling") < 2; i++)
        nap();
    assert_int_equal(count_events(world, "reason=FailedScheduling"), 2);
    /* Room is one too. */
    gs_sim_delete(world->cluster, GS_SIM_PODS, "default", "first", (struct gs_slice){0}, NULL,
                  NULL);
    assert_true(wait_for_calls(world, "bind waits", 1));
    kill(getpid(), SIGTERM);
    pthread_join(thread, &result);
    assert_ptr_equal(result, world);
    assert_string_equal(node_of(world, "waits"), "n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_ends_as_kube_schedulers),
        test_with_world(a_scheduler_has_its_name),
        test_with_world(equal_scores_are_drawn_by_seed),
        test_with_world(pods_come_from_files),
        test_with_world(a_parked_pod_is_tried_again_for_a_reason_only),
    };
    process_block_signals(); /* so that only the command itself hears SIGTERM */
    setenv("LOG_LEVEL", "warning", 1);
    return GS_RUN(tests);
}
