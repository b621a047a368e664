/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/enforced.h"

#include <string.h>

/* The word on the wire, and what people read. */
static const struct {
    const char *key;
    const char *words;
} table[GS_ENFORCED_COUNT] = {
    [GS_ENFORCED_UNKNOWN] = {"", ""},
    [GS_ENFORCED_DMEM] = {"dmem", "dmem"},
    [GS_ENFORCED_DRIVER] = {"driver", "driver"},
    [GS_ENFORCED_MPS] = {"mps", "mps (per process, cooperative)"},
    [GS_ENFORCED_MIG] = {"mig", "mig"},
    [GS_ENFORCED_HOOK] = {"hook", "hook (cooperative)"},
    [GS_ENFORCED_NOT_ON] = {"not-enabled", "memory limits are not enabled (--enforce)"},
    [GS_ENFORCED_NO_MOUNT] = {"no-mount",
                              "the host's cgroup file system is not mounted in this container"},
    [GS_ENFORCED_NO_CGROUP2] = {"no-cgroup2",
                                "the host uses cgroup v1, or v1 and v2 together (hybrid)"},
    [GS_ENFORCED_NO_CONTROLLER] =
        {"no-controller", "neither the kernel (dmem, from Linux 6.14) nor the driver (from 615) "
                          "limits GPU memory"},
    [GS_ENFORCED_NO_DRIVER] = {"no-driver",
                               "the driver does not limit this GPU's memory (from 615)"},
    [GS_ENFORCED_NO_ADMIN] = {"no-capability", "limits by the driver need CAP_SYS_ADMIN"},
    [GS_ENFORCED_NO_PODS] = {"no-pods",
                             "the host's cgroup file system has no pods' cgroup (kubepods)"},
    [GS_ENFORCED_READ_ONLY] = {"read-only", "the host's cgroup file system is mounted read-only"},
    [GS_ENFORCED_DENIED] = {"denied", "no permission to write to the pods' cgroups"},
    [GS_ENFORCED_AMBIGUOUS] = {"ambiguous", "the kernel reports several dmem regions for this GPU"},
    [GS_ENFORCED_SHARED] = {"shared",
                            "the kernel reports one dmem region for several GPUs of this node"},
    [GS_ENFORCED_ABSENT] = {"absent",
                            "the GPU's driver does not report its memory to the dmem controller"},
    [GS_ENFORCED_NO_ADDRESS] = {"no-address", "the GPU's PCI address is unknown"},
    [GS_ENFORCED_INSTANCE] =
        {"instance", "this GPU is a MIG instance, and the driver does not limit its memory"},
    [GS_ENFORCED_NOT_HELD] = {"not-limited", "a pod on this GPU is not limited to its request"},
    [GS_ENFORCED_MPS_AWAY] = {"mps-unavailable", "the GPU's MPS daemon does not respond"},
    [GS_ENFORCED_HOOK_AWAY] = {"hook-unavailable",
                               "the hook library is missing, or does not match --hook-sha256"},
    [GS_ENFORCED_OTHER] = {"other", "unknown reason: this program is older than the device plugin"},
};

bool gs_enforced_holds(enum gs_enforced enforced)
{
    return enforced >= GS_ENFORCED_DMEM && enforced <= GS_ENFORCED_HOOK;
}

bool gs_enforced_lacks(enum gs_enforced enforced)
{
    return enforced > GS_ENFORCED_HOOK;
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
