/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "timed.h"

/* gpushare-packing --timed: policies at several loads, each with several seeds. */

enum { REPLAY_LOADS_MAX = 16, REPLAY_POLICIES_MAX = 4, REPLAY_SEEDS_MAX = 10 };

struct report_timed {
    const struct gs_trace *trace;
    const struct gs_replay_policy *const *policies;
    uint32_t policy_count;
    uint32_t load_pct[REPLAY_LOADS_MAX];
    uint32_t load_count;
    uint32_t seeds; /* so many, from replay.seed on */
    struct gs_replay_spec replay;
    uint32_t moves; /* an hour, as defrag says */
};

/* Prints the table. The codes of gs_timed_draw() and gs_timed_replay(); GS_EINVAL for no seed or
 * too many. */
int report_timed(const struct report_timed *run, struct gs_error *err);
