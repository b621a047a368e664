/* SPDX-License-Identifier: Apache-2.0 */
/* What is encoded is printable ASCII without a percent sign of its own. */
#include "fuzz.h"
#include "grpc/status.h"

static void check_header(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        FUZZ_CHECK(text[i] >= ' ' && text[i] <= '~');
}

FUZZ_TEXT(text)
{
    struct gs_buf encoded = GS_BUF(text.len * 9), small = GS_BUF(text.len / 2);
    enum gs_grpc_status status = gs_grpc_status_parse(text.at, text.len);
    FUZZ_CHECK(status <= GS_GRPC_UNAUTHENTICATED);

    gs_grpc_message_encode(&encoded, text.at, text.len);
    FUZZ_CHECK(!gs_buf_failed(&encoded));
    check_header(encoded.data, encoded.len);

    gs_grpc_message_encode(&small, text.at, text.len);
    FUZZ_CHECK(!gs_buf_failed(&small));
    check_header(small.data, small.len);
    gs_buf_release(&encoded);
    gs_buf_release(&small);
}
