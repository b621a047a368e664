/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/limits.h"

#include <errno.h>
#include <stdlib.h>

#include "library.h"

struct gs_nvml_limits {
    const char *library;
    struct nvml nvml;
};

struct gs_nvml_limits *gs_nvml_limits_new(const char *library)
{
    struct gs_nvml_limits *limits = calloc(1, sizeof(*limits));
    if (limits)
        limits->library = library;
    return limits;
}

void gs_nvml_limits_unload(struct gs_nvml_limits *limits)
{
    nvml_close(&limits->nvml);
}

void gs_nvml_limits_free(struct gs_nvml_limits *limits)
{
    if (limits)
        nvml_close(&limits->nvml);
    free(limits);
}

static int error_of(int code)
{
    switch (code) {
    case NVML_SUCCESS:
        return 0;
    case NVML_INVALID_ARGUMENT:
        return EINVAL;
    case NVML_NOT_SUPPORTED:
        return EOPNOTSUPP;
    case NVML_NO_PERMISSION:
        return EPERM;
    case NVML_NOT_FOUND:
        return ENOENT;
    default:
        return EIO;
    }
}

/* 0 or an errno. */
static int find(struct gs_nvml_limits *limits, const char *gpu, nvml_device *ret)
{
    struct gs_error err = {0};
    int code;
    if (!limits->nvml.handle && nvml_open(&limits->nvml, limits->library, &code, &err) < 0)
        return EOPNOTSUPP;
    const struct nvml *nvml = &limits->nvml;
    if (!nvml->set_limits || !nvml->get_limits || !nvml->by_uuid)
        return EOPNOTSUPP;
    return error_of(nvml->by_uuid(gpu, ret));
}

static int set(void *ctx, const char *gpu, const char *cgroup, uint64_t bytes)
{
    struct gs_nvml_limits *limits = ctx;
    struct nvml_limits to = {.cgroup = cgroup, .hard_bytes = bytes};
    nvml_device device;
    const int error = find(limits, gpu, &device);
    return error ? error : error_of(limits->nvml.set_limits(device, &to));
}

static int get(void *ctx, const char *gpu, const char *cgroup, uint64_t *ret_bytes,
               uint64_t *ret_used)
{
    struct gs_nvml_limits *limits = ctx;
    struct nvml_limits_used found = {.limits.cgroup = cgroup};
    nvml_device device;
    int error = find(limits, gpu, &device);
    if (!error)
        error = error_of(limits->nvml.get_limits(device, &found));
    if (!error) {
        *ret_bytes = found.limits.hard_bytes;
        *ret_used = found.used_bytes;
    }
    return error;
}

struct gs_memory_limits gs_nvml_limits_port(struct gs_nvml_limits *limits)
{
    return (struct gs_memory_limits){limits, set, get};
}
