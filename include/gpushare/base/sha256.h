/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_BASE_SHA256_H
#define GPUSHARE_BASE_SHA256_H

#include <stddef.h>

/* 64 lower-case hexadecimal digits, and a NUL. */
enum { GS_SHA256_TEXT_BYTES = 65 };

/* SHA-256 of bytes (FIPS 180-4), as sha256sum prints it. For what an operator pinned: no secret is
 * compared by it. Any thread. */
void gs_sha256_text(const void *bytes, size_t len, char ret[GS_SHA256_TEXT_BYTES]);

#endif
