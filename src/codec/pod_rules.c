/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod says about the nodes that it may use (model/eligible.h): tolerations, nodeSelector,
 * and required node affinity (k8s.io/api/core/v1/types.go). Of more than GS_RULES_MAX one is kept
 * that nobody knows. */
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

static void append(struct gs_pod_reader *pr, struct gs_term_of_nodes *term,
                   const struct gs_requirement *one)
{
    struct gs_requirement *all = gs_read_grow(&pr->reader, term->all, term->count, sizeof(*all),
                                              "node requirements", UINT32_MAX);
    if (!all)
        return;
    term->all = all;
    all[term->count++] = *one;
}

/* False: more than are kept. */
static bool append_value(struct gs_pod_reader *pr, struct gs_requirement *one,
                         struct gs_scan_text value)
{
    if (pr->rule_values == GS_RULES_VALUES_MAX)
        return false;
    const char **values = gs_read_grow(&pr->reader, one->values, one->value_count, sizeof(*values),
                                       "values of a node requirement", UINT32_MAX);
    if (!values)
        return true;
    one->values = values;
    values[one->value_count++] = copy_of(pr, value);
    pr->rule_values++;
    return true;
}

/* A map of labels: each In one value. */
static void read_wanted_labels(struct gs_pod_reader *pr, struct gs_term_of_nodes *term)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key, value;
    bool cut = false;
    while (gs_scan_key(&reader->scan, &key)) {
        struct gs_requirement one = {.op = GS_OPERATOR_IN};
        value = (struct gs_scan_text){0};
        gs_read_text(reader, "label of a selector", &value);
        cut = cut || !take_rule(pr) || !append_value(pr, &one, value);
        one.key = cut ? "" : copy_of(pr, key);
        if (!cut)
            append(pr, term, &one);
    }
    if (cut)
        append(pr, term, &unknown);
}

void gs_read_pod_node_selector(struct gs_pod_reader *pr)
{
    if (!gs_read_object(&pr->reader, "spec.nodeSelector"))
        return;
    pr->pod->rules.selector = (struct gs_term_of_nodes){0};
    read_wanted_labels(pr, &pr->pod->rules.selector);
}

static enum gs_operator operator_of(struct gs_scan_text word)
{
    static const struct {
        const char *word;
        enum gs_operator op;
    } operators[] = {
        {"In", GS_OPERATOR_IN},         {"NotIn", GS_OPERATOR_NOT_IN},
        {"Exists", GS_OPERATOR_EXISTS}, {"DoesNotExist", GS_OPERATOR_DOES_NOT_EXIST},
        {"Gt", GS_OPERATOR_GT},         {"Lt", GS_OPERATOR_LT},
    };
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
        if (gs_scan_text_is_name(word, operators[i].word))
            return operators[i].op;
    }
    return GS_OPERATOR_UNKNOWN;
}

/* False: more values than are kept. */
static bool read_values(struct gs_pod_reader *pr, struct gs_requirement *one)
{
    struct gs_reader *reader = &pr->reader;
    bool whole = true;
    if (!gs_read_array(reader, "values of a node requirement"))
        return true;
    one->value_count = 0;
    while (gs_scan_element(&reader->scan)) {
        struct gs_scan_text value = {0};
        gs_read_text(reader, "value of a node requirement", &value);
        whole = whole && append_value(pr, one, value);
    }
    return whole;
}

static struct gs_requirement read_requirement(struct gs_pod_reader *pr, bool field)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_requirement one = {.key = "", .field = field};
    struct gs_scan_text key, word = {0};
    bool whole = true;
    gs_scan_object(&reader->scan, "node requirement");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "key"))
            gs_read_string(reader, "key of a node requirement", &one.key);
        else if (gs_scan_text_is(key, "operator"))
            gs_read_text(reader, "operator of a node requirement", &word);
        else if (gs_scan_text_is(key, "values"))
            whole = read_values(pr, &one);
        else
            gs_scan_skip(&reader->scan);
    }
    one.op = whole ? operator_of(word) : GS_OPERATOR_UNKNOWN;
    return one;
}

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
        const struct gs_requirement one = read_requirement(pr, field);
        append(pr, term, &one);
    }
    if (cut)
        append(pr, term, &unknown);
}

void gs_read_label_selector(struct gs_pod_reader *pr, struct gs_term_of_nodes *ret)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "selector"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "matchExpressions"))
            read_requirements(pr, ret, false);
        else if (gs_scan_text_is(key, "matchLabels") && gs_read_object(reader, "matchLabels"))
            read_wanted_labels(pr, ret);
        else if (!gs_scan_text_is(key, "matchLabels"))
            gs_scan_skip(&reader->scan);
    }
}

static struct gs_term_of_nodes read_term(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_term_of_nodes term = {0};
    struct gs_scan_text key;
    gs_scan_object(&reader->scan, "node selector term");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "matchExpressions"))
            read_requirements(pr, &term, false);
        else if (gs_scan_text_is(key, "matchFields"))
            read_requirements(pr, &term, true);
        else
            gs_scan_skip(&reader->scan);
    }
    return term;
}

static void append_term(struct gs_pod_reader *pr, const struct gs_term_of_nodes *term)
{
    struct gs_pod_rules *rules = &pr->pod->rules;
    struct gs_term_of_nodes *terms =
        gs_read_grow(&pr->reader, rules->terms, rules->term_count, sizeof(*terms),
                     "node selector terms", UINT32_MAX);
    if (!terms)
        return;
    rules->terms = terms;
    terms[rules->term_count++] = *term;
}

static void read_terms(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_term_of_nodes more = {0};
    if (!gs_read_array(reader, "nodeSelectorTerms"))
        return;
    pr->pod->rules.term_count = 0;
    while (gs_scan_element(&reader->scan)) {
        if (more.count || !take_rule(pr)) {
            gs_scan_skip(&reader->scan);
            if (!more.count)
                append(pr, &more, &unknown);
            continue;
        }
        const struct gs_term_of_nodes term = read_term(pr);
        append_term(pr, &term);
    }
    if (more.count)
        append_term(pr, &more);
}

static void read_node_terms(struct gs_pod_reader *pr)
{
    struct gs_scan_text key;
    if (!gs_read_object(&pr->reader, "required nodeAffinity"))
        return;
    pr->pod->rules.affine = true;
    while (gs_scan_key(&pr->reader.scan, &key)) {
        if (gs_scan_text_is(key, "nodeSelectorTerms"))
            read_terms(pr);
        else
            gs_scan_skip(&pr->reader.scan);
    }
}

/* Lt and Gt, which 1.35 began with, are not known here. */
static struct gs_toleration read_toleration(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_toleration one = {.key = "", .value = "", .effect = ""};
    struct gs_scan_text key, word = {0};
    gs_scan_object(&reader->scan, "spec.tolerations entry");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "key"))
            gs_read_string(reader, "key of a toleration", &one.key);
        else if (gs_scan_text_is(key, "value"))
            gs_read_string(reader, "value of a toleration", &one.value);
        else if (gs_scan_text_is(key, "effect"))
            gs_read_string(reader, "effect of a toleration", &one.effect);
        else if (gs_scan_text_is(key, "operator"))
            gs_read_text(reader, "operator of a toleration", &word);
        else
            gs_scan_skip(&reader->scan);
    }
    if (!word.len || gs_scan_text_is(word, "Equal"))
        one.op = GS_OPERATOR_IN;
    else if (gs_scan_text_is(word, "Exists"))
        one.op = GS_OPERATOR_EXISTS;
    return one;
}

static void append_toleration(struct gs_pod_reader *pr, struct gs_toleration one)
{
    struct gs_pod_rules *rules = &pr->pod->rules;
    struct gs_toleration *all =
        gs_read_grow(&pr->reader, rules->tolerations, rules->toleration_count, sizeof(*all),
                     "spec.tolerations", UINT32_MAX);
    if (!all)
        return;
    rules->tolerations = all;
    all[rules->toleration_count++] = one;
}

void gs_read_pod_tolerations(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    bool cut = false;
    if (!gs_read_array(reader, "spec.tolerations"))
        return;
    pr->pod->rules.toleration_count = 0;
    while (gs_scan_element(&reader->scan)) {
        cut = cut || !take_rule(pr);
        if (cut)
            gs_scan_skip(&reader->scan);
        else
            append_toleration(pr, read_toleration(pr));
    }
    if (cut)
        append_toleration(pr, (struct gs_toleration){.key = "", .value = "", .effect = ""});
}

static void read_node_affinity(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.affinity.nodeAffinity"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "requiredDuringSchedulingIgnoredDuringExecution"))
            read_node_terms(pr);
        else
            gs_scan_skip(&reader->scan);
    }
}

/* What is preferred, and what is said of pods, kube-scheduler weighs and filters. */
void gs_read_pod_affinity(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.affinity"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "nodeAffinity"))
            read_node_affinity(pr);
        else
            gs_scan_skip(&reader->scan);
    }
}
