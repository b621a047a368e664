/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is decoded can be walked to its end and asked whom it covers. */
#include "fuzz.h"
#include "item_lists.h"

FUZZ_TEXT(text)
{
    static const struct gs_kv two[] = {{"a", "1"}, {"app", "web"}};
    struct gs_arena arena = {0};
    struct gs_budget *all = NULL;
    const struct gs_labels *some = gs_labels_of(&arena, two, 2);
    struct gs_error err = {0};
    uint32_t count = UINT32_MAX;
    if (budget_list(text, &arena, &all, &count, &err) < 0) {
        FUZZ_CHECK(err.code == GS_EPROTO || err.code == GS_ETOOBIG);
        FUZZ_CHECK(count == UINT32_MAX);
        count = 0;
    }
    FUZZ_CHECK(count <= text.len);
    for (uint32_t i = 0; i < count; i++) {
        FUZZ_CHECK(gs_budget_covers(&all[i], "p", NULL) == all[i].excess);
        FUZZ_CHECK(!gs_budget_covers(&all[i], "p", some) || all[i].selector.count || all[i].excess);
    }
    gs_arena_release(&arena);
}
