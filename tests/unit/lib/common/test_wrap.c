/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wrap.h"
#include "rows.h"

static void names_keep_both_ends(void **state)
{
    static const struct {
        const char *row, *name;
        size_t cap;
        const char *shown;
    } rows[] = {
        {"none", "", 10, ""},
        {"short", "web-0", 10, "web-0"},
        {"it just fits", "abcdefghij", 10, "abcdefghij"},
        {"one too many", "abcdefghijk", 10, "abcde..ijk"},
        {"a hash", "triton-shared-7d9f8b6c5d-x7k2p", 20, "triton-shar..d-x7k2p"},
        {"the least room", "triton-shared-7d9f8b6c5d-x7k2p", 7, "tri..2p"},
        {"a character at the cut", "abcd\303\274fghij\303\274", 10, "abcd..j\303\274"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char text[64];
        wrap_shorten(r->name, text, r->cap + 1);
        row_text(r->row, text, r->shown);
    }
}

static void words_stay_whole(void **state)
{
    static const struct {
        const char *row, *text;
        int column, width;
        const char *lines;
    } rows[] = {
        {"nothing", "", 2, 10, "\n"},
        {"one line", "ab cd", 0, 10, "ab cd\n"},
        {"to the last column", "abcde fghi", 0, 10, "abcde fghi\n"},
        {"one more", "abcde fghij", 0, 10, "abcde\nfghij\n"},
        {"indented", "abcd efgh ij", 4, 10, "    abcd\n    efgh\n    ij\n"},
        {"a word without end", "ab 0123456789 cd", 0, 5, "ab\n0123456789\ncd\n"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char *lines = NULL;
        size_t len;
        FILE *out = open_memstream(&lines, &len);
        assert_non_null(out);
        wrap_words(out, 0, r->column, r->width, r->text, strlen(r->text));
        fclose(out);
        row_text(r->row, lines, r->lines);
        free(lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_keep_both_ends),
        cmocka_unit_test(words_stay_whole),
    };
    return GS_RUN(tests);
}
