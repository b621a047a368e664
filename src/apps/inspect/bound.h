/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_BOUND_H
#define GPUSHARE_APPS_INSPECT_BOUND_H

#include "gpushare/core/defrag.h"
#include "gpushare/port/kube.h"

/*
 * Bound pods with GPU memory as the planner of moves wants them: what each would ask for again,
 * which the ledger does not keep. Filled as a fetch's first sink.
 *
 *   struct bound bound = {.now_s = common_now_s(&common)};
 *   const struct gs_watch_sink first = bound_sink(&bound);
 */
struct bound {
    int64_t now_s; /* Unix time */
    struct gs_defrag_pod *pods;
    uint32_t count, cap;
    struct gs_arena texts;
};

struct gs_watch_sink bound_sink(struct bound *bound);
void bound_release(struct bound *bound);

#endif
