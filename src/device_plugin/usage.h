/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "device_plugin/allocate/allocator.h"
#include "device_plugin/driver_usage.h"
#include "gpushare/base/buf.h"
#include "gpushare/limit/keeper.h"

/*
 * What pods use of this node's GPUs, as the kernel counts it (limit/keeper.h) or the driver
 * (driver_usage.h), beside what they were given: text for the pages. Sums of GPUs name nobody; pods
 * are named only where
 * --pod-usage=on says so, and of a node at most so many pairs of a pod and a GPU.
 */
enum { USAGE_PAIRS_MAX = 256 };

enum usage_text {
    USAGE_INFO, /* samples of a family each, usage_family(); this one always */
    USAGE_GIVEN,
    USAGE_USED,
    USAGE_PEAK,
    USAGE_HELD,
    USAGE_FAMILIES,
    USAGE_JSON = USAGE_FAMILIES, /* entries of a list, each followed by a comma */
    USAGE_TEXTS,
};

struct usage {
    const struct gs_keeper *keeper; /* NULL: the kernel counts nothing */
    struct driver_usage *driver;    /* of GPUs that the kernel does not count; NULL: not asked */
    bool driver_alone;              /* the kernel is not asked what pods use */
    int64_t now_ns;
    uint64_t unit_bytes;
    bool names_pods;
    const struct gs_gpu_set *set;  /* borrowed */
    gs_gpu_mask charged_elsewhere; /* GPUs whose pods' memory the kernel charges to an MPS daemon */
    uint32_t pairs;
    uint32_t over;       /* pods that use more than their request, and only the driver says so */
    gs_gpu_mask counted; /* GPUs of which it is counted what pods use */
    uint64_t used_on[GS_GPUS_MAX]; /* of these, by index: all pods together */
    struct gs_buf text[USAGE_TEXTS];
};

struct gs_gpu_set;

/* Of which GPUs the kernel's count says nothing about pods. */
gs_gpu_mask usage_charged_elsewhere(const struct gs_gpu_set *set);

/* An empty one; *caller frees* with usage_release(). */
void usage_init(struct usage *usage);
void usage_release(struct usage *usage);

/* One pod; ctx is the usage. For gs_allocator_each_placed(). */
void usage_add_pod(void *ctx, const struct gs_placed *pod);

/* The families of metrics, and one of the texts by itself; one that did not fit is left out. */
void usage_print(const struct usage *usage, struct gs_buf *out);
void usage_append(const struct usage *usage, enum usage_text text, struct gs_buf *out);
