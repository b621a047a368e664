/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/arena.h"
#include "gpushare/model/kv.h"

/*
 * May this pod use this node, as far as their objects say? What kube-scheduler's plugins
 * NodeUnschedulable, TaintToleration and NodeAffinity answer in their Filter (pkg/scheduler/
 * framework/plugins, component-helpers/scheduling/corev1: nodeaffinity, helpers). Room is not
 * looked at. Pure, any thread.
 *
 *   gs_eligible(&pod->rules, &node->rules)
 *
 * | the node has, the pod has | GS_ELIGIBLE… |
 * | --- | --- |
 * | spec.unschedulable, no toleration of that taint with NoSchedule | _NOT_CORDONED |
 * | a taint NoSchedule or NoExecute that no toleration matches | _NOT_TAINTED |
 * | a label of spec.nodeSelector not, or with another value | _NOT_SELECTED |
 * | required node affinity of which no term matches; a term without requirements matches nothing |
 * _NOT_AFFINE | | an operator, a field, or more words than are kept here that would decide |
 * _UNKNOWN |
 *
 * What it cannot see: addedAffinity of a kube-scheduler profile, other plugins, volumes, resources.
 * Who asks: what is offered has to be GS_ELIGIBLE; what is woken must not be ineligible; a bind is
 * never refused for GS_ELIGIBLE_UNKNOWN.
 */
enum gs_eligible {
    GS_ELIGIBLE,
    GS_ELIGIBLE_UNKNOWN, /* nothing that is understood speaks against it */
    GS_ELIGIBLE_NOT_CORDONED,
    GS_ELIGIBLE_NOT_TAINTED,
    GS_ELIGIBLE_NOT_SELECTED,
    GS_ELIGIBLE_NOT_AFFINE,
};

/* The pod may go there, or nobody can say. */
static inline bool gs_eligible_perhaps(enum gs_eligible verdict)
{
    return verdict <= GS_ELIGIBLE_UNKNOWN;
}

/* In kube-scheduler's words; "" for the first two. */
const char *gs_eligible_text(enum gs_eligible verdict);

enum gs_operator {
    GS_OPERATOR_UNKNOWN,
    GS_OPERATOR_IN,
    GS_OPERATOR_NOT_IN,
    GS_OPERATOR_EXISTS,
    GS_OPERATOR_DOES_NOT_EXIST,
    GS_OPERATOR_GT,
    GS_OPERATOR_LT,
};

/* A NodeSelectorRequirement, of a label or (matchFields) of a field. */
struct gs_requirement {
    const char *key;
    const char **values;
    uint32_t value_count;
    enum gs_operator op;
    bool field;
};

/* A NodeSelectorTerm, or a label selector: all of its requirements. */
struct gs_term_of_nodes {
    struct gs_requirement *all;
    uint32_t count;
};

struct gs_toleration {
    const char *key, *value, *effect; /* key, effect "": every one */
    enum gs_operator op;              /* Equal is _IN, Exists _EXISTS, the rest _UNKNOWN */
};

/* A pod's requirements, terms and tolerations together, and all their values: they are compared
 * with thousands of nodes. In place of what is above that stands one with _UNKNOWN. */
enum { GS_RULES_MAX = 64, GS_RULES_VALUES_MAX = 256 };

/* Of a pod. Zeroed: it may go wherever there is no taint. */
struct gs_pod_rules {
    struct gs_term_of_nodes selector; /* spec.nodeSelector: each label In one value */
    struct gs_term_of_nodes *terms;   /* required node affinity: one of them, when affine */
    uint32_t term_count;
    bool affine;
    struct gs_toleration *tolerations;
    uint32_t toleration_count;
};

struct gs_taint {
    const char *key, *value, *effect;
};

/* Of a node. */
struct gs_node_rules {
    const char *name;     /* NULL is "" */
    struct gs_kv *labels; /* ascending key */
    uint32_t label_count;
    struct gs_taint *taints;
    uint32_t taint_count;
    bool unschedulable; /* spec.unschedulable */
};

enum gs_eligible gs_eligible(const struct gs_pod_rules *pod, const struct gs_node_rules *node);

/* The label's value, or NULL. */
const char *gs_node_label(const struct gs_node_rules *node, const char *key);

/* By key, as gs_node_label() wants them. */
void gs_node_labels_sort(struct gs_kv *labels, size_t count);

/* The pod's nodeSelector and required node affinity, or perhaps: what it cannot say counts. */
bool gs_pod_selects(const struct gs_pod_rules *pod, const struct gs_node_rules *node);

/* The first taint that keeps the pod away and is not one of the node controller's for a node's
 * state (node.kubernetes.io/…); *borrowed* from the node, NULL without one. */
const struct gs_taint *gs_find_untolerated(const struct gs_pod_rules *pod,
                                           const struct gs_node_rules *node);

/* *to becomes a copy whose memory is the arena's. -1: out of memory, *to is then zeroed. */
int gs_pod_rules_copy(struct gs_arena *arena, struct gs_pod_rules *to,
                      const struct gs_pod_rules *from);

/* Of all that it says (base/index.h). */
uint64_t gs_pod_rules_hash(const struct gs_pod_rules *rules);

/*
 * A copy in one piece of memory of its own; caller frees. NULL: out of memory. What is the same in
 * two nodes but for their names has the same gs_node_rules_hash(): of labels, taints and
 * unschedulable (base/index.h).
 */
struct gs_node_rules *gs_node_rules_dup(const struct gs_node_rules *from);
uint64_t gs_node_rules_hash(const struct gs_node_rules *rules);
