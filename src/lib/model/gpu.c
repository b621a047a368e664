/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/model/gpu.h"

#include <stdlib.h>

static const struct {
    const char *name;
    uint32_t mib;
} units[] = {
    [GS_UNIT_UNKNOWN] = {"", 0},     [GS_UNIT_MIB] = {"MiB", 1},
    [GS_UNIT_64MIB] = {"64MiB", 64}, [GS_UNIT_256MIB] = {"256MiB", 256},
    [GS_UNIT_GIB] = {"GiB", 1024},
};

const char *gs_unit_name(enum gs_unit unit)
{
    return units[unit].name;
}

bool gs_unit_parse(const char *text, size_t len, enum gs_unit *ret)
{
    for (int i = GS_UNIT_MIB; i <= GS_UNIT_GIB; i++) {
        if (strlen(units[i].name) == len && memcmp(units[i].name, text, len) == 0) {
            *ret = (enum gs_unit)i;
            return true;
        }
    }
    return false;
}

uint32_t gs_unit_mib(enum gs_unit unit)
{
    return units[unit].mib;
}

bool gs_gpu_same(const struct gs_gpu *a, const struct gs_gpu *b)
{
    return a->idx == b->idx && a->mem_units == b->mem_units && a->mem_mib == b->mem_mib &&
           a->numa == b->numa && a->healthy == b->healthy && a->xid == b->xid &&
           a->xid_boot == b->xid_boot && a->enforced == b->enforced &&
           strcmp(a->uuid, b->uuid) == 0 && strcmp(a->model, b->model) == 0 &&
           strcmp(a->pci, b->pci) == 0;
}

const struct gs_gpu *gs_gpu_find(const struct gs_gpu *gpus, uint32_t count, uint32_t idx)
{
    for (uint32_t i = 0; i < count; i++) {
        if (gpus[i].idx == idx)
            return &gpus[i];
    }
    return NULL;
}

static int by_idx(const void *a, const void *b)
{
    const struct gs_gpu *left = a, *right = b;
    return left->idx < right->idx ? -1 : left->idx > right->idx;
}

void gs_gpus_sort(struct gs_gpu *gpus, uint32_t count)
{
    if (count)
        qsort(gpus, count, sizeof(*gpus), by_idx);
}
