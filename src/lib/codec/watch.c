/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/watch.h"

#include "reader.h"

static const char *const types[] = {
    [GS_WATCH_ADDED] = "ADDED",     [GS_WATCH_MODIFIED] = "MODIFIED",
    [GS_WATCH_DELETED] = "DELETED", [GS_WATCH_BOOKMARK] = "BOOKMARK",
    [GS_WATCH_ERROR] = "ERROR",
};

struct draft {
    struct gs_scan_text type, version;
    struct gs_slice object;
};

static const struct gs_member event_members[] = {
    GS_MEMBER(struct draft, "type", type),
    GS_MEMBER(struct draft, "object", object),
    {0},
};

static int read_draft(struct gs_slice json, const char *what, const struct gs_member *members,
                      struct draft *ret, struct gs_error *err)
{
    struct gs_reader reader = {0};
    gs_scan_init(&reader.scan, json);
    reader.scan.trusting = true;
    gs_read_entry(&reader, what, members, ret);
    return gs_reader_finish(&reader, err);
}

int gs_codec_watch_event(struct gs_slice line, struct gs_watch_event *ret, struct gs_error *err)
{
    struct draft draft = {0};
    if (read_draft(line, "watch event", event_members, &draft, err) < 0)
        return -1;
    const int type = GS_WORD_OF(draft.type, types, -1);
    if (type < 0)
        return gs_fail(err, GS_EPROTO, "watch event has an unknown type");
    if (!draft.object.at || draft.object.at[0] != '{')
        return gs_fail(err, GS_EPROTO, "watch event has no object");
    struct gs_watch_event event = {.type = (enum gs_watch_type)type, .object = draft.object};
    if (event.type == GS_WATCH_ERROR && gs_codec_status(event.object, &event.status, err) < 0)
        return -1;
    *ret = event;
    return 0;
}

static const struct gs_member object_members[] = {
    GS_OBJECT("metadata", GS_MEMBERS(GS_MEMBER(struct draft, "resourceVersion", version))),
    {0},
};

int gs_codec_object_rv(struct gs_slice object, char ret[GS_RV_BYTES], struct gs_error *err)
{
    struct draft draft = {0};
    if (read_draft(object, "object", object_members, &draft, err) < 0)
        return -1;
    if (!draft.version.len)
        return gs_fail(err, GS_EPROTO, "metadata.resourceVersion is missing");
    if (!gs_scan_text_copy(draft.version, ret, GS_RV_BYTES))
        return gs_fail(err, GS_ETOOBIG, "metadata.resourceVersion is too long");
    return 0;
}
