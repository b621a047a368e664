/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/inventory.h"

#include "gpushare/base/utf8.h"
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
        gs_buf_puts(out, i ? "," : "");
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
        gs_buf_json_string(out, inventory->others[i], strlen(inventory->others[i]));
    }
    gs_buf_puts(out, inventory->other_count ? "]}" : "}");
}

/* GPUs by index, so that they end up sorted. */
struct draft {
    struct gs_reader reader; /* first: a call's reader is that of the inventory */
    struct gs_gpu gpus[GS_GPUS_MAX];
    gs_gpu_mask present;
    int64_t version;
    bool has_gpus;
    struct gs_inventory rest; /* what stands beside the GPUs */
};

struct gpu {
    struct gs_gpu it;
    const char *enforced, *reason;
};

static void read_model(struct gs_reader *reader, const char *what, void *to)
{
    char model[4 * GS_MODEL_BYTES] = ""; /* a NUL becomes three bytes */
    struct gs_scan_text text;
    if (!gs_scan_string(&reader->scan, what, &text))
        return;
    gs_scan_text_copy(gs_scan_text_head(text, GS_MODEL_BYTES), model, sizeof(model));
    size_t len = gs_utf8_cut(model, strlen(model), GS_MODEL_BYTES - 1);
    memset(to, 0, GS_MODEL_BYTES);
    memcpy(to, model, len);
}

static void read_numa(struct gs_reader *reader, const char *what, void *to)
{
    int32_t numa;
    if (!gs_read_i32(reader, what, &numa))
        return;
    if (numa < INT16_MIN || numa > INT16_MAX)
        gs_scan_refuse(&reader->scan, what, "is not a NUMA node");
    else
        *(int16_t *)to = numa < 0 ? GS_NUMA_NONE : (int16_t)numa;
}

/* Of a file that lists the GPUs for the device plugin; no node's annotation has it. */
static void read_minor(struct gs_reader *reader, const char *what, void *to)
{
    int32_t minor;
    if (!gs_read_i32(reader, what, &minor))
        return;
    if (minor < 0 || minor >= UINT16_MAX)
        gs_scan_refuse(&reader->scan, what, "is not a minor number");
    else
        *(uint16_t *)to = (uint16_t)(minor + 1);
}

#define MEMBER(key, field)     GS_MEMBER(struct gpu, key, "gpus." key, field)
#define CALL(key, field, read) GS_CALL_AT(struct gpu, key, "gpus." key, field, read)

static const struct gs_member gpu_members[] = {
    MEMBER("idx", it.idx),
    MEMBER("mem", it.mem_units),
    MEMBER("memMiB", it.mem_mib),
    MEMBER("uuid", it.uuid),
    CALL("model", it.model, read_model),
    MEMBER("healthy", it.healthy),
    MEMBER("schedulable", it.schedulable),
    MEMBER("pci", it.pci),
    MEMBER("xid", it.xid),
    MEMBER("xidBoot", it.xid_boot),
    CALL("numa", it.numa, read_numa),
    MEMBER("maxPods", it.max_pods),
    CALL("minor", it.node, read_minor),
    MEMBER("enforced", enforced),
    GS_MEMBER_AS(struct gpu, "enforcedReason", "gpus.enforcedReason", reason, GS_READ_STRING),
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
        gs_scan_refuse(scan, "gpus.idx", "is missing");
    else if (gpu->mem_units == UINT32_MAX)
        gs_scan_refuse(scan, "gpus.mem", "is missing");
    else if (gpu->idx >= GS_GPUS_MAX)
        gs_scan_refuse(scan, "gpus.idx", "is above 63");
    else if (draft->present & GS_GPU_BIT(gpu->idx))
        gs_scan_refuse(scan, "gpus.idx", "is duplicated");
    else if (gpu->uuid[0] && uuid_taken(draft, gpu->uuid))
        gs_scan_refuse(scan, "gpus.uuid", "is duplicated");
    if (scan->failed)
        return;
    draft->gpus[gpu->idx] = *gpu;
    draft->present |= GS_GPU_BIT(gpu->idx);
}

static void read_gpus(struct gs_reader *reader, const char *what, void *to)
{
    struct draft *draft = to;
    draft->present = 0; /* the same key again: the last one counts */
    draft->has_gpus = true;
    gs_scan_array(&reader->scan, what);
    while (gs_scan_element(&reader->scan)) {
        struct gpu gpu = {.it = {.idx = UINT32_MAX,
                                 .mem_units = UINT32_MAX,
                                 .healthy = true,
                                 .schedulable = true,
                                 .numa = GS_NUMA_NONE},
                          .enforced = "",
                          .reason = ""};
        gs_read_entry(reader, "gpus entry", gpu_members, &gpu);
        gpu.it.enforced = gs_enforced_parse(gpu.enforced, gpu.reason);
        keep_gpu(draft, &gpu.it);
    }
}

static void read_unit(struct gs_reader *reader, const char *what, void *to)
{
    struct draft *draft = to;
    struct gs_scan_text text;
    char word[16];
    if (!gs_scan_string(&reader->scan, what, &text))
        return;
    if (!gs_scan_text_copy(text, word, sizeof(word)) ||
        !gs_unit_parse(word, strlen(word), &draft->rest.unit))
        gs_scan_refuse(&reader->scan, what, "is not one of MiB, 64MiB, 256MiB, GiB");
}

static void read_others(struct gs_reader *reader, const char *what, void *to)
{
    struct draft *draft = to;
    const char **others = NULL;
    uint32_t count = 0;
    gs_scan_array(&reader->scan, what);
    while (gs_scan_element(&reader->scan)) {
        const char **uuid =
            gs_read_append(reader, &others, &count, sizeof(*uuid), what, GS_INVENTORY_OTHERS_MAX);
        if (!uuid)
            return;
        if (!gs_read_name(reader, what, uuid))
            gs_scan_refuse(&reader->scan, what, "contains an invalid UUID");
    }
    draft->rest.others = others;
    draft->rest.other_count = count;
}

#undef MEMBER
#define MEMBER(key, field) GS_MEMBER(struct draft, key, key, field)

static const struct gs_member inventory_members[] = {
    MEMBER("v", version),
    GS_CALL("unit", "unit", read_unit),
    GS_CALL("gpus", "gpus", read_gpus),
    MEMBER("reassignments", rest.tells_moved),
    MEMBER("unitConflict", rest.unit_doubted),
    MEMBER("rev", rest.rev),
    MEMBER("node", rest.node),
    MEMBER("mps", rest.mps),
    GS_CALL("otherDriverGPUs", "otherDriverGPUs", read_others),
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
    /* large, and of its GPUs only those present are read: the compiler would zero all of it */
    __attribute__((uninitialized)) struct draft draft;
    draft.reader = (struct gs_reader){.arena = arena};
    draft.present = 0;
    draft.version = 0;
    draft.has_gpus = false;
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
