/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/eligible.h"

/*
 * A PodDisruptionBudget (k8s.io/api/policy/v1/types.go), as kube-scheduler counts it when it
 * preempts (pkg/scheduler/framework/plugins/defaultpreemption: filterPodsWithPDBViolation).
 */
struct gs_budget {
    const char *ns;
    struct gs_term_of_nodes selector; /* of pods; empty: it covers none */
    const char **disrupted; /* status.disruptedPods: names of pods whose end is counted already */
    uint32_t disrupted_count;
    int32_t allowed; /* status.disruptionsAllowed */
    uint32_t work;   /* what asking takes, with those of its namespace before it */
    bool excess;     /* that is too much: it covers every pod of its namespace */
};

/* A pod's labels as selectors compare them: hashes (base/index.h), ascending key. */
struct gs_labels {
    uint64_t count;
    struct gs_label {
        uint64_t key, value;
    } all[];
};

/* In the arena; NULL: out of memory. */
struct gs_labels *gs_labels_of(struct gs_arena *arena, const struct gs_kv *all, uint32_t count);

/* Whether the end of that pod of its namespace would be counted. labels NULL: none. A requirement
 * that is not understood speaks against nothing. Pure. */
bool gs_budget_covers(const struct gs_budget *budget, const char *name,
                      const struct gs_labels *labels);
