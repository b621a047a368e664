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
    [GS_ENFORCED_NOT_ON] = {false, "not-enabled", "memory limits are not enabled (--enforce)"},
    [GS_ENFORCED_NO_MOUNT] = {false, "no-mount",
                              "the host's cgroup file system is not mounted in this container"},
    [GS_ENFORCED_NO_CGROUP2] = {false, "no-cgroup2",
                                "the host uses cgroup v1, or v1 and v2 together (hybrid)"},
    [GS_ENFORCED_NO_CONTROLLER] =
        {false, "no-controller",
         "the kernel has no dmem controller (Linux 6.14 or newer with CONFIG_CGROUP_DMEM)"},
    [GS_ENFORCED_NO_PODS] = {false, "no-pods",
                             "the host's cgroup file system has no pods' cgroup (kubepods)"},
    [GS_ENFORCED_READ_ONLY] = {false, "read-only",
                               "the host's cgroup file system is mounted read-only"},
    [GS_ENFORCED_DENIED] = {false, "denied", "no permission to write to the pods' cgroups"},
    [GS_ENFORCED_AMBIGUOUS] = {false, "ambiguous",
                               "the kernel reports several dmem regions for this GPU"},
    [GS_ENFORCED_SHARED] = {false, "shared",
                            "the kernel reports one dmem region for several GPUs of this node"},
    [GS_ENFORCED_ABSENT] = {false, "absent",
                            "the GPU's driver does not report its memory to the dmem controller"},
    [GS_ENFORCED_NO_ADDRESS] = {false, "no-address", "the GPU's PCI address is unknown"},
    [GS_ENFORCED_INSTANCE] =
        {false, "instance", "this GPU is a MIG instance, and the driver does not limit its memory"},
    [GS_ENFORCED_NOT_HELD] = {false, "not-limited",
                              "a pod on this GPU is not limited to its request"},
    [GS_ENFORCED_MPS_AWAY] = {false, "mps-unavailable", "the GPU's MPS daemon does not respond"},
    [GS_ENFORCED_HOOK_AWAY] = {false, "hook-unavailable",
                               "the hook library is missing, or does not match --hook-sha256"},
    [GS_ENFORCED_OTHER] = {false, "other",
                           "unknown reason: this program is older than the device plugin"},
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
