/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's rules about nodes (model/eligible.h): tolerations, nodeSelector, and required node
 * affinity (k8s.io/api/core/v1/types.go). Rules above GS_RULES_MAX are replaced by one that is
 * unknown. */
#include "pod_reader.h"

static bool take_rule(struct gs_pod_reader *pr)
{
    return pr->rules < GS_RULES_MAX && ++pr->rules;
}

static bool ends_unknown(const struct gs_term_of_nodes *term)
{
    return term->count && term->all[term->count - 1].op == GS_OPERATOR_UNKNOWN;
}

/* Appends a requirement that is unknown until the caller fills it in. NULL: the limit is reached,
 * and the term ends with an unknown one. */
static struct gs_requirement *next_requirement(struct gs_pod_reader *pr,
                                               struct gs_term_of_nodes *term)
{
    const bool taken = take_rule(pr);
    if (!taken && ends_unknown(term))
        return NULL;
    struct gs_requirement *one =
        gs_read_append(&pr->reader, &term->all, &term->count, sizeof(*one), UINT32_MAX);
    if (one)
        one->key = "";
    return taken ? one : NULL;
}

/* False: the limit of values is reached. */
static bool append_value(struct gs_pod_reader *pr, struct gs_requirement *one,
                         struct gs_scan_text value)
{
    if (pr->rule_values == GS_RULES_VALUES_MAX)
        return false;
    const char **last =
        gs_read_append(&pr->reader, &one->values, &one->value_count, sizeof(*last), UINT32_MAX);
    if (last)
        *last = gs_read_dup(&pr->reader, value);
    pr->rule_values++;
    return true;
}

/* Reads a map of labels. Each becomes an In requirement with one value. */
static void read_wanted_labels(struct gs_pod_reader *pr, struct gs_term_of_nodes *term)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        struct gs_scan_text value = {0};
        gs_read_text(reader, &value);
        struct gs_requirement *one = next_requirement(pr, term);
        if (one && append_value(pr, one, value)) {
            one->key = gs_read_dup(reader, key);
            one->op = GS_OPERATOR_IN;
        }
    }
}

void gs_read_pod_node_selector(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    pr->pod.rules.selector = (struct gs_term_of_nodes){0};
    read_wanted_labels(pr, &pr->pod.rules.selector);
}

static const char *const operators[] = {
    [GS_OPERATOR_IN] = "In",         [GS_OPERATOR_NOT_IN] = "NotIn",
    [GS_OPERATOR_EXISTS] = "Exists", [GS_OPERATOR_DOES_NOT_EXIST] = "DoesNotExist",
    [GS_OPERATOR_GT] = "Gt",         [GS_OPERATOR_LT] = "Lt",
};

struct draft {
    struct gs_requirement one;
    struct gs_scan_text word;
    bool cut; /* the limit of values is reached */
};

static void read_value(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    struct gs_scan_text value = {0};
    gs_read_text(reader, &value);
    draft->cut = draft->cut || !append_value((struct gs_pod_reader *)reader, &draft->one, value);
}

static const struct gs_member requirement_members[] = {
    GS_MEMBER(struct draft, "key", one.key),
    GS_MEMBER(struct draft, "operator", word),
    GS_EACH_IN(struct draft, "values", one.value_count, read_value),
    {0},
};

static void read_requirement(struct gs_reader *reader, struct gs_term_of_nodes *term, bool field)
{
    struct gs_requirement *one = next_requirement((struct gs_pod_reader *)reader, term);
    struct draft draft = {.one = {.key = "", .field = field}};
    if (!one) {
        gs_scan_skip(&reader->scan);
        return;
    }
    gs_read_entry(reader, "[]", requirement_members, &draft);
    if (!draft.cut)
        draft.one.op = (enum gs_operator)GS_WORD_OF(draft.word, operators, GS_OPERATOR_UNKNOWN);
    *one = draft.one;
}

/* Here and below, `to` is a struct gs_term_of_nodes. */
static void read_expression(struct gs_reader *reader, void *to)
{
    read_requirement(reader, to, false);
}

static void read_field(struct gs_reader *reader, void *to)
{
    read_requirement(reader, to, true);
}

static void read_match_labels(struct gs_reader *reader, void *to)
{
    read_wanted_labels((struct gs_pod_reader *)reader, to);
}

static const struct gs_member selector_members[] = {
    GS_EACH("matchExpressions", read_expression),
    GS_CALL("matchLabels", read_match_labels),
    {0},
};

static const struct gs_member term_members[] = {
    GS_EACH("matchExpressions", read_expression),
    GS_EACH("matchFields", read_field),
    {0},
};

void gs_read_label_selector(struct gs_pod_reader *pr, struct gs_term_of_nodes *ret)
{
    gs_read_members(&pr->reader, selector_members, ret);
}

static void read_term(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    struct gs_pod_rules *rules = &pr->pod.rules;
    struct gs_term_of_nodes term = {0};
    if (take_rule(pr)) {
        gs_read_entry(reader, "[]", term_members, &term);
    } else {
        gs_scan_skip(&reader->scan);
        if (rules->term_count && ends_unknown(&rules->terms[rules->term_count - 1]))
            return;
        next_requirement(pr, &term);
    }
    struct gs_term_of_nodes *last =
        gs_read_append(reader, &rules->terms, &rules->term_count, sizeof(*last), UINT32_MAX);
    if (last)
        *last = term;
}

static const struct gs_member node_selector_members[] = {
    GS_EACH_IN(struct gs_pod_reader, "nodeSelectorTerms", pod.rules.term_count, read_term),
    {0},
};

static void read_required(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    pr->pod.rules.affine = true;
    gs_read_members(reader, node_selector_members, pr);
}

/* What is preferred, and what is said of other pods, is left to kube-scheduler. */
static void read_preference(struct gs_reader *reader, void *to)
{
    gs_scan_skip(&reader->scan);
    ((struct gs_pod_reader *)to)->pod.has_preferences = true;
}

struct spread {
    struct gs_scan_text unsatisfiable;
};

static const struct gs_member spread_members[] = {
    GS_MEMBER(struct spread, "whenUnsatisfiable", unsatisfiable),
    {0},
};

void gs_read_pod_spread(struct gs_reader *reader, void *to)
{
    struct spread spread = {0};
    gs_read_entry(reader, "[]", spread_members, &spread);
    if (gs_scan_text_is(spread.unsatisfiable, "ScheduleAnyway"))
        ((struct gs_pod_reader *)to)->pod.has_preferences = true;
}

#define PREFERENCES GS_EACH("preferredDuringSchedulingIgnoredDuringExecution", read_preference)

const struct gs_member gs_pod_affinity_members[] = {
    GS_OBJECT("nodeAffinity",
              GS_MEMBERS(GS_CALL("requiredDuringSchedulingIgnoredDuringExecution", read_required),
                         PREFERENCES)),
    GS_OBJECT("podAffinity", GS_MEMBERS(PREFERENCES)),
    GS_OBJECT("podAntiAffinity", GS_MEMBERS(PREFERENCES)),
    {0},
};

struct toleration {
    struct gs_toleration one;
    struct gs_scan_text word;
};

static const struct gs_member toleration_members[] = {
    GS_MEMBER(struct toleration, "key", one.key),
    GS_MEMBER(struct toleration, "value", one.value),
    GS_MEMBER(struct toleration, "effect", one.effect),
    GS_MEMBER(struct toleration, "operator", word),
    {0},
};

/* Lt and Gt, new in Kubernetes 1.35, are not supported. */
static enum gs_operator toleration_operator(struct gs_scan_text word)
{
    return !word.len || gs_scan_text_is(word, "Equal") ? GS_OPERATOR_IN
           : gs_scan_text_is(word, "Exists")           ? GS_OPERATOR_EXISTS
                                                       : GS_OPERATOR_UNKNOWN;
}

void gs_read_pod_toleration(struct gs_reader *reader, void *to)
{
    struct gs_pod_reader *pr = to;
    struct gs_pod_rules *rules = &pr->pod.rules;
    struct toleration read = {.one = {.key = "", .value = "", .effect = ""}};
    if (take_rule(pr)) {
        gs_read_entry(reader, "[]", toleration_members, &read);
        read.one.op = toleration_operator(read.word);
    } else {
        gs_scan_skip(&reader->scan);
        if (rules->toleration_count &&
            rules->tolerations[rules->toleration_count - 1].op == GS_OPERATOR_UNKNOWN)
            return;
    }
    struct gs_toleration *last = gs_read_append(
        reader, &rules->tolerations, &rules->toleration_count, sizeof(*last), UINT32_MAX);
    if (last)
        *last = read.one;
}
