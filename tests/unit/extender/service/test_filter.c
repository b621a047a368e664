/* SPDX-License-Identifier: Apache-2.0 */
#include "service_rig.h"

#include <unistd.h>

#include "gpushare/model/reason.h"
#include "rows.h"

static struct rig rig;

static void start(struct rig *ret, struct gs_service_config config)
{
    rig_start_as(ret, config);
    rig_lists(ret);
    rig_node(ret, "n1", "8,8");
    rig_node(ret, "n2", "16");
}

static int setup(void **state)
{
    start(&rig, (struct gs_service_config){0});
    *state = &rig;
    return 0;
}

static const char *pod(unsigned units)
{
    static char json[2048];
    return rig_pod_json(&rig, json, sizeof(json), "p", "u1", units, NULL, NULL, "Pending");
}

/* The lines on stderr that hold `words`, while the pod is asked about so often. */
static int lines_of(const char *words, unsigned units, int times)
{
    char line[4096];
    int count = 0, old = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    assert_true(log && old >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    while (times--)
        free(rig_filter(&rig, pod(units), "\"n1\""));
    assert_true(dup2(old, STDERR_FILENO) >= 0);
    close(old);
    rewind(log);
    while (fgets(line, sizeof(line), log))
        count += strstr(line, words) != NULL;
    fclose(log);
    return count;
}

/* kube-scheduler asks again about every waiting pod whenever something changes. */
static void the_same_refusal_is_told_once(void **state)
{
    assert_int_equal(lines_of("no node fits", 17, 5), 1);
    rig_pod(&rig, "q", "u2", 4, "n1", "0", "Running");
    rig_pod(&rig, "r", "u3", 4, "n1", "1", "Running");
    assert_int_equal(lines_of("no node fits", 6, 5), 1); /* another reason */
    rig_pod_gone(&rig, "q", "u2");
    assert_int_equal(lines_of("no node fits", 6, 1), 0); /* it fits, and is not bound */
    rig_pod(&rig, "q", "u4", 4, "n1", "0", "Running");
    assert_int_equal(lines_of("no node fits", 6, 5), 0); /* nothing new */
}

static void nodes_given_as_objects_are_judged_as_given(void **state)
{
    char body[4096];
    rig_pod(&rig, "q", "u2", 10, "n2", "0", "Running");
    snprintf(body, sizeof(body),
             "{\"Pod\":%s,\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"new\"},\"status\":{"
             "\"capacity\":{\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":\"2\"}}},"
             "{\"metadata\":{\"name\":\"n2\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":"
             "\"16\",\"aliyun.com/gpu-count\":\"1\"}}}]},\"NodeNames\":null}",
             pod(12));
    char *answer = rig_ask(&rig, gs_service_filter, body);
    assert_non_null(strstr(answer, "\"items\":[{\"metadata\":{\"name\":\"new\"}"));
    rig_expect(answer, "\"FailedNodes\":{\"n2\":\"");
}

static void nothing_is_answered_before_the_lists_are_loaded(void **state)
{
    struct rig young;
    rig_start(&young);
    rig_expect(rig_filter(&young, pod(1), "\"n1\""), "not ready");
    rig_expect(rig_try_bind(&young, "p", "u1", "n1"), "not ready");
    assert_false(gs_service_ready(young.service, NULL));
    assert_int_equal(young.binds, 0);
    young.sink.list_begin(young.sink.ctx, GS_KIND_NODE);
    young.sink.list_end(young.sink.ctx, GS_KIND_NODE);
    rig_expect(rig_filter(&young, pod(1), "\"n1\""), "not ready");
    rig_stop(&young);
}

static const char *const malformed[] = {
    "",
    "{",
    "nonsense",
    "[1,2]",
    "{\"Pod\":{},\"NodeNames\":[1]}",
    "{\"Pod\":5,\"NodeNames\":[]}",
    "{\"NodeNames\":[\"n1\"]}",
    "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}}",
    "{\"Pod\":{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}},\"NodeNames\":[\"n1\"]",
};

static void malformed_requests_get_no_answer(void **state)
{
    GS_FOR_EACH_ROW (r, malformed) {
        struct gs_buf answer = GS_BUF(1 << 16);
        struct gs_error err = {0};
        if (gs_service_filter(rig.service, *r, strlen(*r), &answer, &err) == 0)
            fail_msg("answered %s to %s", answer.data, *r);
        assert_true(err.code == GS_EPROTO || err.code == GS_EINVAL);
        gs_buf_release(&answer);
    }
}

static char *prioritize(unsigned units, const char *names)
{
    char body[4096];
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[%s]}", pod(units), names);
    return rig_ask(&rig, gs_service_prioritize, body);
}

/* The least score is taken off all, which changes no order, and who has none left is not named. */
static void prioritize_names_what_it_prefers(void **state)
{
    static const struct {
        const char *row, *names, *expected;
    } rows[] = {
        {"only the best", "\"n2\",\"n1\"", "[{\"Host\":\"n1\",\"Score\":8}]"},
        {"all but the least", "\"nowhere\",\"n1\",\"n2\"",
         "[{\"Host\":\"n1\",\"Score\":10},{\"Host\":\"n2\",\"Score\":2}]"},
        {"all alike", "\"n1\"", "[]"},
        {"nobody asked about", "", "[]"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char *answer = prioritize(8, r->names);
        row_text(r->row, answer, r->expected);
        free(answer);
    }
}

/* Beside it "kept" has as much left as is asked for, without it "used" is the tighter one. */
static void a_nominated_pod_counts_in_the_score(void **state)
{
    struct rig here;
    char body[4096];
    start(&here, (struct gs_service_config){0});
    rig_node(&here, "used", "16");
    rig_node(&here, "kept", "16");
    rig_pod(&here, "first", "first", 8, "used", "0", "Running");
    snprintf(body, sizeof(body),
             "{'metadata':{'name':'v','namespace':'default','uid':'v','resourceVersion':'%llu'},"
             "'spec':{'priority':9,'containers':[{'name':'c','resources':{'limits':{"
             "'aliyun.com/gpu-mem':'12'}}}]},"
             "'status':{'phase':'Pending','nominatedNodeName':'kept'}}",
             (unsigned long long)++here.revision);
    rig_quote(body);
    rig_feed(&here, body, false);
    snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"used\",\"kept\"]}", pod(4));
    rig_expect(rig_ask(&here, gs_service_prioritize, body), "[{\"Host\":\"kept\",\"Score\":7}]");
    rig_stop(&here);
}

static void pods_come_to_another_node(struct rig *at, int count, bool and_leave)
{
    for (int i = 0; i < count; i++) {
        char uid[32];
        snprintf(uid, sizeof(uid), "%s%d", and_leave ? "left" : "came", i);
        rig_pod(at, uid, uid, 8, "far", "0", "Running");
        if (and_leave)
            rig_pod_gone(at, uid, uid);
    }
    rig_tick(at, 10 * GS_NS_PER_S);
}

/* Rollout's, told by the watch who has left. */
static void while_pods_leave_nodes_that_are_free_stay_free(void **state)
{
    struct rig here;
    rig_start_as(&here, (struct gs_service_config){.policy = GS_PLACEMENT_ROLLOUT});
    rig_lists(&here);
    rig_node(&here, "used", "8,8");
    rig_node(&here, "free", "8,8");
    rig_pod(&here, "first", "first", 8, "used", "0", "Running");
    for (int leave = 0; leave < 2; leave++) {
        char body[4096];
        pods_come_to_another_node(&here, 300, leave);
        snprintf(body, sizeof(body), "{\"Pod\":%s,\"NodeNames\":[\"used\",\"free\"]}", pod(8));
        rig_expect(rig_ask(&here, gs_service_prioritize, body),
                   leave ? "[{\"Host\":\"used\",\"Score\":4}]" : "[]");
    }
    rig_stop(&here);
}

static void prioritize_keeps_pods_without_gpu_memory_off_gpu_nodes(void **state)
{
    rig_expect(prioritize(0, "\"n1\",\"cpu\""), "[{\"Host\":\"cpu\",\"Score\":10}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_same_refusal_is_told_once),
        T(nodes_given_as_objects_are_judged_as_given),
        T(nothing_is_answered_before_the_lists_are_loaded),
        T(malformed_requests_get_no_answer),
        T(prioritize_names_what_it_prefers),
        T(a_nominated_pod_counts_in_the_score),
        T(while_pods_leave_nodes_that_are_free_stay_free),
        T(prioritize_keeps_pods_without_gpu_memory_off_gpu_nodes),
    };
    return GS_RUN(tests);
}
