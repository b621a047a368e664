/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_SWAPS_H
#define GPUSHARE_SERVICE_SWAPS_H

#include <stdint.h>

#include "gpushare/core/ledger.h"

/*
 * The device plugin found that two equal pods got each other's GPUs and repairs the record with
 * two patches (contract, section 4). The first one names the partner: from that event on both
 * claims count where they really are, although the partner's own annotation is still the old one.
 * A swap is remembered until the partner's annotation says something else, or the partner ends.
 *
 * When this process did not see the pod's GPUs before the first patch (it started between the
 * two), the partner's real place is not known: it is charged as unplaced until its own patch.
 * Not thread-safe: guarded by the store.
 */
struct gs_swap;
struct gs_swaps {
    struct gs_swap *first;
};

void gs_swaps_release(struct gs_swaps *swaps);

/* A bound pod's event says swap_with = partner; claim is how the pod will be charged. Called before
 * the claim is set. Moves the partner's claim, if it is an equal of the pod on the same node:
 * whoever may write annotations could move others' pods otherwise. GS_ENOMEM. */
int gs_swaps_begin(struct gs_swaps *swaps, struct gs_ledger *ledger, const struct gs_claim *claim,
                   const char *partner, struct gs_error *err);

/* The GPUs that count for a claim about to be set: the recorded ones, which it comes with, or the
 * swapped ones while the record is still the old one. Ends the swap when the record has followed.
 */
gs_gpu_mask gs_swaps_gpus(struct gs_swaps *swaps, const struct gs_claim *claim);

/* What such a claim holds, afterwards. */
gs_gpu_mask gs_swaps_expected(const struct gs_swaps *swaps, const char *uid, gs_gpu_mask recorded);

/* The pod ended. */
void gs_swaps_forget(struct gs_swaps *swaps, const char *uid);

#endif
