/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that were force-deleted: gone from the API at once, from the GPU a little later. */
#include <stdlib.h>

#include "internal.h"

/* The kubelet gives the containers of a pod that the API forgot 2 s whatever the pod says, and may
 * look every 2 s only (pkg/kubelet/kuberuntime, minimumGracePeriodInSeconds; kubelet.go,
 * housekeepingPeriod). Processes were seen for up to 4 s. */
#define DYING_NS (6 * GS_NS_PER_S)

void gs_dying_free(struct gs_allocator *alloc)
{
    while (alloc->dying) {
        struct dying *next = alloc->dying->next;
        free(alloc->dying);
        alloc->dying = next;
    }
}

static void forget_the_dead(struct gs_allocator *alloc, int64_t now_ns)
{
    struct dying **at = &alloc->dying;
    while (*at) {
        struct dying *this = *at;
        if (now_ns < this->until_ns) {
            at = &this->next;
            continue;
        }
        *at = this->next;
        free(this);
    }
}

/* Without memory nobody waits. */
void gs_dying_add(struct gs_allocator *alloc, const struct claimant *gone)
{
    const struct gs_clock *clock = alloc->config.clock;
    gs_gpu_mask place = gs_claimant_place(alloc, gone);
    if (!clock || !gone->pod.runs || !place)
        return;
    int64_t now_ns = gs_clock_now_ns(clock);
    forget_the_dead(alloc, now_ns);
    struct dying *dying = calloc(1, sizeof(*dying));
    if (!dying)
        return;
    *dying = (struct dying){.next = alloc->dying,
                            .gpus = place,
                            .units = gone->charge.units,
                            .until_ns = now_ns + DYING_NS};
    alloc->dying = dying;
}

bool gs_dying_in_the_way(struct gs_allocator *alloc, const struct claimant *claimant)
{
    uint64_t used[GS_GPUS_MAX] = {0};
    uint32_t idx;
    if (!alloc->dying)
        return false;
    forget_the_dead(alloc, gs_clock_now_ns(alloc->config.clock));
    gs_claimant_others(alloc, claimant, used);
    for (const struct dying *at = alloc->dying; at; at = at->next) {
        GS_FOR_EACH_GPU (idx, at->gpus)
            used[idx] += at->units;
    }
    return alloc->dying && !gs_allocator_has_room(alloc, claimant, claimant->truth, used);
}
