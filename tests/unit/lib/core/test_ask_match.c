/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that are matched ahead say what their texts say, and cost no more on many GPUs. */
#include "compared.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/core/placement.h"
#include "ledgers.h"

static struct gs_ledger *ledger;

static int setup(void **state)
{
    ledger = gs_ledger_new();
    assert_non_null(ledger);
    return 0;
}

static int teardown(void **state)
{
    gs_ledger_free(ledger);
    return 0;
}

/* A node whose GPUs have these models, by turns, and UUIDs "GPU-<node>-<index>". */
static void add_node(const char *name, const char *const *models, uint32_t count)
{
    static struct test_node t;
    struct gs_error err = {0};
    struct gs_node *node = test_node_init(&t, name, "80 80 80 80 80 80 80 80");
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        snprintf(node->gpus[i].model, sizeof(node->gpus[i].model), "%s", models[i % count]);
        snprintf(node->gpus[i].uuid, sizeof(node->gpus[i].uuid), "GPU-%s-%u", name, i);
    }
    assert_int_equal(gs_ledger_set_node(ledger, node, &err), 0);
}

static struct gs_ask ask_for(const char *model, const char *deny, const char *uuid,
                             const char *uuid_deny)
{
    return (struct gs_ask){.units = 1,
                           .gpu_count = 1,
                           .selects = true,
                           .model = gs_slice_of(model),
                           .model_deny = gs_slice_of(deny),
                           .uuid = gs_slice_of(uuid),
                           .uuid_deny = gs_slice_of(uuid_deny)};
}

static void a_match_says_what_the_texts_say(void **state)
{
    static const char *const models[] = {"NVIDIA A100-SXM4-80GB", "Tesla T4", ""};
    static const struct {
        const char *row;
        const char *model, *model_deny, *uuid, *uuid_deny;
        gs_gpu_mask allowed; /* of the eight */
    } rows[] = {
        {"one model", "A100", "", "", "", 0x49},
        {"two models", "t4,a100", "", "", "", 0xdb},
        {"a denied one", "", "tesla", "", "", 0x6d},
        {"allowed and denied", "A100,T4", "T4", "", "", 0x49},
        {"no such model", "H100", "", "", "", 0},
        {"a UUID", "", "", "gpu-N-1", "", 0x02},
        {"UUIDs, one denied", "", "", "GPU-n-1 , GPU-n-2", "GPU-n-2", 0x02},
        {"all four", "T4,A100", "SXM", "GPU-n-0,GPU-n-1,GPU-n-4", "GPU-n-4", 0x02},
        {"a UUID of another node", "", "", "GPU-m-1", "", 0},
    };
    add_node("n", models, 3);
    const struct gs_node_view *view = gs_ledger_view(ledger, "n");
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_match match;
        struct gs_ask ask = ask_for(r->model, r->model_deny, r->uuid, r->uuid_deny);
        row_equal(r->row, gs_ask_allowed(&ask, view), r->allowed);
        gs_ask_match(&ask, ledger, &match);
        row_true(r->row, ask.match == &match);
        row_equal(r->row, gs_ask_allowed(&ask, view), r->allowed);
    }
}

static void an_ask_without_lists_is_not_matched(void **state)
{
    struct gs_match match;
    struct gs_ask plain = {.units = 1, .gpu_count = 1};
    struct gs_ask broken = ask_for("a,,b", "", "", "");
    broken.broken = GS_REASON_BAD_MODEL;
    gs_ask_match(&plain, ledger, &match);
    gs_ask_match(&broken, ledger, &match);
    assert_null(plain.match);
    assert_null(broken.match);
}

static void a_model_that_came_after_is_read_as_text(void **state)
{
    static const char *const early[] = {"Tesla T4"}, *const late[] = {"NVIDIA A100", "Tesla T4"};
    struct gs_match match;
    struct gs_ask ask = ask_for("A100", "", "", "");
    add_node("n", early, 1);
    gs_ask_match(&ask, ledger, &match);
    add_node("m", late, 2);
    assert_int_equal(gs_ask_allowed(&ask, gs_ledger_view(ledger, "n")), 0);
    assert_int_equal(gs_ask_allowed(&ask, gs_ledger_view(ledger, "m")), 0x55);
}

/* As many comparisons as an author can bring about: every entry begins as the model does. */
static void the_longest_lists_cost_the_same_on_any_number_of_gpus(void **state)
{
    static const char *const models[] = {"NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"};
    char list[GS_LIST_BYTES_MAX + 1] = "", name[16];
    for (int i = 0; i < GS_LIST_ENTRIES_MAX; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%sn%c", i ? "," : "",
                 'b' + i % 8);
    for (int n = 0; n < 100; n++) {
        snprintf(name, sizeof(name), "n%d", n);
        add_node(name, models, 2);
    }
    struct gs_match match;
    struct gs_ask ask = ask_for("", list, list, list);
    compared = 0;
    gs_ask_match(&ask, ledger, &match);
    assert_true(compared > 0);
    assert_true(compared <= 2UL * GS_LIST_ENTRIES_MAX * GS_MODEL_BYTES);
    compared = 0;
    for (uint32_t slot = 0; slot < gs_ledger_slots(ledger); slot++)
        gs_ask_allowed(&ask, gs_ledger_view_at(ledger, slot));
    assert_int_equal(compared, 0);
}

static void without_a_match_a_node_s_gpus_of_one_model_are_compared_once(void **state)
{
    static const char *const models[] = {"NVIDIA A100"};
    struct gs_ask ask = ask_for("NVIDIA H", "", "", "");
    add_node("n", models, 1);
    compared = 0;
    assert_int_equal(gs_ask_allowed(&ask, gs_ledger_view(ledger, "n")), 0);
    assert_int_equal(compared, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_match_says_what_the_texts_say, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ask_without_lists_is_not_matched, setup, teardown),
        cmocka_unit_test_setup_teardown(a_model_that_came_after_is_read_as_text, setup, teardown),
        cmocka_unit_test_setup_teardown(the_longest_lists_cost_the_same_on_any_number_of_gpus,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            without_a_match_a_node_s_gpus_of_one_model_are_compared_once, setup, teardown),
    };
    return GS_RUN(tests);
}
