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
        set->gpus[i].mem_units = gs_gpu_set_units(set, i, unit);
}

static uint64_t count_units(const struct gs_gpu_set *set, enum gs_unit unit)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < set->count; i++)
        sum += gs_gpu_set_units(set, i, unit);
    return sum;
}

/* Encoded size of one device in the worst case, from the encoder itself. */
static size_t worst_device_bytes(void)
{
    return gs_dp_list_bytes(&(const char *){"00000000-0000000"}, 1);
}

static bool fits_kubelet(uint64_t units)
{
    return units <= ADVERTISE_MAX_DEVICES && units * worst_device_bytes() <= GS_DP_LIST_MAX_BYTES;
}

static int check_reserved(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_error *err)
{
    for (uint32_t i = 0; set->reserved_mib && i < set->count; i++) {
        if (!gs_gpu_set_units(set, i, unit) && !(set->gone & GS_GPU_BIT(set->gpus[i].idx)))
            return gs_fail(err, GS_EINVAL,
                           "GPU %u has no whole unit for pods: --gpu-reserve and --overhead-mib "
                           "times --overhead-slots reserve %u of its %u MiB",
                           set->gpus[i].idx, set->reserved_mib, set->gpus[i].mem_mib);
    }
    return 0;
}

int advertise_check(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_error *err)
{
    if (check_reserved(set, unit, err) < 0)
        return -1;
    uint64_t units = count_units(set, unit);
    if (fits_kubelet(units))
        return 0;
    for (int larger = (int)unit + 1; larger <= GS_UNIT_GIB; larger++) {
        if (fits_kubelet(count_units(set, (enum gs_unit)larger)))
            return gs_fail(err, GS_ETOOBIG,
                           "%llu units of %s do not fit into the kubelet's 4 MiB message: on every "
                           "node of the cluster, set --memory-unit %s, the smallest unit that fits",
                           (unsigned long long)units, gs_unit_name(unit),
                           gs_unit_name((enum gs_unit)larger));
    }
    return gs_fail(err, GS_ETOOBIG, "%llu units of %s do not fit into the kubelet's 4 MiB message",
                   (unsigned long long)units, gs_unit_name(unit));
}

/* A GPU without a UUID is who its index says. */
static uint32_t hash_gpu(const struct gs_gpu *gpu)
{
    char index[16];
    const char *name = gpu->uuid;
    if (!name[0]) {
        snprintf(index, sizeof(index), "%u", gpu->idx);
        name = index;
    }
    return (uint32_t)(gs_hash_lasting(name, strlen(name)) >> 32);
}

/* The first part of a GPU's ids; hashes that meet are told apart in the order of the indices. */
static void choose_prefixes(const struct gs_gpu_set *set, uint32_t prefixes[GS_GPUS_MAX])
{
    for (uint32_t g = 0; g < set->count; g++) {
        prefixes[g] = hash_gpu(&set->gpus[g]);
        for (uint32_t other = 0; other < g; other++) {
            if (prefixes[other] != prefixes[g])
                continue;
            prefixes[g]++;
            other = UINT32_MAX; /* from the start */
        }
    }
}

/* One of ours, GPU by GPU; those above all units count on at the first. */
static void name_own(const struct gs_gpu_set *set, const uint32_t prefixes[GS_GPUS_MAX], size_t at,
                     char ret[ADVERTISE_ID_BYTES])
{
    const struct gs_gpu *gpus = set->gpus;
    uint32_t g = 0;
    while (g < set->count && at >= gpus[g].mem_units)
        at -= gpus[g++].mem_units;
    if (g == set->count) {
        g = 0;
        at += gpus[0].mem_units;
    }
    snprintf(ret, ADVERTISE_ID_BYTES, "%08x-%zu", prefixes[g], at);
}

/* Behind the ids in use so many free ones of own_count that are ours. */
static void add_free(const struct gs_gpu_set *set, const struct ids_in_use *in_use,
                     size_t own_count, size_t slots, struct advertised *made)
{
    uint32_t prefixes[GS_GPUS_MAX];
    char *id = (char *)(made->ids + made->count + slots + 1);
    choose_prefixes(set, prefixes);
    for (size_t i = 0; i < own_count; i++) {
        name_own(set, prefixes, i, id);
        if (ids_in_use_has(in_use, id)) {
            made->foreign--;
        } else if (slots) {
            slots--;
            made->ids[made->count++] = id;
            id += ADVERTISE_ID_BYTES;
        }
    }
}

int advertise_devices(const struct gs_gpu_set *set, enum gs_unit unit,
                      const struct ids_in_use *in_use, struct advertised *ret, struct gs_error *err)
{
    if (advertise_check(set, unit, err) < 0)
        return -1;
    const size_t held = in_use->count, bytes = gs_dp_list_bytes(in_use->ids, held);
    const size_t own_count = set->count ? count_units(set, unit) + in_use->above : 0;
    const size_t room =
        bytes < GS_DP_LIST_MAX_BYTES ? (GS_DP_LIST_MAX_BYTES - bytes) / worst_device_bytes() : 0;
    const size_t wanted = own_count > held ? own_count - held : 0;
    const size_t slots = wanted < room ? wanted : room;
    /* the texts follow the list in the same block, and one that is only compared */
    struct advertised made = {
        .ids = calloc(1, (held + slots + 1) * sizeof(*made.ids) + (slots + 1) * ADVERTISE_ID_BYTES),
        .count = held,
        .foreign = held,
        .dropped = wanted - slots};
    if (!made.ids)
        return gs_fail_nomem(err);
    for (size_t i = 0; i < held; i++)
        made.ids[i] = in_use->ids[i];
    add_free(set, in_use, own_count, slots, &made);
    *ret = made;
    return 0;
}

void advertise_print(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        gs_buf_printf(out, "GPU %u: %s, %s, %u MiB = %u units of %s", gpu->idx,
                      gpu->model[0] ? gpu->model : "unknown model",
                      gpu->uuid[0] ? gpu->uuid : "no UUID", gpu->mem_mib, gpu->mem_units,
                      gs_unit_name(unit));
        if (set->reserved_mib)
            gs_buf_printf(out, " (%u MiB reserved)", set->reserved_mib);
        if (gpu->numa != GS_NUMA_NONE)
            gs_buf_printf(out, ", NUMA node %d", gpu->numa);
        gs_buf_puts(out, gpu->healthy ? "\n" : ", unhealthy\n");
    }
    if (set->refused[0])
        gs_buf_printf(out, "not advertised: %s\n", set->refused);
    gs_buf_printf(out, "%u GPUs, %llu devices for the kubelet\n", set->count,
                  (unsigned long long)count_units(set, unit));
    gs_buf_puts(out, "annotation: ");
    const struct gs_inventory inventory = {.unit = unit,
                                           .gpus = (struct gs_gpu *)set->gpus,
                                           .gpu_count = set->count,
                                           .tells_moved = true};
    gs_codec_inventory_encode(out, &inventory);
    gs_buf_putc(out, '\n');
}
