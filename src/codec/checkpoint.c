/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/checkpoint.h"

#include "gpushare/base/cleanup.h"
#include "reader.h"

/* Of one container; more than a list for the kubelet can carry (4 MiB of ids). */
enum { ENTRIES_MAX = 65536, IDS_MAX = 1 << 18 };

struct draft {
    struct gs_reader reader; /* first: a call's reader is that of the checkpoint */
    struct gs_slice resource;
    gs_checkpoint_each each;
    void *ctx;
    uint32_t count;
};

static void read_ids(struct gs_reader *reader, const char ***ids, uint32_t *count)
{
    static const char what[] = "DeviceIDs";
    if (!gs_read_array(reader, what))
        return;
    while (gs_scan_element(&reader->scan)) {
        const char **id = gs_read_append(reader, ids, count, sizeof(*id), what, IDS_MAX);
        if (!id)
            return;
        if (!gs_read_name(reader, what, id))
            gs_scan_refuse(&reader->scan, what, "contains an invalid ID");
    }
}

/* One entry as it is read. */
struct container {
    struct gs_checkpoint_entry entry;
    struct gs_scan_text resource, answer;
};

static void read_groups(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_checkpoint_entry *entry = &((struct container *)to)->entry;
    struct gs_scan_text numa;
    const char **ids = NULL;
    entry->id_count = 0; /* the last one counts */
    if (gs_scan_peek(&reader->scan) == GS_SCAN_ARRAY) {
        read_ids(reader, &ids, &entry->id_count);
    } else if (gs_read_object(reader, what)) {
        while (gs_scan_key(&reader->scan, &numa))
            read_ids(reader, &ids, &entry->id_count);
    }
    entry->ids = ids;
}

#define MEMBER(key, field) GS_MEMBER(struct container, key, key, field)

static const struct gs_member resource_members[] = {MEMBER("ResourceName", resource), {0}};

static const struct gs_member entry_members[] = {
    MEMBER("PodUID", entry.pod_uid),
    GS_CALL("DeviceIDs", "DeviceIDs", read_groups),
    MEMBER("AllocResp", answer),
    {0},
};

/* Its ids only when the resource is known to be ours: another's may be many. */
static bool read_own(struct draft *draft, const char *what, struct container *one)
{
    struct gs_reader *reader = &draft->reader;
    const struct gs_scan here = reader->scan;
    if (!gs_read_members(reader, what, resource_members, one) ||
        !gs_scan_text_eq(one->resource, draft->resource))
        return false;
    reader->scan = here;
    if (!gs_read_members(reader, what, entry_members, one))
        return false;
    if (!gs_scan_text_slice(reader->arena, one->answer, &one->entry.answer))
        gs_reader_stop(reader, GS_ENOMEM, what, "");
    else if (++draft->count > ENTRIES_MAX)
        gs_reader_stop(reader, GS_ETOOBIG, what, "has too many entries");
    return true;
}

static void read_containers(struct gs_reader *reader, const char *what, void *to)
{
    struct draft *draft = to;
    if (!gs_read_array(reader, what))
        return;
    while (gs_scan_element(&reader->scan)) {
        struct container one = {.entry.pod_uid = ""};
        const bool own = read_own(draft, what, &one);
        if (!reader->scan.failed && !draft->each(draft->ctx, own ? &one.entry : NULL,
                                                 (size_t)(reader->scan.at - reader->scan.begin)))
            gs_reader_stop(reader, GS_ENOMEM, what, "");
        gs_arena_reset(reader->arena);
    }
}

static const struct gs_member checkpoint_members[] = {
    GS_OBJECT("Data", "Data",
              GS_MEMBERS(GS_CALL("PodDeviceEntries", "PodDeviceEntries", read_containers))),
    {0},
};

int gs_codec_checkpoint_decode(struct gs_slice json, const char *resource, gs_checkpoint_each each,
                               void *ctx, struct gs_error *err)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct draft draft = {
        .reader.arena = &arena, .resource = gs_slice_of(resource), .each = each, .ctx = ctx};
    gs_scan_init(&draft.reader.scan, json);
    gs_read_entry(&draft.reader, "the kubelet's checkpoint", checkpoint_members, &draft);
    return gs_reader_finish(&draft.reader, err);
}
