/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/reason.h"

static const struct {
    const char *text;
    const char *label;
    bool unresolvable;
} reasons[] = {
    [GS_FITS] = {"", "fits", false},
    [GS_REASON_UNKNOWN_NODE] = {"node is not known to gpushare yet", "unknown_node", false},
    [GS_REASON_NO_GPUS] = {"node has no shareable GPU memory", "no_gpus", true},
    [GS_REASON_GPU_TOO_SMALL] = {"no GPU is as large as the request", "gpu_too_small", true},
    [GS_REASON_TOO_FEW_GPUS] = {"node has fewer large enough GPUs than requested", "too_few_gpus",
                                true},
    [GS_REASON_NO_MATCH] = {"no GPU matches the requested model or UUID", "no_match", true},
    [GS_REASON_NO_ROOM] = {"insufficient free GPU memory", "no_room", false},
    [GS_REASON_FRAGMENTED] =
        {"free GPU memory is spread over several GPUs, no single GPU has enough", "fragmented",
         false},
    [GS_REASON_TOO_FEW_FREE] = {"fewer GPUs have enough free memory at once than requested",
                                "too_few_free", false},
    [GS_REASON_NOT_USABLE] = {"GPUs with enough free memory are unhealthy or cordoned",
                              "not_usable", false},
    [GS_REASON_MAX_PODS] = {"GPUs with enough free memory have as many pods as they may have",
                            "max_pods", false},
    [GS_REASON_NO_CORES] =
        {"GPUs with enough free memory have too little free compute (gpu-core.percentage)",
         "no_cores", false},
    [GS_REASON_NOMINATED] =
        {"free GPU memory is held for a nominated pod or a member of a pod group", "nominated",
         false},
    [GS_REASON_BIND_OPEN] = {"an earlier bind to another node has no known outcome yet",
                             "bind_open", false},
    [GS_REASON_BAD_COUNT] =
        {"label or annotation gpu-count is not a number from 1 to 64, or they differ", "bad_count",
         true},
    [GS_REASON_NOT_DIVISIBLE] = {"GPU memory of a container does not divide by gpu-count",
                                 "not_divisible", true},
    [GS_REASON_BAD_PLACEMENT] = {"annotation gpu-placement names no policy", "bad_placement", true},
    [GS_REASON_BAD_MODEL] = {"annotation gpu-model is not a comma list, or is too long a one",
                             "bad_model", true},
    [GS_REASON_BAD_MODEL_DENY] =
        {"annotation gpu-model-deny is not a comma list, or is too long a one", "bad_model_deny",
         true},
    [GS_REASON_BAD_UUID] = {"annotation gpu-uuid is not a comma list, or is too long a one",
                            "bad_uuid", true},
    [GS_REASON_BAD_UUID_DENY] =
        {"annotation gpu-uuid-deny is not a comma list, or is too long a one", "bad_uuid_deny",
         true},
    [GS_REASON_CORES_ALONE] = {"a container asks for gpu-core.percentage without gpu-mem",
                               "cores_alone", true},
    [GS_REASON_CORES_ABOVE] = {"gpu-core.percentage is more than one GPU has", "cores_above", true},
    [GS_REASON_CORES_SPREAD] = {"gpu-core.percentage is of one GPU, and gpu-count asks for several",
                                "cores_spread", true},
};

const char *gs_reason_text(enum gs_reason reason)
{
    return reasons[reason].text;
}

const char *gs_reason_label(enum gs_reason reason)
{
    return reasons[reason].label;
}

bool gs_reason_unresolvable(enum gs_reason reason)
{
    return reasons[reason].unresolvable;
}

/* A reason has one place in it; the first is the nearest. */
static const enum gs_reason from_near_to_far[GS_REASONS] = {
    GS_FITS,
    GS_REASON_BIND_OPEN,
    GS_REASON_NOMINATED,
    GS_REASON_NOT_USABLE,
    GS_REASON_MAX_PODS,
    GS_REASON_NO_CORES,
    GS_REASON_FRAGMENTED,
    GS_REASON_TOO_FEW_FREE,
    GS_REASON_NO_ROOM,
    GS_REASON_BAD_COUNT,
    GS_REASON_NOT_DIVISIBLE,
    GS_REASON_BAD_PLACEMENT,
    GS_REASON_BAD_MODEL,
    GS_REASON_BAD_MODEL_DENY,
    GS_REASON_BAD_UUID,
    GS_REASON_BAD_UUID_DENY,
    GS_REASON_CORES_ALONE,
    GS_REASON_CORES_ABOVE,
    GS_REASON_CORES_SPREAD,
    GS_REASON_NO_MATCH,
    GS_REASON_TOO_FEW_GPUS,
    GS_REASON_GPU_TOO_SMALL,
    GS_REASON_NO_GPUS,
    GS_REASON_UNKNOWN_NODE,
};

bool gs_reason_nearer(enum gs_reason a, enum gs_reason b)
{
    int place = 0;
    while (from_near_to_far[place] != a && from_near_to_far[place] != b)
        place++;
    return a != b && from_near_to_far[place] == a;
}
