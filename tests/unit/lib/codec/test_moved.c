/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/moved.h"

static void pods_are_read_sorted_and_written(void **state)
{
    static const struct {
        const char *row, *json, *again;
    } rows[] = {
        {"several", " { 'u2' : [ 3 , 1 ] , 'u10':[63],'u1':[0],'\\'':[1] } ",
         "{'\\'':[1],'u1':[0],'u10':[63],'u2':[1,3]}"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_buf out = GS_BUF(4096);
        struct gs_moved *moved = NULL;
        uint32_t count;
        row_equal(r->row, gs_codec_moved_decode(json_of(r->json), &arena, &moved, &count, NULL), 0);
        row_equal(r->row, moved != NULL, count > 0);
        gs_codec_moved_encode(&out, moved, count);
        row_json(r->row, &out, r->again);
    }
}

static void what_is_no_list_of_moved_pods_is_refused_with_a_reason(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *why; /* up to the byte number */
    } rows[] = {
        {"empty", "", "JSON: unexpected end of input"},
        {"an index instead of a list", "{'u':1}", "GPUs of a pod is not an array"},
        {"no GPU", "{'u':[]}", "GPUs of a pod are missing"},
        {"half an index", "{'u':[0.5]}", "GPU index is not an integer in range"},
        {"a negative index", "{'u':[-1]}", "GPU index is not between 0 and 63"},
        {"an index too large", "{'u':[64]}", "GPU index is not between 0 and 63"},
        {"an index twice", "{'u':[1,1]}", "GPU index is duplicated"},
        {"a pod twice", "{'u':[1],'v':[0],'u':[2]}", "UID of a pod is duplicated"},
        {"a pod without UID", "{'':[1]}", "UID of a pod is empty"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_moved *moved = (struct gs_moved *)state;
        uint32_t count = 77;
        struct gs_error err = {0};
        row_equal(r->row, gs_codec_moved_decode(json_of(r->json), &arena, &moved, &count, &err),
                  -1);
        row_refused(r->row, &err, r->why);
        row_equal(r->row, count, 77);
        row_true(r->row, moved == (struct gs_moved *)state);
    }
}

/* Appends {"u0":[0],"u1":[0],…}. */
static void put_many(struct gs_buf *out, int entries)
{
    gs_buf_putc(out, '{');
    for (int i = 0; i < entries; i++)
        gs_buf_printf(out, "%s\"u%d\":[0]", i ? "," : "", i);
    gs_buf_putc(out, '}');
}

static void entries_and_bytes_have_a_ceiling(void **state)
{
    static const struct {
        const char *row;
        int entries, spaces_after;
        enum gs_code code;
    } rows[] = {
        {"most entries", GS_MOVED_MAX, 0, GS_OK},
        {"one entry more", GS_MOVED_MAX + 1, 0, GS_ETOOBIG},
        {"most bytes", 0, GS_MOVED_TEXT_MAX - 2, GS_OK},
        {"one byte more", 0, GS_MOVED_TEXT_MAX - 1, GS_ETOOBIG},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_arena_release) struct gs_arena arena = {0};
        struct gs_buf text = GS_BUF((size_t)1 << 20);
        struct gs_moved *moved;
        uint32_t count = 0;
        struct gs_error err = {0};
        put_many(&text, r->entries);
        for (int i = 0; i < r->spaces_after; i++)
            gs_buf_putc(&text, ' ');
        int result = gs_codec_moved_decode((struct gs_slice){text.data, text.len}, &arena, &moved,
                                           &count, &err);
        row_equal(r->row, result, r->code == GS_OK ? 0 : -1);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, count, r->code == GS_OK ? r->entries : 0);
        gs_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_read_sorted_and_written),
        cmocka_unit_test(what_is_no_list_of_moved_pods_is_refused_with_a_reason),
        cmocka_unit_test(entries_and_bytes_have_a_ceiling),
    };
    return GS_RUN(tests);
}
