/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "service_rig.h"

#include "extender/service/service_internal.h"

static struct rig rig;

/* A node with one GPU of 16 GiB. */
static void feed_node(const char *name, const char *spec, const char *ready, const char *units,
                      const char *healthy)
{
    char json[1024];
    struct gs_node node = {0};
    struct gs_error err = {0};
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','annotations':{'aliyun.com/gpu-inventory':'{`v`:1,`unit`:"
             "`GiB`,`gpus`:[{`idx`:0,`mem`:16,`healthy`:%s,`schedulable`:true}]}'}},'spec':{%s},"
             "'status':{'conditions':[{'type':'Ready','status':'%s'}],'allocatable':{'cpu':'64',"
             "'aliyun.com/gpu-mem':'%s'}}}",
             name, healthy, spec, ready, units);
    for (char *at = strchr(json, '`'); at; at = strchr(json, '`')) {
        memmove(at + 2, at + 1, strlen(at + 1) + 1);
        memcpy(at, "\\'", 2);
    }
    rig_quote(json);
    assert_int_equal(gs_codec_node(&rig.names, gs_slice_of(json), &node, &err), 0);
    assert_int_equal(rig.sink.node(rig.sink.ctx, &node), 0);
    gs_node_release(&node);
}

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    feed_node("n1", "", "True", "16", "true");
    feed_node("n2", "", "True", "16", "true");
    rig_pod(&rig, "old", "u0", 10, "n1", "0", "Running");
    service_tick(rig.service);
    *state = &rig;
    return 0;
}

/* line: NULL when the series must not be there at all. */
static void expect(const char *series, const char *line)
{
    struct gs_buf text = GS_BUF(1 << 20);
    gs_service_metrics(rig.service, &text);
    if (line)
        assert_non_null(strstr(text.data, line));
    else
        assert_null(strstr(text.data, series));
    gs_buf_release(&text);
}

static void free_and_largest_are_of_the_whole_cluster(void **state)
{
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 23622320128\n");
    expect("gpushare_memory_largest_free_bytes",
           "\ngpushare_memory_largest_free_bytes 17179869184\n");
    rig_pod_gone(&rig, "old", "u0");
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 34359738368\n");
}

/* "total allocated free unusable", in GiB. */
static void sums(char to[64])
{
    static const char *const names[] = {"", "allocated_", "free_", "unusable_"};
    struct gs_buf text = GS_BUF(1 << 20);
    gs_service_metrics(rig.service, &text);
    to[0] = '\0';
    for (size_t i = 0; i < GS_COUNT_OF(names); i++) {
        char name[64];
        snprintf(name, sizeof(name), "\ngpushare_memory_%sbytes ", names[i]);
        const char *at = strstr(text.data, name);
        assert_non_null(at);
        snprintf(to + strlen(to), 64 - strlen(to), "%s%llu", i ? " " : "",
                 strtoull(at + strlen(name), NULL, 10) >> 30);
    }
    gs_buf_release(&text);
}

/* As in the CLI's sums, whatever keeps new pods away. */
static void allocated_free_and_unusable_are_all(void **state)
{
    static const struct {
        const char *row, *spec, *ready, *units, *healthy, *wants;
    } rows[] = {
        {"open", "", "True", "16", "true", "32 10 22 0"},
        {"cordoned", "'unschedulable':true", "True", "16", "true", "32 10 6 16"},
        {"not ready", "", "False", "16", "true", "32 10 6 16"},
        {"without a plugin", "", "True", "0", "true", "32 10 6 16"},
        {"unhealthy", "", "True", "16", "false", "32 10 6 16"},
    };
    char line[64];
    GS_FOR_EACH_ROW (r, rows) {
        feed_node("n2", r->spec, r->ready, r->units, r->healthy);
        sums(line);
        row_text(r->row, line, r->wants);
    }
}

static void a_full_cluster_has_nothing_free(void **state)
{
    rig_pod(&rig, "more", "u1", 6, "n1", "0", "Running");
    rig_pod(&rig, "all", "u2", 16, "n2", "0", "Running");
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 0\n");
    expect("gpushare_memory_largest_free_bytes", "\ngpushare_memory_largest_free_bytes 0\n");
}

static void stranded_memory_is_not_told_before_it_is_known(void **state)
{
    expect("gpushare_memory_stranded_bytes", NULL);
}

/* All pods ask for 10: what a GPU of 16 has left beside one is of no use to the next. */
static void what_no_known_pod_can_use_is_stranded(void **state)
{
    for (int i = 0; i < 32; i++) {
        char name[16], uid[16];
        snprintf(name, sizeof(name), "p%d", i);
        snprintf(uid, sizeof(uid), "v%d", i);
        rig_pod(&rig, name, uid, 10, NULL, NULL, "Pending");
    }
    rig_tick(&rig, 2 * GS_NS_PER_S);
    expect("gpushare_memory_stranded_bytes", "\ngpushare_memory_stranded_bytes 12884901888\n");
    expect(NULL, "\ngpushare_node_memory_stranded_bytes{node=\"n1\"} 6442450944\n");
    rig_pod_gone(&rig, "old", "u0");
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 34359738368\n");
    expect("gpushare_memory_stranded_bytes", "\ngpushare_memory_stranded_bytes 12884901888\n");
}

/* {"Pod":…,"NodeNames":…} as kube-scheduler asks it. */
static void ask_filter(const char *name, const char *uid, const char *mem)
{
    struct gs_buf answer = GS_BUF(1 << 16);
    struct gs_error err = {0};
    char body[1024];
    int len = snprintf(
        body, sizeof(body),
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\"},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"
        "gpu-mem\":\"%s\"}}}]}},\"NodeNames\":[\"n1\",\"n2\",\"plain\",\"other\"]}",
        name, uid, mem);
    assert_int_equal(gs_service_filter(rig.service, body, (size_t)len, &answer, &err), 0);
    gs_buf_release(&answer);
}

/* Nodes without GPUs are most, and say nothing about why. */
static void show_pending(const char *uid, const char *meta, const char *gates)
{
    char json[1024];
    snprintf(json, sizeof(json),
             "{'metadata':{'name':'%s','namespace':'d','uid':'%s'%s},'spec':{%s'containers':[{"
             "'name':'c','resources':{'limits':{'aliyun.com/gpu-mem':'4'}}}]},'status':{'phase':"
             "'Pending'}}",
             uid, uid, meta, gates);
    rig_quote(json);
    rig_feed(&rig, json, false);
}

/* A forgotten schedulerName, a kube-scheduler that is down or does not call this extender. */
static void pods_that_nobody_asks_about_are_told(void **state)
{
    static const char born[] = ",'creationTimestamp':'1970-01-01T00:00:07Z'";
    static const char dying[] = ",'creationTimestamp':'1970-01-01T00:00:01Z',"
                                "'deletionTimestamp':'1970-01-01T00:00:02Z'";
    char line[96];
    snprintf(line, sizeof(line), "\ngpushare_unevaluated_pod_oldest_seconds %lld.000\n",
             (long long)(rig.clock.wall_ns(&rig) / GS_NS_PER_S - 7));
    expect(NULL, "\ngpushare_unevaluated_pods 0\n");
    expect(NULL, "\ngpushare_unevaluated_pod_oldest_seconds 0.000\n");
    show_pending("a", born, "");
    show_pending("b", "", "");
    show_pending("gated", born, "'schedulingGates':[{'name':'g'}],");
    show_pending("dying", dying, "");
    expect(NULL, "\ngpushare_unevaluated_pods 2\n");
    expect(NULL, line);
    ask_filter("b", "b", "4"); /* a node is named */
    expect(NULL, "\ngpushare_unevaluated_pods 1\n");
    ask_filter("a", "a", "20"); /* refused: asked all the same */
    expect(NULL, "\ngpushare_unevaluated_pods 0\n");
    expect(NULL, "\ngpushare_unevaluated_pod_oldest_seconds 0.000\n");
}

static void refused_pods_are_counted_by_reason_until_they_fit(void **state)
{
    ask_filter("huge", "h", "20");
    ask_filter("full", "f", "16");
    expect(NULL, "\ngpushare_unschedulable_pods{reason=\"gpu_too_small\"} 1\n");
    rig_pod(&rig, "all", "u2", 16, "n2", "0", "Running");
    rig.now_ns += 90 * GS_NS_PER_S;
    ask_filter("full", "f", "16");
    expect(NULL, "\ngpushare_unschedulable_pods{reason=\"insufficient_memory\"} 1\n");
    expect(NULL, "\ngpushare_unschedulable_pod_oldest_seconds 90.000\n");
    rig_pod_gone(&rig, "huge", "h");
    expect(NULL, "\ngpushare_unschedulable_pods{reason=\"gpu_too_small\"} 0\n");
    expect(NULL, "\ngpushare_unschedulable_pod_oldest_seconds 0.000\n");
}

/* Two nodes say "never"; that one could take it if its pods lay otherwise is what to tell. */
static void a_refused_pod_counts_under_its_most_hopeful_reason(void **state)
{
    rig_node(&rig, "plain", "20,20");
    rig_pod(&rig, "left", "u3", 10, "plain", "0", "Running");
    rig_pod(&rig, "right", "u4", 10, "plain", "1", "Running");
    ask_filter("huge", "h", "20");
    expect(NULL, "\ngpushare_unschedulable_pods{reason=\"fragmented\"} 1\n");
    expect(NULL, "\ngpushare_unschedulable_pods{reason=\"gpu_too_small\"} 0\n");
    expect(NULL, "\ngpushare_nodes_rejected_total{reason=\"gpu_too_small\"} 2\n");
}

static void a_namespace_has_what_its_pods_were_given(void **state)
{
    expect(NULL,
           "\ngpushare_namespace_memory_allocated_bytes{namespace=\"default\"} 10737418240\n");
    expect(NULL, "\ngpushare_namespace_pods{namespace=\"default\"} 1\n");
    expect("namespace=\"_other\"", NULL);
    rig_pod_gone(&rig, "old", "u0");
    expect("gpushare_namespace_memory_allocated_bytes{", NULL);
}

static void bound_pod(const char *ns, const char *uid)
{
    char json[512];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"p\",\"namespace\":\"%s\",\"uid\":\"%s\",\"annotations\":{"
             "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\"}},\"spec\":{\"nodeName\":\"n2\",\"containers\":["
             "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}]},"
             "\"status\":{\"phase\":\"Running\"}}",
             ns, uid);
    rig_feed(&rig, json, false);
}

/* Whoever may make namespaces makes 1000 series and no more. */
static void namespaces_beyond_a_thousand_are_told_together(void **state)
{
    struct gs_buf text = GS_BUF(1 << 20);
    int series = 0;
    for (int i = 0; i < 1002; i++) {
        char ns[16], uid[16];
        snprintf(ns, sizeof(ns), "team-%d", i);
        snprintf(uid, sizeof(uid), "t%d", i);
        bound_pod(ns, uid);
    }
    gs_service_metrics(rig.service, &text);
    for (const char *at = text.data; (at = strstr(at, "\ngpushare_namespace_pods{")); at++)
        series++;
    assert_int_equal(series, 1001);
    expect(NULL, "\ngpushare_namespace_pods{namespace=\"_other\"} 3\n");
    gs_buf_release(&text);
}

static void series_per_gpu_are_in_bytes(void **state)
{
    expect(NULL, "\ngpushare_gpu_memory_bytes{node=\"n1\",gpu=\"0\"} 17179869184\n");
    expect(NULL, "\ngpushare_gpu_memory_allocated_bytes{node=\"n1\",gpu=\"0\"} 10737418240\n");
    expect(NULL, "\ngpushare_memory_bytes 34359738368\n");
    expect(NULL, "\ngpushare_memory_allocated_bytes 10737418240\n");
}

/* A farm's series are two per GPU: its operator may do without. */
static void series_per_gpu_can_be_left_out(void **state)
{
    const struct gs_service_config config = {.names = &rig.names,
                                             .clock = &rig.clock,
                                             .policy = GS_PLACEMENT_BINPACK,
                                             .no_gpu_metrics = true};
    struct gs_error err = {0};
    struct rig other = {.names = rig.names, .service = gs_service_new(&config, &err)};
    struct gs_buf text = GS_BUF(1 << 20);
    other.sink = gs_service_sink(other.service);
    rig_node(&other, "n1", "16");
    gs_service_metrics(other.service, &text);
    assert_null(strstr(text.data, "gpushare_gpu_memory"));
    assert_null(strstr(text.data, "gpushare_node_memory"));
    assert_non_null(strstr(text.data, "\ngpushare_memory_bytes 17179869184\n"));
    gs_buf_release(&text);
    gs_service_free(other.service);
}

static void an_overfull_gpu_is_told_once_each_time(void **state)
{
    for (int round = 1; round <= 2; round++) {
        rig_pod(&rig, "more", round == 1 ? "u11" : "u12", 10, "n1", "0", "Running");
        for (int i = 0; i < 3; i++) {
            rig_tick(&rig, 11 * GS_NS_PER_S);
            assert_int_equal(rig.events, round);
        }
        assert_string_equal(rig.event, "/n1 GpuOvercommitted");
        rig_pod_gone(&rig, "more", round == 1 ? "u11" : "u12");
        rig_tick(&rig, 11 * GS_NS_PER_S);
    }
    assert_int_equal(rig.events, 2);
}

/* No function of the ledger makes such a difference: the test does, behind its back. */
static void the_audit_finds_an_account_that_is_wrong_on_any_node(void **state)
{
    enum { MORE = 300 };
    const struct gs_ledger *ledger = rig.service->ledger;
    for (unsigned i = 0; i < MORE; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%u", i);
        rig_node(&rig, name, "16,16");
    }
    static const char *const wrong[] = {"n1", "m125", "m126", "m299"};
    for (size_t i = 0; i < GS_COUNT_OF(wrong); i++) {
        char line[64];
        ((struct gs_node_view *)gs_ledger_view(ledger, wrong[i]))->gpus[0].used_units += 1;
        rig_tick(&rig, 30 * GS_NS_PER_S);
        snprintf(line, sizeof(line), "\ngpushare_ledger_drift %zu\n", i + 1);
        expect("gpushare_ledger_drift", line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(free_and_largest_are_of_the_whole_cluster),
        T(allocated_free_and_unusable_are_all),
        T(a_full_cluster_has_nothing_free),
        T(stranded_memory_is_not_told_before_it_is_known),
        T(what_no_known_pod_can_use_is_stranded),
        T(pods_that_nobody_asks_about_are_told),
        T(refused_pods_are_counted_by_reason_until_they_fit),
        T(a_refused_pod_counts_under_its_most_hopeful_reason),
        T(a_namespace_has_what_its_pods_were_given),
        T(namespaces_beyond_a_thousand_are_told_together),
        T(series_per_gpu_are_in_bytes),
        T(series_per_gpu_can_be_left_out),
        T(an_overfull_gpu_is_told_once_each_time),
        T(the_audit_finds_an_account_that_is_wrong_on_any_node),
    };
    return GS_RUN(tests);
}
