/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/inventory.h"

#include "json_writer.h"
#include "reader.h"

enum { VERSION = 1 };

static void write_nonzero(struct gs_buf *out, const char *key, int64_t value)
{
    if (value)
        gs_write_number(out, key, value);
}

static void write_gpu(struct gs_buf *out, const struct gs_gpu *gpu)
{
    const enum gs_enforced enforced = gpu->enforced;
    gs_buf_putc(out, '{');
    gs_write_number(out, "idx", gpu->idx);
    gs_write_optional(out, "uuid", gpu->uuid);
    gs_write_number(out, "mem", gpu->mem_units);
    write_nonzero(out, "memMiB", gpu->mem_mib);
    gs_write_optional(out, "model", gpu->model);
    gs_write_optional(out, "pci", gpu->pci);
    gs_write_bool(out, "healthy", gpu->healthy);
    write_nonzero(out, "xid", gpu->xid);
    if (gpu->xid)
        gs_write_number(out, "xidBoot", gpu->xid_boot);
    if (gpu->numa != GS_NUMA_NONE)
        gs_write_number(out, "numa", gpu->numa);
    gs_write_bool(out, "schedulable", gpu->schedulable);
    if (enforced != GS_ENFORCED_UNKNOWN)
        gs_write_string(out, "enforced", gs_enforced_by(enforced));
    if (gs_enforced_lacks(enforced))
        gs_write_string(out, "enforcedReason", gs_enforced_why(enforced));
    write_nonzero(out, "maxPods", gpu->max_pods);
    gs_buf_putc(out, '}');
}

static void write_true(struct gs_buf *out, const char *key, bool value)
{
    if (value)
        gs_write_bool(out, key, true);
}

void gs_codec_inventory_encode(struct gs_buf *out, const struct gs_inventory *inventory)
{
    gs_buf_printf(out, "{\"v\":%d,\"unit\":\"%s\",\"gpus\":[", VERSION,
                  gs_unit_name(inventory->unit));
    for (uint32_t i = 0; i < inventory->gpu_count; i++) {
        gs_write_comma(out);
        write_gpu(out, &inventory->gpus[i]);
    }
    gs_buf_putc(out, ']');
    write_true(out, "reassignments", inventory->tells_moved);
    write_true(out, "unitConflict", inventory->unit_doubted);
    write_nonzero(out, "rev", inventory->rev);
    if (inventory->node)
        gs_write_string(out, "node", inventory->node);
    write_true(out, "mps", inventory->mps);
    for (uint32_t i = 0; i < inventory->other_count; i++) {
        gs_buf_puts(out, i ? "," : ",\"otherDriverGPUs\":[");
        gs_buf_json_text(out, inventory->others[i]);
    }
    gs_buf_puts(out, inventory->other_count ? "]}" : "}");
}

/* The inventory while it is being read. GPUs are stored by index, which sorts them. */
struct draft {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct gs_gpu *gpus;     /* GS_GPUS_MAX of them; `present` says which are set */
    gs_gpu_mask present;
    int64_t version;
    bool has_gpus;
    struct gs_inventory rest; /* all but the GPUs */
};

struct gpu {
    struct gs_gpu it;
    struct gs_scan_text model;
    const char *enforced, *reason;
    int32_t numa;
    uint32_t minor; /* only in a file that lists the GPUs for the device plugin */
};

#define MEMBER(key, field) GS_MEMBER(struct gpu, key, field)

static const struct gs_member gpu_members[] = {
    MEMBER("idx", it.idx),
    MEMBER("mem", it.mem_units),
    MEMBER("memMiB", it.mem_mib),
    MEMBER("uuid", it.uuid),
    MEMBER("model", model),
    MEMBER("healthy", it.healthy),
    MEMBER("schedulable", it.schedulable),
    MEMBER("pci", it.pci),
    MEMBER("xid", it.xid),
    MEMBER("xidBoot", it.xid_boot),
    MEMBER("numa", numa),
    MEMBER("maxPods", it.max_pods),
    MEMBER("minor", minor),
    MEMBER("enforced", enforced),
    MEMBER("enforcedReason", reason),
    {0},
};

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
    if (gpu->idx == UINT32_MAX)
        gs_scan_refuse(scan, "idx", "is missing");
    else if (gpu->mem_units == UINT32_MAX)
        gs_scan_refuse(scan, "mem", "is missing");
    else if (gpu->idx >= GS_GPUS_MAX)
        gs_scan_refuse(scan, "idx", "is above 63");
    else if (draft->present & GS_GPU_BIT(gpu->idx))
        gs_scan_refuse(scan, "idx", "is duplicated");
    else if (gpu->uuid[0] && uuid_taken(draft, gpu->uuid))
        gs_scan_refuse(scan, "uuid", "is duplicated");
    if (scan->failed)
        return;
    draft->gpus[gpu->idx] = *gpu;
    draft->present |= GS_GPU_BIT(gpu->idx);
}

static void read_gpus(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    draft->present = 0; /* if the key is there twice, the last one counts */
    draft->has_gpus = true;
    gs_scan_array(&reader->scan, "");
    while (gs_scan_element(&reader->scan)) {
        struct gpu gpu = {.it = {.idx = UINT32_MAX,
                                 .mem_units = UINT32_MAX,
                                 .healthy = true,
                                 .schedulable = true},
                          .enforced = "",
                          .reason = "",
                          .numa = GS_NUMA_NONE,
                          .minor = UINT32_MAX};
        gs_read_entry(reader, "[]", gpu_members, &gpu);
        if (gpu.numa < INT16_MIN || gpu.numa > INT16_MAX)
            gs_scan_refuse(&reader->scan, "numa", "is not a NUMA node");
        if (gpu.minor + 1 > UINT16_MAX)
            gs_scan_refuse(&reader->scan, "minor", "is not a minor number");
        gpu.it.numa = gpu.numa < 0 ? GS_NUMA_NONE : (int16_t)gpu.numa;
        gpu.it.node = (uint16_t)(gpu.minor + 1);
        gs_read_cut(gpu.model, gpu.it.model, sizeof(gpu.it.model));
        gpu.it.enforced = gs_enforced_parse(gpu.enforced, gpu.reason);
        keep_gpu(draft, &gpu.it);
    }
}

static void read_unit(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    struct gs_scan_text text;
    char word[16];
    if (!gs_scan_string(&reader->scan, "", &text))
        return;
    if (!gs_scan_text_copy(text, word, sizeof(word)) ||
        !gs_unit_parse(word, strlen(word), &draft->rest.unit))
        gs_scan_refuse(&reader->scan, "", "is not one of MiB, 64MiB, 256MiB, GiB");
}

static void read_others(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    const char **others = NULL;
    draft->rest.other_count = 0;
    gs_read_names(reader, &others, &draft->rest.other_count, GS_INVENTORY_OTHERS_MAX);
    draft->rest.others = others;
}

#undef MEMBER
#define MEMBER(key, field) GS_MEMBER(struct draft, key, field)

static const struct gs_member inventory_members[] = {
    MEMBER("v", version),
    GS_CALL("unit", read_unit),
    GS_CALL("gpus", read_gpus),
    MEMBER("reassignments", rest.tells_moved),
    MEMBER("unitConflict", rest.unit_doubted),
    MEMBER("rev", rest.rev),
    MEMBER("node", rest.node),
    MEMBER("vendor", rest.vendor),
    MEMBER("mps", rest.mps),
    GS_CALL("otherDriverGPUs", read_others),
    {0},
};

static void read_inventory(struct draft *draft)
{
    struct gs_scan *scan = &draft->reader.scan;
    gs_read_entry(&draft->reader, "inventory", inventory_members, draft);
    if (draft->version != VERSION)
        gs_scan_refuse(scan, "v", "is not 1");
    if (draft->rest.unit == GS_UNIT_UNKNOWN)
        gs_scan_refuse(scan, "unit", "is missing");
    if (!draft->has_gpus)
        gs_scan_refuse(scan, "gpus", "is missing");
    if (draft->rest.rev < 0)
        gs_scan_refuse(scan, "rev", "is negative");
}

int gs_codec_inventory_decode(struct gs_slice text, struct gs_arena *arena,
                              struct gs_inventory *ret, struct gs_error *err)
{
    /* not zeroed, because it is large and only the GPUs that are present are read */
    __attribute__((uninitialized)) struct gs_gpu gpus[GS_GPUS_MAX];
    struct draft draft = {.reader.arena = arena, .gpus = gpus};
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
