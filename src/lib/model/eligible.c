/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/eligible.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/index.h"
#include "gpushare/base/num.h"

/* The taint that the node controller gives a cordoned node, a moment later
 * (k8s.io/api/core/v1/well_known_taints.go). */
static const struct gs_taint unschedulable = {"node.kubernetes.io/unschedulable", "", "NoSchedule"};

/* What is not known is between the others: of several answers the least (all of them) or the
 * greatest (one of them) counts. */
enum match { MATCH_NO, MATCH_UNKNOWN, MATCH_YES };

const char *gs_eligible_text(enum gs_eligible verdict)
{
    switch (verdict) {
    case GS_ELIGIBLE_NOT_CORDONED:
        return "node(s) were unschedulable";
    case GS_ELIGIBLE_NOT_TAINTED:
        return "node(s) had untolerated taint(s)";
    case GS_ELIGIBLE_NOT_SELECTED:
    case GS_ELIGIBLE_NOT_AFFINE:
        return "node(s) didn't match Pod's node affinity/selector";
    default:
        return "";
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct gs_kv *)a)->key, ((const struct gs_kv *)b)->key);
}

void gs_node_labels_sort(struct gs_kv *labels, size_t count)
{
    if (count)
        qsort(labels, count, sizeof(*labels), by_key);
}

const char *gs_node_label(const struct gs_node_rules *node, const char *key)
{
    const struct gs_kv wanted = {.key = key};
    const struct gs_kv *found =
        node->label_count
            ? bsearch(&wanted, node->labels, node->label_count, sizeof(wanted), by_key)
            : NULL;
    return found ? found->value : NULL;
}

static bool is_among(const struct gs_requirement *wanted, const char *value)
{
    for (uint32_t i = 0; i < wanted->value_count; i++) {
        if (strcmp(wanted->values[i], value) == 0)
            return true;
    }
    return false;
}

/* Gt and Lt: both are integers, or it does not match (apimachinery labels: Requirement.Matches). */
static enum match compare(const struct gs_requirement *wanted, const char *value)
{
    int64_t limit, number;
    if (wanted->value_count != 1 ||
        !gs_parse_i64(wanted->values[0], strlen(wanted->values[0]), &limit))
        return MATCH_UNKNOWN;
    if (!value || !gs_parse_i64(value, strlen(value), &number))
        return MATCH_NO;
    return (wanted->op == GS_OPERATOR_GT ? number > limit : number < limit) ? MATCH_YES : MATCH_NO;
}

/* Of fields there is metadata.name alone, with In and NotIn. */
static enum match match_requirement(const struct gs_requirement *wanted,
                                    const struct gs_node_rules *node)
{
    const char *name = node->name ? node->name : "";
    if (wanted->field && (strcmp(wanted->key, "metadata.name") != 0 ||
                          (wanted->op != GS_OPERATOR_IN && wanted->op != GS_OPERATOR_NOT_IN)))
        return MATCH_UNKNOWN;
    const char *value = wanted->field ? name : gs_node_label(node, wanted->key);
    switch (wanted->op) {
    case GS_OPERATOR_IN:
        return value && is_among(wanted, value) ? MATCH_YES : MATCH_NO;
    case GS_OPERATOR_NOT_IN:
        return value && is_among(wanted, value) ? MATCH_NO : MATCH_YES;
    case GS_OPERATOR_EXISTS:
        return value ? MATCH_YES : MATCH_NO;
    case GS_OPERATOR_DOES_NOT_EXIST:
        return value ? MATCH_NO : MATCH_YES;
    case GS_OPERATOR_GT:
    case GS_OPERATOR_LT:
        return compare(wanted, value);
    case GS_OPERATOR_UNKNOWN:
        break;
    }
    return MATCH_UNKNOWN;
}

static enum match match_all(const struct gs_term_of_nodes *term, const struct gs_node_rules *node)
{
    enum match least = MATCH_YES;
    for (uint32_t i = 0; i < term->count && least != MATCH_NO; i++) {
        enum match one = match_requirement(&term->all[i], node);
        least = one < least ? one : least;
    }
    return least;
}

static enum match match_one(const struct gs_pod_rules *pod, const struct gs_node_rules *node)
{
    enum match best = MATCH_NO;
    for (uint32_t i = 0; i < pod->term_count && best != MATCH_YES; i++) {
        enum match one = pod->terms[i].count ? match_all(&pod->terms[i], node) : MATCH_NO;
        best = one > best ? one : best;
    }
    return best;
}

/* k8s.io/api/core/v1/toleration.go: ToleratesTaint */
static enum match tolerates(const struct gs_toleration *toleration, const struct gs_taint *taint)
{
    if ((toleration->effect[0] && strcmp(toleration->effect, taint->effect) != 0) ||
        (toleration->key[0] && strcmp(toleration->key, taint->key) != 0))
        return MATCH_NO;
    if (toleration->op == GS_OPERATOR_UNKNOWN)
        return MATCH_UNKNOWN;
    return toleration->op == GS_OPERATOR_EXISTS || strcmp(toleration->value, taint->value) == 0
               ? MATCH_YES
               : MATCH_NO;
}

static enum match tolerated(const struct gs_pod_rules *pod, const struct gs_taint *taint)
{
    enum match best = MATCH_NO;
    for (uint32_t i = 0; i < pod->toleration_count && best != MATCH_YES; i++) {
        enum match one = tolerates(&pod->tolerations[i], taint);
        best = one > best ? one : best;
    }
    return best;
}

/* The pods that are there already are no matter of PreferNoSchedule, and others' words of none. */
static bool keeps_pods_away(const struct gs_taint *taint)
{
    return strcmp(taint->effect, "NoSchedule") == 0 || strcmp(taint->effect, "NoExecute") == 0;
}

static enum match tolerates_all(const struct gs_pod_rules *pod, const struct gs_node_rules *node)
{
    enum match least = MATCH_YES;
    for (uint32_t i = 0; i < node->taint_count && least != MATCH_NO; i++) {
        if (!keeps_pods_away(&node->taints[i]))
            continue;
        enum match one = tolerated(pod, &node->taints[i]);
        least = one < least ? one : least;
    }
    return least;
}

const struct gs_taint *gs_find_untolerated(const struct gs_pod_rules *pod,
                                           const struct gs_node_rules *node)
{
    for (uint32_t i = 0; i < node->taint_count; i++) {
        const struct gs_taint *taint = &node->taints[i];
        if (keeps_pods_away(taint) && strcmp(taint->key, unschedulable.key) != 0 &&
            strcmp(taint->key, "node.kubernetes.io/not-ready") != 0 &&
            strcmp(taint->key, "node.kubernetes.io/unreachable") != 0 &&
            tolerated(pod, taint) == MATCH_NO)
            return taint;
    }
    return NULL;
}

bool gs_pod_selects(const struct gs_pod_rules *pod, const struct gs_node_rules *node)
{
    return match_all(&pod->selector, node) != MATCH_NO &&
           (!pod->affine || match_one(pod, node) != MATCH_NO);
}

enum gs_eligible gs_eligible(const struct gs_pod_rules *pod, const struct gs_node_rules *node)
{
    const struct {
        enum match match;
        enum gs_eligible otherwise;
    } plugins[] = {
        {node->unschedulable ? tolerated(pod, &unschedulable) : MATCH_YES,
         GS_ELIGIBLE_NOT_CORDONED},
        {tolerates_all(pod, node), GS_ELIGIBLE_NOT_TAINTED},
        {match_all(&pod->selector, node), GS_ELIGIBLE_NOT_SELECTED},
        {pod->affine ? match_one(pod, node) : MATCH_YES, GS_ELIGIBLE_NOT_AFFINE},
    };
    enum gs_eligible verdict = GS_ELIGIBLE;
    for (size_t i = 0; i < sizeof(plugins) / sizeof(plugins[0]); i++) {
        if (plugins[i].match == MATCH_NO)
            return plugins[i].otherwise;
        if (plugins[i].match == MATCH_UNKNOWN)
            verdict = GS_ELIGIBLE_UNKNOWN;
    }
    return verdict;
}

/* NULL stays NULL; *whole becomes false when out of memory. */
static const char *copy_text(struct gs_arena *arena, const char *text, bool *whole)
{
    const char *copy = text ? gs_arena_strdup(arena, text) : NULL;
    *whole = *whole && (copy || !text);
    return copy;
}

static struct gs_term_of_nodes copy_term(struct gs_arena *arena,
                                         const struct gs_term_of_nodes *from, bool *whole)
{
    struct gs_term_of_nodes to = {
        gs_arena_extend(arena, from->all, from->count, 0, sizeof(*from->all)), from->count};
    *whole = *whole && to.all;
    for (uint32_t i = 0; *whole && i < to.count; i++) {
        struct gs_requirement *one = &to.all[i];
        one->key = copy_text(arena, one->key, whole);
        one->values =
            gs_arena_extend(arena, one->values, one->value_count, 0, sizeof(*one->values));
        *whole = *whole && one->values;
        for (uint32_t v = 0; *whole && v < one->value_count; v++)
            one->values[v] = copy_text(arena, one->values[v], whole);
    }
    return to;
}

int gs_pod_rules_copy(struct gs_arena *arena, struct gs_pod_rules *to,
                      const struct gs_pod_rules *from)
{
    struct gs_pod_rules copy = *from;
    bool whole = true;
    copy.selector = copy_term(arena, &from->selector, &whole);
    copy.terms = gs_arena_extend(arena, from->terms, from->term_count, 0, sizeof(*from->terms));
    copy.tolerations = gs_arena_extend(arena, from->tolerations, from->toleration_count, 0,
                                       sizeof(*from->tolerations));
    whole = whole && copy.terms && copy.tolerations;
    for (uint32_t i = 0; whole && i < copy.term_count; i++)
        copy.terms[i] = copy_term(arena, &from->terms[i], &whole);
    for (uint32_t i = 0; whole && i < copy.toleration_count; i++) {
        struct gs_toleration *one = &copy.tolerations[i];
        one->key = copy_text(arena, one->key, &whole);
        one->value = copy_text(arena, one->value, &whole);
        one->effect = copy_text(arena, one->effect, &whole);
    }
    *to = whole ? copy : (struct gs_pod_rules){0};
    return whole ? 0 : -1;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return hash * 31 + gs_hash_text(text ? text : "");
}

static uint64_t mix_term(uint64_t hash, const struct gs_term_of_nodes *term)
{
    hash = hash * 31 + term->count;
    for (uint32_t i = 0; i < term->count; i++) {
        const struct gs_requirement *one = &term->all[i];
        hash = mix_text(hash * 31 + (uint64_t)one->op * 2 + one->field, one->key);
        hash = hash * 31 + one->value_count;
        for (uint32_t v = 0; v < one->value_count; v++)
            hash = mix_text(hash, one->values[v]);
    }
    return hash;
}

uint64_t gs_pod_rules_hash(const struct gs_pod_rules *rules)
{
    uint64_t hash = mix_term(rules->affine, &rules->selector) * 31 + rules->term_count;
    for (uint32_t i = 0; i < rules->term_count; i++)
        hash = mix_term(hash, &rules->terms[i]);
    for (uint32_t i = 0; i < rules->toleration_count; i++) {
        const struct gs_toleration *one = &rules->tolerations[i];
        hash = mix_text(mix_text(mix_text(hash * 31 + one->op, one->key), one->value), one->effect);
    }
    return hash;
}

/* Puts a text behind those that stand there. */
static const char *put(char **at, const char *text)
{
    char *copy = *at;
    size_t bytes = strlen(text) + 1;
    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

static size_t text_bytes(const struct gs_node_rules *rules)
{
    size_t bytes = strlen(rules->name ? rules->name : "") + 1;
    for (uint32_t i = 0; i < rules->label_count; i++)
        bytes += strlen(rules->labels[i].key) + strlen(rules->labels[i].value) + 2;
    for (uint32_t i = 0; i < rules->taint_count; i++) {
        const struct gs_taint *taint = &rules->taints[i];
        bytes += strlen(taint->key) + strlen(taint->value) + strlen(taint->effect) + 3;
    }
    return bytes;
}

struct gs_node_rules *gs_node_rules_dup(const struct gs_node_rules *from)
{
    size_t fixed = sizeof(*from) + from->label_count * sizeof(struct gs_kv) +
                   from->taint_count * sizeof(struct gs_taint);
    char *memory = malloc(fixed + text_bytes(from));
    if (!memory)
        return NULL;
    struct gs_node_rules *to = (struct gs_node_rules *)memory;
    char *text = memory + fixed;
    *to = *from;
    to->labels = (struct gs_kv *)(to + 1);
    to->taints = (struct gs_taint *)(to->labels + from->label_count);
    to->name = put(&text, from->name ? from->name : "");
    for (uint32_t i = 0; i < from->label_count; i++) {
        const char *key = put(&text, from->labels[i].key);
        to->labels[i] = (struct gs_kv){key, put(&text, from->labels[i].value)};
    }
    for (uint32_t i = 0; i < from->taint_count; i++) {
        const struct gs_taint *taint = &from->taints[i];
        const char *key = put(&text, taint->key), *value = put(&text, taint->value);
        to->taints[i] = (struct gs_taint){key, value, put(&text, taint->effect)};
    }
    return to;
}

uint64_t gs_node_rules_hash(const struct gs_node_rules *rules)
{
    uint64_t hash = rules->unschedulable + 2ULL * rules->label_count;
    for (uint32_t i = 0; i < rules->label_count; i++)
        hash = mix_text(mix_text(hash, rules->labels[i].key), rules->labels[i].value);
    for (uint32_t i = 0; i < rules->taint_count; i++) {
        const struct gs_taint *taint = &rules->taints[i];
        hash = mix_text(mix_text(mix_text(hash, taint->key), taint->value), taint->effect);
    }
    return hash;
}
