/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/limit/dmem.h"
#include "gpushare/model/enforced.h"

/*
 * Which region of the kernel's dmem controller is a GPU's memory. Drivers name their regions as
 * they like, but each puts the PCI address of the device between slashes:
 * "nvidia/0000:41:00/vidmem" (no function), "drm/0000:79:00.0/vram". So a GPU's region is the only
 * one that has the GPU's address as a component. Knows no vendor. Pure, fuzzed.
 */

struct gs_pci {
    uint32_t domain;
    uint8_t bus, device;
    uint8_t function; /* GS_PCI_ANY_FUNCTION: not named */
};

enum { GS_PCI_ANY_FUNCTION = 8 };

/* "0000:41:00.0", "00000000:41:00.0" (NVML), "0000:c1:00": a domain of 4 to 8 hexadecimal digits,
 * any case, the function optional. False leaves *ret alone. */
bool gs_pci_parse(const char *text, size_t len, struct gs_pci *ret);

/* The same device; a function that one of them does not name is no difference. */
bool gs_pci_same(const struct gs_pci *a, const struct gs_pci *b);

struct gs_region {
    enum gs_enforced state; /* GS_ENFORCED_DMEM: this region and no other is this GPU's and no
                               other's; else why there is none */
    char name[GS_DMEM_REGION_BYTES]; /* with GS_ENFORCED_DMEM, else "" */
};

/* Of GPU `which` of all GPUs of the node; NULL or "" among the addresses: not known. lines: those
 * of dmem.capacity. */
struct gs_region gs_region_of(const char *const *addresses, size_t count, size_t which,
                              const struct gs_dmem_line *lines, size_t line_count);
