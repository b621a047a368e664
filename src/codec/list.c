/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/list.h"

#include "reader.h"

struct list_reader {
    struct gs_reader reader;
    int (*each)(void *ctx, struct gs_scan *scan);
    void *ctx;
    struct gs_scan_text resource_version, continue_token;
    int64_t remaining;
    bool stopped;
};

static void read_metadata(struct list_reader *lr)
{
    struct gs_reader *reader = &lr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "metadata"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "resourceVersion"))
            gs_read_text(reader, "metadata.resourceVersion", &lr->resource_version);
        else if (gs_scan_text_is(key, "continue"))
            gs_read_text(reader, "metadata.continue", &lr->continue_token);
        else if (!gs_scan_text_is(key, "remainingItemCount"))
            gs_scan_skip(&reader->scan);
        else if (!gs_scan_null(&reader->scan))
            gs_scan_i64(&reader->scan, "metadata.remainingItemCount", &lr->remaining);
    }
}

static void read_items(struct list_reader *lr)
{
    struct gs_reader *reader = &lr->reader;
    if (!gs_read_array(reader, "items"))
        return;
    while (!lr->stopped && gs_scan_element(&reader->scan))
        lr->stopped = lr->each(lr->ctx, &reader->scan) != 0;
}

static void read_list(struct list_reader *lr)
{
    struct gs_scan *scan = &lr->reader.scan;
    struct gs_scan_text key;
    gs_scan_object(scan, "list");
    while (!lr->stopped && gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "metadata"))
            read_metadata(lr);
        else if (gs_scan_text_is(key, "items"))
            read_items(lr);
        else
            gs_scan_skip(scan);
    }
}

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
    read_list(&lr);
    if (lr.stopped)
        return gs_fail(err, GS_ECANCELED, "stopped by the receiver of the list");
    if (gs_reader_finish(&lr.reader, err) < 0)
        return -1;
    return keep_meta(&lr, ret, err);
}

bool gs_codec_list_head(struct gs_slice json, struct gs_list_meta *ret)
{
    struct list_reader lr = {.remaining = -1};
    struct gs_scan *scan = &lr.reader.scan;
    struct gs_scan_text key;
    gs_scan_init(scan, json);
    gs_scan_object(scan, "list");
    while (gs_scan_key(scan, &key) && !gs_scan_text_is(key, "items")) {
        if (gs_scan_text_is(key, "metadata")) {
            read_metadata(&lr);
            return !scan->failed && keep_meta(&lr, ret, NULL) == 0;
        }
        gs_scan_skip(scan);
    }
    return false;
}
