/* SPDX-License-Identifier: Apache-2.0 */
/* A Lease is the same after being written and read again. */
#include "fuzz.h"
#include "gpushare/codec/lease.h"

FUZZ_TEXT(input)
{
    struct gs_lease first = {.ns = "ns", .name = "lease"}, second = first;
    struct gs_buf text = GS_BUF((size_t)1 << 16);
    if (gs_codec_lease_decode(input, &first, NULL) == 0) {
        gs_codec_lease_encode(&text, &first);
        FUZZ_CHECK(gs_codec_lease_decode(fuzz_written(&text), &second, NULL) == 0);
        FUZZ_CHECK(strcmp(first.holder, second.holder) == 0);
        FUZZ_CHECK(first.transitions == second.transitions);
        FUZZ_CHECK(first.renew_ns - second.renew_ns < 1000);
    }
    gs_buf_release(&text);
}
