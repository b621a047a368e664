/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"
#include "item_lists.h"

#define BUDGET(spec, status)                                                                       \
    "{'kind':'PodDisruptionBudgetList','metadata':{'resourceVersion':'7'},'items':[{'metadata':{"  \
    "'name':'b','namespace':'team'},'spec':{" spec "},'status':{" status "}}]}"
#define SELECTOR(selector)                                                                         \
    BUDGET("'minAvailable':1,'selector':{" selector "}", "'disruptionsAllowed':2")
#define EXPRESSION(key, op, values)                                                                \
    SELECTOR("'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]")

/* Of a pod "p" of namespace "team" that is app=web, tier=gpu. As kube-scheduler's
 * filterPodsWithPDBViolation sees it. */
static void covered_is_whom_kube_scheduler_counts(void **state)
{
    static const struct {
        const char *row, *json;
        bool covers;
    } rows[] = {
        {"one of two labels", SELECTOR("'matchLabels':{'app':'web','tier':'cpu'}"), false},
        {"another's label", SELECTOR("'matchLabels':{'app':'db'}"), false},
        {"no selector", BUDGET("'minAvailable':1", ""), false},
        {"null for a selector", BUDGET("'selector':null", ""), false},
        {"an empty selector", SELECTOR(""), false},
        {"In, the last", EXPRESSION("app", "In", "'db','web'"), true},
        {"In, the first", EXPRESSION("app", "In", "'web','db'"), true},
        {"NotIn", EXPRESSION("app", "NotIn", "'db'"), true},
        {"NotIn a label that it has not", EXPRESSION("x", "NotIn", "'db'"), true},
        {"not NotIn", EXPRESSION("app", "NotIn", "'web'"), false},
        {"Exists", EXPRESSION("tier", "Exists", ""), true},
        {"not Exists", EXPRESSION("x", "Exists", ""), false},
        {"DoesNotExist", EXPRESSION("x", "DoesNotExist", ""), true},
        {"label and expression",
         SELECTOR("'matchLabels':{'app':'web'},'matchExpressions':[{'key':'tier','operator':"
                  "'DoesNotExist'}]"),
         false},
        {"its end is counted already",
         BUDGET("'selector':{'matchLabels':{'app':'web'}}",
                "'disruptedPods':{'o':'2026-01-01T00:00:00Z','p':'2026-01-01T00:00:00Z'}"),
         false},
        {"another's end is",
         BUDGET("'selector':{'matchLabels':{'app':'web'}}",
                "'disruptedPods':{'o':'2026-01-01T00:00:00Z'}"),
         true},
    };
    static const struct gs_kv own[] = {{"tier", "gpu"}, {"app", "web"}};
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_budget *all;
        struct gs_error err = {0};
        uint32_t count;
        const struct gs_labels *labels = gs_labels_of(&arena, own, 2);
        row_equal(r->row, budget_list(json_of(r->json), &arena, &all, &count, &err), 0);
        row_equal(r->row, count, 1);
        row_text(r->row, all->ns, "team");
        row_equal(r->row, gs_budget_covers(all, "p", labels), r->covers);
        row_true(r->row, !gs_budget_covers(all, "p", NULL));
    }
}

static void lists_are_read(void **state)
{
    static const struct {
        const char *row, *json, *expected; /* "namespace:allowed " */
        enum gs_code code;
    } rows[] = {
        {"null", "{'items':null,'kind':'x'}", "", GS_OK},
        {"two",
         "{'items':[{'metadata':{'namespace':'a'},'status':{'disruptionsAllowed':3}},{'metadata':{"
         "'namespace':'b'},'spec':null,'status':null}]}",
         "a:3 b:0 ", GS_OK},
        {"an array for an object", "{'items':[[]]}", NULL, GS_EPROTO},
        {"a text for a number", "{'items':[{'status':{'disruptionsAllowed':'3'}}]}", NULL,
         GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        char text[128] = "";
        struct gs_budget *all = NULL;
        struct gs_error err = {0};
        uint32_t count = 0;
        budget_list(json_of(r->json), &arena, &all, &count, &err);
        row_equal(r->row, err.code, r->code);
        for (uint32_t i = 0; i < count; i++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s:%d ", all[i].ns,
                     all[i].allowed);
        row_text(r->row, text, r->expected ? r->expected : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covered_is_whom_kube_scheduler_counts),
        cmocka_unit_test(lists_are_read),
    };
    return GS_RUN(tests);
}
