/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/status.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/base/utf8.h"
#include "json_writer.h"
#include "reader.h"

struct draft {
    struct gs_api_status status;
    struct gs_scan_text kind, reason;
    const char *message;
};

#define MEMBER(key, what, field) GS_MEMBER(struct draft, key, what, field)

static const struct gs_member status_members[] = {
    MEMBER("kind", "kind", kind),
    MEMBER("code", "code", status.code),
    MEMBER("reason", "reason", reason),
    GS_MEMBER_AS(struct draft, "message", "message", message, GS_READ_STRING),
    GS_OBJECT(
        "details", "details",
        GS_MEMBERS(MEMBER("retryAfterSeconds", "details.retryAfterSeconds", status.retry_after_s))),
    {0},
};

int gs_codec_status(struct gs_slice json, struct gs_api_status *ret, struct gs_error *err)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    struct gs_reader reader = {.arena = &arena};
    struct draft draft = {.message = ""};
    struct gs_api_status *status = &draft.status;
    gs_scan_init(&reader.scan, json);
    gs_read_entry(&reader, "Status", status_members, &draft);
    if (draft.kind.at && !gs_scan_text_is(draft.kind, "Status"))
        gs_scan_refuse(&reader.scan, "kind", "is not Status");
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    gs_scan_text_copy(draft.reason, status->reason, sizeof(status->reason));
    size_t len = gs_utf8_cut(draft.message, strlen(draft.message), sizeof(status->message) - 1);
    memcpy(status->message, draft.message, len);
    *ret = *status;
    return 0;
}

void gs_codec_status_encode(struct gs_buf *out, const struct gs_api_status *status)
{
    gs_buf_puts(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                     "\"status\":\"Failure\"");
    gs_write_string(out, "message", status->message);
    gs_write_string(out, "reason", status->reason);
    if (status->retry_after_s > 0) {
        gs_buf_puts(out, ",\"details\":{");
        gs_write_number(out, "retryAfterSeconds", status->retry_after_s);
        gs_buf_putc(out, '}');
    }
    gs_write_number(out, "code", status->code);
    gs_buf_putc(out, '}');
}
