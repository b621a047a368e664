/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/advertise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/index.h"
#include "gpushare/codec/inventory.h"

void advertise_divide(struct gs_gpu_set *set, enum gs_unit unit)
{
    for (uint32_t i = 0; i < set->count; i++)
        set->gpus[i].mem_units = set->gpus[i].mem_mib / gs_unit_mib(unit);
}

static uint64_t count_units(const struct gs_gpu_set *set, enum gs_unit unit)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < set->count; i++)
        sum += set->gpus[i].mem_mib / gs_unit_mib(unit);
    return sum;
}

/* Encoded size of one device in the worst case, from the encoder itself. */
static size_t worst_device_bytes(void)
{
    const struct gs_dp_device worst = {
        .id = "00000000-0000000", .healthy = false, .numa_node = 255};
    return gs_dp_list_bytes(&worst, 1);
}

static bool fits_kubelet(uint64_t units)
{
    return units <= ADVERTISE_MAX_DEVICES && units * worst_device_bytes() <= GS_DP_LIST_MAX_BYTES;
}

static int check_size(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_error *err)
{
    uint64_t units = count_units(set, unit);
    if (fits_kubelet(units))
        return 0;
    for (int larger = (int)unit + 1; larger <= GS_UNIT_GIB; larger++) {
        if (fits_kubelet(count_units(set, (enum gs_unit)larger)))
            return gs_fail(err, GS_ETOOBIG,
                           "%llu units of %s do not fit the kubelet's 4 MiB message: the smallest "
                           "unit that does is --memory-unit %s, on every node of the cluster",
                           (unsigned long long)units, gs_unit_name(unit),
                           gs_unit_name((enum gs_unit)larger));
    }
    return gs_fail(err, GS_ETOOBIG, "%llu units of %s do not fit the kubelet's 4 MiB message",
                   (unsigned long long)units, gs_unit_name(unit));
}

int advertise_devices(const struct gs_gpu_set *set, enum gs_unit unit,
                      struct gs_dp_device **ret_devices, size_t *ret_count, struct gs_error *err)
{
    if (check_size(set, unit, err) < 0)
        return -1;
    size_t count = count_units(set, unit);
    struct gs_dp_device *devices = calloc(count + 1, sizeof(*devices) + ADVERTISE_ID_BYTES);
    if (!devices)
        return gs_fail_nomem(err);
    char *id = (char *)(devices + count + 1); /* the texts follow in the same block */
    size_t at = 0;
    for (uint32_t g = 0; g < set->count; g++) {
        const struct gs_gpu *gpu = &set->gpus[g];
        uint32_t hash = (uint32_t)(gs_hash_bytes(gpu->uuid, strlen(gpu->uuid)) >> 32);
        for (uint32_t n = 0; n < gpu->mem_units && at < count; n++, id += ADVERTISE_ID_BYTES) {
            snprintf(id, ADVERTISE_ID_BYTES, "%08x-%u", hash, n);
            devices[at++] = (struct gs_dp_device){
                .id = id,
                .healthy = !(set->gone & GS_GPU_BIT(gpu->idx)),
                .numa_node = gpu->numa,
            };
        }
    }
    *ret_devices = devices;
    *ret_count = at;
    return 0;
}

void advertise_inventory(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out)
{
    const struct gs_inventory inventory = {unit, (struct gs_gpu *)set->gpus, set->count};
    gs_codec_inventory_encode(out, &inventory);
}

void advertise_print(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        gs_buf_printf(out, "GPU %u: %s, %s, %u MiB = %u units of %s", gpu->idx,
                      gpu->model[0] ? gpu->model : "unknown model",
                      gpu->uuid[0] ? gpu->uuid : "no UUID", gpu->mem_mib, gpu->mem_units,
                      gs_unit_name(unit));
        if (gpu->numa != GS_NUMA_NONE)
            gs_buf_printf(out, ", NUMA node %d", gpu->numa);
        gs_buf_puts(out, gpu->healthy ? "\n" : ", unhealthy\n");
    }
    if (set->refused[0])
        gs_buf_printf(out, "left out: %s\n", set->refused);
    gs_buf_printf(out, "%u GPUs, %llu devices for the kubelet\n", set->count,
                  (unsigned long long)count_units(set, unit));
    gs_buf_puts(out, "annotation: ");
    advertise_inventory(set, unit, out);
    gs_buf_putc(out, '\n');
}
