/* SPDX-License-Identifier: Apache-2.0 */
/* What was read as a list of moved pods is the same after being written and read again, sorted, and
 * every pod is found in it. */
#include "fuzz.h"
#include "gpushare/codec/moved.h"

FUZZ_TEXT(input)
{
    struct gs_arena arena = {0};
    struct gs_moved *first, *second;
    uint32_t first_count, second_count;
    struct gs_error err = {0};
    struct gs_buf text = GS_BUF((size_t)1 << 20);
    if (gs_codec_moved_decode(input, &arena, &first, &first_count, &err) < 0) {
        FUZZ_CHECK(err.code == GS_EPROTO || err.code == GS_ETOOBIG);
    } else {
        FUZZ_CHECK(input.len <= GS_MOVED_TEXT_MAX && first_count <= GS_MOVED_MAX);
        gs_codec_moved_encode(&text, first, first_count);
        FUZZ_CHECK(
            gs_codec_moved_decode(fuzz_written(&text), &arena, &second, &second_count, &err) == 0);
        FUZZ_CHECK(first_count == second_count);
        for (uint32_t i = 0; i < first_count; i++) {
            FUZZ_CHECK(strcmp(first[i].uid, second[i].uid) == 0 && first[i].uid[0]);
            FUZZ_CHECK(first[i].gpus == second[i].gpus && first[i].gpus);
            FUZZ_CHECK(i == 0 || strcmp(first[i - 1].uid, first[i].uid) < 0);
        }
    }
    gs_buf_release(&text);
    gs_arena_release(&arena);
}
