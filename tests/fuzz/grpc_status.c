/* SPDX-License-Identifier: Apache-2.0 */
/* What was decoded is UTF-8 without NUL, and comes back from an encoding unchanged. */
#include "fuzz.h"
#include "gpushare/base/utf8.h"
#include "grpc/status.h"

static void check_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t width = gs_utf8_width(text + i, len - i);
        FUZZ_CHECK(width > 0 && text[i] != '\0');
        i += width;
    }
}

static void check_header(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        FUZZ_CHECK(text[i] >= ' ' && text[i] <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_buf decoded = GS_BUF(size * 3), encoded = GS_BUF(size * 9), again = GS_BUF(size * 9);
    struct gs_buf small = GS_BUF(size / 2);
    enum gs_grpc_status status = gs_grpc_status_parse((const char *)data, size);
    FUZZ_CHECK(status <= GS_GRPC_UNAUTHENTICATED);

    gs_grpc_message_decode(&decoded, (const char *)data, size);
    FUZZ_CHECK(!gs_buf_failed(&decoded));
    check_text(decoded.data, decoded.len);
    gs_grpc_message_encode(&encoded, decoded.data, decoded.len);
    FUZZ_CHECK(!gs_buf_failed(&encoded));
    check_header(encoded.data, encoded.len);
    gs_grpc_message_decode(&again, encoded.data, encoded.len);
    FUZZ_CHECK(again.len == decoded.len);
    FUZZ_CHECK(again.len == 0 || memcmp(again.data, decoded.data, again.len) == 0);

    gs_grpc_message_encode(&small, (const char *)data, size);
    FUZZ_CHECK(!gs_buf_failed(&small));
    check_header(small.data, small.len);
    gs_buf_release(&decoded);
    gs_buf_release(&encoded);
    gs_buf_release(&again);
    gs_buf_release(&small);
    return 0;
}
