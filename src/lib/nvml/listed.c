/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/listed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/file.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/inventory.h"

/* ---- from a flag ---- */

static int read_set(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    *ret = *(const struct gs_gpu_set *)ctx;
    return 0;
}

/* Nothing ever happens to listed GPUs. */
static int wait_out(void *ctx, int64_t timeout_ns, struct gs_error *err)
{
    const struct timespec time = {timeout_ns / GS_NS_PER_S, timeout_ns % GS_NS_PER_S};
    nanosleep(&time, NULL);
    return 0;
}

static void close_set(void *ctx)
{
    free(ctx);
}

/* "16384MiB" or "16GiB" → MiB; 0 when it is neither. */
static uint32_t size_mib(const char *text, size_t len)
{
    uint32_t number;
    if (len < 4 || !gs_parse_u32(text, len - 3, &number))
        return 0;
    if (memcmp(text + len - 3, "MiB", 3) == 0)
        return number;
    if (memcmp(text + len - 3, "GiB", 3) == 0 && number <= UINT32_MAX / 1024)
        return number * 1024;
    return 0;
}

static int add_part(struct gs_gpu_set *set, const char *part, size_t len, struct gs_error *err)
{
    const char *x = memchr(part, 'x', len);
    uint32_t count = 1;
    size_t skip = x ? (size_t)(x - part) + 1 : 0;
    if (x && !gs_parse_u32(part, skip - 1, &count))
        count = 0;
    uint32_t mib = size_mib(part + skip, len - skip);
    if (!count || !mib)
        return gs_fail(err, GS_EINVAL, "\"%.*s\" is invalid: write it as 2x16384MiB or 80GiB",
                       (int)len, part);
    if (count > GS_GPUS_MAX - set->count)
        return gs_fail(err, GS_EINVAL, "more than %d GPUs", GS_GPUS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct gs_gpu *gpu = &set->gpus[set->count];
        *gpu = (struct gs_gpu){
            .idx = set->count,
            .mem_mib = mib,
            .numa = GS_NUMA_NONE,
            .healthy = true,
            .schedulable = true,
            .model = "fake",
        };
        snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-fake-%u", set->count);
        set->measured |= GS_GPU_BIT(set->count); /* nobody uses what is not there */
        set->count++;
    }
    return 0;
}

int gs_gpus_from_spec(const char *spec, struct gs_gpu_source *ret, struct gs_error *err)
{
    static const struct gs_gpu_source_ops ops = {
        .read = read_set, .wait = wait_out, .close = close_set};
    struct gs_gpu_set *set = calloc(1, sizeof(*set));
    if (!set)
        return gs_fail_nomem(err);
    set->fresh = true;
    for (const char *at = spec;; at++) {
        size_t len = strcspn(at, ",");
        if (add_part(set, at, len, err) < 0) {
            free(set);
            return -1;
        }
        at += len;
        if (!*at)
            break;
    }
    *ret = (struct gs_gpu_source){&ops, set};
    return 0;
}

/* ---- from a file ---- */

enum { FILE_MAX_BYTES = 1 << 20 };
#define LOOK_EVERY_NS (200 * GS_NS_PER_MS)

struct listed_file {
    char *path;
    struct gs_file_mark seen; /* of the file that was read last */
};

static int read_file(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    struct listed_file *file = ctx;
    _cleanup_free_ char *text = NULL;
    size_t len;
    struct gs_arena arena = {0};
    struct gs_inventory inventory;
    /* before it is read, so that a change meanwhile is one; a broken file waits for the next */
    gs_file_mark(file->path, &file->seen);
    int result = gs_file_read(file->path, FILE_MAX_BYTES, &text, &len, err);
    if (result == 0) {
        result = gs_codec_inventory_decode((struct gs_slice){text, len}, &arena, &inventory, err);
        if (result < 0)
            gs_error_prefix(err, "%.160s", file->path);
    }
    if (result == 0) {
        struct gs_gpu_set set = {.count = inventory.gpu_count,
                                 .vendor = inventory.vendor ? gs_vendor_find(inventory.vendor) : 0,
                                 .fresh = true};
        for (uint32_t i = 0; i < inventory.gpu_count; i++) {
            set.gpus[i] = inventory.gpus[i];
            if (!set.gpus[i].mem_mib)
                set.gpus[i].mem_mib = set.gpus[i].mem_units * gs_unit_mib(inventory.unit);
            set.gpus[i].mem_units = 0;
        }
        if (gs_vendors[set.vendor].name)
            *ret = set;
        else
            result = gs_fail(err, GS_EPROTO, "%.160s: the vendor %.40s is not known", file->path,
                             inventory.vendor);
    }
    gs_arena_release(&arena);
    return result;
}

/* Not while it is being replaced; a file that stays away keeps what was known. */
static bool changed(const struct listed_file *file)
{
    struct gs_file_mark now;
    return gs_file_mark(file->path, &now) && !gs_file_mark_eq(&now, &file->seen);
}

static int wait_file(void *ctx, int64_t timeout_ns, struct gs_error *err)
{
    const struct timespec pause = {0, LOOK_EVERY_NS};
    for (int64_t waited_ns = 0; waited_ns < timeout_ns; waited_ns += LOOK_EVERY_NS) {
        if (changed(ctx))
            return 1;
        nanosleep(&pause, NULL);
    }
    return changed(ctx);
}

static void close_file(void *ctx)
{
    struct listed_file *file = ctx;
    free(file->path);
    free(file);
}

int gs_gpus_from_file(const char *path, struct gs_gpu_source *ret, struct gs_error *err)
{
    static const struct gs_gpu_source_ops ops = {
        .read = read_file, .wait = wait_file, .close = close_file};
    struct listed_file *file = calloc(1, sizeof(*file));
    if (file)
        file->path = strdup(path);
    if (!file || !file->path) {
        free(file);
        return gs_fail_nomem(err);
    }
    *ret = (struct gs_gpu_source){&ops, file};
    return 0;
}

int gs_gpus_open(const struct gs_gpu_options *options, struct gs_gpu_source *ret,
                 struct gs_error *err)
{
    const struct gs_nvml_config config = {.library = options->nvml_library,
                                          .clock = gs_clock_system()};
    if (options->fake_gpus)
        return gs_gpus_from_spec(options->fake_gpus, ret, err);
    return options->gpu_file ? gs_gpus_from_file(options->gpu_file, ret, err)
                             : gs_gpus_from_driver(&config, ret, err);
}
