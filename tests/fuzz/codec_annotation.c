/* SPDX-License-Identifier: Apache-2.0 */
/* A list of GPU indices names the same set after being written and read again; and what an
 * allocation names is a set too. */
#include "fuzz.h"
#include "gpushare/codec/annotation.h"

FUZZ_TEXT(input)
{
    gs_gpu_mask first = 0, second = 0;
    char text[GS_IDX_TEXT_BYTES];
    if (gs_codec_idx_parse(input, &first)) {
        FUZZ_CHECK(first != 0);
        gs_codec_idx_format(first, text);
        FUZZ_CHECK(gs_codec_idx_parse(gs_slice_of(text), &second) && first == second);
    } else {
        FUZZ_CHECK(first == 0);
    }
    second = 0;
    bool even;
    FUZZ_CHECK(gs_codec_allocation_gpus(input, &second, &even) == (second != 0));
}
