/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "timed.h"

/* gpushare-packing replay --timed: policies at several loads, each with several seeds. */

enum { REPLAY_LOADS_MAX = 16, REPLAY_POLICIES_MAX = 16, REPLAY_SEEDS_MAX = 100 };

struct replay_loads {
    uint32_t percent[REPLAY_LOADS_MAX];
    uint32_t count;
};

/* "130", "80,90,110" or, with a point, as parts of 1: "0.8,1.1"; *to is a struct replay_loads. */
bool replay_loads_set(void *to, const char *text);

struct report_timed {
    const struct gs_trace *trace;
    const struct gs_replay_policy *const *policies;
    uint32_t policy_count;
    struct replay_loads loads;
    struct gs_timed_draw draw; /* its load and seed: of the first run */
    uint32_t seeds;            /* so many, the ones after draw.seed */
    struct gs_replay_spec replay;
    uint32_t moves;      /* an hour, as defrag says */
    const char *results; /* CSV with every figure of every run, or NULL */
};

/* Prints the table. The codes of gs_timed_draw() and gs_timed_replay(); GS_EINVAL for no seed or
 * too many; GS_EIO. */
int report_timed(const struct report_timed *run, struct gs_error *err);
