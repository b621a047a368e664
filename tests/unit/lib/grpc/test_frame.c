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
    {"empty message", "\0\0\0\0\0", 5, GS_FRAME_MESSAGE, 5, ""},
    {"message", "\0\0\0\0\3abc", 8, GS_FRAME_MESSAGE, 8, "abc"},
    {"message and the next header", "\0\0\0\0\1a\0\0\0", 9, GS_FRAME_MESSAGE, 6, "a"},
    {"largest message", "\0\0\0\0\10abcdefgh", 13, GS_FRAME_MESSAGE, 13, "abcdefgh"},
    {"one above the ceiling", "\0\0\0\0\11abcdefghi", 14, GS_FRAME_TOO_BIG, 5, NULL},
    {"length in the second byte", "\0\0\0\1\0", 5, GS_FRAME_TOO_BIG, 5, NULL},
    {"length in the third byte", "\0\0\1\0\0", 5, GS_FRAME_TOO_BIG, 5, NULL},
    {"compressed", "\1\0\0\0\1a", 6, GS_FRAME_COMPRESSED, 5, NULL},
    {"flag of no meaning", "\2\0\0\0\1a", 6, GS_FRAME_BAD_FLAG, 5, NULL},
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
        cmocka_unit_test(memory_follows_the_bytes_not_the_promise),
    };
    return GS_RUN(tests);
}
