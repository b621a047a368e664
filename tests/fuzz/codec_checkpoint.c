/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is decoded can be walked to its end, and is no more than the text holds. */
#include "fuzz.h"
#include "gpushare/codec/checkpoint.h"

static bool walk(void *ctx, const struct gs_checkpoint_entry *entry, size_t done)
{
    size_t parts = entry ? 1 + strlen(entry->pod_uid) + entry->answer.len + entry->id_count : 1;
    for (uint32_t k = 0; entry && k < entry->id_count; k++)
        parts += strlen(entry->ids[k]);
    *(size_t *)ctx += parts;
    FUZZ_CHECK(*(size_t *)ctx <= done);
    return true;
}

FUZZ_TEXT(text)
{
    struct gs_error err = {0};
    size_t parts = 0;
    const int result = gs_codec_checkpoint_decode(text, "gpu", walk, &parts, &err);
    FUZZ_CHECK(result == 0 || err.code == GS_EPROTO);
    FUZZ_CHECK(parts <= text.len);
}
