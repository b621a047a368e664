/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a watch line begins and ends with its braces. */
#include "fuzz.h"
#include "gpushare/codec/watch.h"

FUZZ_TEXT(line)
{
    struct gs_watch_event event;
    struct gs_error err = {0};
    char version[GS_RV_BYTES] = "untouched";
    if (gs_codec_watch_event(line, &event, &err) == 0) {
        FUZZ_CHECK(event.object.len >= 2 && event.object.at[0] == '{');
        FUZZ_CHECK(event.object.at + event.object.len <= line.at + line.len);
        if (gs_codec_object_rv(event.object, version, NULL) < 0)
            FUZZ_CHECK(strcmp(version, "untouched") == 0);
    } else {
        FUZZ_CHECK(err.code == GS_EPROTO);
    }
}
