/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/enforced.h"

#include <string.h>

/* The word on the wire, and what people read. */
static const struct {
    bool holds;
    const char *key;
    const char *words;
} table[GS_ENFORCED_COUNT] = {
    [GS_ENFORCED_UNKNOWN] = {false, "", ""},
    [GS_ENFORCED_DMEM] = {true, "dmem", "dmem"},
    [GS_ENFORCED_MPS] = {true, "mps", "mps (per process, cooperative)"},
    [GS_ENFORCED_MIG] = {true, "mig", "mig"},
    [GS_ENFORCED_HOOK] = {true, "hook", "hook (cooperative)"},
    [GS_ENFORCED_NOT_ON] = {false, "not-on", "limits are not switched on (--enforce)"},
    [GS_ENFORCED_NO_MOUNT] = {false, "no-mount",
                              "the host's cgroup file system is not mounted here"},
    [GS_ENFORCED_NO_CGROUP2] = {false, "no-cgroup2",
                                "the host uses cgroup v1, or v1 and v2 side by side"},
    [GS_ENFORCED_NO_CONTROLLER] = {false, "no-controller",
                                   "the kernel has no dmem controller (6.14 or newer, with "
                                   "CONFIG_CGROUP_DMEM)"},
    [GS_ENFORCED_NO_PODS] = {false, "no-pods",
                             "the host's cgroup file system has no folder of pods (kubepods)"},
    [GS_ENFORCED_READ_ONLY] = {false, "read-only",
                               "the host's cgroup file system is mounted read-only"},
    [GS_ENFORCED_DENIED] = {false, "denied", "writing to the pods' cgroups is not permitted"},
    [GS_ENFORCED_AMBIGUOUS] = {false, "ambiguous",
                               "the kernel counts this GPU's memory in several regions"},
    [GS_ENFORCED_SHARED] = {false, "shared",
                            "the kernel counts several GPUs of this node in one region"},
    [GS_ENFORCED_ABSENT] = {false, "absent",
                            "the GPU's driver does not count its memory for the kernel"},
    [GS_ENFORCED_NO_ADDRESS] = {false, "no-address", "the GPU's PCI address is not known"},
    [GS_ENFORCED_INSTANCE] = {false, "instance",
                              "this GPU is an instance of a card (MIG), whose memory the driver "
                              "does not limit"},
    [GS_ENFORCED_NOT_HELD] = {false, "not-held", "a pod there is not kept to its share"},
    [GS_ENFORCED_MPS_AWAY] = {false, "mps-away", "the GPU's MPS daemon does not answer"},
    [GS_ENFORCED_HOOK_AWAY] = {false, "hook-away",
                               "the hook's library is missing, or not what was pinned "
                               "(--hook-sha256)"},
    [GS_ENFORCED_OTHER] = {false, "other", "for a reason that this version does not know"},
};

bool gs_enforced_holds(enum gs_enforced enforced)
{
    return table[enforced].holds;
}

bool gs_enforced_lacks(enum gs_enforced enforced)
{
    return enforced != GS_ENFORCED_UNKNOWN && !table[enforced].holds;
}

const char *gs_enforced_by(enum gs_enforced enforced)
{
    return gs_enforced_lacks(enforced) ? "none" : table[enforced].key;
}

const char *gs_enforced_why(enum gs_enforced enforced)
{
    return gs_enforced_lacks(enforced) ? table[enforced].key : "";
}

const char *gs_enforced_name(enum gs_enforced enforced)
{
    return gs_enforced_lacks(enforced) ? "none" : table[enforced].words;
}

const char *gs_enforced_reason(enum gs_enforced enforced)
{
    return gs_enforced_lacks(enforced) ? table[enforced].words : "";
}

enum gs_enforced gs_enforced_parse(const char *by, const char *why)
{
    const bool none = strcmp(by, "none") == 0;
    for (int i = GS_ENFORCED_UNKNOWN; i < GS_ENFORCED_COUNT; i++) {
        if (gs_enforced_lacks((enum gs_enforced)i) == none &&
            strcmp(none ? why : by, table[i].key) == 0)
            return (enum gs_enforced)i;
    }
    return none ? GS_ENFORCED_OTHER : GS_ENFORCED_UNKNOWN;
}
