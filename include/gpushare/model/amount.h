/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What a pod requests of each of its GPUs. A third quantity begins here. In core it goes on in
 * struct gs_gpu_state (view.h) with gs_view_charge(), candidate(), tally_of() and gs_fit()'s fast
 * path (placement.c), gs_ask_hash(), struct gs_leaving, gs_place_count(), has_room()
 * (defrag_search.c) and the ledger's audit; in the CLI in verdict_key(). Annotations, reasons, the
 * plugin's record and the CLI's columns are where `git grep cores_pct` leads. */
struct gs_amount {
    uint32_t units;     /* of memory; 0: the pod requests no GPU */
    uint32_t cores_pct; /* of compute, at most GS_CORES_PCT; 0: none is requested */
};

/* A member of a struct: the amount as a value, `each`, and what is in it by name. */
#define GS_AMOUNT_EACH                                                                             \
    union {                                                                                        \
        struct gs_amount each;                                                                     \
        struct {                                                                                   \
            uint32_t units;                                                                        \
            uint32_t cores_pct;                                                                    \
        };                                                                                         \
    }
