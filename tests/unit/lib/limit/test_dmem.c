/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/limit/dmem.h"

static void a_file_is_a_line_per_region(void **state)
{
    static const struct {
        const char *row, *text;
        long long count; /* -1: refused */
        uint64_t first;
        enum gs_code code;
    } rows[] = {
        {"empty", "", 0, 0},
        {"one", "nvidia/0000:41:00/vidmem 8589934592\n", 1, 8589934592},
        {"no newline at its end", "nvidia/0000:41:00/vidmem 1", 1, 1},
        {"no limit", "drm/0000:79:00.0/vram max\n", 1, GS_DMEM_NO_LIMIT},
        {"nothing allowed", "a 0\n", 1, 0},
        {"several", "a 1\nb max\nc 18446744073709551614\n", 3, 1},
        {"above 64 bits", "a 18446744073709551616\n", -1, 0, GS_EPROTO},
        {"negative", "a -1\n", -1, 0, GS_EPROTO},
        {"no number", "a\n", -1, 0, GS_EPROTO},
        {"no number behind the blank", "a \n", -1, 0, GS_EPROTO},
        {"no region", " 1\n", -1, 0, GS_EPROTO},
        {"two numbers", "a 1 2\n", -1, 0, GS_EPROTO},
        {"two blanks", "a  1\n", -1, 0, GS_EPROTO},
        {"a unit", "a 1G\n", -1, 0, GS_EPROTO},
        {"another word", "a Max\n", -1, 0, GS_EPROTO},
        {"an empty line", "a 1\n\nb 1\n", -1, 0, GS_EPROTO},
        {"a tab in the name", "a\tb 1\n", -1, 0, GS_EPROTO},
        {"a second line that is none", "a 1\nb", -1, 0, GS_EPROTO},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
        struct gs_error err = {0};
        size_t count = 77;
        int result = gs_dmem_parse(gs_slice_of(r->text), lines, &count, &err);
        row_equal(r->row, result, r->count < 0 ? -1 : 0);
        row_equal(r->row, count, r->count < 0 ? 77 : r->count);
        row_equal(r->row, err.code, r->code);
        if (r->count > 0)
            row_true(r->row, lines[0].bytes == r->first);
    }
}

static void names_and_lines_have_a_ceiling(void **state)
{
    static char text[GS_DMEM_LINES_MAX * 4 + 8], name[GS_DMEM_REGION_BYTES + 4];
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    struct gs_error err = {0};
    size_t count = 0;
    for (size_t i = 0; i < GS_DMEM_LINES_MAX; i++)
        memcpy(text + 4 * i, "a 1\n", 4);
    assert_int_equal(gs_dmem_parse(gs_slice_of(text), lines, &count, &err), 0);
    assert_int_equal(count, GS_DMEM_LINES_MAX);
    memcpy(text + 4 * GS_DMEM_LINES_MAX, "a 1\n", 4);
    assert_int_equal(gs_dmem_parse(gs_slice_of(text), lines, &count, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);

    memset(name, 'a', GS_DMEM_REGION_BYTES - 1);
    memcpy(name + GS_DMEM_REGION_BYTES - 1, " 1", 3);
    assert_int_equal(gs_dmem_parse(gs_slice_of(name), lines, &count, NULL), 0);
    memset(name, 'a', GS_DMEM_REGION_BYTES);
    memcpy(name + GS_DMEM_REGION_BYTES, " 1", 3);
    assert_int_equal(gs_dmem_parse(gs_slice_of(name), lines, &count, NULL), -1);
}

static void a_region_is_found_by_its_whole_name(void **state)
{
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    size_t count = 0;
    assert_int_equal(gs_dmem_parse(GS_SLICE("abc 1\nab 2\n"), lines, &count, NULL), 0);
    assert_ptr_equal(gs_dmem_find(lines, count, "ab"), &lines[1]);
    assert_null(gs_dmem_find(lines, count, "a"));
    assert_null(gs_dmem_find(lines, count, "AB"));
    assert_null(gs_dmem_find(lines, 0, "ab"));
}

static void a_write_is_one_decimal_line(void **state)
{
    static const struct {
        const char *row;
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {"nothing", 0, "r 0\n"},
        {"not a page", 1073741825, "r 1073741825\n"},
        {"the largest", UINT64_MAX - 1, "r 18446744073709551614\n"},
        {"no limit", GS_DMEM_NO_LIMIT, "r max\n"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char text[GS_DMEM_WRITE_BYTES];
        gs_dmem_format("r", r->bytes, text);
        row_text(r->row, text, r->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_a_line_per_region),
        cmocka_unit_test(names_and_lines_have_a_ceiling),
        cmocka_unit_test(a_region_is_found_by_its_whole_name),
        cmocka_unit_test(a_write_is_one_decimal_line),
    };
    return GS_RUN(tests);
}
