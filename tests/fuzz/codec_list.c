/* SPDX-License-Identifier: Apache-2.0 */
/* Every item of a list is JSON of its own; nothing is filled on failure. */
#include "fuzz.h"
#include "gpushare/codec/list.h"
#include "gpushare/codec/scan.h"

static int item(void *ctx, struct gs_slice json)
{
    struct gs_scan scan;
    gs_scan_init(&scan, json);
    gs_scan_skip(&scan);
    FUZZ_CHECK(gs_scan_finish(&scan, NULL) == 0);
    return ++*(int *)ctx > 1000 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_list_meta meta = {.remaining = -7};
    struct gs_error err = {0};
    int items = 0;
    int result =
        gs_codec_list_items((struct gs_slice){(const char *)data, size}, item, &items, &meta, &err);
    FUZZ_CHECK((result == 0) == (err.code == GS_OK));
    FUZZ_CHECK(result == 0 || meta.remaining == -7);
    return 0;
}
