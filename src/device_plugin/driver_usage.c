/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/driver_usage.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/array.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"
#include "gpushare/limit/keeper.h"

/* Three readings. */
#define STALE_NS (30 * GS_NS_PER_S)

#define TOLD_NS (3600 * GS_NS_PER_S)

/* What the contexts of two processes take, which the driver counts, too. */
#define CONTEXTS_BYTES (UINT64_C(1) << 30)

/* ---- on the GPUs' thread ---- */

void driver_reading_free(struct driver_reading *reading)
{
    if (reading)
        free(reading->entries);
    free(reading);
}

/* first: of this GPU's entries. NULL: out of memory. */
static struct driver_usage_entry *entry_of(struct driver_reading *reading, size_t first,
                                           const char *uid)
{
    for (size_t i = first; i < reading->count; i++)
        if (strcmp(reading->entries[i].uid, uid) == 0)
            return &reading->entries[i];
    if (!gs_array_reach(&reading->entries, &reading->cap, reading->count,
                        sizeof(*reading->entries)))
        return NULL;
    struct driver_usage_entry *entry = &reading->entries[reading->count++];
    *entry = (struct driver_usage_entry){.gpu = reading->gpu_count};
    memcpy(entry->uid, uid, GS_POD_UID_BYTES);
    return entry;
}

static void add(struct driver_usage_entry *entry, uint64_t bytes)
{
    entry->unknown |=
        bytes == GS_GPU_BYTES_UNKNOWN || __builtin_add_overflow(entry->bytes, bytes, &entry->bytes);
    if (entry->unknown)
        entry->bytes = 0;
}

/* As the header says: at most what is in use. */
static void fit(struct driver_usage_entry *entries, size_t count, uint64_t in_use)
{
    unsigned __int128 sum = 0, fitted = 0;
    for (size_t i = 0; i < count; i++)
        sum += entries[i].bytes;
    for (size_t i = 0; i < count; i++) {
        if (sum > in_use)
            entries[i].bytes = (uint64_t)((unsigned __int128)entries[i].bytes * in_use / sum);
        fitted += entries[i].bytes;
    }
    GS_INVARIANT(fitted <= in_use, "the pods of a GPU use no more than is in use on it");
}

static bool read_gpu(const struct gs_gpu_source *source, const struct gs_gpu *gpu,
                     struct gs_process_pods *pods, int64_t now_ns, struct driver_reading *reading)
{
    struct gs_gpu_process processes[GS_GPU_PROCESSES_MAX];
    struct gs_error err = {0};
    size_t count = 0;
    char uid[GS_POD_UID_BYTES];
    if (source->ops->processes(source->ctx, gpu->idx, processes, &count, &err) < 0) {
        gs_process_pods_refused(pods, gpu->idx);
        if (reading->err.code == GS_OK)
            reading->err = err;
        return true;
    }
    size_t first = reading->count;
    for (size_t i = 0; i < count; i++) {
        if (!gs_process_pods_find(pods, gpu->idx, now_ns, processes[i].pid, uid))
            continue;
        struct driver_usage_entry *entry = entry_of(reading, first, uid);
        if (!entry)
            return false;
        add(entry, processes[i].bytes);
    }
    memcpy(reading->uuids[reading->gpu_count++], gpu->uuid, GS_UUID_BYTES);
    return true;
}

struct driver_reading *driver_usage_read(const struct gs_gpu_source *source,
                                         const struct gs_gpu_set *set, struct gs_process_pods *pods,
                                         int64_t (*next)(void *ctx), void *ctx)
{
    struct driver_reading *reading = calloc(1, sizeof(*reading));
    bool whole = reading != NULL;
    if (!reading)
        return NULL;
    gs_process_pods_begin(pods);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        size_t first = reading->count;
        if (!whole || !(reading->at_ns = next(ctx))) {
            gs_process_pods_refused(pods, gpu->idx);
            whole = false;
            continue;
        }
        whole = read_gpu(source, gpu, pods, reading->at_ns, reading);
        if (set->measured & GS_GPU_BIT(gpu->idx))
            fit(reading->entries + first, reading->count - first, set->used_bytes[gpu->idx]);
    }
    gs_process_pods_end(pods);
    if (whole)
        return reading;
    driver_reading_free(reading);
    return NULL;
}

/* ---- on the loop ---- */

void driver_usage_release(struct driver_usage *usage)
{
    free(usage->pods);
    *usage = (struct driver_usage){0};
}

static struct driver_usage_pod *find(const struct driver_usage *usage, const char *uid)
{
    for (size_t i = 0; i < usage->count; i++)
        if (strcmp(usage->pods[i].uid, uid) == 0)
            return &usage->pods[i];
    return NULL;
}

/* NULL: too many, or out of memory. */
static struct driver_usage_pod *find_or_add(struct driver_usage *usage, const char *uid)
{
    struct driver_usage_pod *pod = find(usage, uid);
    if (pod || usage->count == GS_KEEPER_PODS_MAX)
        return pod;
    if (!gs_array_reach(&usage->pods, &usage->cap, usage->count, sizeof(*usage->pods)))
        return NULL;
    pod = &usage->pods[usage->count++];
    *pod = (struct driver_usage_pod){.placed = true};
    memcpy(pod->uid, uid, GS_POD_UID_BYTES);
    return pod;
}

static void note(struct driver_usage *usage, const struct driver_usage_entry *entry, uint32_t idx)
{
    struct driver_usage_pod *pod = find_or_add(usage, entry->uid);
    if (!pod) { /* nothing can be said of this GPU */
        usage->told &= ~GS_GPU_BIT(idx);
        return;
    }
    pod->read = true;
    if (entry->unknown) {
        pod->unknown |= GS_GPU_BIT(idx);
        return;
    }
    pod->use.used_on[idx] = entry->bytes;
    if (entry->bytes > pod->use.peak_on[idx])
        pod->use.peak_on[idx] = entry->bytes;
}

/* GS_GPUS_MAX: nobody's. */
static uint32_t index_of(const struct gs_gpu_set *set, const char *uuid)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (strcmp(set->gpus[i].uuid, uuid) == 0)
            return set->gpus[i].idx;
    return GS_GPUS_MAX;
}

/* Once for each kind of failure. */
static void log_failure(struct driver_usage *usage, const struct gs_error *err)
{
    if (err->code != GS_OK && err->code != usage->failure)
        gs_log(GS_LOG_WARN, "memory use of pods is unknown on some GPUs",
               GS_STR("error", err->msg));
    usage->failure = err->code;
}

void driver_usage_take(struct driver_usage *usage, struct driver_reading *reading,
                       const struct gs_gpu_set *set)
{
    uint32_t indices[GS_GPUS_MAX];
    log_failure(usage, &reading->err);
    usage->read_ns = reading->at_ns;
    usage->told = 0;
    for (size_t i = 0; i < usage->count; i++) {
        usage->pods[i].read = false;
        usage->pods[i].unknown = 0;
        memset(usage->pods[i].use.used_on, 0, sizeof(usage->pods[i].use.used_on));
    }
    for (uint32_t i = 0; i < reading->gpu_count; i++) {
        indices[i] = index_of(set, reading->uuids[i]);
        if (indices[i] < GS_GPUS_MAX)
            usage->told |= GS_GPU_BIT(indices[i]);
    }
    for (size_t i = 0; i < reading->count; i++)
        if (indices[reading->entries[i].gpu] < GS_GPUS_MAX)
            note(usage, &reading->entries[i], indices[reading->entries[i].gpu]);
    driver_reading_free(reading);
}

void driver_usage_pass_begin(struct driver_usage *usage)
{
    for (size_t i = 0; i < usage->count; i++) {
        usage->pods[i].placed = false;
        usage->pods[i].over_bytes = 0;
    }
}

void driver_usage_pass_end(struct driver_usage *usage)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < usage->count; i++)
        if (usage->pods[i].placed || usage->pods[i].read)
            usage->pods[kept++] = usage->pods[i];
    usage->count = kept;
}

void driver_usage_find(struct driver_usage *usage, const char *uid, gs_gpu_mask gpus,
                       int64_t now_ns, struct pod_use *ret)
{
    struct driver_usage_pod *pod = find(usage, uid);
    uint32_t gpu;
    if (pod)
        pod->placed = true;
    if (!usage->read_ns || now_ns - usage->read_ns >= STALE_NS)
        return;
    gpus &= usage->told & ~(pod ? pod->unknown : 0);
    ret->counted |= gpus;
    GS_FOR_EACH_GPU (gpu, gpus) {
        ret->used_on[gpu] = pod ? pod->use.used_on[gpu] : 0;
        ret->peak_on[gpu] = pod ? pod->use.peak_on[gpu] : 0;
    }
}

void driver_usage_over(struct driver_usage *usage, const char *uid, uint64_t bytes)
{
    struct driver_usage_pod *pod = find(usage, uid);
    if (pod && bytes > pod->over_bytes)
        pod->over_bytes = bytes;
}

const char *driver_usage_next_over(struct driver_usage *usage, int64_t now_ns, uint64_t *ret_bytes)
{
    for (size_t i = 0; i < usage->count; i++) {
        struct driver_usage_pod *pod = &usage->pods[i];
        bool told = pod->told_ns && now_ns - pod->told_ns < TOLD_NS;
        if (told || pod->over_bytes <= CONTEXTS_BYTES)
            continue;
        pod->told_ns = now_ns;
        *ret_bytes = pod->over_bytes;
        return pod->uid;
    }
    return NULL;
}
