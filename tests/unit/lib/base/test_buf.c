/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"

static void the_ceiling_holds(void **state)
{
    static const struct {
        const char *row;
        size_t max;
        const char *first, *second;
        int failed;
        const char *left;
    } rows[] = {
        {"one too many", 3, "ab", "cd", GS_ETOOBIG, "ab"},
        {"nothing allowed, nothing written", 0, "", "", 0, ""},
        {"nothing allowed, one byte", 0, "", "x", GS_ETOOBIG, ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_buf buf = GS_BUF(r->max);
        gs_buf_puts(&buf, r->first);
        gs_buf_puts(&buf, r->second);
        row_equal(r->row, gs_buf_failed(&buf), r->failed);
        row_text(r->row, buf.data, r->left);
        row_equal(r->row, buf.len, strlen(r->left));
        gs_buf_release(&buf);
        row_true(r->row, !buf.data && !buf.len && !buf.cap && buf.max == r->max);
    }
}

static void absurd_sizes_are_refused(void **state)
{
    _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(SIZE_MAX);
    gs_buf_puts(&buf, "abc");
    assert_null(gs_buf_reserve(&buf, SIZE_MAX - 1));
    assert_int_equal(gs_buf_failed(&buf), GS_ETOOBIG);
    gs_buf_reset(&buf);
    assert_null(gs_buf_reserve(&buf, SIZE_MAX));
    assert_int_equal(gs_buf_failed(&buf), GS_ETOOBIG);
}

static void steal_hands_the_memory_over(void **state)
{
    struct gs_buf buf = GS_BUF(10);
    _cleanup_free_ char *empty = gs_buf_steal(&buf);
    assert_string_equal(empty, "");
    gs_buf_puts(&buf, "abc");
    _cleanup_free_ char *text = gs_buf_steal(&buf);
    assert_string_equal(text, "abc");
    assert_null(buf.data);
    assert_int_equal(buf.max, 10);
    gs_buf_puts(&buf, "more than ten bytes");
    assert_null(gs_buf_steal(&buf));
    assert_int_equal(gs_buf_failed(&buf), 0); /* empty and usable */
}

static void consume_drops_the_front(void **state)
{
    static const struct {
        const char *row;
        size_t count;
        const char *left;
    } rows[] = {{"some", 3, "d"}, {"more than all", SIZE_MAX, ""}};
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(10);
        gs_buf_puts(&buf, "abcd");
        gs_buf_consume(&buf, r->count);
        row_text(r->row, buf.data, r->left);
    }
    struct gs_buf never = GS_BUF(10);
    gs_buf_consume(&never, 3);
    assert_null(never.data);
}

static void json_strings_are_escaped(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        size_t len;
        const char *json;
    } rows[] = {
        {"quote and backslash", "\"\\", 2, "\"\\\"\\\\\""},
        {"short escapes", "\n\r\t", 3, "\"\\n\\r\\t\""},
        {"NUL", "a\0b", 3, "\"a\\u0000b\""},
        {"other controls", "\x01\x1f\x7f", 3, "\"\\u0001\\u001f\\u007f\""},
        {"four bytes", "\xF0\x9F\x98\x80", 4, "\"\xF0\x9F\x98\x80\""},
        {"C1", "\xC2\x80\xC2\x9B\xC2\x9F", 6, "\"\\u0080\\u009b\\u009f\""},
        {"turns of direction", "a\xE2\x80\xAE\xE2\x81\xA6z", 8, "\"a\\u202e\\u2066z\""},
        {"ends of lines", "\xE2\x80\xA8\xE2\x80\xA9", 6, "\"\\u2028\\u2029\""},
        {"a tag", "\xF3\xA0\x81\x81", 4, "\"\\udb40\\udc41\""},
        {"cut short", "x\xE2\x82", 3, "\"x\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"surrogate", "\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"overlong", "\xC0\xAF", 2, "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"escape after many bytes", "ab\xC3\xA4\"c", 6, "\"ab\xC3\xA4\\\"c\""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(100);
        gs_buf_json_string(&buf, r->text, r->len);
        row_text(r->row, buf.data, r->json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ceiling_holds),           cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(steal_hands_the_memory_over), cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(json_strings_are_escaped),
    };
    return GS_RUN(tests);
}
