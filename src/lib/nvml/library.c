/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
    bool optional; /* not in every driver that is still in use */
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), false},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), false},
    {"nvmlErrorString", offsetof(struct nvml, error_string), false},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml, count), false},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, by_index), false},
    {"nvmlDeviceGetUUID", offsetof(struct nvml, uuid), false},
    {"nvmlDeviceGetName", offsetof(struct nvml, name), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml, memory), false},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct nvml, pci), true},
    {"nvmlDeviceGetMinorNumber", offsetof(struct nvml, minor), true},
    {"nvmlSystemGetCudaDriverVersion_v2", offsetof(struct nvml, cuda_version), true},
    {"nvmlDeviceGetCudaComputeCapability", offsetof(struct nvml, capability), true},
    {"nvmlDeviceGetMigMode", offsetof(struct nvml, mig), true},
    {"nvmlDeviceGetMaxMigDeviceCount", offsetof(struct nvml, mig_count), true},
    {"nvmlDeviceGetMigDeviceHandleByIndex", offsetof(struct nvml, mig_by_index), true},
    {"nvmlDeviceGetGpuInstanceId", offsetof(struct nvml, gpu_instance), true},
    {"nvmlDeviceGetComputeRunningProcesses_v2", offsetof(struct nvml, compute), true},
    {"nvmlDeviceGetGraphicsRunningProcesses_v2", offsetof(struct nvml, graphics), true},
    {"nvmlDeviceGetMPSComputeRunningProcesses_v2", offsetof(struct nvml, mps_clients), true},
    {"nvmlEventSetCreate", offsetof(struct nvml, event_set_create), true},
    {"nvmlEventSetFree", offsetof(struct nvml, event_set_free), true},
    {"nvmlDeviceRegisterEvents", offsetof(struct nvml, register_events), true},
    {"nvmlEventSetWait_v2", offsetof(struct nvml, event_wait), true},
    {"nvmlDeviceGetHandleByUUID", offsetof(struct nvml, by_uuid), true},
    {"nvmlDeviceSetMemoryLimits_v1", offsetof(struct nvml, set_limits), true},
    {"nvmlDeviceGetMemoryLimits_v1", offsetof(struct nvml, get_limits), true},
};

static int find_symbols(struct nvml *nvml, const char *library, struct gs_error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(nvml->handle, symbols[i].symbol);
        if (!address && !symbols[i].optional)
            return gs_fail(err, GS_ENOENT, "%.80s has no %s: the driver is too old", library,
                           symbols[i].symbol);
        memcpy((char *)nvml + symbols[i].offset, &address, sizeof(address));
    }
    return 0;
}

int nvml_open(struct nvml *nvml, const char *library, int *ret_code, struct gs_error *err)
{
    library = library ? library : "libnvidia-ml.so.1";
    *nvml = (struct nvml){.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL)};
    if (!nvml->handle) {
        const char *why = dlerror();
        return gs_fail(err, GS_ENOENT,
                       "cannot load the NVIDIA driver's library (run the container with the nvidia "
                       "runtime): %.140s",
                       why ? why : library);
    }
    int code = NVML_SUCCESS;
    bool whole = find_symbols(nvml, library, err) == 0;
    if (whole)
        code = nvml->init();
    if (whole && code == NVML_SUCCESS)
        return 0;
    if (whole)
        nvml_fail(nvml, code, "cannot initialize the NVIDIA driver", err);
    *ret_code = code;
    dlclose(nvml->handle);
    *nvml = (struct nvml){0};
    return -1;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml->handle)
        return;
    nvml->shutdown();
    dlclose(nvml->handle);
    *nvml = (struct nvml){0};
}

int nvml_fail(const struct nvml *nvml, int code, const char *what, struct gs_error *err)
{
    return gs_fail(err, code == NVML_LIB_RM_VERSION_MISMATCH ? GS_ECONFLICT : GS_EIO,
                   "%s: %.100s (NVML code %d)", what, nvml->error_string(code), code);
}
