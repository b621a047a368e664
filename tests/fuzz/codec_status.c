/* SPDX-License-Identifier: Apache-2.0 */
/* A Status is the same after being written and read again. */
#include "fuzz.h"
#include "gpushare/codec/status.h"

FUZZ_TEXT(input)
{
    struct gs_api_status first, second;
    struct gs_buf text = GS_BUF((size_t)1 << 16);
    if (gs_codec_status(input, &first, NULL) == 0) {
        gs_codec_status_encode(&text, &first);
        FUZZ_CHECK(gs_codec_status(fuzz_written(&text), &second, NULL) == 0);
        FUZZ_CHECK(strcmp(first.message, second.message) == 0 && first.code == second.code);
        FUZZ_CHECK(strcmp(first.reason, second.reason) == 0);
    }
    gs_buf_release(&text);
}
