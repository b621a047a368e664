/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is decoded can be walked to its end and asked whom it covers; labels ascend. */
#include "fuzz.h"
#include "item_lists.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct gs_slice text = {(const char *)data, size};
    static const struct gs_kv some[] = {{"a", "1"}, {"app", "web"}};
    struct gs_arena arena = {0};
    struct gs_budget *all = NULL;
    struct gs_kv *labels = NULL;
    struct gs_error err = {0};
    uint32_t count = UINT32_MAX, label_count = UINT32_MAX;
    if (gs_codec_labels(text, &arena, &labels, &label_count, &err) < 0) {
        FUZZ_CHECK(err.code == GS_EPROTO && label_count == UINT32_MAX);
        label_count = 0;
    }
    for (uint32_t i = 1; i < label_count; i++)
        FUZZ_CHECK(strcmp(labels[i - 1].key, labels[i].key) <= 0);
    if (budget_list(text, &arena, &all, &count, &err) < 0) {
        FUZZ_CHECK(err.code == GS_EPROTO && count == UINT32_MAX);
        count = 0;
    }
    FUZZ_CHECK(count <= size);
    for (uint32_t i = 0; i < count; i++) {
        const char *ns = all[i].ns ? all[i].ns : "";
        FUZZ_CHECK(!gs_budget_covers(&all[i], ns, "p", NULL, 0));
        bool covers = gs_budget_covers(&all[i], ns, "p", some, 2);
        FUZZ_CHECK(!covers || all[i].selector.count);
    }
    gs_arena_release(&arena);
    return 0;
}
