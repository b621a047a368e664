/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/utf8.h"

static void width_of_sequences(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        size_t len;
        size_t width;
    } rows[] = {
        {"ASCII", "a", 1, 1},
        {"first of two bytes", "\xC2\x80", 2, 2},
        {"last of two bytes", "\xDF\xBF", 2, 2},
        {"first of three", "\xE0\xA0\x80", 3, 3},
        {"last before the surrogates", "\xED\x9F\xBF", 3, 3},
        {"first after the surrogates", "\xEE\x80\x80", 3, 3},
        {"last of three", "\xEF\xBF\xBF", 3, 3},
        {"first of four", "\xF0\x90\x80\x80", 4, 4},
        {"U+10FFFF", "\xF4\x8F\xBF\xBF", 4, 4},
        {"overlong two", "\xC0\x80", 2, 0},
        {"overlong three", "\xE0\x9F\xBF", 3, 0},
        {"overlong four", "\xF0\x8F\xBF\xBF", 4, 0},
        {"first surrogate", "\xED\xA0\x80", 3, 0},
        {"last surrogate", "\xED\xBF\xBF", 3, 0},
        {"above U+10FFFF", "\xF4\x90\x80\x80", 4, 0},
        {"never used", "\xFF\x80\x80\x80", 4, 0},
        {"three cut", "\xE2\x82\xAC", 2, 0},
        {"four cut", "\xF0\x9F\x98\x80", 3, 0},
        {"second is no tail",
         "\xC2"
         "a",
         2, 0},
        {"third is no tail",
         "\xE2\x82"
         "a",
         3, 0},
        {"tail above the range", "\xC2\xC0", 2, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        row_equal(r->row, gs_utf8_width(r->text, r->len), r->width);
    }
}

static void foreign_words_are_calmed(void **state)
{
    static const struct {
        const char *row, *text, *calm;
    } rows[] = {
        {"letters of all widths", "é€😀", "é€😀"},
        {"lines and tabs", "a\r\n\tb", "a   b"},
        {"a colour", "\x1b[31mred", "?[31mred"},
        {"backspace and DEL", "a\b\x7f", "a??"},
        {"first and last of C1", "\xC2\x80\xC2\x9F", "????"},
        {"first after C1", "\xC2\xA0", "\xC2\xA0"},
        {"right to left override",
         "a\xE2\x80\xAE"
         "b",
         "a???b"},
        {"isolate", "\xE2\x81\xA6\xE2\x81\xA9", "??????"},
        {"line and paragraph", "\xE2\x80\xA8\xE2\x80\xA9", "??????"},
        {"marks of direction", "\xE2\x80\x8E\xE2\x80\x8F\xD8\x9C", "????????"},
        {"tags", "\xF3\xA0\x80\x80\xF3\xA0\xBF\xBF", "????????"},
        {"beside these", "\xE2\x80\x8D\xE2\x80\xAF\xE2\x81\xA5\xD8\x9D\xF3\xA1\x80\x80",
         "\xE2\x80\x8D\xE2\x80\xAF\xE2\x81\xA5\xD8\x9D\xF3\xA1\x80\x80"},
        {"C1 as one byte",
         "a\x9b"
         "31m",
         "a?31m"},
        {"cut short", "a\xE2\x82", "a??"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char text[64];
        snprintf(text, sizeof(text), "%s", r->text);
        gs_utf8_calm(text);
        row_text(r->row, text, r->calm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_words_are_calmed),
        cmocka_unit_test(width_of_sequences),
    };
    return GS_RUN(tests);
}
