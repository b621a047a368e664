/* SPDX-License-Identifier: Apache-2.0 */
/* A time is the same after being written with all its digits and read again. */
#include "fuzz.h"
#include "gpushare/codec/rfc3339.h"

FUZZ_TEXT(input)
{
    int64_t first = 7, second;
    char text[GS_RFC3339_BYTES];
    if (gs_rfc3339_parse(input, &first)) {
        gs_rfc3339_format(first, 9, text);
        FUZZ_CHECK(gs_rfc3339_parse(gs_slice_of(text), &second) && first == second);
    } else {
        FUZZ_CHECK(first == 7);
    }
}
