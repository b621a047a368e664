/* SPDX-License-Identifier: Apache-2.0 */
/* Items lie in the list, one after the other; nothing is filled on failure. */
#include "fuzz.h"
#include "gpushare/codec/list.h"

struct seen {
    const char *last, *end;
    int items;
};

static int item(void *ctx, struct gs_scan *scan)
{
    struct seen *seen = ctx;
    struct gs_slice json;
    if (gs_scan_raw(scan, &json)) {
        FUZZ_CHECK(json.len > 0 && json.at >= seen->last && json.at + json.len <= seen->end);
        seen->last = json.at + json.len;
    }
    return ++seen->items > 1000 ? -1 : 0;
}

FUZZ_TEXT(text)
{
    struct gs_list_meta meta = {.continue_token = "old"};
    struct gs_error err = {0};
    struct seen seen = {text.at, text.at + text.len, 0};
    int result = gs_codec_list_items(text, item, &seen, &meta, &err);
    FUZZ_CHECK((result == 0) == (err.code == GS_OK));
    FUZZ_CHECK(result == 0 || strcmp(meta.continue_token, "old") == 0);
    struct gs_list_meta head;
    char name[GS_OBJECT_NAME_BYTES];
    if (gs_codec_list_head(text, &head, name))
        FUZZ_CHECK(strlen(head.continue_token) < sizeof(head.continue_token));
}
