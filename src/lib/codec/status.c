/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/status.h"

#include "json_writer.h"
#include "reader.h"

struct draft {
    struct gs_api_status status;
    struct gs_scan_text kind, reason, message;
};

#define MEMBER(key, field) GS_MEMBER(struct draft, key, field)

static const struct gs_member status_members[] = {
    MEMBER("kind", kind),
    MEMBER("code", status.code),
    MEMBER("reason", reason),
    MEMBER("message", message),
    {0},
};

int gs_codec_status(struct gs_slice json, struct gs_api_status *ret, struct gs_error *err)
{
    struct gs_reader reader = {0};
    struct draft draft = {0};
    struct gs_api_status *status = &draft.status;
    gs_scan_init(&reader.scan, json);
    gs_read_entry(&reader, "Status", status_members, &draft);
    if (draft.kind.at && !gs_scan_text_is(draft.kind, "Status"))
        gs_scan_refuse(&reader.scan, "kind", "is not Status");
    if (gs_reader_finish(&reader, err) < 0)
        return -1;
    gs_scan_text_copy(draft.reason, status->reason, sizeof(status->reason));
    gs_read_cut(draft.message, status->message, sizeof(status->message));
    *ret = *status;
    return 0;
}

void gs_codec_status_encode(struct gs_buf *out, const struct gs_api_status *status)
{
    gs_buf_puts(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                     "\"status\":\"Failure\"");
    gs_write_string(out, "message", status->message);
    gs_write_string(out, "reason", status->reason);
    gs_write_number(out, "code", status->code);
    gs_buf_putc(out, '}');
}
