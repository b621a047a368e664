/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is decoded can be walked to its end, and is no more than the text holds. */
#include "fuzz.h"
#include "item_lists.h"

FUZZ_TEXT(text)
{
    struct gs_arena arena = {0};
    struct gs_sliced_gpu *gpus = NULL;
    uint32_t count = UINT32_MAX;
    struct gs_error err = {0};
    if (slice_list(text, "gpu", &arena, &gpus, &count, &err) < 0) {
        FUZZ_CHECK(err.code == GS_EPROTO || err.code == GS_ETOOBIG);
        FUZZ_CHECK(count == UINT32_MAX);
    } else {
        size_t parts = count;
        for (uint32_t i = 0; i < count; i++) {
            parts += strlen(gpus[i].uuid);
            FUZZ_CHECK(gpus[i].node != NULL);
        }
        FUZZ_CHECK(parts <= text.len);
    }
    gs_arena_release(&arena);
}
