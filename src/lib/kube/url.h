/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/error.h"

/* A server's URL, parsed. Private to this folder. */
enum { GS_URL_PART_BYTES = 256 };

struct gs_url {
    bool tls;
    bool loopback; /* "localhost", 127.0.0.0/8, ::1: credentials may go there in the clear */
    uint16_t port;
    char host[GS_URL_PART_BYTES];   /* without brackets */
    char prefix[GS_URL_PART_BYTES]; /* path before /api, "" or "/…", no slash at the end */
};

/* http or https, no user, query or fragment; else GS_EINVAL. */
int gs_url_parse(const char *text, struct gs_url *ret, struct gs_error *err);
