/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/vendor.h"

#include <stddef.h>
#include <string.h>

static const char *const nvidia_nodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                           "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", NULL};
static const char *const simulated_nodes[] = {"/dev/simgpuctl", NULL};

const struct gs_vendor gs_vendors[] = {
    /* The environment and the mounts are read by NVIDIA's container runtime (internal/config/image
     * of github.com/NVIDIA/nvidia-container-toolkit); nvidia-ctk writes CDI devices of that kind.
     */
    {"nvidia", "NVIDIA_VISIBLE_DEVICES", "void", "/var/run/nvidia-container-devices",
     "nvidia.com/gpu", "/dev/nvidia", nvidia_nodes},
    /* Nobody's, for tests. */
    {"simulated", "SIMULATED_VISIBLE_DEVICES", "none", "/var/run/simulated-container-devices",
     "simulated.gpushare/gpu", "/dev/simgpu", simulated_nodes},
    {0},
};

uint32_t gs_vendor_find(const char *name)
{
    uint32_t at = 0;
    while (gs_vendors[at].name && strcmp(gs_vendors[at].name, name) != 0)
        at++;
    return at;
}
