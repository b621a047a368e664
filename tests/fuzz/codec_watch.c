/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a watch line is JSON of its own. */
#include "fuzz.h"
#include "gpushare/codec/scan.h"
#include "gpushare/codec/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gs_slice line = {(const char *)data, size};
    struct gs_watch_event event;
    struct gs_error err = {0};
    char version[GS_RV_BYTES] = "untouched";
    if (gs_codec_watch_event(line, &event, &err) == 0) {
        struct gs_scan scan;
        gs_scan_init(&scan, event.object);
        gs_scan_skip(&scan);
        FUZZ_CHECK(gs_scan_finish(&scan, NULL) == 0);
        if (gs_codec_object_rv(event.object, version, NULL) < 0)
            FUZZ_CHECK(strcmp(version, "untouched") == 0);
    } else {
        FUZZ_CHECK(err.code == GS_EPROTO);
    }
    return 0;
}
