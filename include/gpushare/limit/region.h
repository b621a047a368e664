/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_LIMIT_REGION_H
#define GPUSHARE_LIMIT_REGION_H

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

enum gs_region_state {
    GS_REGION_USABLE,     /* this region and no other is this GPU's and no other's */
    GS_REGION_AMBIGUOUS,  /* several regions have its address: a card of several tiles */
    GS_REGION_SHARED,     /* another GPU has the same address: instances of one card (MIG) */
    GS_REGION_ABSENT,     /* no region: the driver registers none, or not yet */
    GS_REGION_NO_ADDRESS, /* the GPU's PCI address is not known */
    GS_REGION_INSTANCE    /* a part of a card that its driver has divided: said by the caller */
};

/* What that means for limits: GS_ENFORCED_DMEM when usable. */
enum gs_enforced gs_region_state_enforced(enum gs_region_state state);

struct gs_region {
    enum gs_region_state state;
    char name[GS_DMEM_REGION_BYTES]; /* when usable, else "" */
};

/* Of GPU `which` of all GPUs of the node; NULL or "" among the addresses: not known. lines: those
 * of dmem.capacity. */
struct gs_region gs_region_of(const char *const *addresses, size_t count, size_t which,
                              const struct gs_dmem_line *lines, size_t line_count);

#endif
