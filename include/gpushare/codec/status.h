/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"

/*
 * meta/v1 Status, the body of an API server's failed answer and the object of a watch's ERROR
 * event (apimachinery/pkg/apis/meta/v1/types.go). Pure.
 */
struct gs_api_status {
    int32_t code;      /* 404, …; 0 when absent */
    char reason[64];   /* "NotFound", …; "" when absent or longer than any */
    char message[512]; /* cut when longer, at a character's end */
};

/* GS_EPROTO: no JSON object, or one whose kind is something else than "Status". */
int gs_codec_status(struct gs_slice json, struct gs_api_status *ret, struct gs_error *err);

/* Appends {"kind":"Status","apiVersion":"v1","status":"Failure",…}; for a server's answers. */
void gs_codec_status_encode(struct gs_buf *out, const struct gs_api_status *status);
