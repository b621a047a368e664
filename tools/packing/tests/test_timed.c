/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"
#include "rows.h"
#include "timed.h"
#include "timed_model.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S };

static struct gs_trace_node nodes[] = {
    {"n0", 16000, 64000, 8, "A"},
    {"n1", 16000, 64000, 2, "B"},
    {"n2", 4000, 64000, 1, "A"},
    {"n3", 8000, 16000, 2, "A"},
};
static struct gs_trace_pod pods[] = {
    {"p0", 500, 1000, 1, 470, ""},     {"p1", 1000, 1000, 1, 1000, "B"},
    {"p2", 2000, 1000, 0, 0, ""},      {"p3", 2000, 1000, 2, 1000, ""},
    {"p4", 1000, 15000, 1, 100, "A"},  {"p5", 3000, 1000, 1, 810, "A|B"},
    {"p6", 8000, 1000, 8, 1000, ""},   {"p7", 1000, 1000, 1, 1000, ""},
    {"p8", 99000, 1000, 1, 1000, ""},  {"p9", 1000, 1000, 9, 1000, ""},
    {"p10", 1000, 1000, 2, 1000, "C"}, {"p11", 1000, 1000, 1, 1000, ""},
};
static struct gs_trace_stay stays[] = {{4, 0}, {7, 1}, {2, 0}, {9, 0}, {3, 0},  {5, 0},
                                       {3, 2}, {6, 0}, {5, 0}, {5, 0}, {50, 0}, {0, 0}};
static struct gs_trace trace = {
    .nodes = nodes, .pods = pods, .stays = stays, .node_count = 4, .pod_count = 12};

/* ---- against the model ---- */

struct compared {
    const struct model *model;
    const char *row;
    uint32_t started;
};

static void compare_start(void *ctx, const struct gs_timed_start *start)
{
    struct compared *compared = ctx;
    const struct model_pod *pod = &compared->model->pods[start->number];
    compared->started++;
    row_equal(compared->row, start->at_ms, pod->started_ms);
    row_equal(compared->row, start->node, pod->node);
    row_equal(compared->row, start->gpus, pod->gpus);
}

static void compare_waits(const char *row, const struct gs_timed_result *result,
                          const struct model *model)
{
    for (int which = 0; which < GS_TIMED_CLASSES; which++) {
        const struct gs_timed_waits *is = &result->waits[which];
        struct gs_timed_waits should = model_waits(model, (enum gs_timed_class)which);
        row_equal(row, is->pods, should.pods);
        row_equal(row, is->mean_ms, should.mean_ms);
        row_equal(row, is->p50_ms, should.p50_ms);
        row_equal(row, is->p99_ms, should.p99_ms);
        row_equal(row, is->max_ms, should.max_ms);
        row_equal(row, is->starved, should.starved);
        row_equal(row, is->waiting, should.waiting);
    }
}

static bool near(double a, double b)
{
    double apart = a > b ? a - b : b - a;
    return apart < 1e-9;
}

static void a_slow_model_starts_the_same_pods_at_the_same_time(void **state)
{
    static const struct {
        const char *row;
        uint32_t load_pct;
        uint64_t seed;
    } rows[] = {
        {"hardly anybody waits", 40, 1}, {"some wait", 80, 2},
        {"as much as there is", 100, 3}, {"the same, another draw", 100, 4},
        {"more than there is", 130, 5},  {"far more", 300, 6},
    };
    static struct model model;
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_timed_draw draw = {
            .load_pct = r->load_pct, .cut_s = 8, .warmup_s = 10, .measured_s = 60, .seed = r->seed};
        struct compared compared = {.model = &model, .row = r->row};
        struct gs_timed_spec spec = {.replay = {.policy = gs_replay_policy_find("binpack"),
                                                .clock = gs_clock_system(),
                                                .ctx = &compared},
                                     .started = compare_start};
        struct gs_timed_workload workload = {0};
        struct gs_timed_result result;
        struct gs_error err = {0};
        row_equal(r->row, gs_timed_draw(&trace, &draw, &workload, &err), 0);
        row_true(r->row, workload.count < MODEL_PODS_MAX);
        model = (struct model){.trace = &trace, .workload = &workload};
        model_run(&model);
        row_equal(r->row, gs_timed_replay(&trace, &workload, &spec, &result, &err), 0);
        uint32_t started = 0;
        for (uint32_t i = 0; i < workload.count; i++)
            started += model.pods[i].state >= MODEL_RUNS;
        row_equal(r->row, compared.started, started);
        compare_waits(r->row, &result, &model);
        double all = (double)model.capacity * 60000 / 100;
        row_true(r->row, near(result.allocated_pct, (double)model.used_sum / all));
        row_true(r->row, near(result.lost_pct, (double)model.lost_sum / all));
        row_equal(r->row, result.longest_queue, model.longest_queue);
        gs_timed_workload_release(&workload);
    }
}

/* ---- the queue by itself: two pods on one GPU ---- */

static void a_pod_is_tried_again_when_one_has_left_and_its_pause_is_over(void **state)
{
    static const struct {
        const char *row;
        int64_t leaves_ms, starts_ms; /* the first pod; the second, which arrives at 10 ms */
    } rows[] = {
        {"its first pause ends at 1010, the next whole second is 2000", 500, 2000},
        {"its pause is over", 1010, 1010},
        {"long over", 7777, 7777},
    };
    struct gs_trace_node one[] = {{"n", 16000, 64000, 1, "A"}};
    struct gs_trace small = {
        .nodes = one, .pods = &pods[7], .stays = &stays[7], .node_count = 1, .pod_count = 1};
    uint32_t rank[] = {0};
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_timed_arrival arrivals[] = {{0, r->leaves_ms, 0}, {10, 1000, 0}};
        struct gs_timed_workload workload = {
            .arrivals = arrivals, .count = 2, .rank = rank, .until_ms = 60000};
        struct gs_timed_spec spec = {
            .replay = {.policy = gs_replay_policy_find("rollout"), .clock = gs_clock_system()}};
        struct gs_timed_result result;
        struct gs_error err = {0};
        row_equal(r->row, gs_timed_replay(&small, &workload, &spec, &result, &err), 0);
        row_equal(r->row, result.waits[GS_TIMED_ONE].max_ms, r->starts_ms - 10);
        row_equal(r->row, result.waits[GS_TIMED_ONE].pods, 2);
        row_equal(r->row, result.longest_queue, 1);
    }
}

/* ---- moves ---- */

static void note_start(void *ctx, const struct gs_timed_start *start)
{
    ((int64_t *)ctx)[start->number] = start->at_ms;
}

enum { NODES_MAX = 4, STARTS = 8, HOUR_MS = HOUR_S * 1000, NEVER = -1 };

/* Small pods that came first are spread over the nodes; who wants a whole node waits. */
static void the_hours_moves_make_room_for_who_waits(void **state)
{
    static const struct {
        const char *row;
        uint32_t nodes, gpus, small, whole, moves;
        int64_t small_mib, whole_mib;
        int64_t starts_h[STARTS]; /* the small ones; the whole ones; two more small ones */
        uint32_t moved;
    } rows[] = {
        {"none are made", 2, 2, 2, 1, 0, 1, 1, {0, 0, NEVER, 1, 1}, 0},
        {"it begins anew, and leaves an hour later", 2, 2, 2, 1, 1, 1, 1, {0, 0, 1, 2, 3}, 1},
        {"two are needed, one is made: not before most have left",
         2,
         4,
         4,
         1,
         1,
         1,
         1,
         {0, 0, 0, 0, 2, 1, 1},
         1},
        {"two are needed", 2, 4, 4, 1, 2, 1, 1, {0, 0, 0, 0, 1, 2, 2}, 2},
        {"two are needed, of five", 2, 4, 4, 1, 5, 1, 1, {0, 0, 0, 0, 1, 2, 2}, 2},
        {"one for each of two", 4, 2, 4, 2, 2, 1, 1, {0, 0, 0, 0, 1, 1, 2, 2}, 2},
        {"one for the first of two", 4, 2, 4, 2, 1, 1, 1, {0, 0, 0, 0, 1, 2, 1, 1}, 2},
        {"memory comes free where it was", 2, 2, 2, 1, 1, 40, 70, {0, 0, 1, 2, 3}, 1},
        {"who would move has no memory there", 2, 2, 2, 1, 1, 60, 1, {0, 0, 2, 2, 7}, 0},
        {"who waits has none", 2, 2, 2, 1, 1, 1, 101, {0, 0, NEVER, 1, 1}, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace_node some[NODES_MAX] = {{"n0", 64000, 100, r->gpus, "A"},
                                                {"n1", 64000, 100, r->gpus, "A"},
                                                {"n2", 64000, 100, r->gpus, "A"},
                                                {"n3", 64000, 100, r->gpus, "A"}};
        struct gs_trace_pod kinds[] = {{"small", 1000, r->small_mib, 1, 1000, ""},
                                       {"whole", 1000, r->whole_mib, r->gpus, 1000, ""}};
        struct gs_trace_stay hours[] = {{1, 0}, {1, 0}};
        struct gs_trace small = {
            .nodes = some, .pods = kinds, .stays = hours, .node_count = r->nodes, .pod_count = 2};
        struct gs_timed_arrival arrivals[STARTS];
        uint32_t rank[] = {0, 1, 2, 3}, count = 0;
        for (; count < r->small; count++)
            arrivals[count] = (struct gs_timed_arrival){0, 2 * HOUR_MS, 0};
        for (; count < r->small + r->whole; count++)
            arrivals[count] = (struct gs_timed_arrival){1000, 5 * HOUR_MS, 1};
        for (int late = 1; late <= 2; late++)
            arrivals[count++] = (struct gs_timed_arrival){HOUR_MS + late, 9 * HOUR_MS, 0};
        int64_t starts[STARTS] = {NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER, NEVER};
        struct gs_timed_workload workload = {
            .arrivals = arrivals, .count = count, .rank = rank, .until_ms = 9 * HOUR_MS};
        struct gs_timed_spec spec = {.replay = {.policy = gs_replay_policy_find("spread"),
                                                .clock = gs_clock_system(),
                                                .ctx = starts},
                                     .started = note_start,
                                     .moves_per_hour = r->moves};
        struct gs_timed_result result;
        struct gs_error err = {0};
        row_equal(r->row, gs_timed_replay(&small, &workload, &spec, &result, &err), 0);
        for (uint32_t i = 0; i < count; i++)
            row_equal(r->row, starts[i] == NEVER ? NEVER : starts[i] / HOUR_MS, r->starts_h[i]);
        row_equal(r->row, result.moves, r->moved);
    }
}

/* ---- what is drawn ---- */

/* splitmix64 from seed 1 and Python's math.log. */
static void arrivals_are_the_same_everywhere(void **state)
{
    struct gs_timed_draw draw = {
        .load_pct = 50, .cut_s = 1000, .warmup_s = 10, .measured_s = 100, .seed = 1};
    struct gs_trace_stay simple[] = {{4, 0}, {7, 1}};
    struct gs_trace small = {
        .nodes = nodes, .pods = pods, .stays = simple, .node_count = 4, .pod_count = 2};
    static const int64_t at_ms[] = {554, 738, 1181, 1339, 1681, 2115, 3337, 3477};
    static const uint32_t rows_of[] = {0, 1, 0, 0, 0, 0, 1, 1};
    struct gs_timed_workload workload = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_timed_draw(&small, &draw, &workload, &err), 0);
    assert_int_equal(workload.warmup_ms, 10000);
    assert_int_equal(workload.until_ms, 110000);
    for (size_t i = 0; i < GS_COUNT_OF(at_ms); i++) {
        assert_int_equal(workload.arrivals[i].at_ms, at_ms[i]);
        assert_int_equal(workload.arrivals[i].pod, rows_of[i]);
        assert_int_equal(workload.arrivals[i].lasts_ms, rows_of[i] ? 7000 : 4000);
    }
    gs_timed_workload_release(&workload);
}

static void what_arrives_comes_to_the_load(void **state)
{
    static const uint32_t loads[] = {60, 80, 110};
    struct gs_error err = {0};
    for (size_t l = 0; l < GS_COUNT_OF(loads); l++) {
        struct gs_timed_draw draw = {
            .load_pct = loads[l], .cut_s = 8, .measured_s = 100000, .seed = 7};
        struct gs_timed_workload workload = {0};
        double work = 0, gaps = 0, squares = 0;
        assert_int_equal(gs_timed_draw(&trace, &draw, &workload, &err), 0);
        for (uint32_t i = 0; i < workload.count; i++) {
            const struct gs_timed_arrival *arrival = &workload.arrivals[i];
            const struct gs_trace_pod *pod = &pods[arrival->pod];
            double gap = (double)(arrival->at_ms - (i ? arrival[-1].at_ms : 0));
            assert_true(arrival->lasts_ms == stays[arrival->pod].lasts_s * 1000 ||
                        (stays[arrival->pod].lasts_s > 8 && arrival->lasts_ms == 8000));
            work += (double)(pod->gpus * pod->gpu_milli) * (double)arrival->lasts_ms;
            gaps += gap;
            squares += gap * gap;
        }
        double offered = 100 * work / (13000.0 * 100000000.0), count = workload.count;
        assert_true(offered > 0.98 * loads[l] && offered < 1.02 * loads[l]);
        /* exponential: the mean of the squares is twice the square of the mean */
        double ratio = squares / count / (gaps / count * (gaps / count));
        assert_true(ratio > 1.95 && ratio < 2.05);
        gs_timed_workload_release(&workload);
    }
}

static void what_is_cut_and_left_out_is_told(void **state)
{
    struct gs_timed_draw draw = {.load_pct = 50, .cut_s = 6, .measured_s = 1000, .seed = 1};
    struct gs_timed_workload workload = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_timed_draw(&trace, &draw, &workload, &err), 0);
    assert_int_equal(workload.rows, 11);    /* p11 has not ended */
    assert_int_equal(workload.too_big, 3);  /* p8: CPU, p9: nine GPUs, p10: model C */
    assert_int_equal(workload.cut_rows, 2); /* p1 and p3 */
    /* 470×4 + 1000×7 + 2000×9 + 100×3 + 810×5 + 8000×3 + 1000×6, less 1000×1 + 2000×3 */
    assert_true(near(workload.cut_pct, 100 * 7000.0 / 61230));
    for (uint32_t i = 0; i < workload.count; i++)
        assert_true(workload.arrivals[i].pod < 8 && workload.arrivals[i].lasts_ms <= 6000);
    gs_timed_workload_release(&workload);
}

static void impossible_draws_are_refused(void **state)
{
    static struct gs_trace_node no_gpus[] = {{"n", 16000, 64000, 0, ""}};
    static const struct gs_trace without_gpus = {
        .nodes = no_gpus, .pods = pods, .stays = stays, .node_count = 1, .pod_count = 12};
    static const struct gs_trace without_times = {
        .nodes = nodes, .pods = pods, .node_count = 4, .pod_count = 12};
    static const struct {
        const char *row;
        const struct gs_trace *trace;
        struct gs_timed_draw draw;
        enum gs_code code;
    } rows[] = {
        {"no load", &trace, {0, 10, 0, 10, 1}, GS_EINVAL},
        {"above the ceiling", &trace, {GS_TIMED_LOAD_MAX_PCT + 1, 10, 0, 10, 1}, GS_EINVAL},
        {"cut to nothing", &trace, {50, 0, 0, 10, 1}, GS_EINVAL},
        {"nothing is measured", &trace, {50, 10, 10, 0, 1}, GS_EINVAL},
        {"a negative warm-up", &trace, {50, 10, -1, 10, 1}, GS_EINVAL},
        {"for ever", &trace, {50, 10, 0, INT64_MAX, 1}, GS_EINVAL},
        {"no GPUs", &without_gpus, {50, 10, 0, 10, 1}, GS_EINVAL},
        {"nobody says how long", &without_times, {50, 10, 0, 10, 1}, GS_EINVAL},
        {"too many arrivals", &trace, {1000, 1, 0, (int64_t)1 << 32, 1}, GS_ETOOBIG},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_timed_workload workload = {.count = 4711};
        struct gs_error err = {0};
        row_equal(r->row, gs_timed_draw(r->trace, &r->draw, &workload, &err), -1);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, workload.count, 4711);
        row_true(r->row, !workload.arrivals && !workload.rank);
    }
}

/* ---- all policies ---- */

static void every_policy_gives_the_same_twice_and_the_load_when_it_is_small(void **state)
{
    static const char *const names[] = {"binpack", "spread",  "fgd",     "rollout", "bestfit",
                                        "packing", "dotprod", "cluster", "random",  "orig"};
    struct gs_generate_spec shape = {.nodes = 12, .load_pct = 300, .timed = true, .seed = 3};
    struct gs_timed_draw draw = {
        .load_pct = 90, .cut_s = HOUR_S, .warmup_s = 6 * HOUR_S, .measured_s = DAY_S, .seed = 11};
    struct gs_trace made = {0};
    struct gs_timed_workload workload = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_generate(&shape, &made, &err), 0);
    assert_int_equal(gs_timed_draw(&made, &draw, &workload, &err), 0);
    for (size_t i = 0; i < GS_COUNT_OF(names); i++) {
        struct gs_timed_spec spec = {.replay = {.policy = gs_replay_policy_find(names[i]),
                                                .clock = gs_clock_system(),
                                                .learn = i % 2,
                                                .seed = 5}};
        struct gs_timed_result once, twice;
        assert_int_equal(gs_timed_replay(&made, &workload, &spec, &once, &err), 0);
        assert_int_equal(gs_timed_replay(&made, &workload, &spec, &twice, &err), 0);
        assert_memory_equal(&once, &twice, sizeof(once));
        assert_true(once.allocated_pct > 50 && once.allocated_pct < 100);
        assert_true(once.allocated_pct + once.lost_pct <= 100 + 1e-9);
    }
    gs_timed_workload_release(&workload);
    gs_trace_release(&made);
}

static void nodes_of_one_name_are_refused(void **state)
{
    struct gs_trace_node twins[] = {{"n", 16000, 64000, 8, "A"}, {"n", 16000, 64000, 8, "A"}};
    struct gs_trace twice = {
        .nodes = twins, .pods = pods, .stays = stays, .node_count = 2, .pod_count = 12};
    uint32_t rank[] = {0, 1};
    struct gs_timed_workload workload = {.rank = rank, .until_ms = 1};
    struct gs_timed_spec spec = {
        .replay = {.policy = gs_replay_policy_find("fgd"), .clock = gs_clock_system()}};
    struct gs_timed_result result = {.longest_queue = 4711};
    struct gs_error err = {0};
    assert_int_equal(gs_timed_replay(&twice, &workload, &spec, &result, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_int_equal(result.longest_queue, 4711);
}

/* ---- fewer nodes ---- */

static void a_sample_has_its_share_of_every_kind(void **state)
{
    static const struct {
        const char *row;
        uint32_t wanted, taken;
        const char *names;
    } rows[] = {
        {"half", 5, 5, "a0 a1 a2 b0 c0 "},
        {"one: of the kind that most are of", 1, 1, "a0 "},
        {"all", 10, 10, "a0 a1 a2 a3 a4 a5 b0 b1 c0 c1 "},
        {"more than there are", 11, 10, "a0 a1 a2 a3 a4 a5 b0 b1 c0 c1 "},
    };
    static struct gs_trace_node mixed[] = {
        {"a0", 1, 1, 1, "A"}, {"b1", 1, 1, 1, "B"}, {"a5", 1, 1, 1, "A"}, {"c1", 2, 1, 1, "A"},
        {"a1", 1, 1, 1, "A"}, {"a2", 1, 1, 1, "A"}, {"b0", 1, 1, 1, "B"}, {"c0", 2, 1, 1, "A"},
        {"a3", 1, 1, 1, "A"}, {"a4", 1, 1, 1, "A"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_trace sampled = {.nodes = mixed, .node_count = 10};
        struct gs_error err = {0};
        char names[128] = "";
        row_equal(r->row, gs_trace_sample_nodes(&sampled, r->wanted, &err), 0);
        row_equal(r->row, sampled.node_count, r->taken);
        /* in any order of the kinds */
        for (const char *at = r->names; *at; at += 3) {
            for (uint32_t i = 0; i < sampled.node_count; i++) {
                if (strncmp(sampled.nodes[i].name, at, 2) == 0)
                    strncat(names, at, 3);
            }
        }
        row_text(r->row, names, r->names);
        gs_trace_release(&sampled);
    }
    struct gs_trace none = {.nodes = mixed, .node_count = 10};
    struct gs_error err = {0};
    assert_int_equal(gs_trace_sample_nodes(&none, 0, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_model_starts_the_same_pods_at_the_same_time),
        cmocka_unit_test(a_pod_is_tried_again_when_one_has_left_and_its_pause_is_over),
        cmocka_unit_test(the_hours_moves_make_room_for_who_waits),
        cmocka_unit_test(arrivals_are_the_same_everywhere),
        cmocka_unit_test(what_arrives_comes_to_the_load),
        cmocka_unit_test(what_is_cut_and_left_out_is_told),
        cmocka_unit_test(impossible_draws_are_refused),
        cmocka_unit_test(every_policy_gives_the_same_twice_and_the_load_when_it_is_small),
        cmocka_unit_test(nodes_of_one_name_are_refused),
        cmocka_unit_test(a_sample_has_its_share_of_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
