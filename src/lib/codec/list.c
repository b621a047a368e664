/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/list.h"

#include <stdio.h>

#include "reader.h"

struct list_reader {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    int (*each)(void *ctx, struct gs_scan *scan);
    void *ctx;
    struct gs_list_meta meta;
    bool named,
        head; /* for gs_codec_list_head(): read the first item's name; the head is complete */
    char ns[64], name[254]; /* of the first item */
};

#define MEMBER(key, field) GS_MEMBER(struct list_reader, key, field)

static const struct gs_member metadata_members[] = {
    MEMBER("resourceVersion", meta.resource_version),
    MEMBER("continue", meta.continue_token),
    {0},
};

static void read_item(struct gs_reader *reader, void *to)
{
    const struct list_reader *lr = to;
    if (lr->each(lr->ctx, &reader->scan) != 0)
        gs_reader_stop(reader, GS_ECANCELED, "the receiver stopped the list");
}

static const struct gs_member list_members[] = {
    GS_OBJECT("metadata", metadata_members),
    GS_EACH("items", read_item),
    {0},
};

int gs_codec_list_items(struct gs_slice json, int (*each)(void *ctx, struct gs_scan *scan),
                        void *ctx, struct gs_list_meta *ret, struct gs_error *err)
{
    struct list_reader lr = {.each = each, .ctx = ctx};
    gs_scan_init(&lr.reader.scan, json);
    lr.reader.scan.trusting = true;
    gs_read_entry(&lr.reader, "list", list_members, &lr);
    if (gs_reader_finish(&lr.reader, err) < 0)
        return -1;
    *ret = lr.meta;
    return 0;
}

static const struct gs_member object_members[] = {
    GS_OBJECT("metadata", GS_MEMBERS(MEMBER("name", name), MEMBER("namespace", ns))),
    {0},
};

/* The head ends where the items begin: stops the scan. */
static void end_head(struct gs_reader *reader, void *to)
{
    struct list_reader *lr = to;
    lr->head = lr->meta.resource_version[0];
    if (lr->named && gs_scan_array(&reader->scan, "") && gs_scan_element(&reader->scan))
        gs_read_entry(reader, "[]", object_members, lr);
    gs_scan_refuse(&reader->scan, "", "are not needed");
}

static const struct gs_member head_members[] = {
    GS_OBJECT("metadata", metadata_members),
    GS_CALL("items", end_head),
    {0},
};

bool gs_codec_list_head(struct gs_slice json, struct gs_list_meta *ret,
                        char first_name[GS_OBJECT_NAME_BYTES])
{
    struct list_reader lr = {.named = first_name};
    gs_read_document(&lr.reader, json, "list", head_members, &lr, NULL);
    if (!lr.head)
        return false;
    *ret = lr.meta;
    if (first_name)
        snprintf(first_name, GS_OBJECT_NAME_BYTES, "%s%s%s", lr.ns, lr.ns[0] ? "/" : "", lr.name);
    return true;
}
