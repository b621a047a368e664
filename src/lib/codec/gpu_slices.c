/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/gpu_slices.h"

#include "reader.h"

enum { GPUS_MAX = 65536 };

struct draft {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct gs_scan_text driver;
    const char *node;
    struct gs_sliced_gpu *gpus;
    uint32_t count;
};

struct device {
    const char *uuid, *parent;
};

#define MEMBER(key, field) GS_MEMBER(struct device, key, field)

/* {"uuid":{"string":"GPU-…"},…}; a MIG instance has its GPU's in {"parentUUID":…}. */
static const struct gs_member attribute_members[] = {
    GS_OBJECT("uuid", GS_MEMBERS(MEMBER("string", uuid))),
    GS_OBJECT("parentUUID", GS_MEMBERS(MEMBER("string", parent))),
    {0},
};
/* v1beta1 has one level more, "basic". */
static const struct gs_member device_members[] = {
    GS_OBJECT("attributes", attribute_members),
    GS_OBJECT("basic", GS_MEMBERS(GS_OBJECT("attributes", attribute_members))),
    {0},
};

static void read_device(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    struct device device = {0};
    gs_read_members(reader, device_members, &device);
    const char *uuid = device.parent ? device.parent : device.uuid;
    if (!uuid || !uuid[0])
        return;
    struct gs_sliced_gpu *gpu =
        gs_read_append(reader, &draft->gpus, &draft->count, sizeof(*gpu), GPUS_MAX);
    if (gpu)
        *gpu = (struct gs_sliced_gpu){.node = "", .uuid = uuid};
}

static const struct gs_member slice_members[] = {
    GS_OBJECT("spec", GS_MEMBERS(GS_MEMBER(struct draft, "driver", driver),
                                 GS_MEMBER(struct draft, "nodeName", node),
                                 GS_EACH("devices", read_device))),
    {0}};

int gs_codec_gpu_slice_take(struct gs_scan *from, const char *driver, struct gs_arena *arena,
                            struct gs_sliced_gpu **all, uint32_t *count, struct gs_error *err)
{
    struct draft draft = {.reader.arena = arena, .gpus = *all, .count = *count};
    gs_reader_enter(&draft.reader, from);
    gs_read_members(&draft.reader, slice_members, &draft);
    if (gs_reader_leave(&draft.reader, from, err) < 0)
        return -1;
    if (!draft.node || !gs_scan_text_is_name(draft.driver, driver))
        draft.count = *count;
    for (uint32_t i = *count; i < draft.count; i++)
        draft.gpus[i].node = draft.node;
    *all = draft.gpus;
    *count = draft.count;
    return 0;
}
