/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"

/*
 * The part of NVML that is used, declared by ourselves (NVML API reference: types, return codes
 * and struct layouts of the v2/v3 entry points, which NVIDIA keeps stable).
 */
typedef struct nvml_device *nvml_device;
typedef struct nvml_event_set *nvml_event_set;

enum {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
};

enum { NVML_EVENT_DOUBLE_BIT_ECC = 0x2, NVML_EVENT_XID = 0x8 };
/* Of an event or a process that names none, and of a card without MIG. */
#define NVML_NO_INSTANCE 0xffffffffu
enum { NVML_UUID_BYTES = 96, NVML_NAME_BYTES = 96 };

struct nvml_memory {
    unsigned long long total_bytes, free_bytes, used_bytes;
};

enum { NVML_CUDA_13_1 = 13010 };

struct nvml_pci {
    char bus_id_legacy[16];
    unsigned int domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct nvml_event {
    nvml_device device;
    unsigned long long type;
    unsigned long long data; /* the XID */
    unsigned int gpu_instance, compute_instance;
};

/* The same in all drivers with the _v2 functions below; _v3 had another one for a while (535). */
struct nvml_process {
    unsigned int pid;
    unsigned long long used_bytes; /* NVML_VALUE_NOT_AVAILABLE */
    unsigned int gpu_instance, compute_instance;
};
#define NVML_VALUE_NOT_AVAILABLE (~0ULL)
/* count: how many fit; then how many there are. */
typedef int (*nvml_processes)(nvml_device device, unsigned int *count, struct nvml_process *ret);

/* Bytes; ~0ULL: the device's. soft_bytes: more may be taken back from it under pressure. */
struct nvml_limits {
    const char *cgroup;
    unsigned long long soft_bytes, hard_bytes;
};
struct nvml_limits_used {
    struct nvml_limits limits;
    unsigned long long used_bytes;
};

struct nvml {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*count)(unsigned int *ret);
    int (*by_index)(unsigned int index, nvml_device *ret);
    int (*uuid)(nvml_device device, char *ret, unsigned int size);
    int (*name)(nvml_device device, char *ret, unsigned int size);
    int (*memory)(nvml_device device, struct nvml_memory *ret);
    int (*pci)(nvml_device device, struct nvml_pci *ret);
    int (*minor)(nvml_device device, unsigned int *ret); /* N of /dev/nvidiaN */
    int (*cuda_version)(int *ret);                       /* of the driver: 13010 is 13.1 */
    int (*capability)(nvml_device device, int *ret_major, int *ret_minor);
    int (*mig)(nvml_device device, unsigned int *ret_current, unsigned int *ret_pending);
    int (*mig_count)(nvml_device card, unsigned int *ret); /* at most; there may be holes */
    int (*mig_by_index)(nvml_device card, unsigned int index, nvml_device *ret);
    int (*gpu_instance)(nvml_device instance, unsigned int *ret);
    nvml_processes compute, graphics, mps_clients;
    int (*event_set_create)(nvml_event_set *ret);
    int (*event_set_free)(nvml_event_set set);
    int (*register_events)(nvml_device device, unsigned long long types, nvml_event_set set);
    int (*event_wait)(nvml_event_set set, struct nvml_event *ret, unsigned int timeout_ms);
    int (*by_uuid)(const char *uuid, nvml_device *ret);
    int (*set_limits)(nvml_device device, struct nvml_limits *limits);
    int (*get_limits)(nvml_device device, struct nvml_limits_used *ret);
};

/* Loads and initialises; library NULL: the usual one. GS_ENOENT: no library, or one without a
 * symbol that is needed; else as nvml_fail(), with the driver's code in *ret_code. *nvml is zeroed
 * on failure. */
int nvml_open(struct nvml *nvml, const char *library, int *ret_code, struct gs_error *err);
void nvml_close(struct nvml *nvml);

/* The driver's words for a code. GS_ECONFLICT: the library is not this driver's; else GS_EIO. */
int nvml_fail(const struct nvml *nvml, int code, const char *what, struct gs_error *err);
