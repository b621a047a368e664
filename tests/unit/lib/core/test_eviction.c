/* SPDX-License-Identifier: Apache-2.0 */
#include "ledgers.h"
#include "rows.h"

#include "gpushare/core/eviction.h"

/*
 * A node in words: GPU sizes as views.h reads them; claims "uid@gpu,gpu:units!priority" apart by
 * blanks, with "~" for one that is being deleted, units as "16c60" with compute in percent. What a
 * pod of priority 10 asks, "16", "16x2" over two GPUs, "4c50" with compute; what kube-scheduler
 * proposes; and which pods must be added, the most important one first, as kube-scheduler compares
 * nodes by it ("-" none, "drop" when the node is of no use). Beside it: what a pod of priority 20
 * that is nominated here asks; budgets "abc:1", who falls under each and how many may go, and how
 * many violations are counted.
 */
static const struct {
    const char *row, *gpus, *claims, *asks, *proposed, *added;
    const char *nominated, *budgets;
    uint32_t violations;
} rows[] = {
    {"it fits as it is", "16", "a@0:8!0", "8", "", "-"},
    {"the proposed victim suffices", "16", "a@0:16!0", "8", "a", "-"},
    {"nothing proposed, one is needed", "16 16", "a@0:10!0 b@1:10!0", "8", "", "a"},
    {"the wrong GPU's victim proposed", "16 16", "a@0:4!0 b@0:12!0 c@1:16!5", "8", "c", "-"},
    {"the proposal frees too little", "16", "a@0:4!0 b@0:12!0", "16", "a", "b"},
    {"lowest priority goes", "16 16", "a@0:16!5 b@1:16!1", "8", "", "b"},
    {"fewest pods among equals", "16 16", "a@0:8!1 b@0:8!1 c@1:16!1", "16", "", "c"},
    {"one small pod is enough", "16", "a@0:8!1 b@0:4!1 c@0:4!1", "4", "", "a"},
    {"none that is not needed", "16", "a@0:4!1 b@0:8!2 c@0:4!3", "12", "", "ba"},
    {"equals stay", "16", "a@0:16!10", "8", "", "drop"},
    {"higher ones stay", "16", "a@0:16!11", "8", "", "drop"},
    {"larger than the GPU", "16", "a@0:16!0", "17", "", "drop"},
    {"an unusable GPU is no use", "16:0x 16", "a@1:16!10", "8", "", "drop"},
    {"unknown victims count for nothing", "16", "a@0:16!0", "8", "stranger", "a"},
    {"proposed ones of higher priority are not ours to judge", "16", "a@0:16!99", "8", "a", "-"},
    {"two GPUs asked", "16 16 16", "a@0:16!1 b@1:16!2 c@2:16!3", "8x2", "", "ba"},
    {"two GPUs, one is free", "16 16 16", "a@0:16!2 b@1:16!1", "8x2", "", "b"},
    {"a pod on two GPUs frees both", "16 16", "a@0,1:16!1", "16x2", "", "a"},
    {"two GPUs, one cannot be cleared", "16 16", "a@0:16!1 b@1:16!10", "8x2", "", "drop"},
    {"an unplaced claim counts everywhere", "16 16", "a@:16!1", "16", "", "a"},
    {"overfull", "16", "a@0:16!1 b@0:16!2", "16", "", "ba"},
    {"one on its way out goes before a less important one", "16 16", "a@0:16!1 b@1:16!5~", "8", "",
     "b"},
    {"one on its way out goes before others of its GPU", "16", "a@0:8!1 b@0:8!5~", "8", "", "b"},
    {"equals on their way out are not ours to evict", "16", "a@0:16!10~", "8", "", "drop"},
    {"compute is missing, memory is not", "16", "a@0:4c60!1", "8c50", "", "a"},
    {"compute is left", "16", "a@0:4c60!1", "8c40", "", "-"},
    {"only who has the compute goes", "16", "a@0:6!1 b@0:2c60!1", "8c50", "", "b"},
    {"the GPU where least goes", "16 16", "a@0:4c40!1 b@0:4c40!1 c@1:4c60!1", "8c70", "", "c"},
    {"the compute of equals stays", "16", "a@0:4c60!10", "8c50", "", "drop"},
    {"compute of one on its way out", "16", "a@0:4c60!1 b@0:4c40!5~", "8c40", "", "b"},
    {"nominated pods of higher priority keep their place", "16", "a@0:16!1", "8", "", "drop", "12"},
    {"its victim is named again, another one is added", "16 16", "a@0:16!1~ b@1:16!1", "16", "",
     "ba", "16"},
    {"both must find a place", "16 16", "a@0:16!1 b@1:16!1", "16", "", "ba", "16"},
    {"there is one place for two", "16 16", "a@0:16!1 b@1:16!99", "16", "", "drop", "16"},
    {"there is a third GPU", "16 16 16", "a@0:16!1~ b@1:16!5 c@2:16!2", "16", "", "ca", "16"},
    {"the compute that it waits for comes free", "16 16", "a@0:4c60!1~ b@1:16!1", "12", "", "b",
     "8c60"},
    {"a budget outweighs priority", "16 16", "a@0:16!1 b@1:16!5", "8", "", "b", NULL, "a:0", 0},
    {"... and number", "16 16", "a@0:8!1 b@0:8!1 c@1:16!1", "16", "", "ba", NULL, "c:0", 0},
    {"one may go", "16 16", "a@0:16!1 b@1:16!5", "8", "", "a", NULL, "ab:1", 0},
    {"one of two may go", "16", "a@0:8!1 b@0:8!2", "16", "", "ba", NULL, "ab:1", 1},
    {"both may go", "16", "a@0:8!1 b@0:8!2", "16", "", "ba", NULL, "ab:2", 0},
    {"two budgets of one pod", "16", "a@0:8!1 b@0:8!2", "16", "", "ba", NULL, "a:5 ab:1", 1},
    {"one pod is one violation", "16", "a@0:16!1", "16", "", "a", NULL, "a:0 a:0", 1},
    {"who violates is spared first", "16", "a@0:8!1 b@0:8!5", "8", "", "b", NULL, "a:0", 0},
    {"the proposed one takes its budget before", "16", "a@0:8!1 b@0:8!5", "16", "a", "b", NULL,
     "ab:1", 1},
    {"the proposed one's violation is not ours to count", "16", "a@0:8!1 b@0:8!5", "16", "a", "b",
     NULL, "a:0", 0},
    {"a proposed one on its way out takes no budget", "16", "a@0:8!1~ b@0:8!5", "16", "a", "b",
     NULL, "ab:1", 0},
    {"one on its way out violates nothing", "16", "a@0:16!1~", "8", "", "a", NULL, "a:0", 0},
    {"two GPUs", "16 16 16", "a@0:16!1 b@1:16!1 c@2:16!5", "8x2", "", "cb", NULL, "a:0", 0},
    {"by priority", "16", "a@0:4!1 b@0:8!7 c@0:4!3", "16", "", "bca"},
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

/* "16x2c50" */
static struct gs_ask ask_of(const char *text, const char *uid, int32_t priority)
{
    struct gs_ask ask = {.gpu_count = 1, .priority = priority, .uid = uid};
    ask.units = test_number(&text);
    if (*text == 'x') {
        text++;
        ask.gpu_count = test_number(&text);
    }
    if (*text == 'c') {
        text++;
        ask.cores_pct = test_number(&text);
    }
    return ask;
}

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

static void added_victims_are_those_that_are_needed(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_ledger *ledger = gs_ledger_new();
        struct gs_arena arena = {0};
        struct budgets_in_words budgets = {{.falls = falls_under, .violations = 77}, r->budgets};
        const struct gs_ask ask = ask_of(r->asks, "p", 10);
        const char *const *added = NULL;
        char words[32];
        size_t count = 0;
        test_set_node(ledger, "n", r->gpus);
        add_claims(ledger, r->claims);
        if (r->nominated) {
            const struct gs_hold hold = {ask_of(r->nominated, "v", 20), "n"};
            row_equal(r->row, gs_ledger_hold(ledger, &hold, NULL), 0);
        }
        const enum gs_eviction result = gs_plan_eviction(
            ledger, gs_ledger_view(ledger, "n"), &ask, &r->proposed, r->proposed[0] != '\0',
            r->budgets ? &budgets.plan : NULL, &arena, &added, &count);
        snprintf(words, sizeof(words), "%s", result == GS_EVICTION_FITS ? "-" : "drop");
        for (size_t i = 0; i < count; i++)
            snprintf(words + i, sizeof(words) - i, "%s", added[i]);
        row_text(r->row, words, r->added);
        row_equal(r->row, budgets.plan.violations, r->budgets ? r->violations : 77);
        gs_arena_release(&arena);
        gs_ledger_free(ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(added_victims_are_those_that_are_needed)};
    return GS_RUN(tests);
}
