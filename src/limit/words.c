/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of hosts and limits, in words: docs/enforce.md lists the same. */
#include "gpushare/limit/limiter.h"

struct word {
    const char *name, *reason;
};

static const struct word hosts[] = {
    [GS_LIMIT_HOST_READY] = {"ready", ""},
    [GS_LIMIT_HOST_NO_MOUNT] = {"no-mount", "the host's cgroup file system is not mounted here"},
    [GS_LIMIT_HOST_NO_CGROUP2] = {"no-cgroup2",
                                  "the host uses cgroup v1, or v1 and v2 side by side"},
    [GS_LIMIT_HOST_NO_CONTROLLER] = {"no-controller",
                                     "the kernel has no dmem controller (6.14 or newer, with "
                                     "CONFIG_CGROUP_DMEM)"},
};

const char *gs_limit_host_name(enum gs_limit_host_state state)
{
    return hosts[state].name;
}

const char *gs_limit_host_reason(enum gs_limit_host_state state)
{
    return hosts[state].reason;
}

static const struct word outcomes[GS_LIMIT_OUTCOME_COUNT] = {
    [GS_LIMIT_HELD] = {"held", ""},
    [GS_LIMIT_NO_POD] = {"no-pod", "the pod has no cgroup on this node"},
    [GS_LIMIT_OTHER] = {"other-limit", "the kernel has another limit for this pod: more was in use "
                                       "than the limit allows"},
    [GS_LIMIT_NO_REGION] = {"no-region",
                            "the GPU's driver does not count its memory for the kernel"},
    [GS_LIMIT_NO_FILES] = {"no-files",
                           "the pod's cgroup has no dmem.max, and dmem cannot be passed "
                           "on to it"},
    [GS_LIMIT_READ_ONLY] = {"read-only", "the host's cgroup file system is mounted read-only"},
    [GS_LIMIT_DENIED] = {"denied", "writing to the pod's cgroup is not permitted"},
    [GS_LIMIT_FAILED] = {"failed", "the pod's cgroup cannot be read or written"},
};

const char *gs_limit_outcome_name(enum gs_limit_outcome outcome)
{
    return outcomes[outcome].name;
}

const char *gs_limit_outcome_reason(enum gs_limit_outcome outcome)
{
    return outcomes[outcome].reason;
}
