/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "gpushare/limit/keeper.h"
#include "gpushare/model/gpu.h"
#include "gpushare/nvml/listed.h"

/* Where it is known from what pods use: limit/keeper.h, driver_usage.h. */
enum pod_usage_from { POD_USAGE_DMEM, POD_USAGE_NVML, POD_USAGE_AUTO };

/* What the command line, the environment and the file say. Strings live as long as the process. */
enum enforce_by { ENFORCE_BY_AUTO, ENFORCE_BY_DRIVER, ENFORCE_BY_DMEM };

struct settings {
    const char *kubeconfig;
    const char *node_name;
    const char *domain;
    enum gs_unit unit;
    struct gs_gpu_options gpus;
    const char *device_plugin_dir;
    unsigned device_lists; /* of enum device_list (container_env.h) */
    bool pass_device_specs;
    const char *nvidia_dev_root; /* below which the host has the driver's device nodes */
    const char *http_listen;
    bool share_with_others; /* GPUs that other device plugins give out, too */
    enum gs_enforce enforce;
    enum enforce_by enforce_by;
    const char *cgroup_root; /* where the host's cgroup file system is mounted here */
    bool deny_foreign_gpus;
    uint32_t overhead_mib;   /* beside its share, for each container with GPU memory */
    uint32_t overhead_slots; /* for so many of them on each GPU */
    /* of each GPU; with overhead_mib times overhead_slots it fits 32 bits */
    uint32_t gpu_reserve_mib;
    unsigned pod_usage; /* not 0: the pages name pods and what each uses */
    enum pod_usage_from pod_usage_from;
    const char *mps_root;     /* gpushare-mps's --root; NULL: no MPS */
    const char *hook_library; /* preloaded into containers; NULL: none */
    const char *hook_sha256;  /* 64 lower-case digits */
    const char *hook_root;    /* the same on the host */
    bool mps_by_label;        /* only where the node has the label; decided by mps_choose() */
    bool print_inventory;
};

/* Of each GPU, what no pod can ask for. */
static inline uint32_t settings_reserved_mib(const struct settings *settings)
{
    return settings->overhead_mib * settings->overhead_slots + settings->gpu_reserve_mib;
}

/* Exits on --help, --version and bad usage. */
void settings_read(struct settings *settings, int argc, char **argv);
