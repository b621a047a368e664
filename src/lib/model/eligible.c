/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/eligible.h"

#include <stdlib.h>

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

void gs_node_labels_sort(struct gs_kv *labels, size_t count)
{
    if (count)
        qsort(labels, count, sizeof(*labels), gs_text_order);
}

const char *gs_node_label(const struct gs_node_rules *node, const char *key)
{
    const struct gs_kv wanted = {.key = key};
    const struct gs_kv *found =
        node->label_count
            ? bsearch(&wanted, node->labels, node->label_count, sizeof(wanted), gs_text_order)
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

/* --- copies and hashes --- */

/* Each text of an object's rules, in one order. number: what stands beside it. */
typedef void text_fn(void *ctx, const char **text, uint64_t number);

static void each_text_of_term(const struct gs_term_of_nodes *term, text_fn *each, void *ctx)
{
    for (uint32_t i = 0; i < term->count; i++) {
        struct gs_requirement *one = &term->all[i];
        each(ctx, &one->key, (uint64_t)one->value_count << 8 | one->op << 1 | one->field);
        for (uint32_t v = 0; v < one->value_count; v++)
            each(ctx, &one->values[v], 0);
    }
}

static void each_text_of_pod(const struct gs_pod_rules *rules, text_fn *each, void *ctx)
{
    each_text_of_term(&rules->selector, each, ctx);
    for (uint32_t i = 0; i < rules->term_count; i++)
        each_text_of_term(&rules->terms[i], each, ctx);
    for (uint32_t i = 0; i < rules->toleration_count; i++) {
        struct gs_toleration *one = &rules->tolerations[i];
        each(ctx, &one->key, one->op);
        each(ctx, &one->value, 0);
        each(ctx, &one->effect, 0);
    }
}

static void each_text_of_node(const struct gs_node_rules *rules, text_fn *each, void *ctx)
{
    for (uint32_t i = 0; i < rules->label_count; i++) {
        each(ctx, &rules->labels[i].key, 0);
        each(ctx, &rules->labels[i].value, 0);
    }
    for (uint32_t i = 0; i < rules->taint_count; i++) {
        struct gs_taint *taint = &rules->taints[i];
        each(ctx, &taint->key, 1);
        each(ctx, &taint->value, 0);
        each(ctx, &taint->effect, 0);
    }
}

static void mix_text(void *ctx, const char **text, uint64_t number)
{
    uint64_t *hash = ctx;
    *hash = (*hash * 31 + number) * 31 + gs_hash_text(*text ? *text : "");
}

uint64_t gs_pod_rules_hash(const struct gs_pod_rules *rules)
{
    uint64_t hash = rules->affine;
    for (uint32_t i = 0; i < rules->term_count; i++)
        hash = hash * 31 + rules->terms[i].count;
    each_text_of_pod(rules, mix_text, &hash);
    return hash;
}

uint64_t gs_node_rules_hash(const struct gs_node_rules *rules)
{
    uint64_t hash = rules->unschedulable;
    each_text_of_node(rules, mix_text, &hash);
    return hash;
}

/* A copy in progress. */
struct copying {
    struct gs_arena *arena;
    bool whole; /* until memory runs out */
};

static void *copy_array(struct copying *copying, const void *list, uint32_t count, size_t size)
{
    void *copy = gs_arena_extend(copying->arena, list, count, 0, size);
    copying->whole = copying->whole && copy;
    return copy;
}

static void copy_term(struct copying *copying, struct gs_term_of_nodes *term)
{
    term->all = copy_array(copying, term->all, term->count, sizeof(*term->all));
    for (uint32_t i = 0; copying->whole && i < term->count; i++)
        term->all[i].values = copy_array(copying, term->all[i].values, term->all[i].value_count,
                                         sizeof(*term->all[i].values));
}

static void copy_text(void *ctx, const char **text, uint64_t number)
{
    struct copying *copying = ctx;
    *text = *text && copying->whole ? gs_arena_strdup(copying->arena, *text) : *text;
    copying->whole = copying->whole && *text;
}

int gs_pod_rules_copy(struct gs_arena *arena, struct gs_pod_rules *to,
                      const struct gs_pod_rules *from)
{
    struct gs_pod_rules copy = *from;
    struct copying copying = {arena, true};
    copy_term(&copying, &copy.selector);
    copy.terms = copy_array(&copying, from->terms, from->term_count, sizeof(*from->terms));
    copy.tolerations =
        copy_array(&copying, from->tolerations, from->toleration_count, sizeof(*from->tolerations));
    for (uint32_t i = 0; copying.whole && i < copy.term_count; i++)
        copy_term(&copying, &copy.terms[i]);
    if (copying.whole)
        each_text_of_pod(&copy, copy_text, &copying);
    *to = copying.whole ? copy : (struct gs_pod_rules){0};
    return copying.whole ? 0 : -1;
}

static void add_bytes(void *ctx, const char **text, uint64_t number)
{
    *(size_t *)ctx += strlen(*text) + 1;
}

/* Puts a text behind those that stand there. */
static void put(void *ctx, const char **text, uint64_t number)
{
    char **at = ctx;
    const size_t bytes = strlen(*text) + 1;
    *text = memcpy(*at, *text, bytes);
    *at += bytes;
}

struct gs_node_rules *gs_node_rules_dup(const struct gs_node_rules *from)
{
    const char *name = from->name ? from->name : "";
    size_t bytes = sizeof(*from) + from->label_count * sizeof(*from->labels) +
                   from->taint_count * sizeof(*from->taints);
    add_bytes(&bytes, &name, 0);
    each_text_of_node(from, add_bytes, &bytes);
    struct gs_node_rules *to = malloc(bytes);
    if (!to)
        return NULL;
    *to = *from;
    to->labels = (struct gs_kv *)(to + 1);
    to->taints = (struct gs_taint *)(to->labels + from->label_count);
    char *at = (char *)(to->taints + from->taint_count);
    for (uint32_t i = 0; i < from->label_count; i++)
        to->labels[i] = from->labels[i];
    for (uint32_t i = 0; i < from->taint_count; i++)
        to->taints[i] = from->taints[i];
    put(&at, &name, 0);
    to->name = name;
    each_text_of_node(to, put, &at);
    return to;
}
