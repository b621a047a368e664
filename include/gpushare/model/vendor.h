/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * What a vendor's container runtime and driver expect of the device plugin. A source of another
 * vendor's GPUs (port/gpu_source.h) is one file, and a row in model/vendor.c.
 */
struct gs_vendor {
    const char *name;            /* "vendor" of --gpu-file */
    const char *visible_devices; /* the environment variable that names a container's GPUs */
    const char *no_devices;      /* its value for none: without it an image's own would count */
    const char *mounts_root;     /* for --device-list-strategy=volume-mounts */
    const char *cdi_kind;        /* of CDI devices */
    const char *node;            /* a GPU's device node, before its minor number */
    const char *const *shared;   /* the device nodes of all GPUs; ends with NULL */
};

/* The first is NVIDIA. Ends with a name of NULL. */
extern const struct gs_vendor gs_vendors[];

/* Its place among them; their number when there is none of that name. */
uint32_t gs_vendor_find(const char *name);
