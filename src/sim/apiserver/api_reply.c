/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "api_internal.h"
#include "gpushare/codec/status.h"

/* Failures as an API server answers them: metav1.Status. */

int gs_sim_status_put(const struct gs_error *err, struct gs_buf *out)
{
    static const struct {
        enum gs_code code;
        int http;
        const char *reason;
    } rows[] = {
        {GS_EPROTO, 400, "BadRequest"},
        {GS_EAUTH, 401, "Unauthorized"},
        {GS_ENOENT, 404, "NotFound"},
        {GS_EEXIST, 409, "AlreadyExists"},
        {GS_ECONFLICT, 409, "Conflict"},
        {GS_EGONE, 410, "Expired"},
        {GS_ETOOBIG, 413, "RequestEntityTooLarge"},
        {GS_EINVAL, 422, "Invalid"},
        {GS_ETIMEOUT, 504, "Timeout"},
    };
    struct gs_api_status status = {.code = 500, .reason = "InternalError"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].code == err->code) {
            status.code = rows[i].http;
            snprintf(status.reason, sizeof(status.reason), "%s", rows[i].reason);
        }
    }
    snprintf(status.message, sizeof(status.message), "%s", err->msg);
    gs_codec_status_encode(out, &status);
    return status.code;
}

void gs_sim_reply_error(struct gs_sim_reply *ret, const struct gs_error *err)
{
    gs_buf_reset(&ret->body);
    ret->status = gs_sim_status_put(err, &ret->body);
}

int gs_sim_reply_refused(struct gs_sim_reply *ret, int http, const char *reason,
                         const char *message)
{
    struct gs_api_status status = {.code = http};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "%s", message);
    gs_buf_reset(&ret->body);
    gs_codec_status_encode(&ret->body, &status);
    ret->status = http;
    return 0;
}
