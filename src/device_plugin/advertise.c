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

/* The list in the making. */
struct plan {
    const struct gs_gpu_set *set;
    const struct ids_in_use *in_use;
    uint32_t prefixes[GS_GPUS_MAX];
    size_t own_count;  /* ids of ours: one per unit, and what pods hold above that */
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

/* One of ours, GPU by GPU; those above all units count on at the first. */
static void name_own(const struct plan *plan, size_t at, char ret[ADVERTISE_ID_BYTES])
{
    const struct gs_gpu *gpus = plan->set->gpus;
    uint32_t g = 0;
    while (g < plan->set->count && at >= gpus[g].mem_units)
        at -= gpus[g++].mem_units;
    if (g == plan->set->count) {
        g = 0;
        at += gpus[0].mem_units;
    }
    snprintf(ret, ADVERTISE_ID_BYTES, "%08x-%zu", plan->prefixes[g], at);
}

/* What pods hold: among ours, and beside them. */
static void mark_in_use(struct plan *plan)
{
    char id[ADVERTISE_ID_BYTES];
    for (size_t i = 0; plan->in_use->count && i < plan->own_count; i++) {
        name_own(plan, i, id);
        ptrdiff_t found = ids_in_use_find(plan->in_use, id);
        if (found < 0)
            continue;
        plan->ours[found] = true;
        plan->own_in_use++;
    }
    for (size_t i = 0; i < plan->in_use->count; i++)
        plan->foreign_bytes += plan->ours[i] ? 0 : gs_dp_list_bytes(&plan->in_use->ids[i], 1);
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

/* The texts follow the list in the same block. */
static const char **write_down(const struct plan *plan, size_t slots, size_t *ret_count)
{
    size_t most = plan->own_count + plan->in_use->count;
    const char **ids =
        calloc(1, (most + 1) * sizeof(*ids) + (plan->own_count + 1) * ADVERTISE_ID_BYTES);
    if (!ids)
        return NULL;
    char *id = (char *)(ids + most + 1);
    size_t at = 0;
    for (size_t i = 0; i < plan->own_count; i++) {
        name_own(plan, i, id);
        const bool in_use = ids_in_use_find(plan->in_use, id) >= 0;
        if (!in_use && !slots)
            continue;
        slots -= !in_use;
        ids[at++] = id;
        id += ADVERTISE_ID_BYTES;
    }
    for (size_t i = 0; i < plan->in_use->count; i++) {
        if (!plan->ours[i])
            ids[at++] = plan->in_use->ids[i];
    }
    *ret_count = at;
    return ids;
}

int advertise_devices(const struct gs_gpu_set *set, enum gs_unit unit,
                      const struct ids_in_use *in_use, struct advertised *ret, struct gs_error *err)
{
    static const struct ids_in_use nothing;
    if (advertise_check(set, unit, err) < 0)
        return -1;
    struct plan plan = {.set = set, .in_use = in_use ? in_use : &nothing};
    if (set->count)
        plan.own_count = count_units(set, unit) + plan.in_use->above;
    _cleanup_free_ bool *ours = calloc(plan.in_use->count + 1, sizeof(*ours));
    if (!ours)
        return gs_fail_nomem(err);
    plan.ours = ours;
    struct advertised made = {0};
    choose_prefixes(set, plan.prefixes);
    mark_in_use(&plan);
    const size_t slots = free_slots(&plan, &made.dropped);
    made.foreign = plan.in_use->count - plan.own_in_use;
    made.ids = write_down(&plan, slots, &made.count);
    if (!made.ids)
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
