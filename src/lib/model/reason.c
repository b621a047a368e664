/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/reason.h"

static const struct {
    const char *text;
    const char *label;
} reasons[] = {
    [GS_FITS] = {"", "fits"},
    [GS_REASON_BIND_OPEN] =
        {"unresolved bind: waiting for the outcome of an earlier bind to another node",
         "unresolved_bind"},
    [GS_REASON_NOMINATED] = {"the free GPU memory is reserved for a nominated pod or a pod group",
                             "reserved"},
    [GS_REASON_NOT_USABLE] = {"all GPUs with enough free memory are unhealthy or cordoned",
                              "unusable_gpus"},
    [GS_REASON_MAX_PODS] = {"pod limit (MPS clients) reached on the GPUs with enough free memory",
                            "max_pods"},
    [GS_REASON_NO_CORES] =
        {"insufficient free compute (gpu-core.percentage) on the GPUs with enough free memory",
         "insufficient_compute"},
    [GS_REASON_FRAGMENTED] = {"insufficient free memory on any single GPU (fragmented)",
                              "fragmented"},
    [GS_REASON_TOO_FEW_FREE] = {"too few GPUs with enough free memory", "too_few_gpus_free"},
    [GS_REASON_NO_ROOM] = {"insufficient free GPU memory", "insufficient_memory"},
    [GS_REASON_BAD_COUNT] =
        {"invalid gpu-count: label and annotation must be equal, a number from 1 to 64",
         "invalid_count"},
    [GS_REASON_NOT_DIVISIBLE] =
        {"invalid gpu-count: gpu-mem of each container must be a multiple of it", "not_divisible"},
    [GS_REASON_BAD_PLACEMENT] = {"invalid gpu-placement: unknown policy", "invalid_placement"},
    [GS_REASON_BAD_MODEL] = {"invalid gpu-model: not a comma-separated list, or too long",
                             "invalid_model"},
    [GS_REASON_BAD_MODEL_DENY] = {"invalid gpu-model-deny: not a comma-separated list, or too long",
                                  "invalid_model_deny"},
    [GS_REASON_BAD_UUID] = {"invalid gpu-uuid: not a comma-separated list, or too long",
                            "invalid_uuid"},
    [GS_REASON_BAD_UUID_DENY] = {"invalid gpu-uuid-deny: not a comma-separated list, or too long",
                                 "invalid_uuid_deny"},
    [GS_REASON_CORES_ALONE] = {"gpu-core.percentage requested without gpu-mem",
                               "compute_without_memory"},
    [GS_REASON_CORES_ABOVE] = {"gpu-core.percentage larger than the compute of one GPU",
                               "compute_too_large"},
    [GS_REASON_CORES_SPREAD] = {"gpu-core.percentage requested for more than one GPU (gpu-count)",
                                "compute_over_several_gpus"},
    [GS_REASON_NO_MATCH] = {"no GPU of the requested model or UUID", "no_match"},
    [GS_REASON_TOO_FEW_GPUS] = {"too few GPUs large enough for the request", "too_few_gpus"},
    [GS_REASON_GPU_TOO_SMALL] = {"no GPU large enough for the request", "gpu_too_small"},
    [GS_REASON_NO_GPUS] = {"no shareable GPU memory", "no_gpus"},
    [GS_REASON_UNKNOWN_NODE] = {"node(s) not known to gpushare yet", "unknown_node"},
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
    return reason >= GS_REASON_BAD_COUNT && reason != GS_REASON_UNKNOWN_NODE;
}
