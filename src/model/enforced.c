/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/enforced.h"

#include <string.h>

static const char *const reasons[GS_ENFORCED_COUNT] = {
    [GS_ENFORCED_UNKNOWN] = "",
    [GS_ENFORCED_DMEM] = "",
    [GS_ENFORCED_MPS] = "",
    [GS_ENFORCED_MIG] = "",
    [GS_ENFORCED_HOOK] = "",
    [GS_ENFORCED_NOT_ON] = "limits are not switched on (--enforce)",
    [GS_ENFORCED_NO_MOUNT] = "the host's cgroup file system is not mounted here",
    [GS_ENFORCED_NO_CGROUP2] = "the host uses cgroup v1, or v1 and v2 side by side",
    [GS_ENFORCED_NO_CONTROLLER] =
        "the kernel has no dmem controller (6.14 or newer, with CONFIG_CGROUP_DMEM)",
    [GS_ENFORCED_NO_PODS] = "the host's cgroup file system has no folder of pods (kubepods)",
    [GS_ENFORCED_READ_ONLY] = "the host's cgroup file system is mounted read-only",
    [GS_ENFORCED_DENIED] = "writing to the pods' cgroups is not permitted",
    [GS_ENFORCED_AMBIGUOUS] = "the kernel counts this GPU's memory in several regions",
    [GS_ENFORCED_SHARED] = "the kernel counts several GPUs of this node in one region",
    [GS_ENFORCED_ABSENT] = "the GPU's driver does not count its memory for the kernel",
    [GS_ENFORCED_NO_ADDRESS] = "the GPU's PCI address is not known",
    [GS_ENFORCED_INSTANCE] =
        "this GPU is an instance of a card (MIG), whose memory the driver does not limit",
    [GS_ENFORCED_NOT_HELD] = "a pod there is not kept to its share",
    [GS_ENFORCED_MPS_AWAY] = "the GPU's MPS daemon does not answer",
    [GS_ENFORCED_HOOK_AWAY] =
        "the hook's library is missing, or not what was pinned (--hook-sha256)",
    [GS_ENFORCED_OTHER] = "for a reason that this version does not know",
};

static const char *const held[GS_ENFORCED_NOT_ON] = {
    [GS_ENFORCED_UNKNOWN] = "",
    [GS_ENFORCED_DMEM] = "dmem",
    [GS_ENFORCED_MPS] = "mps (per process, cooperative)",
    [GS_ENFORCED_MIG] = "mig",
    [GS_ENFORCED_HOOK] = "hook (cooperative)",
};

const char *gs_enforced_name(enum gs_enforced enforced)
{
    return enforced < GS_ENFORCED_NOT_ON ? held[enforced] : "none";
}

const char *gs_enforced_reason(enum gs_enforced enforced)
{
    return reasons[enforced];
}

enum gs_enforced gs_enforced_parse(const char *name, const char *reason)
{
    for (int i = GS_ENFORCED_DMEM; i < GS_ENFORCED_NOT_ON; i++)
        if (strcmp(name, held[i]) == 0)
            return (enum gs_enforced)i;
    if (strcmp(name, "none") != 0)
        return GS_ENFORCED_UNKNOWN;
    for (int i = GS_ENFORCED_NOT_ON; i < GS_ENFORCED_OTHER; i++)
        if (strcmp(reason, reasons[i]) == 0)
            return (enum gs_enforced)i;
    return GS_ENFORCED_OTHER;
}
