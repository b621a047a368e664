/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"
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
    uint32_t progress;
};

static void note_arrival(void *ctx, const struct gs_replay_arrival *arrival)
{
    struct log *log = ctx;
    int wrote =
        snprintf(log->text + log->len, TEXT_BYTES - log->len, "%s%u:%lld/%llx", log->len ? " " : "",
                 arrival->pod, (long long)arrival->node, (unsigned long long)arrival->gpus);
    log->len += (size_t)wrote;
}

static void note_progress(void *ctx, uint32_t done, uint32_t arrivals)
{
    struct log *log = ctx;
    assert_int_equal(done, log->progress + 1);
    assert_int_equal(arrivals, 4);
    log->progress = done;
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
        {"bestfit: least of CPU and GPU left", "bestfit", {0, 2}, 2, "0:2/1 2:1/0", 0, 500},
        {"packing: used GPUs first", "packing", {0, 0, 3}, 3, "0:2/1 0:2/1 3:0/3", 0, 3000},
        {"cluster: beside its own kind", "cluster", {0, 0, 0}, 3, "0:2/1 0:2/1 0:1/1", 0, 1500},
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
    assert_true(result.curve[50] == 50 && result.final_pct == 50);
    assert_true(result.curve[0] < 0 && result.curve[GS_REPLAY_BUCKETS - 1] < 0);
}

static void progress_is_told_after_every_arrival(void **state)
{
    struct log log = {0};
    struct gs_replay_spec spec = {.policy = gs_replay_policy_find("orig"),
                                  .clock = gs_clock_system(),
                                  .progress = note_progress,
                                  .ctx = &log};
    uint32_t rank[] = {0, 1, 2}, order[] = {0, 1, 2, 3};
    struct gs_trace_sequence sequence = {rank, order, 3, 4};
    struct gs_replay_result result;
    struct gs_error err = {0};
    assert_int_equal(gs_replay(&trace, &sequence, &spec, &result, &err), 0);
    assert_int_equal(log.progress, 4);
}

/* With a heavy weight kube-scheduler follows the policy, and decides between nodes that are equal
 * for it: binpack's are, so that it is not among them. */
static void kube_scheduler_follows_a_heavy_extender(void **state)
{
    static const char *const policies[] = {"fgd", "rollout"};
    struct gs_trace made = {0};
    struct gs_trace_sequence sequence = {0};
    struct gs_error err = {0};
    struct gs_generate_spec small = {.nodes = 12, .load_pct = 90, .seed = 3};
    assert_int_equal(gs_generate(&small, &made, &err), 0);
    assert_int_equal(gs_replay_sequence(&made, 9, 120, &sequence, &err), 0);
    for (size_t i = 0; i < GS_COUNT_OF(policies); i++) {
        struct gs_replay_spec spec = {.policy = gs_replay_policy_find(policies[i]),
                                      .clock = gs_clock_system()};
        struct gs_replay_result alone, followed, light;
        assert_int_equal(gs_replay(&made, &sequence, &spec, &alone, &err), 0);
        spec.extender_weight = 100;
        spec.all_pods = true;
        assert_int_equal(gs_replay(&made, &sequence, &spec, &followed, &err), 0);
        assert_in_range(followed.used_milli, alone.used_milli - alone.capacity_milli / 50,
                        alone.used_milli + alone.capacity_milli / 50);
        spec.extender_weight = 1;
        spec.all_pods = false;
        assert_int_equal(gs_replay(&made, &sequence, &spec, &light, &err), 0);
        assert_true(light.used_milli <= light.capacity_milli);
    }
    gs_trace_sequence_release(&sequence);
    gs_trace_release(&made);
}

/* What the policies are for: in this order on every cluster that is full. */
static void rollout_fills_more_than_fgd_than_best_fit(void **state)
{
    static const char *const policies[] = {"rollout", "fgd", "bestfit", "random"};
    struct gs_trace made = {0};
    struct gs_trace_sequence sequence = {0};
    struct gs_error err = {0};
    struct gs_generate_spec spec_of_trace = {.nodes = 150, .load_pct = 98, .seed = 4};
    assert_int_equal(gs_generate(&spec_of_trace, &made, &err), 0);
    assert_int_equal(gs_replay_sequence(&made, 1, 130, &sequence, &err), 0);
    for (int learn = 0; learn < 2; learn++) {
        uint64_t before = UINT64_MAX;
        for (size_t i = 0; i < GS_COUNT_OF(policies); i++) {
            struct gs_replay_spec spec = {.policy = gs_replay_policy_find(policies[i]),
                                          .clock = gs_clock_system(),
                                          .learn = learn};
            struct gs_replay_result result;
            assert_int_equal(gs_replay(&made, &sequence, &spec, &result, &err), 0);
            assert_true(result.used_milli < before);
            before = result.used_milli;
        }
    }
    gs_trace_sequence_release(&sequence);
    gs_trace_release(&made);
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

static void impossible_sequences_are_refused(void **state)
{
    struct gs_trace no_gpus = {.nodes = &(struct gs_trace_node){"n", 1, 1, 0, ""},
                               .pods = pods,
                               .node_count = 1,
                               .pod_count = 6};
    struct gs_trace no_pods = {.nodes = nodes, .pods = &pods[2], .node_count = 3, .pod_count = 1};
    struct gs_trace_sequence sequence = {.arrivals = 4711};
    struct gs_error err = {0};
    assert_int_equal(gs_replay_sequence(&no_gpus, 1, 130, &sequence, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    err = (struct gs_error){0};
    assert_int_equal(gs_replay_sequence(&no_pods, 1, 130, &sequence, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    err = (struct gs_error){0};
    assert_int_equal(gs_replay_sequence(&trace, 1, GS_REPLAY_BUCKETS, &sequence, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_int_equal(sequence.arrivals, 4711);
}

static void nodes_of_one_name_are_refused(void **state)
{
    struct gs_trace_node twins[] = {{"n", 1, 1, 1, ""}, {"n", 1, 1, 1, ""}};
    struct gs_trace twice = {.nodes = twins, .pods = pods, .node_count = 2, .pod_count = 6};
    struct gs_replay_spec spec = {.policy = gs_replay_policy_find("fgd"),
                                  .clock = gs_clock_system()};
    uint32_t rank[] = {0, 1}, order[] = {0};
    struct gs_trace_sequence sequence = {rank, order, 2, 1};
    struct gs_replay_result result = {.arrivals = 4711};
    struct gs_error err = {0};
    assert_int_equal(gs_replay(&twice, &sequence, &spec, &result, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_int_equal(result.arrivals, 4711);
}

static void policies_have_the_names_that_are_listed(void **state)
{
    char names[256];
    snprintf(names, sizeof(names), "%s", gs_replay_policy_names());
    int count = 0;
    for (char *rest = names, *name; (name = strsep(&rest, ",")) != NULL; count++) {
        name += strspn(name, " ");
        assert_non_null(gs_replay_policy_find(name));
        assert_string_equal(gs_replay_policy_name(gs_replay_policy_find(name)), name);
    }
    assert_int_equal(count, 10);
    assert_null(gs_replay_policy_find(""));
    assert_null(gs_replay_policy_find("FGD"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrivals_go_where_the_policy_says),
        cmocka_unit_test(the_curve_is_the_mean_of_a_bucket),
        cmocka_unit_test(progress_is_told_after_every_arrival),
        cmocka_unit_test(kube_scheduler_follows_a_heavy_extender),
        cmocka_unit_test(rollout_fills_more_than_fgd_than_best_fit),
        cmocka_unit_test(a_drawn_sequence_is_the_same_everywhere),
        cmocka_unit_test(impossible_sequences_are_refused),
        cmocka_unit_test(nodes_of_one_name_are_refused),
        cmocka_unit_test(policies_have_the_names_that_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
