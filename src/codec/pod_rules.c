/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod says about the nodes that it may use (model/eligible.h): tolerations, nodeSelector,
 * and required node affinity (k8s.io/api/core/v1/types.go). Of more than GS_RULES_MAX one is kept
 * that is unknown. */
#include "pod_reader.h"

static const struct gs_requirement unknown = {.key = ""};

static bool take_rule(struct gs_pod_reader *pr)
{
    return pr->rules < GS_RULES_MAX && ++pr->rules;
}

static const char *copy_of(struct gs_pod_reader *pr, struct gs_scan_text text)
{
    const char *copy = gs_scan_string_dup(pr->reader.arena, text);
    if (!copy)
        gs_reader_stop(&pr->reader, GS_ENOMEM, "spec", "");
    return copy ? copy : "";
}

static void append_requirement(struct gs_pod_reader *pr, struct gs_term_of_nodes *term,
                               struct gs_requirement one)
{
    struct gs_requirement *last = gs_read_append(&pr->reader, &term->all, &term->count,
                                                 sizeof(*last), "node requirements", UINT32_MAX);
    if (last)
        *last = one;
}

/* False: more than are kept. */
static bool append_value(struct gs_pod_reader *pr, struct gs_requirement *one,
                         struct gs_scan_text value)
{
    if (pr->rule_values == GS_RULES_VALUES_MAX)
        return false;
    const char **last = gs_read_append(&pr->reader, &one->values, &one->value_count, sizeof(*last),
                                       "values of a node requirement", UINT32_MAX);
    if (last)
        *last = copy_of(pr, value);
    pr->rule_values++;
    return true;
}

/* A map of labels: each In one value. */
static void read_wanted_labels(struct gs_pod_reader *pr, const char *what,
                               struct gs_term_of_nodes *term)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key, value;
    bool cut = false;
    if (!gs_read_object(reader, what))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        struct gs_requirement one = {.op = GS_OPERATOR_IN};
        value = (struct gs_scan_text){0};
        gs_read_text(reader, "label of a selector", &value);
        cut = cut || !take_rule(pr) || !append_value(pr, &one, value);
        one.key = cut ? "" : copy_of(pr, key);
        if (!cut)
            append_requirement(pr, term, one);
    }
    if (cut)
        append_requirement(pr, term, unknown);
}

void gs_read_pod_node_selector(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_pod_reader *pr = to;
    pr->pod.rules.selector = (struct gs_term_of_nodes){0};
    read_wanted_labels(pr, what, &pr->pod.rules.selector);
}

static const char *const operators[] = {
    [GS_OPERATOR_IN] = "In",         [GS_OPERATOR_NOT_IN] = "NotIn",
    [GS_OPERATOR_EXISTS] = "Exists", [GS_OPERATOR_DOES_NOT_EXIST] = "DoesNotExist",
    [GS_OPERATOR_GT] = "Gt",         [GS_OPERATOR_LT] = "Lt",
};

struct draft {
    struct gs_requirement one;
    struct gs_scan_text word;
    bool cut; /* more values than are kept */
};

static void read_values(struct gs_reader *reader, const char *what, void *to)
{
    struct draft *draft = to;
    if (!gs_read_array(reader, what))
        return;
    draft->one.value_count = 0;
    while (gs_scan_element(&reader->scan)) {
        struct gs_scan_text value = {0};
        gs_read_text(reader, "value of a node requirement", &value);
        draft->cut =
            draft->cut || !append_value((struct gs_pod_reader *)reader, &draft->one, value);
    }
}

static const struct gs_member requirement_members[] = {
    GS_MEMBER(struct draft, "key", "key of a node requirement", one.key),
    GS_MEMBER(struct draft, "operator", "operator of a node requirement", word),
    GS_CALL("values", "values of a node requirement", read_values),
    {0},
};

static void read_requirements(struct gs_pod_reader *pr, struct gs_term_of_nodes *term, bool field)
{
    struct gs_reader *reader = &pr->reader;
    bool cut = false;
    if (!gs_read_array(reader, "node requirements"))
        return;
    while (gs_scan_element(&reader->scan)) {
        cut = cut || !take_rule(pr);
        if (cut) {
            gs_scan_skip(&reader->scan);
            continue;
        }
        struct draft draft = {.one = {.key = "", .field = field}};
        gs_read_entry(reader, "node requirement", requirement_members, &draft);
        if (!draft.cut)
            draft.one.op = (enum gs_operator)GS_WORD_OF(draft.word, operators, GS_OPERATOR_UNKNOWN);
        append_requirement(pr, term, draft.one);
    }
    if (cut)
        append_requirement(pr, term, unknown);
}

/* To a struct gs_term_of_nodes, as are all that follow. */
static void read_expressions(struct gs_reader *reader, const char *what, void *to)
{
    read_requirements((struct gs_pod_reader *)reader, to, false);
}

static void read_fields(struct gs_reader *reader, const char *what, void *to)
{
    read_requirements((struct gs_pod_reader *)reader, to, true);
}

static void read_match_labels(struct gs_reader *reader, const char *what, void *to)
{
    read_wanted_labels((struct gs_pod_reader *)reader, what, to);
}

static const struct gs_member selector_members[] = {
    GS_CALL("matchExpressions", "node requirements", read_expressions),
    GS_CALL("matchLabels", "matchLabels", read_match_labels),
    {0},
};

static const struct gs_member term_members[] = {
    GS_CALL("matchExpressions", "node requirements", read_expressions),
    GS_CALL("matchFields", "node requirements", read_fields),
    {0},
};

void gs_read_label_selector(struct gs_pod_reader *pr, struct gs_term_of_nodes *ret)
{
    gs_read_members(&pr->reader, "selector", selector_members, ret);
}

static void append_term(struct gs_pod_reader *pr, struct gs_term_of_nodes term)
{
    struct gs_pod_rules *rules = &pr->pod.rules;
    struct gs_term_of_nodes *last =
        gs_read_append(&pr->reader, &rules->terms, &rules->term_count, sizeof(*last),
                       "node selector terms", UINT32_MAX);
    if (last)
        *last = term;
}

static void read_terms(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_pod_reader *pr = to;
    struct gs_term_of_nodes more = {0};
    if (!gs_read_array(reader, what))
        return;
    pr->pod.rules.term_count = 0;
    while (gs_scan_element(&reader->scan)) {
        if (more.count || !take_rule(pr)) {
            gs_scan_skip(&reader->scan);
            if (!more.count)
                append_requirement(pr, &more, unknown);
            continue;
        }
        struct gs_term_of_nodes term = {0};
        gs_read_entry(reader, "node selector term", term_members, &term);
        append_term(pr, term);
    }
    if (more.count)
        append_term(pr, more);
}

static const struct gs_member node_selector_members[] = {
    GS_CALL("nodeSelectorTerms", "nodeSelectorTerms", read_terms),
    {0},
};

static void read_required(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_pod_reader *pr = to;
    pr->pod.rules.affine = true;
    gs_read_members(reader, what, node_selector_members, pr);
}

/* What is preferred, and what is said of pods, kube-scheduler weighs and filters. */
const struct gs_member gs_pod_affinity_members[] = {
    GS_OBJECT("nodeAffinity", "spec.affinity.nodeAffinity",
              GS_MEMBERS(GS_CALL("requiredDuringSchedulingIgnoredDuringExecution",
                                 "required nodeAffinity", read_required))),
    {0},
};

struct toleration {
    struct gs_toleration one;
    struct gs_scan_text word;
};

static const struct gs_member toleration_members[] = {
    GS_MEMBER(struct toleration, "key", "key of a toleration", one.key),
    GS_MEMBER(struct toleration, "value", "value of a toleration", one.value),
    GS_MEMBER(struct toleration, "effect", "effect of a toleration", one.effect),
    GS_MEMBER(struct toleration, "operator", "operator of a toleration", word),
    {0},
};

/* Lt and Gt, which 1.35 began with, are not known here. */
static struct gs_toleration read_toleration(struct gs_reader *reader)
{
    struct toleration read = {.one = {.key = "", .value = "", .effect = ""}};
    gs_read_entry(reader, "spec.tolerations entry", toleration_members, &read);
    if (!read.word.len || gs_scan_text_is(read.word, "Equal"))
        read.one.op = GS_OPERATOR_IN;
    else if (gs_scan_text_is(read.word, "Exists"))
        read.one.op = GS_OPERATOR_EXISTS;
    return read.one;
}

static void append_toleration(struct gs_pod_reader *pr, struct gs_toleration one)
{
    struct gs_pod_rules *rules = &pr->pod.rules;
    struct gs_toleration *last =
        gs_read_append(&pr->reader, &rules->tolerations, &rules->toleration_count, sizeof(*last),
                       "spec.tolerations", UINT32_MAX);
    if (last)
        *last = one;
}

void gs_read_pod_tolerations(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_pod_reader *pr = to;
    bool cut = false;
    if (!gs_read_array(reader, what))
        return;
    pr->pod.rules.toleration_count = 0;
    while (gs_scan_element(&reader->scan)) {
        cut = cut || !take_rule(pr);
        if (cut)
            gs_scan_skip(&reader->scan);
        else
            append_toleration(pr, read_toleration(reader));
    }
    if (cut)
        append_toleration(pr, (struct gs_toleration){.key = "", .value = "", .effect = ""});
}
