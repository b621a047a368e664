/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"
#include "rows.h"

#include "gpushare/core/eviction.h"

/*
 * A node in words: GPU sizes as views.h reads them; claims "uid@gpu,gpu:units!priority" apart by
 * blanks, with "~" for one that is being deleted, units as "16c60" with compute in percent; what is
 * asked, what kube-scheduler proposes, and which pods must be added ("-" none, "drop" when the node
 * is of no use).
 */
static const struct {
    const char *row;
    const char *gpus;
    const char *claims;
    uint32_t units, gpu_count;
    int32_t priority;
    const char *victims;
    const char *added;
    uint32_t cores_pct;
} rows[] = {
    {"it fits as it is", "16", "a@0:8!0", 8, 1, 10, "", "-"},
    {"the proposed victim suffices", "16", "a@0:16!0", 8, 1, 10, "a", "-"},
    {"nothing proposed, one is needed", "16 16", "a@0:10!0 b@1:10!0", 8, 1, 10, "", "a"},
    {"the wrong GPU's victim proposed", "16 16", "a@0:4!0 b@0:12!0 c@1:16!5", 8, 1, 10, "c", "-"},
    {"the proposal frees too little", "16", "a@0:4!0 b@0:12!0", 16, 1, 10, "a", "b"},
    {"lowest priority goes", "16 16", "a@0:16!5 b@1:16!1", 8, 1, 10, "", "b"},
    {"fewest pods among equals", "16 16", "a@0:8!1 b@0:8!1 c@1:16!1", 16, 1, 10, "", "c"},
    {"one small pod is enough", "16", "a@0:8!1 b@0:4!1 c@0:4!1", 4, 1, 10, "", "a"},
    {"none that is not needed", "16", "a@0:4!1 b@0:8!2 c@0:4!3", 12, 1, 10, "", "ab"},
    {"equals stay", "16", "a@0:16!10", 8, 1, 10, "", "drop"},
    {"higher ones stay", "16", "a@0:16!11", 8, 1, 10, "", "drop"},
    {"larger than the GPU", "16", "a@0:16!0", 17, 1, 10, "", "drop"},
    {"an unusable GPU is no use", "16:0x 16", "a@1:16!10", 8, 1, 10, "", "drop"},
    {"unknown victims count for nothing", "16", "a@0:16!0", 8, 1, 10, "stranger", "a"},
    {"proposed ones of higher priority are not ours to judge", "16", "a@0:16!99", 8, 1, 10, "a",
     "-"},
    {"two GPUs asked", "16 16 16", "a@0:16!1 b@1:16!2 c@2:16!3", 8, 2, 10, "", "ab"},
    {"two GPUs, one is free", "16 16 16", "a@0:16!2 b@1:16!1", 8, 2, 10, "", "b"},
    {"a pod on two GPUs frees both", "16 16", "a@0,1:16!1", 16, 2, 10, "", "a"},
    {"two GPUs, one cannot be cleared", "16 16", "a@0:16!1 b@1:16!10", 8, 2, 10, "", "drop"},
    {"an unplaced claim counts everywhere", "16 16", "a@:16!1", 16, 1, 10, "", "a"},
    {"overfull", "16", "a@0:16!1 b@0:16!2", 16, 1, 10, "", "ab"},
    {"one on its way out goes before a less important one", "16 16", "a@0:16!1 b@1:16!5~", 8, 1, 10,
     "", "b"},
    {"one on its way out goes before others of its GPU", "16", "a@0:8!1 b@0:8!5~", 8, 1, 10, "",
     "b"},
    {"equals on their way out are not ours to evict", "16", "a@0:16!10~", 8, 1, 10, "", "drop"},
    {"compute is missing, memory is not", "16", "a@0:4c60!1", 8, 1, 10, "", "a", 50},
    {"compute is left", "16", "a@0:4c60!1", 8, 1, 10, "", "-", 40},
    {"only who has the compute goes", "16", "a@0:6!1 b@0:2c60!1", 8, 1, 10, "", "b", 50},
    {"the GPU where least goes", "16 16", "a@0:4c40!1 b@0:4c40!1 c@1:4c60!1", 8, 1, 10, "", "c",
     70},
    {"the compute of equals stays", "16", "a@0:4c60!10", 8, 1, 10, "", "drop", 50},
    {"compute of one on its way out", "16", "a@0:4c60!1 b@0:4c40!5~", 8, 1, 10, "", "b", 40},
};

/* "a@0,1:16!5" */
static void add_claim(struct gs_ledger *ledger, const char *text)
{
    char uid[16] = "";
    size_t len = strcspn(text, "@");
    memcpy(uid, text, len);
    struct gs_claim claim = {.uid = uid, .ns = "default", .name = uid, .node = "n"};
    const char *at = text + len + 1;
    for (; *at != ':'; at++) {
        if (*at != ',')
            claim.gpus |= GS_GPU_BIT(*at - '0');
    }
    for (at++; *at >= '0' && *at <= '9'; at++)
        claim.units = claim.units * 10 + (uint32_t)(*at - '0');
    for (at += *at == 'c'; *at != '!'; at++)
        claim.cores_pct = claim.cores_pct * 10 + (uint32_t)(*at - '0');
    for (at++; *at >= '0' && *at <= '9'; at++)
        claim.priority = claim.priority * 10 + (*at - '0');
    claim.leaving = *at == '~';
    test_set_claim(ledger, claim);
}

static void add_claims(struct gs_ledger *ledger, const char *text)
{
    for (; *text; text += strcspn(text, " "), text += *text == ' ')
        add_claim(ledger, text);
}

static int by_letter(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* One letter per added pod, sorted. */
static void plan_beside(const struct gs_ledger *ledger, const struct gs_ask *ask,
                        const char *victim, struct gs_eviction_budgets *budgets, char out[32])
{
    struct gs_arena arena = {0};
    const char *const *added = NULL;
    size_t count = 0;
    const char *victims[] = {victim};
    enum gs_eviction result = gs_plan_eviction(ledger, gs_ledger_view(ledger, "n"), ask, victims,
                                               victim[0] ? 1 : 0, budgets, &arena, &added, &count);
    snprintf(out, 32, "%s", result == GS_EVICTION_FITS ? "-" : "drop");
    for (size_t i = 0; i < count; i++)
        out[i] = added[i][0];
    if (count) {
        out[count] = '\0';
        qsort(out, count, 1, by_letter);
    }
    gs_arena_release(&arena);
}

static void plan_in_words(const struct gs_ledger *ledger, const struct gs_ask *ask,
                          const char *victim, char out[32])
{
    plan_beside(ledger, ask, victim, NULL, out);
}

static void added_victims_are_those_that_are_needed(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ledger *ledger = gs_ledger_new();
        char words[32];
        test_set_node(ledger, "n", r->gpus);
        add_claims(ledger, r->claims);
        const struct gs_ask ask = {.units = r->units,
                                   .gpu_count = r->gpu_count,
                                   .cores_pct = r->cores_pct,
                                   .priority = r->priority,
                                   .uid = "p"};
        plan_in_words(ledger, &ask, r->victims, words);
        row_text(r->row, words, r->added);
        gs_ledger_free(ledger);
    }
}

static void nominated_pods_of_higher_priority_keep_their_place(void **state)
{
    struct gs_ledger *ledger = gs_ledger_new();
    struct gs_error err = {0};
    char words[32];
    const struct gs_hold hold = {{.uid = "v", .units = 12, .gpu_count = 1, .priority = 20}, "n"};
    const struct gs_ask ask = {.units = 8, .gpu_count = 1, .priority = 10, .uid = "p"};
    test_set_node(ledger, "n", "16");
    add_claims(ledger, "a@0:16!1");
    plan_in_words(ledger, &ask, "", words);
    assert_string_equal(words, "a");
    assert_int_equal(gs_ledger_hold(ledger, &hold, &err), 0);
    plan_in_words(ledger, &ask, "", words);
    assert_string_equal(words, "drop");
    gs_ledger_free(ledger);
}

/* Beside a pod of priority 20 that waits here, for 16 units if not said otherwise: who asks for 16
 * more. */
static void nominated_pods_are_seated_in_the_plan_too(void **state)
{
    static const struct {
        const char *row, *gpus, *claims, *added;
        uint32_t held, held_cores_pct, units;
    } beside[] = {
        {"its victim is named again, another one is added", "16 16", "a@0:16!1~ b@1:16!1", "ab"},
        {"both must find a place", "16 16", "a@0:16!1 b@1:16!1", "ab"},
        {"there is one place for two", "16 16", "a@0:16!1 b@1:16!99", "drop"},
        {"there is a third GPU", "16 16 16", "a@0:16!1~ b@1:16!5 c@2:16!2", "ac"},
        {"the compute that it waits for comes free", "16 16", "a@0:4c60!1~ b@1:16!1", "b", 8, 60,
         12},
    };
    GS_FOR_EACH_ROW (r, beside) {
        struct gs_ledger *ledger = gs_ledger_new();
        char words[32];
        const struct gs_hold hold = {{.uid = "v",
                                      .units = r->held ? r->held : 16,
                                      .cores_pct = r->held_cores_pct,
                                      .gpu_count = 1,
                                      .priority = 20},
                                     "n"};
        const struct gs_ask ask = {
            .units = r->units ? r->units : 16, .gpu_count = 1, .priority = 10, .uid = "p"};
        test_set_node(ledger, "n", r->gpus);
        add_claims(ledger, r->claims);
        assert_int_equal(gs_ledger_hold(ledger, &hold, NULL), 0);
        plan_in_words(ledger, &ask, "", words);
        row_text(r->row, words, r->added);
        gs_ledger_free(ledger);
    }
}

/* Budgets "abc:1" apart by blanks: who falls under it, and how many may go. */
struct budgets_in_words {
    struct gs_eviction_budgets plan;
    const char *words;
};

static uint64_t falls_under(struct gs_eviction_budgets *budgets, const struct gs_claim *claim)
{
    const char *at = ((struct budgets_in_words *)budgets)->words;
    uint64_t bits = 0;
    for (uint32_t i = 0; *at; i++, at += strcspn(at, " "), at += *at == ' ') {
        const char *colon = strchr(at, ':');
        budgets->allowed[i] = atoi(colon + 1);
        bits |= memchr(at, claim->uid[0], (size_t)(colon - at)) ? GS_GPU_BIT(i) : 0;
    }
    return bits;
}

/* Of a pod of priority 10. */
static void budgets_are_violated_last(void **state)
{
    static const struct {
        const char *row, *gpus, *claims;
        uint32_t units, gpu_count;
        const char *victims, *budgets, *added;
        uint32_t violations;
    } beside[] = {
        {"a budget outweighs priority", "16 16", "a@0:16!1 b@1:16!5", 8, 1, "", "a:0", "b", 0},
        {"... and number", "16 16", "a@0:8!1 b@0:8!1 c@1:16!1", 16, 1, "", "c:0", "ab", 0},
        {"there is nobody else", "16", "a@0:16!1", 8, 1, "", "a:0", "a", 1},
        {"one may go", "16 16", "a@0:16!1 b@1:16!5", 8, 1, "", "ab:1", "a", 0},
        {"one of two may go", "16", "a@0:8!1 b@0:8!2", 16, 1, "", "ab:1", "ab", 1},
        {"both may go", "16", "a@0:8!1 b@0:8!2", 16, 1, "", "ab:2", "ab", 0},
        {"two budgets of one pod", "16", "a@0:8!1 b@0:8!2", 16, 1, "", "a:5 ab:1", "ab", 1},
        {"one pod is one violation", "16", "a@0:16!1", 16, 1, "", "a:0 a:0", "a", 1},
        {"who violates is spared first", "16", "a@0:8!1 b@0:8!5", 8, 1, "", "a:0", "b", 0},
        {"the proposed one takes its budget before", "16", "a@0:8!1 b@0:8!5", 16, 1, "a", "ab:1",
         "b", 1},
        {"the proposed one's violation is not ours to count", "16", "a@0:8!1 b@0:8!5", 16, 1, "a",
         "a:0", "b", 0},
        {"one on its way out violates nothing", "16", "a@0:16!1~", 8, 1, "", "a:0", "a", 0},
        {"two GPUs", "16 16 16", "a@0:16!1 b@1:16!1 c@2:16!5", 8, 2, "", "a:0", "bc", 0},
        {"it fits as it is", "16", "a@0:8!1", 8, 1, "", "a:0", "-", 0},
        {"it never fits", "16", "a@0:8!99", 16, 1, "", "a:0", "drop", 0},
    };
    GS_FOR_EACH_ROW (r, beside) {
        struct gs_ledger *ledger = gs_ledger_new();
        struct budgets_in_words budgets = {{.falls = falls_under, .violations = 77}, r->budgets};
        const struct gs_ask ask = {
            .units = r->units, .gpu_count = r->gpu_count, .priority = 10, .uid = "p"};
        char words[32];
        test_set_node(ledger, "n", r->gpus);
        add_claims(ledger, r->claims);
        plan_beside(ledger, &ask, r->victims, &budgets.plan, words);
        row_text(r->row, words, r->added);
        row_equal(r->row, budgets.plan.violations, r->violations);
        gs_ledger_free(ledger);
    }
}

/* kube-scheduler compares nodes by the first victim, which should be the most important one. */
static void the_most_important_victim_is_named_first(void **state)
{
    struct gs_ledger *ledger = gs_ledger_new();
    struct gs_arena arena = {0};
    const char *const *added = NULL;
    size_t count = 0;
    const struct gs_ask ask = {.units = 16, .gpu_count = 1, .priority = 10, .uid = "p"};
    test_set_node(ledger, "n", "16");
    add_claims(ledger, "a@0:4!1 b@0:8!7 c@0:4!3");
    assert_int_equal(gs_plan_eviction(ledger, gs_ledger_view(ledger, "n"), &ask, NULL, 0, NULL,
                                      &arena, &added, &count),
                     GS_EVICTION_FITS);
    assert_int_equal(count, 3);
    assert_string_equal(added[0], "b");
    assert_string_equal(added[1], "c");
    assert_string_equal(added[2], "a");
    gs_arena_release(&arena);
    gs_ledger_free(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_victims_are_those_that_are_needed),
        cmocka_unit_test(nominated_pods_of_higher_priority_keep_their_place),
        cmocka_unit_test(nominated_pods_are_seated_in_the_plan_too),
        cmocka_unit_test(budgets_are_violated_last),
        cmocka_unit_test(the_most_important_victim_is_named_first),
    };
    return GS_RUN(tests);
}
