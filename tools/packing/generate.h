/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "trace.h"

/*
 * A synthetic cluster and its pods in the shape of the openb trace, for those who do not have the
 * trace: nodes of several models and sizes, mostly pods with a part of a GPU or a whole one, some
 * without, very few with 2, 4 or 8. Drawn from rounded, published marginals (generate.c says
 * which), not from the trace: results compare policies, they are not the trace's results.
 *
 *   struct gs_trace trace = {0};
 *   gs_generate(&(struct gs_generate_spec){.nodes = 200, .load_pct = 98, .seed = 1}, &trace, err);
 *   gs_trace_release(&trace);
 */
struct gs_generate_spec {
    uint32_t nodes;
    uint32_t load_pct; /* GPUs that all pods together ask for, in percent of the cluster's */
    bool timed;        /* fills trace.stays, too; the pods are the same without */
    uint64_t seed;     /* the same numbers give the same trace on every machine */
};

/* *ret zeroed before. GS_EINVAL: no nodes, more than GS_TRACE_NODES_MAX, or a load of 0 or above
 * 1000; GS_ENOMEM. */
int gs_generate(const struct gs_generate_spec *spec, struct gs_trace *ret, struct gs_error *err);
