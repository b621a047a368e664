/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/error.h"
#include "grpc/frame.h"

#define CEILING 8

static void a_cut_anywhere_changes_nothing(void **state)
{
    static const char bytes[] = "\0\0\0\0\2hi\0\0\0\0\0\0\0\0\0\3you";
    const size_t len = sizeof(bytes) - 1;
    for (size_t cut = 0; cut <= len; cut++) {
        struct gs_frame_reader reader = GS_FRAME_READER(CEILING);
        char all[64] = "";
        for (size_t at = 0; at < len;) {
            size_t end = at < cut ? cut : len;
            size_t used = 0;
            enum gs_frame_result result = gs_frame_feed(&reader, bytes + at, end - at, &used);
            assert_true(result == GS_FRAME_MORE || result == GS_FRAME_MESSAGE);
            if (result == GS_FRAME_MESSAGE) {
                strncat(all, reader.body.data ? reader.body.data : "", reader.body.len);
                strncat(all, ".", 2);
            }
            at += used;
        }
        assert_true(gs_frame_at_boundary(&reader));
        assert_string_equal(all, "hi..you.");
        gs_frame_release(&reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_anywhere_changes_nothing),
    };
    return GS_RUN(tests);
}
