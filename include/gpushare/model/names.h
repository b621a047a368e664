/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_MODEL_NAMES_H
#define GPUSHARE_MODEL_NAMES_H

#include "gpushare/base/error.h"

/*
 * Every name that carries the configurable domain (default "aliyun.com", --domain), built once at
 * start and read-only afterwards. Forks of the original renamed the domain.
 *
 *   struct gs_names names;
 *   if (gs_names_init(&names, "aliyun.com", err) < 0) ...
 *   names.gpu_mem → "aliyun.com/gpu-mem", names.idx → "ALIYUN_COM_GPU_MEM_IDX"
 */
enum { GS_NAME_BYTES = 128 };

struct gs_names {
    char domain[GS_NAME_BYTES];
    /* resources */
    char gpu_mem[GS_NAME_BYTES];
    char gpu_count[GS_NAME_BYTES]; /* also pod label and annotation */
    /* node annotations */
    char inventory[GS_NAME_BYTES];
    char cordon[GS_NAME_BYTES]; /* <domain>/gpu-cordon: comma list of GPU indices or UUIDs */
    /* pod annotations */
    char idx[GS_NAME_BYTES];
    char dev[GS_NAME_BYTES];
    char pod[GS_NAME_BYTES];
    char container[GS_NAME_BYTES]; /* container environment only */
    char assigned[GS_NAME_BYTES];
    char assume_time[GS_NAME_BYTES];
    char placement[GS_NAME_BYTES];
    char swap_with[GS_NAME_BYTES];
    char model[GS_NAME_BYTES];
    char model_deny[GS_NAME_BYTES];
    char uuid[GS_NAME_BYTES];
    char uuid_deny[GS_NAME_BYTES];
    char wake[GS_NAME_BYTES]; /* <domain>/gpu-wake: touched to make the scheduler look again */
};

/* The allocation JSON's annotation key: not under the domain, the original's inspect reads it. */
#define GS_ALLOCATION_KEY "scheduler.framework.gpushare.allocation"

/* Node label of a node that runs the device plugin; its value is "true". */
#define GS_NODE_LABEL "gpushare"

/* domain: a DNS name of at most 63 bytes, else GS_EINVAL. "aliyun.com" gives the environment-like
 * prefix "ALIYUN_COM": upper case, everything that is no letter or digit becomes '_'. */
int gs_names_init(struct gs_names *names, const char *domain, struct gs_error *err);

#endif
