/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/list.h"

#include <stdio.h>

#include "reader.h"

struct list_reader {
    struct gs_reader reader; /* first: a call's reader is that of the list */
    int (*each)(void *ctx, struct gs_scan *scan);
    void *ctx;
    struct gs_scan_text resource_version, continue_token;
    int64_t remaining;
    bool named, head;       /* of gs_codec_list_head(): a name is wanted; it was read */
    char ns[64], name[254]; /* of the first item */
};

#define MEMBER(key, what, field) GS_MEMBER(struct list_reader, key, what, field)

static const struct gs_member metadata_members[] = {
    MEMBER("resourceVersion", "metadata.resourceVersion", resource_version),
    MEMBER("continue", "metadata.continue", continue_token),
    MEMBER("remainingItemCount", "metadata.remainingItemCount", remaining),
    {0},
};

static void read_item(struct gs_reader *reader, const char *what, void *to)
{
    const struct list_reader *lr = to;
    if (lr->each(lr->ctx, &reader->scan) != 0)
        gs_reader_stop(reader, GS_ECANCELED, "the receiver", "stopped the list");
}

static const struct gs_member list_members[] = {
    GS_OBJECT("metadata", "metadata", metadata_members),
    GS_EACH("items", "items", read_item),
    {0},
};

static int keep_meta(const struct list_reader *lr, struct gs_list_meta *ret, struct gs_error *err)
{
    struct gs_list_meta meta;
    if (!gs_scan_text_copy(lr->resource_version, meta.resource_version,
                           sizeof(meta.resource_version)))
        return gs_fail(err, GS_ETOOBIG, "metadata.resourceVersion is too long");
    if (!gs_scan_text_copy(lr->continue_token, meta.continue_token, sizeof(meta.continue_token)))
        return gs_fail(err, GS_ETOOBIG, "metadata.continue is too long");
    meta.remaining = lr->remaining;
    *ret = meta;
    return 0;
}

int gs_codec_list_items(struct gs_slice json, int (*each)(void *ctx, struct gs_scan *scan),
                        void *ctx, struct gs_list_meta *ret, struct gs_error *err)
{
    struct list_reader lr = {.each = each, .ctx = ctx, .remaining = -1};
    gs_scan_init(&lr.reader.scan, json);
    lr.reader.scan.trusting = true;
    gs_read_entry(&lr.reader, "list", list_members, &lr);
    if (gs_reader_finish(&lr.reader, err) < 0)
        return -1;
    return keep_meta(&lr, ret, err);
}

static const struct gs_member object_members[] = {
    GS_OBJECT("metadata", "metadata",
              GS_MEMBERS(MEMBER("name", "metadata.name", name),
                         MEMBER("namespace", "metadata.namespace", ns))),
    {0},
};

/* Where the items begin the head ends. */
static void end_head(struct gs_reader *reader, const char *what, void *to)
{
    struct list_reader *lr = to;
    lr->head = !reader->scan.failed && lr->resource_version.at;
    if (lr->named && gs_scan_array(&reader->scan, what) && gs_scan_element(&reader->scan))
        gs_read_entry(reader, what, object_members, lr);
    gs_scan_refuse(&reader->scan, what, "are not needed");
}

static const struct gs_member head_members[] = {
    GS_OBJECT("metadata", "metadata", metadata_members),
    GS_CALL("items", "items", end_head),
    {0},
};

bool gs_codec_list_head(struct gs_slice json, struct gs_list_meta *ret,
                        char first_name[GS_OBJECT_NAME_BYTES])
{
    struct list_reader lr = {.named = first_name, .remaining = -1};
    gs_scan_init(&lr.reader.scan, json);
    gs_read_entry(&lr.reader, "list", head_members, &lr);
    if (!lr.head || keep_meta(&lr, ret, NULL) < 0)
        return false;
    if (first_name)
        snprintf(first_name, GS_OBJECT_NAME_BYTES, "%s%s%s", lr.ns, lr.ns[0] ? "/" : "", lr.name);
    return true;
}
