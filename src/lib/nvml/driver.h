/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/clock.h"
#include "gpushare/port/gpu_source.h"

/*
 * GPUs of the NVIDIA driver, through libnvidia-ml.so.1, which is loaded at run time (NVML API
 * reference, docs.nvidia.com/deploy/nvml-api): the program runs on machines without it.
 *
 * read() loads and initialises the library when that has not worked yet, so calling it again is
 * the retry. It names a missing library, a missing symbol and the driver's own error.
 *
 * Health. A GPU is unhealthy after a critical XID or a double-bit ECC error, except for the XIDs
 * that applications cause (13, 31, 43, 45, 68, 109). It is healthy again when it has been quiet for
 * GS_NVML_QUIET_NS; after one that needs a reset (gpu.xid says which) only when the driver was
 * reloaded: when it was seen away, or release() let go of it. A GPU that answers badly stays as it
 * was for GS_NVML_DOUBT_NS; one that the driver calls lost is not listed. Events that broke off are
 * asked for again, at growing distances up to five minutes; until then set.deaf.
 *
 * Of a card with MIG enabled every instance is a GPU (NVML API reference, Multi Instance GPU
 * Management): numbered on after the cards, at its card's PCI address. Their events come from the
 * card.
 */
#define GS_NVML_QUIET_NS (60 * GS_NS_PER_S)
#define GS_NVML_DOUBT_NS (30 * GS_NS_PER_S)

struct gs_nvml_config {
    const char *library;          /* NULL: "libnvidia-ml.so.1" */
    const char *sysfs;            /* NULL: "/sys"; for NUMA nodes of PCI devices */
    const struct gs_clock *clock; /* borrowed */
};

/* GS_ENOMEM. Loads nothing yet. config's strings are borrowed for the source's life. */
int gs_gpus_from_driver(const struct gs_nvml_config *config, struct gs_gpu_source *ret,
                        struct gs_error *err);
