/* SPDX-License-Identifier: Apache-2.0 */
#include "swaps.h"

#include <stdlib.h>
#include <string.h>

struct gs_swap {
    struct gs_swap *next;
    gs_gpu_mask stale; /* what the partner's annotation says until its own patch */
    gs_gpu_mask real;  /* where the partner is; 0: not known */
    char partner[];    /* UID */
};

void gs_swaps_release(struct gs_swaps *swaps)
{
    while (swaps->first) {
        struct gs_swap *next = swaps->first->next;
        free(swaps->first);
        swaps->first = next;
    }
}

static struct gs_swap **find(struct gs_swaps *swaps, const char *partner)
{
    struct gs_swap **at = &swaps->first;
    while (*at && strcmp((*at)->partner, partner) != 0)
        at = &(*at)->next;
    return at;
}

int gs_swaps_begin(struct gs_swaps *swaps, struct gs_ledger *ledger, const struct gs_claim *claim,
                   const char *partner, struct gs_error *err)
{
    struct gs_claim own = {0}, other;
    bool known = gs_ledger_find_claim(ledger, claim->uid, &own);
    if (known && own.gpus == claim->gpus)
        return 0; /* not the patch itself, only a later event that still carries the key */
    if (*find(swaps, partner))
        return 0;
    bool other_known = gs_ledger_find_claim(ledger, partner, &other);
    if (other_known && other.gpus != claim->gpus)
        return 0; /* the partner's own patch came first */
    size_t len = strlen(partner) + 1;
    struct gs_swap *swap = malloc(sizeof(*swap) + len);
    if (!swap)
        return gs_fail_nomem(err);
    swap->next = swaps->first;
    swap->stale = claim->gpus;
    swap->real = known ? own.gpus : 0;
    memcpy(swap->partner, partner, len);
    swaps->first = swap;
    if (!other_known)
        return 0;
    other.gpus = swap->real;
    struct gs_claim moved = other;
    moved.uid = swap->partner;
    _cleanup_free_ char *node = strdup(other.node); /* lent by the ledger that we change */
    if (!node)
        return gs_fail_nomem(err);
    moved.node = node;
    return gs_ledger_set_claim(ledger, &moved, err);
}

gs_gpu_mask gs_swaps_gpus(struct gs_swaps *swaps, const char *uid, gs_gpu_mask recorded)
{
    struct gs_swap **at = find(swaps, uid);
    if (!*at)
        return recorded;
    if ((*at)->stale == recorded)
        return (*at)->real;
    struct gs_swap *done = *at;
    *at = done->next;
    free(done);
    return recorded;
}

gs_gpu_mask gs_swaps_expected(const struct gs_swaps *swaps, const char *uid, gs_gpu_mask recorded)
{
    for (const struct gs_swap *swap = swaps->first; swap; swap = swap->next) {
        if (strcmp(swap->partner, uid) == 0)
            return swap->stale == recorded ? swap->real : recorded;
    }
    return recorded;
}

void gs_swaps_forget(struct gs_swaps *swaps, const char *uid)
{
    struct gs_swap **at = find(swaps, uid);
    if (!*at)
        return;
    struct gs_swap *done = *at;
    *at = done->next;
    free(done);
}
