/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/moved.h"

#include "json_writer.h"
#include "reader.h"

void gs_codec_moved_encode(struct gs_buf *out, const struct gs_moved *moved, size_t count)
{
    uint32_t idx;
    gs_buf_putc(out, '{');
    for (size_t i = 0; i < count; i++) {
        gs_write_key(out, moved[i].uid);
        gs_buf_putc(out, '[');
        GS_FOR_EACH_GPU (idx, moved[i].gpus) {
            gs_write_comma(out);
            gs_buf_printf(out, "%" PRIu32, idx);
        }
        gs_buf_putc(out, ']');
    }
    gs_buf_putc(out, '}');
}

static gs_gpu_mask read_gpus(struct gs_reader *reader)
{
    struct gs_scan *scan = &reader->scan;
    gs_gpu_mask gpus = 0;
    gs_scan_array(scan, "GPUs of a pod");
    while (gs_scan_element(scan)) {
        int32_t idx;
        if (!gs_scan_i32(scan, "GPU index", &idx))
            break;
        if (idx < 0 || idx >= GS_GPUS_MAX)
            gs_scan_refuse(scan, "GPU index", "is not between 0 and 63");
        else if (gpus & GS_GPU_BIT(idx))
            gs_scan_refuse(scan, "GPU index", "is duplicated");
        else
            gpus |= GS_GPU_BIT(idx);
    }
    if (!gpus)
        gs_scan_refuse(scan, "GPUs of a pod", "are missing");
    return gpus;
}

static void read_entry(struct gs_reader *reader, struct gs_scan_text uid, struct gs_moved *entry)
{
    if (!uid.len)
        gs_scan_refuse(&reader->scan, "UID of a pod", "is empty");
    *entry = (struct gs_moved){.uid = gs_read_dup(reader, uid), .gpus = read_gpus(reader)};
}

static void sort_entries(struct gs_reader *reader, struct gs_moved *moved, uint32_t count)
{
    if (reader->scan.failed || !count)
        return;
    gs_moved_sort(moved, count);
    for (uint32_t i = 1; i < count; i++) {
        if (strcmp(moved[i - 1].uid, moved[i].uid) == 0)
            gs_scan_refuse(&reader->scan, "UID of a pod", "is duplicated");
    }
}

int gs_codec_moved_decode(struct gs_slice text, struct gs_arena *arena, struct gs_moved **ret,
                          uint32_t *ret_count, struct gs_error *err)
{
    struct gs_reader reader = {.arena = arena};
    struct gs_moved *moved = NULL;
    struct gs_scan_text key;
    uint32_t count = 0;
    if (text.len > GS_MOVED_TEXT_MAX)
        return gs_fail(err, GS_ETOOBIG, "list of reassigned pods has %zu bytes, more than %d",
                       text.len, GS_MOVED_TEXT_MAX);
    gs_scan_init(&reader.scan, text);
    gs_scan_object(&reader.scan, "list of reassigned pods");
    while (gs_scan_key(&reader.scan, &key)) {
        struct gs_moved *entry =
            gs_read_append(&reader, &moved, &count, sizeof(*entry), GS_MOVED_MAX);
        if (entry)
            read_entry(&reader, key, entry);
    }
    sort_entries(&reader, moved, count);
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    *ret = moved;
    *ret_count = count;
    return 0;
}
