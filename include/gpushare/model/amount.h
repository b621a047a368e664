/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* What a pod requests of each of its GPUs. A third quantity is one line here, one in struct
 * gs_gpu_state (core/view.h: used and free of each quantity) with gs_view_charge(), and one in
 * gs_fit_candidates() (core/placement.c). */
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
