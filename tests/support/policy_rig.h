/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/core/policy.h"
#include "rows.h"
#include "views.h"

/* Pods of one kind for tests of policies that learn. */
struct test_pods {
    uint32_t count;
    uint32_t units;
    uint32_t gpu_count;
    int64_t cpu_milli;
    const char *model; /* NULL: any */
};

static inline struct gs_ask test_ask(uint32_t units, uint32_t gpu_count, int64_t cpu_milli,
                                     const char *model)
{
    return (struct gs_ask){
        .units = units,
        .gpu_count = gpu_count,
        .cpu_milli = cpu_milli,
        .model = gs_slice_of(model ? model : ""),
        .selects = model != NULL,
    };
}

/* Lets the policies see the pods, up to the first entry of count 0, in turns: one of each kind. */
static inline void test_learn(struct gs_policies *policies, const struct test_pods *pods)
{
    for (uint32_t round = 0, more = 1; more; round++) {
        more = 0;
        for (const struct test_pods *p = pods; p->count; p++) {
            struct gs_ask ask = test_ask(p->units, p->gpu_count, p->cpu_milli, p->model);
            if (round < p->count)
                gs_policies_learn(policies, &ask);
            more |= round < p->count;
        }
    }
}

static inline void test_refresh(struct gs_policies *policies)
{
    struct gs_error err = {0};
    if (gs_policies_refresh(policies, &err) < 0)
        fail_msg("refresh: %s", err.msg);
}

/* A view with so much CPU left and a version, so that results are remembered. */
static inline struct gs_node_view *test_cpu_view(struct test_node *t, const char *gpus,
                                                 int64_t cpu_milli, uint64_t version)
{
    struct gs_node_view *view = test_view_init(t, gpus);
    view->cpu_milli = cpu_milli;
    view->version = version;
    return view;
}

/* One node alone. */
static inline bool test_policy_choose(struct gs_policies *policies, enum gs_placement placement,
                                      const struct gs_node_view *view, const struct gs_ask *ask,
                                      struct gs_choice *ret)
{
    struct gs_chooser chooser;
    gs_chooser_init(&chooser, policies, placement, ask);
    return gs_chooser_choose(&chooser, view, ret);
}

/* The loss of a view that the ask fits. */
static inline struct gs_choice test_choose(struct gs_policies *policies,
                                           enum gs_placement placement,
                                           const struct gs_node_view *view,
                                           const struct gs_ask *ask)
{
    struct gs_choice choice = {0};
    if (!test_policy_choose(policies, placement, view, ask, &choice))
        fail_msg("%s: does not fit", gs_placement_name(placement));
    return choice;
}
