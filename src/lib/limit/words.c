/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of limits, in words: docs/limits.md lists the same. Those of hosts and GPUs are
 * model/enforced.c's. */
#include "gpushare/limit/limiter.h"

static const char *const outcomes[GS_LIMIT_OUTCOME_COUNT] = {
    [GS_LIMIT_HELD] = "",
    [GS_LIMIT_CONTAINER] = "one of its containers had a limit above the pod's "
                           "(NVIDIA_GPU_MEMORY_LIMIT), which is lowered once the container uses "
                           "no more than that",
    [GS_LIMIT_NO_POD] = "the pod has no cgroup on this node",
    [GS_LIMIT_TWICE] = "the pod has several cgroups on this node: the kubelet's cgroup "
                       "driver was changed while it ran",
    [GS_LIMIT_OTHER] = "the kernel has another limit for this pod: more was in use "
                       "than the limit allows",
    [GS_LIMIT_NO_REGION] = "the GPU's driver does not report its memory to the dmem controller",
    [GS_LIMIT_NO_FILES] = "the pod's cgroup has no dmem.max, and dmem cannot be passed "
                          "on to it",
    [GS_LIMIT_READ_ONLY] = "the host's cgroup file system is mounted read-only",
    [GS_LIMIT_DENIED] = "writing to the pod's cgroup is not permitted",
    [GS_LIMIT_FAILED] = "the pod's cgroup cannot be read or written, or the GPU is lost, or its "
                        "driver did not take the limit or did not respond",
};

const char *gs_limit_outcome_reason(enum gs_limit_outcome outcome)
{
    return outcomes[outcome];
}
