/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "gpushare/port/memory_limits.h"

/*
 * The driver's own limits, from 615 on (CUDA 13.4): nvmlDeviceSetMemoryLimits_v1() and
 * nvmlDeviceGetMemoryLimits_v1() of libnvidia-ml.so.1. Source: nvml.h of cuda-nvml-dev-13-4, and
 * docs.nvidia.com/deploy/mps, "MPS v3 Memory Partitioning". Where the kernel has the dmem
 * controller the driver writes that. Tested with a simulated driver only.
 */
struct gs_nvml_limits;

/* library: NULL is "libnvidia-ml.so.1"; borrowed. Loads nothing yet. *caller frees*; NULL: no
 * memory. */
struct gs_nvml_limits *gs_nvml_limits_new(const char *library);
void gs_nvml_limits_free(struct gs_nvml_limits *limits);

/* Borrowed from it. The first call loads the library, on a thread that all calls run on. */
struct gs_memory_limits gs_nvml_limits_port(struct gs_nvml_limits *limits);

/* Lets go of the library, so that the driver can be replaced: until it is not released any more,
 * calls are ETIMEDOUT. */
void gs_nvml_limits_release(struct gs_nvml_limits *limits, bool released);
