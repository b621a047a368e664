/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/advertise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
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
    const struct gs_dp_device worst = {.id = "00000000-0000000", .healthy = true};
    return gs_dp_list_bytes(&worst, 1);
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

/* One id of ours. */
struct own {
    char id[ADVERTISE_ID_BYTES];
    bool in_use, listed;
};

/* The list in the making. */
struct plan {
    const struct ids_in_use *in_use;
    struct own *own;
    size_t own_count;
    bool *ours;        /* per id in use */
    size_t own_in_use; /* ids in use that are ours */
    size_t foreign_bytes;
};

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

static void name_own(struct plan *plan, const struct gs_gpu_set *set)
{
    uint32_t prefixes[GS_GPUS_MAX];
    size_t at = 0;
    choose_prefixes(set, prefixes);
    for (uint32_t g = 0; g < set->count; g++) {
        for (uint32_t n = 0; n < set->gpus[g].mem_units && at < plan->own_count; n++)
            snprintf(plan->own[at++].id, ADVERTISE_ID_BYTES, "%08x-%u", prefixes[g], n);
    }
    for (uint32_t n = set->count ? set->gpus[0].mem_units : 0; set->count && at < plan->own_count;
         n++)
        snprintf(plan->own[at++].id, ADVERTISE_ID_BYTES, "%08x-%u", prefixes[0], n);
    plan->own_count = at;
}

/* What pods hold: among ours, and beside them. */
static void mark_in_use(struct plan *plan)
{
    for (size_t i = 0; plan->in_use->count && i < plan->own_count; i++) {
        struct own *own = &plan->own[i];
        ptrdiff_t found = ids_in_use_find(plan->in_use, own->id);
        if (found < 0)
            continue;
        own->in_use = own->listed = plan->ours[found] = true;
        plan->own_in_use++;
    }
    for (size_t i = 0; i < plan->in_use->count; i++) {
        const struct gs_dp_device device = {.id = plan->in_use->ids[i], .healthy = true};
        plan->foreign_bytes += plan->ours[i] ? 0 : gs_dp_list_bytes(&device, 1);
    }
}

/* Free units beside what is in use: as many as make the sum of all units, and fit the limit. */
static size_t free_slots(const struct plan *plan, size_t *ret_dropped)
{
    size_t free_own = plan->own_count - plan->own_in_use;
    size_t foreign = plan->in_use->count - plan->own_in_use;
    size_t slots = free_own > foreign ? free_own - foreign : 0;
    size_t room = GS_DP_LIST_MAX_BYTES / worst_device_bytes();
    size_t taken = plan->own_in_use + plan->foreign_bytes / worst_device_bytes() + 1;
    size_t fitting = foreign && room > taken ? room - taken : foreign ? 0 : slots;
    *ret_dropped = slots > fitting ? slots - fitting : 0;
    return slots - *ret_dropped;
}

static void choose_free(struct plan *plan, size_t slots)
{
    for (size_t i = 0; slots && i < plan->own_count; i++) {
        slots -= !plan->own[i].in_use;
        plan->own[i].listed = true;
    }
}

/* The texts follow the devices in the same block. */
static struct gs_dp_device *write_down(const struct plan *plan, size_t *ret_count)
{
    size_t most = plan->own_count + plan->in_use->count;
    struct gs_dp_device *devices =
        calloc(1, (most + 1) * sizeof(*devices) + (plan->own_count + 1) * ADVERTISE_ID_BYTES);
    if (!devices)
        return NULL;
    char *id = (char *)(devices + most + 1);
    size_t at = 0;
    for (size_t i = 0; i < plan->own_count; i++, id += ADVERTISE_ID_BYTES) {
        if (!plan->own[i].listed)
            continue;
        memcpy(id, plan->own[i].id, ADVERTISE_ID_BYTES);
        devices[at++] = (struct gs_dp_device){.id = id, .healthy = true};
    }
    for (size_t i = 0; i < plan->in_use->count; i++) {
        if (!plan->ours[i])
            devices[at++] = (struct gs_dp_device){.id = plan->in_use->ids[i], .healthy = true};
    }
    *ret_count = at;
    return devices;
}

int advertise_devices(const struct gs_gpu_set *set, enum gs_unit unit,
                      const struct ids_in_use *in_use, struct advertised *ret, struct gs_error *err)
{
    static const struct ids_in_use nothing;
    if (advertise_check(set, unit, err) < 0)
        return -1;
    struct plan plan = {.in_use = in_use ? in_use : &nothing, .own_count = count_units(set, unit)};
    plan.own_count += plan.in_use->above;
    _cleanup_free_ struct own *own = calloc(plan.own_count + 1, sizeof(*own));
    _cleanup_free_ bool *ours = calloc(plan.in_use->count + 1, sizeof(*ours));
    if (!own || !ours)
        return gs_fail_nomem(err);
    plan.own = own;
    plan.ours = ours;
    struct advertised made = {0};
    name_own(&plan, set);
    mark_in_use(&plan);
    choose_free(&plan, free_slots(&plan, &made.dropped));
    made.foreign = plan.in_use->count - plan.own_in_use;
    made.devices = write_down(&plan, &made.count);
    if (!made.devices)
        return gs_fail_nomem(err);
    *ret = made;
    return 0;
}

static void print_inventory(const struct gs_gpu_set *set, enum gs_unit unit, struct gs_buf *out)
{
    const struct gs_inventory inventory = {.unit = unit,
                                           .gpus = (struct gs_gpu *)set->gpus,
                                           .gpu_count = set->count,
                                           .tells_moved = true};
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
    print_inventory(set, unit, out);
    gs_buf_putc(out, '\n');
}
