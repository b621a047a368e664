/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/watch.h"

#include "reader.h"

static bool type_of(struct gs_scan_text text, enum gs_watch_type *ret)
{
    static const char *const types[] = {
        [GS_WATCH_ADDED] = "ADDED",     [GS_WATCH_MODIFIED] = "MODIFIED",
        [GS_WATCH_DELETED] = "DELETED", [GS_WATCH_BOOKMARK] = "BOOKMARK",
        [GS_WATCH_ERROR] = "ERROR",
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (gs_scan_text_eq(text, gs_slice_of(types[i]))) {
            *ret = (enum gs_watch_type)i;
            return true;
        }
    }
    return false;
}

int gs_codec_watch_event(struct gs_slice line, struct gs_watch_event *ret, struct gs_error *err)
{
    struct gs_scan scan;
    struct gs_scan_text key, type = {0};
    struct gs_watch_event event = {0};
    gs_scan_init(&scan, line);
    scan.trusting = true;
    gs_scan_object(&scan, "watch event");
    while (gs_scan_key(&scan, &key)) {
        if (gs_scan_text_is(key, "type"))
            gs_scan_string(&scan, "type", &type);
        else if (gs_scan_text_is(key, "object"))
            gs_scan_raw(&scan, &event.object);
        else
            gs_scan_skip(&scan);
    }
    if (gs_scan_finish(&scan, err) < 0)
        return -1;
    if (!type_of(type, &event.type))
        return gs_fail(err, GS_EPROTO, "watch event is of no known type");
    if (!event.object.at || event.object.at[0] != '{')
        return gs_fail(err, GS_EPROTO, "watch event has no object");
    if (event.type == GS_WATCH_ERROR && gs_codec_status(event.object, &event.status, err) < 0)
        return -1;
    *ret = event;
    return 0;
}

static void read_metadata(struct gs_reader *reader, struct gs_scan_text *ret)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "resourceVersion"))
            gs_read_text(reader, "metadata.resourceVersion", ret);
        else
            gs_scan_skip(&reader->scan);
    }
}

int gs_codec_object_rv(struct gs_slice object, char ret[GS_RV_BYTES], struct gs_error *err)
{
    struct gs_reader reader = {0};
    struct gs_scan_text key, version = {0};
    gs_scan_init(&reader.scan, object);
    reader.scan.trusting = true;
    gs_scan_object(&reader.scan, "object");
    while (gs_scan_key(&reader.scan, &key)) {
        if (gs_scan_text_is(key, "metadata"))
            read_metadata(&reader, &version);
        else
            gs_scan_skip(&reader.scan);
    }
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    if (version.len == 0)
        return gs_fail(err, GS_EPROTO, "metadata.resourceVersion is missing");
    if (!gs_scan_text_copy(version, ret, GS_RV_BYTES))
        return gs_fail(err, GS_ETOOBIG, "metadata.resourceVersion is too long");
    return 0;
}
