/* SPDX-License-Identifier: Apache-2.0 */
#include "swaps.h"

#include <stdlib.h>
#include <string.h>

struct gs_swap {
    struct gs_swap *next;
    gs_gpu_mask stale; /* what the partner's annotation says until its own patch */
    gs_gpu_mask real;  /* where the partner is; 0: not known */
    uint64_t node;     /* a hash of its name; partners are equal and on one node */
    uint32_t units, gpu_count;
    char partner[]; /* UID */
};

static uint64_t hash_node(const struct gs_claim *claim)
{
    return gs_hash_text(claim->node);
}

static bool are_equals(const struct gs_swap *swap, const struct gs_claim *partner)
{
    return swap->node == hash_node(partner) && swap->units == partner->units &&
           swap->gpu_count == partner->gpu_count;
}

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
    if (strcmp(partner, claim->uid) == 0 || *find(swaps, partner))
        return 0;
    bool other_known = gs_ledger_find_claim(ledger, partner, &other);
    if (other_known && other.gpus != claim->gpus)
        return 0; /* the partner's own patch came first */
    size_t len = strlen(partner) + 1;
    struct gs_swap *swap = malloc(sizeof(*swap) + len);
    if (!swap)
        return gs_fail_nomem(err);
    *swap = (struct gs_swap){
        .next = swaps->first,
        .stale = claim->gpus,
        .real = known ? own.gpus : 0,
        .node = hash_node(claim),
        .units = claim->units,
        .gpu_count = claim->gpu_count,
    };
    memcpy(swap->partner, partner, len);
    if (other_known && !are_equals(swap, &other)) {
        free(swap);
        return 0;
    }
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

gs_gpu_mask gs_swaps_gpus(struct gs_swaps *swaps, const struct gs_claim *claim)
{
    struct gs_swap **at = find(swaps, claim->uid);
    if (!*at)
        return claim->gpus;
    if ((*at)->stale == claim->gpus && are_equals(*at, claim))
        return (*at)->real;
    struct gs_swap *done = *at;
    *at = done->next;
    free(done);
    return claim->gpus;
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
