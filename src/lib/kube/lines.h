/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"

/*
 * Cuts a stream of bytes into lines: a watch answers with one JSON object per line. Lines that
 * arrive whole are handed on where they lie; only a line that is cut by the end of a piece is
 * copied. Not thread-safe.
 *
 *   struct gs_lines lines = {.rest = GS_BUF(16 << 20)};
 *   gs_lines_feed(&lines, bytes, len, on_line, ctx, err);
 *   gs_lines_reset(&lines);      a new stream: the unfinished line is forgotten
 *   gs_buf_release(&lines.rest);
 */
struct gs_lines {
    struct gs_buf rest; /* its ceiling is the longest line */
};

/* The line without its end; *borrowed* for the call. 0 goes on, -1 stops
 * (fills *err). */
typedef int gs_line_fn(void *ctx, const char *line, size_t len, struct gs_error *err);

/* Calls `line` for each complete, non-empty line. -1: `line` said so, GS_ETOOBIG for a line above
 * the ceiling, GS_ENOMEM. */
int gs_lines_feed(struct gs_lines *lines, const char *bytes, size_t len, gs_line_fn *line,
                  void *ctx, struct gs_error *err);

void gs_lines_reset(struct gs_lines *lines);
