/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/model/eligible.h"

/* One node for all rows. */
static struct gs_kv labels[] = {{"gpu", "a100"}, {"pool", "train"}, {"rank", "-7"}, {"zone", ""}};
static struct gs_taint hard[] = {{"soft", "", "PreferNoSchedule"}, {"team", "x", "NoSchedule"}};
static struct gs_taint leaving[] = {{"gone", "", "NoExecute"}};
static struct gs_taint passing[] = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"},
                                    {"node.kubernetes.io/not-ready", "", "NoExecute"},
                                    {"node.kubernetes.io/unreachable", "", "NoExecute"}};
static const struct gs_node_rules plain = {
    .name = "n1", .labels = labels, .label_count = GS_COUNT_OF(labels)};

static struct gs_node_rules with(struct gs_taint *taints, uint32_t count, bool unschedulable)
{
    struct gs_node_rules node = plain;
    node.taints = taints;
    node.taint_count = count;
    node.unschedulable = unschedulable;
    return node;
}

static void taints_need_a_toleration_that_matches(void **state)
{
    static const char cordon[] = "node.kubernetes.io/unschedulable";
    static const struct {
        const char *row;
        struct gs_toleration toleration;
        enum gs_eligible tainted, leaving, cordoned;
    } rows[] = {
        {"another key",
         {"other", "x", "", GS_OPERATOR_IN},
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_CORDONED},
        {"its value",
         {"team", "x", "", GS_OPERATOR_IN},
         GS_ELIGIBLE,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_CORDONED},
        {"another value",
         {"team", "y", "", GS_OPERATOR_IN},
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_CORDONED},
        {"whatever the value",
         {"team", "", "NoSchedule", GS_OPERATOR_EXISTS},
         GS_ELIGIBLE,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_CORDONED},
        {"another effect",
         {"team", "x", "NoExecute", GS_OPERATOR_IN},
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_CORDONED},
        {"everything", {"", "", "", GS_OPERATOR_EXISTS}, GS_ELIGIBLE, GS_ELIGIBLE, GS_ELIGIBLE},
        {"everything of one effect",
         {"", "", "NoExecute", GS_OPERATOR_EXISTS},
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE,
         GS_ELIGIBLE_NOT_CORDONED},
        {"the cordon",
         {cordon, "", "NoSchedule", GS_OPERATOR_EXISTS},
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE},
        {"an operator that is not known",
         {"team", "7", "", GS_OPERATOR_UNKNOWN},
         GS_ELIGIBLE_UNKNOWN,
         GS_ELIGIBLE_NOT_TAINTED,
         GS_ELIGIBLE_NOT_CORDONED},
    };
    const struct gs_node_rules tainted = with(hard, 2, false), going = with(leaving, 1, false),
                               cordoned = with(NULL, 0, true);
    GS_FOR_EACH_ROW (r, rows) {
        const struct gs_pod_rules pod = {.tolerations = (struct gs_toleration *)&r->toleration,
                                         .toleration_count = 1};
        row_equal(r->row, gs_eligible(&pod, &plain), GS_ELIGIBLE);
        row_equal(r->row, gs_eligible(&pod, &tainted), r->tainted);
        row_true(r->row, gs_find_untolerated(&pod, &tainted) ==
                             (r->tainted == GS_ELIGIBLE_NOT_TAINTED ? &hard[1] : NULL));
        row_equal(r->row, gs_eligible(&pod, &going), r->leaving);
        row_equal(r->row, gs_eligible(&pod, &cordoned), r->cordoned);
    }
    const struct gs_pod_rules none = {0};
    assert_int_equal(gs_eligible(&none, &tainted), GS_ELIGIBLE_NOT_TAINTED);
    assert_int_equal(gs_eligible(&none, &cordoned), GS_ELIGIBLE_NOT_CORDONED);
    const struct gs_node_rules soft = with(hard, 1, false), away = with(passing, 3, false);
    assert_int_equal(gs_eligible(&none, &soft), GS_ELIGIBLE);
    assert_null(gs_find_untolerated(&none, &away));
}

static const char *two[] = {"h100", "a100"}, *other[] = {"h100"}, *seven[] = {"-7"},
                  *eight[] = {"-8"}, *word[] = {"x"}, *name[] = {"n1"};

/* What one requirement answers; no is the verdict where it stands alone. */
static const struct {
    const char *row;
    struct gs_requirement requirement;
    int match; /* 1 yes, 0 no, -1 not known */
} requirements[] = {
    {"In, one of them", {"gpu", two, 2, GS_OPERATOR_IN, false}, 1},
    {"In, none of them", {"gpu", other, 1, GS_OPERATOR_IN, false}, 0},
    {"In, no such label", {"no", two, 2, GS_OPERATOR_IN, false}, 0},
    {"In nothing", {"gpu", NULL, 0, GS_OPERATOR_IN, false}, 0},
    {"NotIn, one of them", {"gpu", two, 2, GS_OPERATOR_NOT_IN, false}, 0},
    {"NotIn, none of them", {"gpu", other, 1, GS_OPERATOR_NOT_IN, false}, 1},
    {"NotIn, no such label", {"no", two, 2, GS_OPERATOR_NOT_IN, false}, 1},
    {"Exists", {"zone", NULL, 0, GS_OPERATOR_EXISTS, false}, 1},
    {"Exists, no such label", {"no", NULL, 0, GS_OPERATOR_EXISTS, false}, 0},
    {"DoesNotExist", {"no", NULL, 0, GS_OPERATOR_DOES_NOT_EXIST, false}, 1},
    {"DoesNotExist, it does", {"zone", NULL, 0, GS_OPERATOR_DOES_NOT_EXIST, false}, 0},
    {"Gt", {"rank", eight, 1, GS_OPERATOR_GT, false}, 1},
    {"Gt, equal", {"rank", seven, 1, GS_OPERATOR_GT, false}, 0},
    {"Lt, equal", {"rank", seven, 1, GS_OPERATOR_LT, false}, 0},
    {"Lt", {"rank", eight, 1, GS_OPERATOR_LT, false}, 0},
    {"Gt of a label that is no number", {"gpu", seven, 1, GS_OPERATOR_GT, false}, 0},
    {"Gt, no such label", {"no", seven, 1, GS_OPERATOR_GT, false}, 0},
    {"Gt a word", {"rank", word, 1, GS_OPERATOR_GT, false}, -1},
    {"Gt two numbers", {"rank", two, 2, GS_OPERATOR_GT, false}, -1},
    {"not known", {"gpu", two, 2, GS_OPERATOR_UNKNOWN, false}, -1},
    {"field In", {"metadata.name", name, 1, GS_OPERATOR_IN, true}, 1},
    {"field In, another", {"metadata.name", other, 1, GS_OPERATOR_IN, true}, 0},
    {"field NotIn", {"metadata.name", other, 1, GS_OPERATOR_NOT_IN, true}, 1},
    {"field NotIn, this one", {"metadata.name", name, 1, GS_OPERATOR_NOT_IN, true}, 0},
    {"field Exists", {"metadata.name", NULL, 0, GS_OPERATOR_EXISTS, true}, -1},
    {"another field", {"spec.x", name, 1, GS_OPERATOR_IN, true}, -1},
    {"a label of a field's name", {"metadata.name", name, 1, GS_OPERATOR_IN, false}, 0},
};

static enum gs_eligible verdict_of(int match, enum gs_eligible no)
{
    return match > 0 ? GS_ELIGIBLE : match < 0 ? GS_ELIGIBLE_UNKNOWN : no;
}

static void each_operator_matches_as_in_kubernetes(void **state)
{
    GS_FOR_EACH_ROW (r, requirements) {
        struct gs_requirement one = r->requirement;
        struct gs_term_of_nodes term = {&one, 1};
        const struct gs_pod_rules affine = {.terms = &term, .term_count = 1, .affine = true},
                                  selects = {.selector = term};
        row_equal(r->row, gs_eligible(&affine, &plain),
                  verdict_of(r->match, GS_ELIGIBLE_NOT_AFFINE));
        row_equal(r->row, gs_eligible(&selects, &plain),
                  verdict_of(r->match, GS_ELIGIBLE_NOT_SELECTED));
        row_equal(r->row, gs_pod_selects(&affine, &plain), r->match != 0);
        row_equal(r->row, gs_pod_selects(&selects, &plain), r->match != 0);
    }
}

static struct gs_requirement sample(int match)
{
    GS_FOR_EACH_ROW (r, requirements) {
        if (r->match == match)
            return r->requirement;
    }
    fail();
    return (struct gs_requirement){0};
}

static void copies_have_memory_of_their_own_and_say_the_same(void **state)
{
    struct gs_node_rules node = with(hard, 2, true);
    struct gs_node_rules *copy = gs_node_rules_dup(&node);
    assert_non_null(copy);
    assert_string_equal(copy->name, "n1");
    assert_string_equal(gs_node_label(copy, "pool"), "train");
    assert_null(gs_node_label(copy, "poo"));
    assert_int_equal(gs_node_rules_hash(copy), gs_node_rules_hash(&node));
    node.taint_count = 1;
    assert_int_not_equal(gs_node_rules_hash(copy), gs_node_rules_hash(&node));
    node = with(hard, 2, false);
    assert_int_not_equal(gs_node_rules_hash(copy), gs_node_rules_hash(&node));
    assert_true(copy->labels != labels && copy->taints != hard);
    node = with(hard, 2, true);
    copy->taints[1].value = "y";
    assert_int_not_equal(gs_node_rules_hash(copy), gs_node_rules_hash(&node));
    free(copy);

    struct gs_requirement one = sample(1);
    struct gs_term_of_nodes term = {&one, 1};
    struct gs_toleration toleration = {"team", "x", "", GS_OPERATOR_IN};
    const struct gs_pod_rules pod = {.selector = term,
                                     .terms = &term,
                                     .term_count = 1,
                                     .affine = true,
                                     .tolerations = &toleration,
                                     .toleration_count = 1};
    struct gs_arena arena = {0};
    struct gs_pod_rules to;
    assert_int_equal(gs_pod_rules_copy(&arena, &to, &pod), 0);
    const struct gs_node_rules tainted = with(hard, 2, false);
    assert_int_equal(gs_eligible(&to, &tainted), GS_ELIGIBLE);
    assert_true(to.terms != &term && to.terms[0].all != &one &&
                to.terms[0].all[0].values != one.values && to.tolerations != &toleration);
    assert_int_equal(to.selector.count, 1);
    assert_int_equal(gs_pod_rules_hash(&to), gs_pod_rules_hash(&pod));
    const char **told[] = {&to.tolerations->key, &to.tolerations->value, &to.tolerations->effect};
    GS_FOR_EACH_ROW (text, told) {
        const char *before = **text;
        **text = "y";
        assert_int_not_equal(gs_pod_rules_hash(&to), gs_pod_rules_hash(&pod));
        **text = before;
    }
    to.terms[0].all[0].op = GS_OPERATOR_NOT_IN;
    assert_int_not_equal(gs_pod_rules_hash(&to), gs_pod_rules_hash(&pod));
    gs_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taints_need_a_toleration_that_matches),
        cmocka_unit_test(each_operator_matches_as_in_kubernetes),
        cmocka_unit_test(copies_have_memory_of_their_own_and_say_the_same),
    };
    return GS_RUN(tests);
}
