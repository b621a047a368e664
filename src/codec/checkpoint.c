/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/checkpoint.h"

#include "reader.h"

/* Of one container; more than a list for the kubelet can carry (4 MiB of ids). */
enum { ENTRIES_MAX = 65536, IDS_MAX = 1 << 18 };

struct draft {
    struct gs_reader reader;
    struct gs_slice resource;
    struct gs_checkpoint_entry *entries;
    uint32_t count;
};

static void read_ids(struct gs_reader *reader, const char ***ids, uint32_t *count)
{
    static const char what[] = "DeviceIDs";
    if (!gs_read_array(reader, what))
        return;
    while (gs_scan_element(&reader->scan)) {
        const char **grown = gs_read_grow(reader, *ids, *count, sizeof(**ids), what, IDS_MAX);
        if (!grown)
            return;
        *ids = grown;
        if (!gs_read_string(reader, what, &grown[*count]) || !grown[*count])
            gs_scan_refuse(&reader->scan, what, "holds what is no id");
        ++*count;
    }
}

static void read_groups(struct gs_reader *reader, struct gs_checkpoint_entry *entry)
{
    struct gs_scan_text numa;
    const char **ids = NULL;
    entry->id_count = 0; /* the last one counts */
    if (gs_scan_peek(&reader->scan) == GS_SCAN_ARRAY) {
        read_ids(reader, &ids, &entry->id_count);
    } else if (gs_read_object(reader, "DeviceIDs")) {
        while (gs_scan_key(&reader->scan, &numa))
            read_ids(reader, &ids, &entry->id_count);
    }
    entry->ids = ids;
}

static void read_answer(struct gs_reader *reader, struct gs_checkpoint_entry *entry)
{
    struct gs_scan_text text;
    if (gs_read_text(reader, "AllocResp", &text) &&
        !gs_scan_text_slice(reader->arena, text, &entry->answer))
        gs_reader_stop(reader, GS_ENOMEM, "AllocResp", "needs memory");
}

/* Its ids only when the resource is known to be ours: another's may be many. */
static bool read_entry(struct gs_reader *reader, struct gs_checkpoint_entry *entry,
                       struct gs_scan_text *ret_resource, bool ours)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "PodDeviceEntries"))
        return false;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "ResourceName"))
            gs_read_text(reader, "ResourceName", ret_resource);
        else if (ours && gs_scan_text_is(key, "PodUID"))
            gs_read_string(reader, "PodUID", &entry->pod_uid);
        else if (ours && gs_scan_text_is(key, "DeviceIDs"))
            read_groups(reader, entry);
        else if (ours && gs_scan_text_is(key, "AllocResp"))
            read_answer(reader, entry);
        else
            gs_scan_skip(&reader->scan);
    }
    return !reader->scan.failed;
}

static void keep_entry(struct draft *draft)
{
    struct gs_reader *reader = &draft->reader;
    struct gs_checkpoint_entry entry = {.pod_uid = ""};
    struct gs_scan_text resource = {0};
    struct gs_scan here = reader->scan;
    if (!read_entry(reader, &entry, &resource, false) ||
        !gs_scan_text_eq(resource, draft->resource))
        return;
    reader->scan = here;
    if (!read_entry(reader, &entry, &resource, true))
        return;
    struct gs_checkpoint_entry *grown = gs_read_grow(
        reader, draft->entries, draft->count, sizeof(*grown), "PodDeviceEntries", ENTRIES_MAX);
    if (!grown)
        return;
    draft->entries = grown;
    grown[draft->count++] = entry;
}

static void read_data(struct draft *draft)
{
    struct gs_scan *scan = &draft->reader.scan;
    struct gs_scan_text key;
    if (!gs_read_object(&draft->reader, "Data"))
        return;
    while (gs_scan_key(scan, &key)) {
        if (!gs_scan_text_is(key, "PodDeviceEntries")) {
            gs_scan_skip(scan);
            continue;
        }
        draft->count = 0; /* the last one counts */
        if (!gs_read_array(&draft->reader, "PodDeviceEntries"))
            continue;
        while (gs_scan_element(scan))
            keep_entry(draft);
    }
}

int gs_codec_checkpoint_decode(struct gs_slice json, const char *resource, struct gs_arena *arena,
                               struct gs_checkpoint_entry **ret, uint32_t *ret_count,
                               struct gs_error *err)
{
    struct draft draft = {.reader.arena = arena, .resource = gs_slice_of(resource)};
    struct gs_scan *scan = &draft.reader.scan;
    struct gs_scan_text key;
    gs_scan_init(scan, json);
    gs_scan_object(scan, "the checkpoint");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "Data"))
            read_data(&draft);
        else
            gs_scan_skip(scan);
    }
    if (gs_reader_finish(&draft.reader, err) < 0)
        return -1;
    *ret = draft.entries;
    *ret_count = draft.count;
    return 0;
}
