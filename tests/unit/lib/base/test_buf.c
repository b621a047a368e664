/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"

static void appends_follow_each_other(void **state)
{
    _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(1000);
    assert_null(buf.data);
    gs_buf_puts(&buf, "ab");
    gs_buf_putc(&buf, 'c');
    gs_buf_append(&buf, "d\0e", 3);
    gs_buf_printf(&buf, "%d%s", 7, "x");
    assert_int_equal(buf.len, 8);
    assert_memory_equal(buf.data, "abcd\0e7x", 9); /* the final NUL included */
    assert_int_equal(gs_buf_failed(&buf), 0);
}

static void the_ceiling_holds(void **state)
{
    static const struct {
        const char *row;
        size_t max;
        const char *first, *second;
        int failed;
        const char *left;
    } rows[] = {
        {"exactly full", 4, "ab", "cd", 0, "abcd"},
        {"one too many", 3, "ab", "cd", GS_ETOOBIG, "ab"},
        {"nothing allowed, nothing written", 0, "", "", 0, ""},
        {"nothing allowed, one byte", 0, "", "x", GS_ETOOBIG, ""},
        {"unlimited", SIZE_MAX, "ab", "cd", 0, "abcd"},
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

static void a_failure_stays_until_reset(void **state)
{
    _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(3);
    gs_buf_puts(&buf, "abc");
    gs_buf_putc(&buf, 'd');
    gs_buf_consume(&buf, 3);
    gs_buf_putc(&buf, 'e'); /* there would be room again */
    assert_int_equal(gs_buf_failed(&buf), GS_ETOOBIG);
    assert_string_equal(buf.data, "");
    gs_buf_reset(&buf);
    gs_buf_putc(&buf, 'f');
    assert_int_equal(gs_buf_failed(&buf), 0);
    assert_string_equal(buf.data, "f");
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

static void reserve_then_advance(void **state)
{
    _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(100);
    char *to = gs_buf_reserve(&buf, 5);
    assert_non_null(to);
    memcpy(to, "hello", 5);
    gs_buf_advance(&buf, 4);
    assert_string_equal(buf.data, "hell");
}

static void consume_drops_the_front(void **state)
{
    static const struct {
        const char *row;
        size_t count;
        const char *left;
    } rows[] = {
        {"none", 0, "abcd"}, {"some", 3, "d"}, {"all", 4, ""}, {"more than all", SIZE_MAX, ""}};
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

static void printf_of_any_length(void **state)
{
    char text[1000];
    static const size_t lengths[] = {0, 1, 254, 255, 256, 257, 999};
    GS_FOR_EACH_ROW (r, lengths) {
        memset(text, 'x', sizeof(text));
        text[*r] = '\0';
        _cleanup_(gs_buf_release) struct gs_buf buf = GS_BUF(1002);
        gs_buf_printf(&buf, "<%s>", text);
        assert_int_equal(buf.len, *r + 2);
        assert_int_equal(buf.data[0], '<');
        assert_string_equal(buf.data + *r + 1, ">");
    }
    struct gs_buf small = GS_BUF(300);
    gs_buf_printf(&small, "%s", text);
    assert_int_equal(gs_buf_failed(&small), GS_ETOOBIG);
    gs_buf_release(&small);
}

static void json_strings_are_escaped(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        size_t len;
        const char *json;
    } rows[] = {
        {"empty", "", 0, "\"\""},
        {"plain", "a/b'c", 5, "\"a/b'c\""},
        {"quote and backslash", "\"\\", 2, "\"\\\"\\\\\""},
        {"short escapes", "\n\r\t", 3, "\"\\n\\r\\t\""},
        {"NUL", "a\0b", 3, "\"a\\u0000b\""},
        {"other controls", "\x01\x1f\x7f", 3, "\"\\u0001\\u001f\\u007f\""},
        {"two bytes", "\xC3\xA4", 2, "\"\xC3\xA4\""},
        {"four bytes", "\xF0\x9F\x98\x80", 4, "\"\xF0\x9F\x98\x80\""},
        {"C1", "\xC2\x80\xC2\x9B\xC2\x9F", 6, "\"\\u0080\\u009b\\u009f\""},
        {"first after C1", "\xC2\xA0", 2, "\"\xC2\xA0\""},
        {"turns of direction", "a\xE2\x80\xAE\xE2\x81\xA6z", 8, "\"a\\u202e\\u2066z\""},
        {"ends of lines", "\xE2\x80\xA8\xE2\x80\xA9", 6, "\"\\u2028\\u2029\""},
        {"marks", "\xE2\x80\x8E\xD8\x9C", 5, "\"\\u200e\\u061c\""},
        {"a tag", "\xF3\xA0\x81\x81", 4, "\"\\udb40\\udc41\""},
        {"cut short", "x\xE2\x82", 3, "\"x\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"lone tail", "\x80z", 2, "\"\xEF\xBF\xBDz\""},
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
        cmocka_unit_test(appends_follow_each_other),   cmocka_unit_test(the_ceiling_holds),
        cmocka_unit_test(a_failure_stays_until_reset), cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(steal_hands_the_memory_over), cmocka_unit_test(reserve_then_advance),
        cmocka_unit_test(consume_drops_the_front),     cmocka_unit_test(printf_of_any_length),
        cmocka_unit_test(json_strings_are_escaped),
    };
    return GS_RUN(tests);
}
