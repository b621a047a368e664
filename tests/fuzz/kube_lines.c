/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "kube/lines.h"

enum { LONGEST = 32 };

static int append(void *ctx, const char *line, size_t len, struct gs_error *err)
{
    FUZZ_CHECK(len > 0 && len <= LONGEST && !memchr(line, '\n', len));
    gs_buf_append(ctx, line, len);
    gs_buf_putc(ctx, '\n');
    return 0;
}

/* The first byte says how large the pieces are: the lines must not depend on it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t piece = data[0] + 1u;
    const char *text = (const char *)data + 1;
    struct gs_buf whole = GS_BUF(1 << 20), parts = GS_BUF(1 << 20);
    struct gs_lines lines = {.rest = GS_BUF(LONGEST)};
    int whole_result = gs_lines_feed(&lines, text, size - 1, append, &whole, NULL);
    gs_buf_reset(&lines.rest);
    int result = 0;
    for (size_t at = 0; at < size - 1 && result == 0; at += piece) {
        size_t part = size - 1 - at < piece ? size - 1 - at : piece;
        result = gs_lines_feed(&lines, text + at, part, append, &parts, NULL);
    }
    FUZZ_CHECK(result == whole_result && whole.len == parts.len);
    FUZZ_CHECK(whole.len == 0 || memcmp(whole.data, parts.data, whole.len) == 0);
    gs_buf_release(&lines.rest);
    gs_buf_release(&whole);
    gs_buf_release(&parts);
    return 0;
}
