/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/status.h"

#include <inttypes.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/utf8.h"
#include "reader.h"

static void read_details(struct gs_reader *reader, struct gs_api_status *status)
{
    struct gs_scan_text key;
    if (!gs_read_object(reader, "details"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "retryAfterSeconds"))
            gs_read_i32(reader, "details.retryAfterSeconds", &status->retry_after_s);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_status(struct gs_reader *reader, struct gs_api_status *status,
                        const char **ret_message)
{
    struct gs_scan *scan = &reader->scan;
    struct gs_scan_text key, kind = {0}, reason = {0};
    gs_scan_object(scan, "Status");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "kind"))
            gs_read_text(reader, "kind", &kind);
        else if (gs_scan_text_is(key, "code"))
            gs_read_i32(reader, "code", &status->code);
        else if (gs_scan_text_is(key, "reason"))
            gs_read_text(reader, "reason", &reason);
        else if (gs_scan_text_is(key, "message"))
            gs_read_string(reader, "message", ret_message);
        else if (gs_scan_text_is(key, "details"))
            read_details(reader, status);
        else
            gs_scan_skip(scan);
    }
    if (kind.at && !gs_scan_text_is(kind, "Status"))
        gs_scan_refuse(scan, "kind", "is not Status");
    if (!scan->failed)
        gs_scan_text_copy(reason, status->reason, sizeof(status->reason));
}

int gs_codec_status(struct gs_slice json, struct gs_api_status *ret, struct gs_error *err)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_reader reader = {.arena = &arena};
    struct gs_api_status status = {0};
    const char *message = "";
    gs_scan_init(&reader.scan, json);
    read_status(&reader, &status, &message);
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    size_t len = gs_utf8_cut(message, strlen(message), sizeof(status.message) - 1);
    memcpy(status.message, message, len);
    *ret = status;
    return 0;
}

void gs_codec_status_encode(struct gs_buf *out, const struct gs_api_status *status)
{
    gs_buf_puts(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                     "\"status\":\"Failure\",\"message\":");
    gs_buf_json_string(out, status->message, strlen(status->message));
    gs_buf_puts(out, ",\"reason\":");
    gs_buf_json_string(out, status->reason, strlen(status->reason));
    if (status->retry_after_s > 0)
        gs_buf_printf(out, ",\"details\":{\"retryAfterSeconds\":%" PRId32 "}",
                      status->retry_after_s);
    gs_buf_printf(out, ",\"code\":%" PRId32 "}", status->code);
}
