/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <string.h>

enum { KEPT_BYTES_MAX = 1 << 20 };

static int hand_on(const char *line, size_t len, gs_line_fn *fn, void *ctx, struct gs_error *err)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    return len == 0 ? 0 : fn(ctx, line, len, err);
}

int gs_lines_feed(struct gs_lines *lines, const char *bytes, size_t len, gs_line_fn *line,
                  void *ctx, struct gs_error *err)
{
    const char *end = bytes + len;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        size_t part = (size_t)((newline ? newline : end) - bytes);
        if (part > lines->rest.max || !newline || lines->rest.len > 0) {
            gs_buf_append(&lines->rest, bytes, part);
            if (gs_buf_failed(&lines->rest))
                return gs_buf_failed(&lines->rest) == GS_ETOOBIG
                           ? gs_fail(err, GS_ETOOBIG, "a watch event is longer than %zu bytes",
                                     lines->rest.max)
                           : gs_fail_nomem(err);
        }
        if (!newline)
            return 0;
        if (lines->rest.len > 0) {
            int result = hand_on(lines->rest.data, lines->rest.len, line, ctx, err);
            gs_lines_reset(lines);
            if (result < 0)
                return -1;
        } else if (hand_on(bytes, part, line, ctx, err) < 0) {
            return -1;
        }
        bytes = newline + 1;
    }
    return 0;
}

/* Free a large object's memory. */
void gs_lines_reset(struct gs_lines *lines)
{
    if (lines->rest.cap > KEPT_BYTES_MAX)
        gs_buf_release(&lines->rest);
    gs_buf_reset(&lines->rest);
}
