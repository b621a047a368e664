/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/splitmix.h"
#include "replay.h"
#include "rows.h"

enum { ARRIVALS_MAX = 64, TEXT_BYTES = 1024 };

/* Three nodes, named in rank order's reverse: rows 0, 1, 2 have ranks 2, 1, 0. */
static struct gs_trace_node nodes[] = {
    {"n0", 16000, 64000, 2, "A"},
    {"n1", 16000, 64000, 1, "B"},
    {"n2", 4000, 64000, 1, "A"},
};
static struct gs_trace_pod pods[] = {
    {"p0", 1000, 1000, 1, 500, ""},    /* half a GPU */
    {"p1", 1000, 1000, 1, 1000, "B"},  /* a GPU of model B */
    {"p2", 8000, 1000, 0, 0, ""},      /* CPU */
    {"p3", 2000, 1000, 2, 1000, ""},   /* two GPUs */
    {"p4", 1000, 63500, 1, 100, ""},   /* memory */
    {"p5", 15000, 1000, 1, 100, "A|B"} /* CPU and a little of a GPU */
};
static struct gs_trace trace = {.nodes = nodes, .pods = pods, .node_count = 3, .pod_count = 6};

struct log {
    char text[TEXT_BYTES];
    size_t len;
};

static void note_arrival(void *ctx, const struct gs_replay_arrival *arrival)
{
    struct log *log = ctx;
    int wrote =
        snprintf(log->text + log->len, TEXT_BYTES - log->len, "%s%u:%lld/%llx", log->len ? " " : "",
                 arrival->pod, (long long)arrival->node, (unsigned long long)arrival->gpus);
    log->len += (size_t)wrote;
}

static int64_t ticking_ns(void *ctx)
{
    return *(int64_t *)ctx += 1000;
}

/* What arrives, where it goes: "pod:node/gpus", gpus in hexadecimal. */
static void arrivals_go_where_the_policy_says(void **state)
{
    static const struct {
        const char *row, *policy;
        uint32_t pods[ARRIVALS_MAX], count;
        const char *placed;
        uint32_t failed;
        uint64_t used;
    } rows[] = {
        {"the tightest GPU, then the first rank",
         "binpack",
         {0, 0, 0},
         3,
         "0:2/1 0:2/1 0:1/1",
         0,
         1500},
        {"the emptiest", "spread", {0, 0, 0}, 3, "0:2/1 0:1/1 0:0/1", 0, 1500},
        {"models are whole names", "binpack", {1, 1}, 2, "1:1/1 1:-1/0", 1, 1000},
        {"a list of models", "binpack", {5, 5, 5}, 3, "5:1/1 5:0/1 5:-1/0", 1, 200},
        {"two GPUs go together", "binpack", {3, 3}, 2, "3:0/3 3:-1/0", 1, 2000},
        {"CPU is counted, of all pods",
         "binpack",
         {2, 2, 2, 2, 2},
         5,
         "2:1/0 2:1/0 2:0/0 2:0/0 2:-1/0",
         1,
         0},
        {"memory is counted", "binpack", {4, 4, 4, 4}, 4, "4:2/1 4:1/1 4:0/1 4:-1/0", 1, 300},
        {"orig: more of what is left", "orig", {2, 0}, 2, "2:1/0 0:0/1", 0, 500},
    };
    static int64_t now;
    const struct gs_clock clock = {ticking_ns, ticking_ns, &now};
    uint32_t rank[] = {2, 1, 0};
    GS_FOR_EACH_ROW (r, rows) {
        struct log log = {0};
        struct gs_replay_spec spec = {.policy = gs_replay_policy_find(r->policy),
                                      .clock = &clock,
                                      .arrival = note_arrival,
                                      .ctx = &log};
        uint32_t order[ARRIVALS_MAX];
        memcpy(order, r->pods, sizeof(order));
        struct gs_trace_sequence sequence = {rank, order, 3, r->count};
        struct gs_replay_result result;
        struct gs_error err = {0};
        row_true(r->row, spec.policy != NULL);
        row_equal(r->row, gs_replay(&trace, &sequence, &spec, &result, &err), 0);
        row_text(r->row, log.text, r->placed);
        row_equal(r->row, result.failed, r->failed);
        row_equal(r->row, result.used_milli, r->used);
        row_equal(r->row, result.capacity_milli, 4000);
        row_equal(r->row, result.mean_ns, 1000);
        row_equal(r->row, result.max_ns, 1000);
    }
}

static void the_curve_is_the_mean_of_a_bucket(void **state)
{
    /* 12.5 % each: to 12 (the half goes to the even side), 25, 38 (37.5), 50. */
    struct gs_replay_spec spec = {.policy = gs_replay_policy_find("binpack"),
                                  .clock = gs_clock_system()};
    uint32_t rank[] = {0, 1, 2}, order[] = {0, 2, 0, 0, 0};
    struct gs_trace_sequence sequence = {rank, order, 3, 5};
    struct gs_replay_result result;
    struct gs_error err = {0};
    assert_int_equal(gs_replay(&trace, &sequence, &spec, &result, &err), 0);
    assert_true(result.curve[12] == 12.5);
    assert_true(result.curve[13] < 0);
    assert_true(result.curve[25] == 25);
    assert_true(result.curve[38] == 37.5);
    assert_true(result.curve[50] == 50);
    assert_true(result.curve[0] < 0 && result.curve[GS_REPLAY_BUCKETS - 1] < 0);
}

/* What the policies are for: in this order where a cluster is full. */
static void rollout_fills_more_than_binpack_than_spread(void **state)
{
    enum { NODES = 60, PODS = 700, NAME_BYTES = 8 };
    static const struct gs_trace_pod kinds[] = {
        {"", 12000, 1000, 0, 0, ""},    {"", 3000, 1000, 1, 810, ""},
        {"", 12000, 1000, 1, 470, ""},  {"", 4000, 1000, 1, 300, ""},
        {"", 11000, 1000, 1, 1000, ""}, {"", 3000, 1000, 1, 1000, ""},
        {"", 16000, 1000, 1, 1000, ""}, {"", 64000, 1000, 8, 1000, ""}};
    static const char *const policies[] = {"rollout", "binpack", "spread"};
    static struct gs_trace_node some[NODES];
    static struct gs_trace_pod drawn[PODS];
    static char names[NODES + PODS][NAME_BYTES];
    struct gs_trace made = {.nodes = some, .pods = drawn, .node_count = NODES, .pod_count = PODS};
    struct gs_trace_sequence sequence = {0};
    struct gs_error err = {0};
    uint64_t random = 4;
    for (int i = 0; i < NODES + PODS; i++)
        snprintf(names[i], NAME_BYTES, "%d", i);
    for (int i = 0; i < NODES; i++)
        some[i] = (struct gs_trace_node){names[i], 96000, 400000, i % 2 ? 8 : 2, "A"};
    for (int i = 0; i < PODS; i++) {
        uint64_t kind = gs_splitmix_below(&random, 40);
        drawn[i] = kinds[kind ? kind % 7 : 7];
        drawn[i].name = names[NODES + i];
    }
    assert_int_equal(gs_replay_sequence(&made, 1, 300, &sequence, &err), 0);
    for (int learn = 0; learn < 2; learn++) {
        uint64_t before = UINT64_MAX;
        for (size_t i = 0; i < GS_COUNT_OF(policies); i++) {
            struct gs_replay_spec spec = {.policy = gs_replay_policy_find(policies[i]),
                                          .clock = gs_clock_system(),
                                          .learn = learn};
            struct gs_replay_result result;
            assert_int_equal(gs_replay(&made, &sequence, &spec, &result, &err), 0);
            if (result.used_milli >= before)
                fail_msg("%s fills %lu", policies[i], (unsigned long)result.used_milli);
            before = result.used_milli;
        }
    }
    gs_trace_sequence_release(&sequence);
}

/* splitmix64 and Fisher-Yates from seed 1, computed apart from this program. */
static void a_drawn_sequence_is_the_same_everywhere(void **state)
{
    static const uint32_t rank[] = {2, 1, 0};
    static const uint32_t order[] = {2, 0, 1, 4, 5, 3, 4, 5, 3, 1, 4, 2, 3, 2, 3};
    struct gs_trace_sequence sequence = {0};
    struct gs_error err = {0};
    assert_int_equal(gs_replay_sequence(&trace, 1, 250, &sequence, &err), 0);
    assert_int_equal(sequence.node_count, 3);
    assert_memory_equal(sequence.rank, rank, sizeof(rank));
    assert_int_equal(sequence.arrivals, GS_COUNT_OF(order));
    assert_memory_equal(sequence.pods, order, sizeof(order));
    gs_trace_sequence_release(&sequence);
}

static void impossible_replays_are_refused(void **state)
{
    struct gs_trace_node twins[] = {{"n", 1, 1, 1, ""}, {"n", 1, 1, 1, ""}};
    struct gs_trace no_gpus = {.nodes = &(struct gs_trace_node){"n", 1, 1, 0, ""},
                               .pods = pods,
                               .node_count = 1,
                               .pod_count = 6};
    struct gs_trace no_pods = {.nodes = nodes, .pods = &pods[2], .node_count = 3, .pod_count = 1};
    struct gs_trace twice = {.nodes = twins, .pods = pods, .node_count = 2, .pod_count = 6};
    struct gs_replay_spec spec = {.policy = gs_replay_policy_find("rollout"),
                                  .clock = gs_clock_system()};
    uint32_t rank[] = {0, 1}, order[] = {0};
    struct gs_trace_sequence drawn = {0}, one = {rank, order, 2, 1};
    struct gs_replay_result result;
    struct gs_error err = {0};
    assert_int_equal(gs_replay_sequence(&no_gpus, 1, 130, &drawn, &err), -1);
    assert_int_equal(gs_replay_sequence(&no_pods, 1, 130, &drawn, &err), -1);
    assert_int_equal(gs_replay_sequence(&trace, 1, GS_REPLAY_BUCKETS, &drawn, &err), -1);
    err = (struct gs_error){0};
    assert_int_equal(gs_replay(&twice, &one, &spec, &result, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_null(gs_replay_policy_find("fgd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrivals_go_where_the_policy_says),
        cmocka_unit_test(the_curve_is_the_mean_of_a_bucket),
        cmocka_unit_test(rollout_fills_more_than_binpack_than_spread),
        cmocka_unit_test(a_drawn_sequence_is_the_same_everywhere),
        cmocka_unit_test(impossible_replays_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
