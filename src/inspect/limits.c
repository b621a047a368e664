/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/view.h"

const char *limits_enforced(const struct view_node *node)
{
    bool told = false, some = false, same = true;
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const enum gs_enforced enforced = node->gpus[i].gpu->enforced;
        told |= enforced != GS_ENFORCED_UNKNOWN;
        some |= gs_enforced_holds(enforced);
        same &= enforced == node->gpus[0].gpu->enforced;
    }
    if (!told)
        return NULL;
    return !some ? "none" : same ? gs_enforced_name(node->gpus[0].gpu->enforced) : "some";
}

/* Why no limit of the kernel's can be on it; "" when one can, when it is not known, and of GPUs
 * beside whose ways there is no `required`. */
static const char *no_limit_on(enum gs_enforced enforced)
{
    switch (enforced) {
    case GS_ENFORCED_MIG:
        return gs_enforced_reason(GS_ENFORCED_INSTANCE);
    case GS_ENFORCED_NOT_ON:
    case GS_ENFORCED_NOT_HELD: /* a pod there is not; this one may be */
    case GS_ENFORCED_MPS_AWAY:
    case GS_ENFORCED_HOOK_AWAY:
        return "";
    default:
        return gs_enforced_reason(enforced);
    }
}

uint64_t limits_over(const struct usage_pod *pod, uint64_t bytes)
{
    return bytes > pod->limit_bytes ? bytes - pod->limit_bytes : 0;
}

/* Now, or ever. */
static bool is_over(const struct usage_pod *pod)
{
    return pod && (limits_over(pod, pod->used_bytes) || limits_over(pod, pod->peak_bytes));
}

static void say_over(const struct usage_pod *pod, char text[LIMITS_TEXT_BYTES])
{
    const uint64_t now = limits_over(pod, pod->used_bytes);
    char over[USAGE_TEXT_BYTES];
    const uint64_t bytes = now ? now : limits_over(pod, pod->peak_bytes);
    const enum gs_unit unit = bytes >> 30 ? GS_UNIT_GIB : GS_UNIT_MIB;
    usage_text(bytes, unit, over);
    snprintf(text, LIMITS_TEXT_BYTES, "%s %s %s more than its request%s", now ? "uses" : "used",
             over, gs_unit_name(unit), now ? "" : " at its peak");
}

const char *limits_hold(const struct view_node *node, const struct gs_claim *claim,
                        const struct usage *usage, char text[LIMITS_TEXT_BYTES])
{
    const struct usage_pod *pod = usage_pod_find(usage, claim->node, claim->uid);
    if (is_over(pod)) {
        say_over(pod, text);
        return text;
    }
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const enum gs_enforced enforced = node->gpus[i].gpu->enforced;
        if (!claim_on(claim, node->gpus[i].idx))
            continue;
        if (no_limit_on(enforced)[0])
            return no_limit_on(enforced);
        if (enforced == GS_ENFORCED_NOT_HELD && pod && gs_enforced_lacks(pod->enforced))
            return pod->reason;
    }
    return NULL;
}

void limits_count(struct view_node *node, const struct usage *usage, bool whole)
{
    char text[LIMITS_TEXT_BYTES];
    /* a plugin that names no pods tells how many of the node's are over */
    const uint64_t over =
        whole && node->usage && !node->usage->names_pods ? node->usage->over_pods : 0;
    EACH_GPU (gpu, node)
        node->limited_gpus += gs_enforced_holds(gpu->gpu->enforced);
    EACH_CLAIM (claim, node)
        node->blocked_pods += limits_hold(node, claim, usage, text) != NULL;
    if (node->blocked_pods < over) /* they may be the same */
        node->blocked_pods = over < node->claim_count ? (uint32_t)over : node->claim_count;
}

const char *limits_why_not(const struct view_node *node)
{
    for (uint32_t i = 0; i < node->gpu_count; i++) {
        const enum gs_enforced enforced = node->gpus[i].gpu->enforced;
        if (enforced == GS_ENFORCED_UNKNOWN)
            return "its device plugin does not report it";
        if (gs_enforced_lacks(enforced))
            return gs_enforced_reason(enforced);
    }
    return NULL;
}
