/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that need many pods or nodes, or a wrong account; the others: metrics.scenarios. */
#include "service_rig.h"

#include "extender/service/service_internal.h"

static struct rig rig;

static int setup(void **state)
{
    rig_start(&rig);
    rig_lists(&rig);
    rig_node(&rig, "n1", "16");
    rig_node(&rig, "n2", "16");
    rig_pod(&rig, "old", 10, "n1", "0");
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

/* All pods ask for 10: what a GPU of 16 has left beside one is of no use to the next. Sixteen make
 * it known, each counted once. */
static void what_no_known_pod_can_use_is_stranded(void **state)
{
    for (int i = 0; i < 28; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i % 14);
        rig_pod(&rig, name, 10, NULL, NULL);
    }
    rig_pod(&rig, "old", 10, "n1", "0");
    rig_pod(&rig, "p0", 10, "n2", "0");
    rig_tick(&rig, 2 * GS_NS_PER_S);
    expect("gpushare_memory_stranded_bytes", NULL);
    rig_pod(&rig, "last", 10, NULL, NULL);
    rig_tick(&rig, 2 * GS_NS_PER_S);
    expect("gpushare_memory_stranded_bytes", "\ngpushare_memory_stranded_bytes 12884901888\n");
    expect(NULL, "\ngpushare_node_memory_stranded_bytes{node=\"n1\"} 6442450944\n");
    rig_pod_gone(&rig, "old");
    rig_node(&rig, "n3", ""); /* of which nothing is known */
    expect("gpushare_memory_free_bytes", "\ngpushare_memory_free_bytes 23622320128\n");
    expect("gpushare_memory_stranded_bytes", "\ngpushare_memory_stranded_bytes 12884901888\n");
}

static bool pods_leave(void)
{
    const struct gs_ask ask = {.units = 10, .gpu_count = 1};
    struct gs_chooser chooser;
    gs_chooser_init(&chooser, rig.service->cluster.policies, GS_PLACEMENT_ROLLOUT, &ask);
    return chooser.leaving;
}

static void placement_knows_that_pods_leave(void **state)
{
    assert_false(pods_leave());
    for (int i = 0; i < 256; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        rig_pod(&rig, name, 6, "n1", "0");
        rig_pod_gone(&rig, name);
    }
    assert_true(pods_leave());
}

/* Whoever may make namespaces makes 1000 series and no more. */
static void namespaces_beyond_a_thousand_are_told_together(void **state)
{
    struct gs_buf text = GS_BUF(1 << 20);
    int series = 0;
    for (int i = 0; i < 1002; i++) {
        char ns[16];
        snprintf(ns, sizeof(ns), "team-%d", i);
        rig_feed(&rig, rig_json(&rig, (struct rig_pod){ns, "p", .node = "n2", .idx = "0"}), false);
    }
    gs_service_metrics(rig.service, &text);
    for (const char *at = text.data; (at = strstr(at, "\ngpushare_namespace_pods{")); at++)
        series++;
    assert_int_equal(series, 1001);
    expect(NULL, "\ngpushare_namespace_pods{namespace=\"_other\"} 3\n");
    gs_buf_release(&text);
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
    for (size_t i = 0; i < GS_COUNT_OF(wrong); i++)
        ((struct gs_node_view *)gs_ledger_view(ledger, wrong[i]))->gpus[0].used_units -= 1;
    rig_tick(&rig, 30 * GS_NS_PER_S);
    expect("gpushare_ledger_drift", "\ngpushare_ledger_drift 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_no_known_pod_can_use_is_stranded),
        T(placement_knows_that_pods_leave),
        T(namespaces_beyond_a_thousand_are_told_together),
        T(series_per_gpu_can_be_left_out),
        T(the_audit_finds_an_account_that_is_wrong_on_any_node),
    };
    return GS_RUN(tests);
}
