/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/error.h"
#include "grpc/frame.h"

#define CEILING 8

static const struct {
    const char *row;
    const char *bytes;
    size_t len;
    enum gs_frame_result first; /* what the first feed says */
    size_t used;                /* and takes */
    const char *body;
} rows[] = {
    {"nothing", "", 0, GS_FRAME_MORE, 0, NULL},
    {"one byte of a header", "\0", 1, GS_FRAME_MORE, 1, NULL},
    {"four bytes of a header", "\0\0\0\0", 4, GS_FRAME_MORE, 4, NULL},
    {"empty message", "\0\0\0\0\0", 5, GS_FRAME_MESSAGE, 5, ""},
    {"message cut short", "\0\0\0\0\3ab", 7, GS_FRAME_MORE, 7, NULL},
    {"message", "\0\0\0\0\3abc", 8, GS_FRAME_MESSAGE, 8, "abc"},
    {"message and the next header", "\0\0\0\0\1a\0\0\0", 9, GS_FRAME_MESSAGE, 6, "a"},
    {"largest message", "\0\0\0\0\10abcdefgh", 13, GS_FRAME_MESSAGE, 13, "abcdefgh"},
    {"one above the ceiling", "\0\0\0\0\11abcdefghi", 14, GS_FRAME_TOO_BIG, 5, NULL},
    {"length in the second byte", "\0\0\0\1\0", 5, GS_FRAME_TOO_BIG, 5, NULL},
    {"length in the third byte", "\0\0\1\0\0", 5, GS_FRAME_TOO_BIG, 5, NULL},
    {"largest length", "\0\377\377\377\377", 5, GS_FRAME_TOO_BIG, 5, NULL},
    {"compressed", "\1\0\0\0\1a", 6, GS_FRAME_COMPRESSED, 5, NULL},
    {"flag of no meaning", "\2\0\0\0\1a", 6, GS_FRAME_BAD_FLAG, 5, NULL},
    {"flag with the top bit", "\200\0\0\0\1a", 6, GS_FRAME_BAD_FLAG, 5, NULL},
};

static void frames_are_read_as_written(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_frame_reader reader = GS_FRAME_READER(CEILING);
        size_t used = 4711;
        row_equal(r->row, gs_frame_feed(&reader, r->bytes, r->len, &used), r->first);
        row_equal(r->row, used, r->used);
        if (r->body) {
            row_equal(r->row, reader.body.len, strlen(r->body));
            row_true(r->row, memcmp(reader.body.data ? reader.body.data : "", r->body,
                                    reader.body.len) == 0);
        }
        gs_frame_release(&reader);
    }
}

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

static void memory_follows_the_bytes_not_the_promise(void **state)
{
    struct gs_frame_reader reader = GS_FRAME_READER((size_t)1 << 30);
    size_t used;
    assert_int_equal(gs_frame_feed(&reader, "\0\100\0\0\0abc", 8, &used), GS_FRAME_MORE);
    assert_in_range(reader.body.cap, 3, 4096);
    gs_frame_release(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_read_as_written),
        cmocka_unit_test(a_cut_anywhere_changes_nothing),
        cmocka_unit_test(memory_follows_the_bytes_not_the_promise),
    };
    return GS_RUN(tests);
}
