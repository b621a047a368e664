/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"
#include "timed.h"

enum { HOUR_MS = 3600 * 1000 };

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
static int64_t lasts_s[] = {4, 7, 2, 9, 3, 5, 3, 6, 5, 5, 50, 0};
static struct gs_trace trace = {
    .nodes = nodes, .pods = pods, .lasts_s = lasts_s, .node_count = 4, .pod_count = 12};

static bool near(double a, double b)
{
    double apart = a > b ? a - b : b - a;
    return apart < 1e-9;
}

/* ---- the queue and the measures ---- */

static void note_start(void *ctx, uint32_t number, int64_t at_ms)
{
    ((int64_t *)ctx)[number] = at_ms;
}

enum { NEVER = -1 };

/* Pods on two nodes of models A and B with one GPU each; the run ends after 20 s. */
static void pods_wait_as_in_kube_schedulers_queue(void **state)
{
    enum { PODS = 4, UNTIL_MS = 20000 };
    static struct gs_trace_node two[] = {{"a", 16000, 64000, 1, "A"}, {"b", 16000, 64000, 1, "B"}};
    static struct gs_trace_pod kinds[] = {{"any", 1000, 1000, 1, 1000, ""},
                                          {"a", 1000, 1000, 1, 1000, "A"},
                                          {"half", 1000, 1000, 1, 500, ""},
                                          {"both", 1000, 1000, 2, 1000, ""}};
    static const struct {
        const char *row;
        struct gs_timed_arrival arrivals[PODS];
        int64_t starts_ms[PODS];
        double allocated_ms, lost_ms; /* of one GPU */
        int64_t warmup_ms;
    } rows[] = {
        {"its first pause ends at 1010, the next whole second is 2000",
         {{0, 500, 1}, {10, 5000, 1}},
         {0, 2000},
         5500,
         1500,
         0},
        {"its pause is over", {{0, 1010, 1}, {10, 5000, 1}}, {0, 1010}, 6010, 0, 0},
        {"tried in vain at 10 and 1010: the second pause ends at 3010",
         {{0, 1010, 1}, {9, 1000, 1}, {10, 5000, 1}},
         {0, 1010, 4000},
         7010,
         1990,
         0},
        {"the one that arrived first is tried first",
         {{0, 3000, 1}, {1, 5000, 1}, {2, 1000, 1}},
         {0, 3000, 8000},
         9000,
         0,
         0},
        {"only while the total would do",
         {{0, 4000, 0}, {1000, 9000, 3}},
         {0, NEVER},
         4000,
         16000 * 2,
         0},
        {"the total of its models",
         {{0, 20000, 2}, {0, 20000, 2}, {0, 20000, 1}},
         {0, 0, NEVER},
         20000,
         0,
         0},
        {"not before the warm-up is over",
         {{0, 4000, 0}, {1000, 9000, 3}},
         {0, NEVER},
         0,
         10000 * 2,
         10000},
    };
    uint32_t rank[] = {0, 1};
    struct gs_trace small = {.nodes = two, .pods = kinds, .node_count = 2, .pod_count = 4};
    GS_FOR_EACH_ROW (r, rows) {
        int64_t starts[PODS] = {NEVER, NEVER, NEVER, NEVER};
        struct gs_timed_arrival arrivals[PODS];
        memcpy(arrivals, r->arrivals, sizeof(arrivals));
        struct gs_timed_workload workload = {
            .arrivals = arrivals, .rank = rank, .warmup_ms = r->warmup_ms, .until_ms = UNTIL_MS};
        while (workload.count < PODS && arrivals[workload.count].lasts_ms)
            workload.count++;
        struct gs_timed_spec spec = {.replay = {.policy = gs_replay_policy_find("binpack"),
                                                .clock = gs_clock_system(),
                                                .ctx = starts},
                                     .started = note_start};
        struct gs_timed_result result;
        struct gs_error err = {0};
        row_equal(r->row, gs_timed_replay(&small, &workload, &spec, &result, &err), 0);
        for (uint32_t i = 0; i < workload.count; i++)
            row_equal(r->row, starts[i], r->starts_ms[i]);
        double all_ms = 2 * (double)(UNTIL_MS - r->warmup_ms) / 100;
        row_true(r->row, near(result.allocated_pct, r->allocated_ms / all_ms));
        row_true(r->row, near(result.lost_pct, r->lost_ms / all_ms));
    }
}

/* Those that request a whole node of eight: the second waits seven hours, the third until the end.
 */
static void waits_and_starved_pods_are_counted(void **state)
{
    struct gs_timed_arrival arrivals[] = {
        {0, 7 * HOUR_MS, 6}, {0, 3 * HOUR_MS, 6}, {HOUR_MS, 1000, 6}, {9 * HOUR_MS, 1000, 2}};
    uint32_t rank[] = {0};
    struct gs_trace one = {.nodes = nodes, .pods = pods, .node_count = 1, .pod_count = 12};
    struct gs_timed_workload workload = {
        .arrivals = arrivals, .count = 4, .rank = rank, .until_ms = 10 * HOUR_MS};
    struct gs_timed_spec spec = {
        .replay = {.policy = gs_replay_policy_find("orig"), .clock = gs_clock_system()}};
    struct gs_timed_result result;
    struct gs_error err = {0};
    assert_int_equal(gs_timed_replay(&one, &workload, &spec, &result, &err), 0);
    assert_int_equal(result.whole_node_wait_ms, (0 + 7 + 9) * HOUR_MS / 3);
    assert_int_equal(result.starved, 2);
    spec.moves_per_hour = 1; /* planned with the extender's policies only */
    assert_int_equal(gs_timed_replay(&one, &workload, &spec, &result, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
}

/* ---- moves ---- */

enum { NODES_MAX = 4, STARTS = 8 };

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
        struct gs_trace small = {
            .nodes = some, .pods = kinds, .node_count = r->nodes, .pod_count = 2};
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
    struct gs_trace small = {
        .nodes = nodes, .pods = pods, .lasts_s = lasts_s, .node_count = 4, .pod_count = 2};
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
            int64_t ran_s = lasts_s[arrival->pod] < 8 ? lasts_s[arrival->pod] : 8;
            assert_int_equal(arrival->lasts_ms, ran_s * 1000);
            assert_true(arrival->pod < 8); /* the others fit no node, or have not ended */
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

static void impossible_draws_are_refused(void **state)
{
    static struct gs_trace_node no_gpus[] = {{"n", 16000, 64000, 0, ""}};
    static const struct gs_trace without_gpus = {
        .nodes = no_gpus, .pods = pods, .lasts_s = lasts_s, .node_count = 1, .pod_count = 12};
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
        cmocka_unit_test(pods_wait_as_in_kube_schedulers_queue),
        cmocka_unit_test(waits_and_starved_pods_are_counted),
        cmocka_unit_test(the_hours_moves_make_room_for_who_waits),
        cmocka_unit_test(arrivals_are_the_same_everywhere),
        cmocka_unit_test(what_arrives_comes_to_the_load),
        cmocka_unit_test(impossible_draws_are_refused),
        cmocka_unit_test(a_sample_has_its_share_of_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
