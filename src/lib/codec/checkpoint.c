/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/checkpoint.h"

#include "gpushare/base/cleanup.h"
#include "reader.h"

/* More than 110 pods, a kubelet's default, of 2,048 containers; and, of one container, more than a
 * list for the kubelet can carry (4 MiB of ids). */
enum { ENTRIES_MAX = 1 << 18, IDS_MAX = 1 << 18 };

struct draft {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct gs_slice resource;
    gs_checkpoint_each each;
    void *ctx;
    uint32_t count;
};

/* An entry while it is being read. */
struct container {
    struct gs_checkpoint_entry entry;
    struct gs_scan_text resource, answer;
};

static void read_groups(struct gs_reader *reader, void *to)
{
    struct gs_checkpoint_entry *entry = &((struct container *)to)->entry;
    struct gs_scan_text numa;
    const char **ids = NULL;
    entry->id_count = 0; /* if the key is there twice, the last one counts */
    if (gs_scan_peek(&reader->scan) == GS_SCAN_ARRAY) {
        gs_read_names(reader, &ids, &entry->id_count, IDS_MAX);
    } else if (gs_read_object(reader)) {
        while (gs_scan_key(&reader->scan, &numa))
            gs_read_names(reader, &ids, &entry->id_count, IDS_MAX);
    }
    entry->ids = ids;
}

#define MEMBER(key, field) GS_MEMBER(struct container, key, field)

static const struct gs_member resource_members[] = {MEMBER("ResourceName", resource), {0}};

static const struct gs_member entry_members[] = {
    MEMBER("PodUID", entry.pod_uid),
    GS_CALL("DeviceIDs", read_groups),
    MEMBER("AllocResp", answer),
    {0},
};

/* Reads the IDs only if the resource is ours: other resources may have many. */
static bool read_own(struct draft *draft, struct container *one)
{
    struct gs_reader *reader = &draft->reader;
    const struct gs_scan here = reader->scan;
    if (!gs_read_members(reader, resource_members, one) ||
        !gs_scan_text_eq(one->resource, draft->resource))
        return false;
    reader->scan = here;
    if (!gs_read_members(reader, entry_members, one))
        return false;
    if (!gs_scan_text_slice(reader->arena, one->answer, &one->entry.answer))
        gs_reader_stop(reader, GS_ENOMEM, "");
    else if (++draft->count > ENTRIES_MAX)
        gs_reader_stop(reader, GS_ETOOBIG, "has too many entries");
    return true;
}

static void read_container(struct gs_reader *reader, void *to)
{
    struct draft *draft = to;
    struct container one = {.entry.pod_uid = ""};
    const bool own = read_own(draft, &one);
    if (!reader->scan.failed && !draft->each(draft->ctx, own ? &one.entry : NULL,
                                             (size_t)(reader->scan.at - reader->scan.begin)))
        gs_reader_stop(reader, GS_ENOMEM, "");
    gs_arena_reset(reader->arena);
}

static const struct gs_member checkpoint_members[] = {
    GS_OBJECT("Data", GS_MEMBERS(GS_EACH("PodDeviceEntries", read_container))),
    {0},
};

int gs_codec_checkpoint_decode(struct gs_slice json, const char *resource, gs_checkpoint_each each,
                               void *ctx, struct gs_error *err)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct draft draft = {
        .reader.arena = &arena, .resource = gs_slice_of(resource), .each = each, .ctx = ctx};
    return gs_read_document(&draft.reader, json, "the kubelet's checkpoint", checkpoint_members,
                            &draft, err);
}
