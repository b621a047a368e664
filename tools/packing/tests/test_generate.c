/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"
#include "rows.h"

static struct gs_trace generate(uint32_t nodes, uint32_t load_pct, uint64_t seed)
{
    struct gs_generate_spec spec = {.nodes = nodes, .load_pct = load_pct, .seed = seed};
    struct gs_trace trace = {0};
    struct gs_error err = {0};
    if (gs_generate(&spec, &trace, &err) < 0)
        fail_msg("generate: %s", err.msg);
    return trace;
}

static uint64_t capacity(const struct gs_trace *trace)
{
    uint64_t milli = 0;
    for (uint32_t i = 0; i < trace->node_count; i++)
        milli += (uint64_t)trace->nodes[i].gpus * GS_TRACE_CARD_MILLI;
    return milli;
}

static uint64_t demand(const struct gs_trace *trace)
{
    uint64_t milli = 0;
    for (uint32_t i = 0; i < trace->pod_count; i++)
        milli += (uint64_t)trace->pods[i].gpus * trace->pods[i].gpu_milli;
    return milli;
}

/* Percent of the pods that have so many GPUs (-1: more than one), of at least so much each. */
static double share_of(const struct gs_trace *trace, int gpus, uint32_t least, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->pod_count; i++) {
        const struct gs_trace_pod *pod = &trace->pods[i];
        bool number = gpus < 0 ? pod->gpus > 1 : pod->gpus == (uint32_t)gpus;
        count += number && pod->gpu_milli >= least && pod->gpu_milli <= most;
    }
    return 100.0 * count / trace->pod_count;
}

static void near(double value, double expected, double tolerance)
{
    if (value < expected - tolerance || value > expected + tolerance)
        fail_msg("%.2f is not within %.2f of %.2f", value, tolerance, expected);
}

/* The published marginals: 1213 nodes with 6212 GPUs; 8152 pods, of which 13.3 % have no GPU,
 * 37.8 % a part, 48.0 % one, 0.9 % more; 810 thousandths are 13 % of all. */
static void the_shape_is_the_published_one(void **state)
{
    struct gs_trace trace = generate(1213, 98, 1);
    assert_int_equal(trace.node_count, 1213);
    near((double)capacity(&trace) / GS_TRACE_CARD_MILLI, 6212, 150);
    near(trace.pod_count, 8152, 300);
    near(100.0 * (double)demand(&trace) / (double)capacity(&trace), 98, 0.2);
    near(share_of(&trace, 0, 0, 0), 13.3, 1.5);
    near(share_of(&trace, 1, 1, 999), 37.8, 2);
    near(share_of(&trace, 1, 1000, 1000), 48.0, 2);
    near(share_of(&trace, -1, 1000, 1000), 0.9, 0.4);
    near(share_of(&trace, 1, 810, 810), 13, 1.5);
    gs_trace_release(&trace);
}

static void the_same_seed_makes_the_same_trace(void **state)
{
    char *texts[3];
    for (int i = 0; i < 3; i++) {
        struct gs_buf text = GS_BUF(1 << 20);
        struct gs_trace trace = generate(40, 98, i < 2 ? 7 : 8);
        gs_trace_write_nodes(&text, trace.nodes, trace.node_count);
        gs_trace_write_pods(&text, trace.pods, trace.stays, trace.pod_count);
        texts[i] = gs_buf_steal(&text);
        assert_non_null(texts[i]);
        gs_trace_release(&trace);
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_not_equal(texts[0], texts[2]);
    for (int i = 0; i < 3; i++)
        free(texts[i]);
}

static void small_and_large_clusters_are_possible(void **state)
{
    static const struct {
        const char *row;
        uint32_t nodes, load_pct;
    } rows[] = {
        {"one node", 1, 98},
        {"a light load", 10, 1},
        {"a heavy load", 10, 1000},
        {"many nodes", 5000, 10},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace trace = generate(r->nodes, r->load_pct, 5);
        uint64_t wanted = capacity(&trace) * r->load_pct / 100;
        row_equal(r->row, trace.node_count, r->nodes);
        row_true(r->row, demand(&trace) >= wanted && demand(&trace) < wanted + 8001);
        gs_trace_release(&trace);
    }
}

static void impossible_sizes_are_refused(void **state)
{
    static const struct gs_generate_spec specs[] = {
        {0, 98, 1}, {GS_TRACE_NODES_MAX + 1, 98, 1}, {10, 0, 1}, {10, 1001, 1}};
    for (size_t i = 0; i < GS_COUNT_OF(specs); i++) {
        struct gs_trace trace = {0};
        struct gs_error err = {0};
        assert_int_equal(gs_generate(&specs[i], &trace, &err), -1);
        assert_int_equal(err.code, GS_EINVAL);
        assert_null(trace.nodes);
    }
}

/* The quantiles are those of the trace, rounded; the pods are those of a trace without times. */
static void how_long_pods_run_has_the_quantiles_of_the_trace(void **state)
{
    static const struct {
        const char *row;
        int64_t seconds;
        uint32_t per_mille;
    } rows[] = {{"some end at once", 60, 100},
                {"half within minutes", 500, 500},
                {"nine of ten within two hours", 6500, 900},
                {"few run for days", 96000, 990}};
    struct gs_generate_spec spec = {.nodes = 400, .load_pct = 500, .seed = 5};
    struct gs_trace without = {0}, timed = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_generate(&spec, &without, &err), 0);
    spec.timed = true;
    assert_int_equal(gs_generate(&spec, &timed, &err), 0);
    assert_null(without.stays);
    assert_int_equal(without.pod_count, timed.pod_count);
    assert_int_equal(without.pods[99].gpu_milli, timed.pods[99].gpu_milli);
    GS_FOR_EACH_ROW (r, rows) {
        uint32_t within = 0;
        for (uint32_t i = 0; i < timed.pod_count; i++) {
            row_true(r->row, timed.stays[i].lasts_s > 0);
            within += timed.stays[i].lasts_s <= r->seconds;
        }
        double per_mille = 1000.0 * within / timed.pod_count;
        row_true(r->row, per_mille > r->per_mille - 15 && per_mille < r->per_mille + 15);
    }
    gs_trace_release(&without);
    gs_trace_release(&timed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shape_is_the_published_one),
        cmocka_unit_test(the_same_seed_makes_the_same_trace),
        cmocka_unit_test(small_and_large_clusters_are_possible),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(how_long_pods_run_has_the_quantiles_of_the_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
