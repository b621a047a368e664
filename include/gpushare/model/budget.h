/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_MODEL_BUDGET_H
#define GPUSHARE_MODEL_BUDGET_H

#include "gpushare/model/eligible.h"

/*
 * A PodDisruptionBudget (k8s.io/api/policy/v1/types.go), as kube-scheduler counts it when it
 * preempts (pkg/scheduler/framework/plugins/defaultpreemption: filterPodsWithPDBViolation).
 */
struct gs_budget {
    const char *ns;                   /* NULL is "" */
    struct gs_term_of_nodes selector; /* of pods; empty: it covers none */
    const char **disrupted; /* status.disruptedPods: names of pods whose end is counted already */
    uint32_t disrupted_count;
    int32_t allowed; /* status.disruptionsAllowed */
};

/* Whether the end of that pod would be counted. labels: ascending key. Pure. */
bool gs_budget_covers(const struct gs_budget *budget, const char *ns, const char *name,
                      const struct gs_kv *labels, uint32_t label_count);

#endif
