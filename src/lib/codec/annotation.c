/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/annotation.h"

#include <stdio.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/scan.h"
#include "json_writer.h"

bool gs_codec_idx_parse(struct gs_slice text, gs_gpu_mask *ret)
{
    gs_gpu_mask gpus = 0;
    do {
        const struct gs_slice part = gs_slice_cut(&text, ',');
        uint32_t idx;
        if (!gs_parse_u32(part.at, part.len, &idx) || idx >= GS_GPUS_MAX || gpus & GS_GPU_BIT(idx))
            return false;
        gpus |= GS_GPU_BIT(idx);
    } while (text.at);
    *ret = gpus;
    return true;
}

char *gs_codec_idx_format(gs_gpu_mask gpus, char out[GS_IDX_TEXT_BYTES])
{
    /* 10 indices of one digit and 54 of two, each with a comma: 182 bytes at most */
    size_t len = 0;
    uint32_t idx;
    out[0] = '\0';
    GS_FOR_EACH_GPU (idx, gpus)
        len +=
            (size_t)snprintf(out + len, GS_IDX_TEXT_BYTES - len, "%s%" PRIu32, len ? "," : "", idx);
    return out;
}

void gs_codec_allocation(struct gs_buf *out, const struct gs_pod *pod, gs_gpu_mask gpus)
{
    uint32_t main = 0, idx;
    gs_buf_putc(out, '{');
    for (uint32_t i = 0; i < pod->container_count; i++) {
        const struct gs_container *container = &pod->containers[i];
        main += container->kind == GS_CONTAINER_MAIN;
        if (container->kind != GS_CONTAINER_MAIN || !container->gpu_units)
            continue;
        const uint32_t units = gs_units_each(container->gpu_units, gs_gpu_mask_count(gpus));
        gs_write_comma(out);
        gs_buf_printf(out, "\"%" PRIu32 "\":{", main - 1);
        GS_FOR_EACH_GPU (idx, gpus) {
            gs_write_comma(out);
            gs_buf_printf(out, "\"%" PRIu32 "\":%" PRIu32, idx, units);
        }
        gs_buf_putc(out, '}');
    }
    gs_buf_putc(out, '}');
}

/* The result of reading the JSON: its GPUs, and whether every container has the same amount on
 * each. */
struct reading {
    gs_gpu_mask gpus;
    bool even;
};

static bool read_gpu(struct gs_scan *scan, struct gs_scan_text key, gs_gpu_mask *gpus,
                     struct gs_slice *ret_units)
{
    char digits[16];
    uint32_t idx;
    if (!gs_scan_text_copy(key, digits, sizeof(digits)) ||
        !gs_parse_u32(digits, strlen(digits), &idx) || idx >= GS_GPUS_MAX)
        return gs_scan_refuse(scan, "GPU index", "is not below the limit");
    *gpus |= GS_GPU_BIT(idx);
    return gs_scan_raw(scan, ret_units);
}

static void read_container(struct gs_scan *scan, struct reading *reading)
{
    struct gs_scan_text key;
    struct gs_slice first = {0}, units = {0};
    gs_gpu_mask gpus = 0;
    gs_scan_object(scan, "allocation of a container");
    while (gs_scan_key(scan, &key)) {
        if (!read_gpu(scan, key, &gpus, &units))
            return;
        first = first.at ? first : units;
        reading->even &= gs_slice_eq(first, units);
    }
    if (!gpus)
        return;
    reading->even &= !reading->gpus || reading->gpus == gpus;
    reading->gpus |= gpus;
}

bool gs_codec_allocation_gpus(struct gs_slice json, gs_gpu_mask *ret, bool *ret_even)
{
    struct gs_scan scan;
    struct gs_scan_text key;
    struct reading reading = {.even = true};
    gs_scan_init(&scan, json);
    gs_scan_object(&scan, "allocation");
    while (gs_scan_key(&scan, &key))
        read_container(&scan, &reading);
    if (gs_scan_finish(&scan, NULL) < 0 || !reading.gpus)
        return false;
    *ret = reading.gpus;
    *ret_even = reading.even;
    return true;
}

static const char *allocation_text(struct gs_arena *arena, const struct gs_pod *pod,
                                   gs_gpu_mask gpus)
{
    /* a container lists at most 64 GPUs in some 20 bytes each */
    struct gs_buf text = GS_BUF(((size_t)pod->container_count + 1) * GS_GPUS_MAX * 32);
    gs_codec_allocation(&text, pod, gpus);
    const char *copy = gs_buf_failed(&text) ? NULL : gs_arena_strndup(arena, text.data, text.len);
    gs_buf_release(&text);
    return copy;
}

int gs_codec_bind_annotations(const struct gs_names *names, const struct gs_pod *pod,
                              const struct gs_bind_record *record, struct gs_arena *arena,
                              struct gs_kv **ret_kv, size_t *ret_count, struct gs_error *err)
{
    char idx[GS_IDX_TEXT_BYTES];
    gs_codec_idx_format(record->gpus, idx);
    const struct gs_kv filled[GS_BIND_ANNOTATIONS] = {
        {names->idx, gs_arena_strndup(arena, idx, strlen(idx))},
        {names->dev, gs_arena_printf(arena, "%" PRIu64, record->dev_units)},
        {names->pod, gs_arena_printf(arena, "%" PRIu64,
                                     (uint64_t)record->charge.units * record->charge.gpu_count)},
        {names->assigned, "false"},
        {GS_ALLOCATION_KEY, allocation_text(arena, pod, record->gpus)},
        {names->assume_time, gs_arena_printf(arena, "%" PRId64, record->assume_time_ns)},
    };
    struct gs_kv *kv = gs_arena_calloc(arena, GS_BIND_ANNOTATIONS, sizeof(*kv));
    if (!kv)
        return gs_fail_nomem(err);
    for (int i = 0; i < GS_BIND_ANNOTATIONS; i++) {
        if (!filled[i].value)
            return gs_fail_nomem(err);
        kv[i] = filled[i];
    }
    *ret_kv = kv;
    *ret_count = GS_BIND_ANNOTATIONS - !record->assume_time_ns;
    return 0;
}
