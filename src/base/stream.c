/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/stream.h"

enum { CHUNK_BYTES = 4096 };

bool gs_buf_read_stream(struct gs_buf *buf, FILE *file)
{
    char *to;
    size_t got = 1;
    while (got && (to = gs_buf_reserve(buf, CHUNK_BYTES))) {
        got = fread(to, 1, CHUNK_BYTES, file);
        gs_buf_advance(buf, got);
    }
    return !ferror(file);
}
