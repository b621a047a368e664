/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/inventory.h"

#include <inttypes.h>

#include "gpushare/base/utf8.h"
#include "reader.h"

enum { VERSION = 1 };

static void put_enforced(struct gs_buf *out, enum gs_enforced enforced)
{
    if (enforced != GS_ENFORCED_UNKNOWN)
        gs_buf_printf(out, ",\"enforced\":\"%s\"", gs_enforced_by(enforced));
    if (gs_enforced_lacks(enforced))
        gs_buf_printf(out, ",\"enforcedReason\":\"%s\"", gs_enforced_why(enforced));
}

static void put_gpu(struct gs_buf *out, const struct gs_gpu *gpu)
{
    gs_buf_printf(out, "{\"idx\":%" PRIu32, gpu->idx);
    if (gpu->uuid[0]) {
        gs_buf_puts(out, ",\"uuid\":");
        gs_buf_json_string(out, gpu->uuid, strlen(gpu->uuid));
    }
    gs_buf_printf(out, ",\"mem\":%" PRIu32, gpu->mem_units);
    if (gpu->mem_mib)
        gs_buf_printf(out, ",\"memMiB\":%" PRIu32, gpu->mem_mib);
    if (gpu->model[0]) {
        gs_buf_puts(out, ",\"model\":");
        gs_buf_json_string(out, gpu->model, strlen(gpu->model));
    }
    if (gpu->pci[0]) {
        gs_buf_puts(out, ",\"pci\":");
        gs_buf_json_string(out, gpu->pci, strlen(gpu->pci));
    }
    gs_buf_printf(out, ",\"healthy\":%s", gpu->healthy ? "true" : "false");
    if (gpu->xid)
        gs_buf_printf(out, ",\"xid\":%" PRIu32 ",\"xidBoot\":%" PRIu32, gpu->xid, gpu->xid_boot);
    if (gpu->numa != GS_NUMA_NONE)
        gs_buf_printf(out, ",\"numa\":%d", gpu->numa);
    gs_buf_printf(out, ",\"schedulable\":%s", gpu->schedulable ? "true" : "false");
    put_enforced(out, gpu->enforced);
    if (gpu->max_pods)
        gs_buf_printf(out, ",\"maxPods\":%" PRIu32, gpu->max_pods);
    gs_buf_putc(out, '}');
}

static void put_owner(struct gs_buf *out, const struct gs_inventory *inventory)
{
    if (inventory->node) {
        gs_buf_puts(out, ",\"node\":");
        gs_buf_json_string(out, inventory->node, strlen(inventory->node));
    }
    if (inventory->mps)
        gs_buf_puts(out, ",\"mps\":true");
    for (uint32_t i = 0; i < inventory->other_count; i++) {
        gs_buf_puts(out, i ? "," : ",\"others\":[");
        gs_buf_json_string(out, inventory->others[i], strlen(inventory->others[i]));
    }
    if (inventory->other_count)
        gs_buf_putc(out, ']');
}

void gs_codec_inventory_encode(struct gs_buf *out, const struct gs_inventory *inventory)
{
    gs_buf_printf(out, "{\"v\":%d,\"unit\":\"%s\",\"gpus\":[", VERSION,
                  gs_unit_name(inventory->unit));
    for (uint32_t i = 0; i < inventory->gpu_count; i++) {
        if (i)
            gs_buf_putc(out, ',');
        put_gpu(out, &inventory->gpus[i]);
    }
    gs_buf_puts(out, inventory->tells_moved ? "],\"moved\":true" : "]");
    if (inventory->unit_doubted)
        gs_buf_puts(out, ",\"unitDoubted\":true");
    if (inventory->rev)
        gs_buf_printf(out, ",\"rev\":%" PRId64, inventory->rev);
    put_owner(out, inventory);
    gs_buf_putc(out, '}');
}

/* What is being read: GPUs by index, so that they end up sorted. */
struct draft {
    struct gs_reader reader;
    struct gs_gpu gpus[GS_GPUS_MAX];
    gs_gpu_mask present;
    int64_t version;
    bool has_version, has_gpus;
    struct gs_inventory rest; /* what stands beside the GPUs */
};

static bool read_u31(struct gs_reader *reader, const char *what, uint32_t *ret)
{
    int32_t value;
    if (!gs_scan_i32(&reader->scan, what, &value))
        return false;
    if (value < 0)
        return gs_scan_refuse(&reader->scan, what, "is negative");
    *ret = (uint32_t)value;
    return true;
}

static void read_uuid(struct gs_reader *reader, struct gs_gpu *gpu)
{
    struct gs_scan_text text;
    if (gs_read_text(reader, "gpus.uuid", &text) &&
        !gs_scan_text_copy(text, gpu->uuid, sizeof(gpu->uuid)))
        gs_scan_refuse(&reader->scan, "gpus.uuid", "is too long");
}

static void read_pci(struct gs_reader *reader, struct gs_gpu *gpu)
{
    struct gs_scan_text text;
    if (gs_read_text(reader, "gpus.pci", &text) &&
        !gs_scan_text_copy(text, gpu->pci, sizeof(gpu->pci)))
        gs_scan_refuse(&reader->scan, "gpus.pci", "is too long");
}

static void read_model(struct gs_reader *reader, struct gs_gpu *gpu)
{
    const char *model;
    if (!gs_read_string(reader, "gpus.model", &model))
        return;
    size_t len = gs_utf8_cut(model, strlen(model), sizeof(gpu->model) - 1);
    memcpy(gpu->model, model, len);
    gpu->model[len] = '\0';
}

static void read_numa(struct gs_reader *reader, struct gs_gpu *gpu)
{
    int32_t numa;
    if (!gs_read_i32(reader, "gpus.numa", &numa))
        return;
    if (numa < INT16_MIN || numa > INT16_MAX)
        gs_scan_refuse(&reader->scan, "gpus.numa", "is no NUMA node");
    else
        gpu->numa = numa < 0 ? GS_NUMA_NONE : (int16_t)numa;
}

/* Of a file that tells the device plugin its GPUs; no node's annotation has it. */
static void read_minor(struct gs_reader *reader, struct gs_gpu *gpu)
{
    uint32_t minor;
    if (!read_u31(reader, "gpus.minor", &minor))
        return;
    if (minor >= UINT16_MAX)
        gs_scan_refuse(&reader->scan, "gpus.minor", "is no minor number");
    else
        gpu->node = (uint16_t)(minor + 1);
}

static bool uuid_taken(const struct draft *draft, const char *uuid)
{
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, draft->present) {
        if (strcmp(draft->gpus[idx].uuid, uuid) == 0)
            return true;
    }
    return false;
}

static void keep_gpu(struct draft *draft, const struct gs_gpu *gpu)
{
    struct gs_scan *scan = &draft->reader.scan;
    if (gpu->idx >= GS_GPUS_MAX)
        gs_scan_refuse(scan, "gpus.idx", "is above 63");
    else if (draft->present & GS_GPU_BIT(gpu->idx))
        gs_scan_refuse(scan, "gpus.idx", "comes twice");
    else if (gpu->uuid[0] && uuid_taken(draft, gpu->uuid))
        gs_scan_refuse(scan, "gpus.uuid", "comes twice");
    if (scan->failed)
        return;
    draft->gpus[gpu->idx] = *gpu;
    draft->present |= GS_GPU_BIT(gpu->idx);
}

static void read_gpu(struct draft *draft)
{
    struct gs_reader *reader = &draft->reader;
    struct gs_gpu gpu = {.healthy = true, .schedulable = true, .numa = GS_NUMA_NONE};
    bool has_idx = false, has_mem = false;
    const char *enforced = "", *reason = "";
    struct gs_scan_text key;
    gs_scan_object(&reader->scan, "gpus entry");
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "idx"))
            has_idx = read_u31(reader, "gpus.idx", &gpu.idx);
        else if (gs_scan_text_is(key, "mem"))
            has_mem = read_u31(reader, "gpus.mem", &gpu.mem_units);
        else if (gs_scan_text_is(key, "memMiB"))
            read_u31(reader, "gpus.memMiB", &gpu.mem_mib);
        else if (gs_scan_text_is(key, "uuid"))
            read_uuid(reader, &gpu);
        else if (gs_scan_text_is(key, "model"))
            read_model(reader, &gpu);
        else if (gs_scan_text_is(key, "healthy"))
            gs_read_bool(reader, "gpus.healthy", &gpu.healthy);
        else if (gs_scan_text_is(key, "schedulable"))
            gs_read_bool(reader, "gpus.schedulable", &gpu.schedulable);
        else if (gs_scan_text_is(key, "pci"))
            read_pci(reader, &gpu);
        else if (gs_scan_text_is(key, "xid"))
            read_u31(reader, "gpus.xid", &gpu.xid);
        else if (gs_scan_text_is(key, "xidBoot"))
            read_u31(reader, "gpus.xidBoot", &gpu.xid_boot);
        else if (gs_scan_text_is(key, "numa"))
            read_numa(reader, &gpu);
        else if (gs_scan_text_is(key, "maxPods"))
            read_u31(reader, "gpus.maxPods", &gpu.max_pods);
        else if (gs_scan_text_is(key, "minor"))
            read_minor(reader, &gpu);
        else if (gs_scan_text_is(key, "enforced"))
            gs_read_string(reader, "gpus.enforced", &enforced);
        else if (gs_scan_text_is(key, "enforcedReason"))
            gs_read_string(reader, "gpus.enforcedReason", &reason);
        else
            gs_scan_skip(&reader->scan);
    }
    if (!has_idx)
        gs_scan_refuse(&reader->scan, "gpus.idx", "is missing");
    if (!has_mem)
        gs_scan_refuse(&reader->scan, "gpus.mem", "is missing");
    gpu.enforced = gs_enforced_parse(enforced, reason);
    keep_gpu(draft, &gpu);
}

static void read_unit(struct draft *draft)
{
    struct gs_scan_text text;
    char word[16];
    if (!gs_scan_string(&draft->reader.scan, "unit", &text))
        return;
    if (!gs_scan_text_copy(text, word, sizeof(word)) ||
        !gs_unit_parse(word, strlen(word), &draft->rest.unit))
        gs_scan_refuse(&draft->reader.scan, "unit", "is none of MiB, 64MiB, 256MiB, GiB");
}

static void read_gpus(struct draft *draft)
{
    draft->present = 0; /* the same key again: the last one counts */
    draft->has_gpus = true;
    gs_scan_array(&draft->reader.scan, "gpus");
    while (gs_scan_element(&draft->reader.scan))
        read_gpu(draft);
}

static void read_rev(struct draft *draft)
{
    struct gs_scan *scan = &draft->reader.scan;
    if (gs_scan_i64(scan, "rev", &draft->rest.rev) && draft->rest.rev < 0)
        gs_scan_refuse(scan, "rev", "is negative");
}

static void read_others(struct draft *draft)
{
    struct gs_reader *reader = &draft->reader;
    const char **others = NULL;
    uint32_t count = 0;
    gs_scan_array(&reader->scan, "others");
    while (gs_scan_element(&reader->scan)) {
        const char **grown =
            gs_read_grow(reader, others, count, sizeof(*others), "others", GS_INVENTORY_OTHERS_MAX);
        if (!grown)
            return;
        others = grown;
        if (!gs_read_string(reader, "others", &grown[count]) || !grown[count])
            gs_scan_refuse(&reader->scan, "others", "holds what is no UUID");
        count++;
    }
    draft->rest.others = others;
    draft->rest.other_count = count;
}

static void read_inventory(struct draft *draft)
{
    struct gs_scan *scan = &draft->reader.scan;
    struct gs_scan_text key;
    gs_scan_object(scan, "inventory");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "v"))
            draft->has_version = gs_scan_i64(scan, "v", &draft->version);
        else if (gs_scan_text_is(key, "unit"))
            read_unit(draft);
        else if (gs_scan_text_is(key, "gpus"))
            read_gpus(draft);
        else if (gs_scan_text_is(key, "moved"))
            gs_read_bool(&draft->reader, "moved", &draft->rest.tells_moved);
        else if (gs_scan_text_is(key, "unitDoubted"))
            gs_read_bool(&draft->reader, "unitDoubted", &draft->rest.unit_doubted);
        else if (gs_scan_text_is(key, "rev"))
            read_rev(draft);
        else if (gs_scan_text_is(key, "node"))
            gs_read_string(&draft->reader, "node", &draft->rest.node);
        else if (gs_scan_text_is(key, "mps"))
            gs_read_bool(&draft->reader, "mps", &draft->rest.mps);
        else if (gs_scan_text_is(key, "others"))
            read_others(draft);
        else
            gs_scan_skip(scan);
    }
    if (!draft->has_version || draft->version != VERSION)
        gs_scan_refuse(scan, "v", "is not 1");
    if (draft->rest.unit == GS_UNIT_UNKNOWN)
        gs_scan_refuse(scan, "unit", "is missing");
    if (!draft->has_gpus)
        gs_scan_refuse(scan, "gpus", "is missing");
}

int gs_codec_inventory_decode(struct gs_slice text, struct gs_arena *arena,
                              struct gs_inventory *ret, struct gs_error *err)
{
    struct draft draft;
    draft.reader = (struct gs_reader){.arena = arena};
    draft.present = 0;
    draft.has_version = draft.has_gpus = false;
    draft.rest = (struct gs_inventory){0};
    gs_scan_init(&draft.reader.scan, text);
    read_inventory(&draft);
    if (gs_reader_finish(&draft.reader, err) < 0)
        return -1;
    struct gs_inventory inventory = draft.rest;
    if (draft.present) {
        inventory.gpus =
            gs_arena_calloc(arena, gs_gpu_mask_count(draft.present), sizeof(*inventory.gpus));
        if (!inventory.gpus)
            return gs_fail_nomem(err);
    }
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, draft.present)
        inventory.gpus[inventory.gpu_count++] = draft.gpus[idx];
    *ret = inventory;
    return 0;
}
