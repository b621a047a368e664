/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "kube/lines.h"

struct record {
    char text[256];
    int stop_at; /* the call that answers -1; 0: none */
    int calls;
};

static int note(void *ctx, const char *line, size_t len, struct gs_error *err)
{
    struct record *record = ctx;
    size_t used = strlen(record->text);
    snprintf(record->text + used, sizeof(record->text) - used, "[%.*s]", (int)len, line);
    return ++record->calls == record->stop_at ? gs_fail(err, GS_ECANCELED, "enough") : 0;
}

enum { LONGEST = 8 };

static const struct row {
    const char *row;
    const char *text;
    const char *lines; /* what is handed on */
    enum gs_code code;
} rows[] = {
    {"nothing", "", "", GS_OK},
    {"two lines", "ab\ncd\n", "[ab][cd]", GS_OK},
    {"a rest", "ab\ncd", "[ab]", GS_OK},
    {"carriage returns", "ab\r\n\r\ncd\r\n", "[ab][cd]", GS_OK},
    {"the longest", "12345678\n", "[12345678]", GS_OK},
    {"one too long", "ab\n123456789\n", "[ab]", GS_ETOOBIG},
    {"too long without an end", "123456789", "", GS_ETOOBIG},
};

/* However the bytes are cut into pieces, the lines are the same. */
static void lines_do_not_depend_on_how_bytes_arrive(void **state)
{
    GS_FOR_EACH_ROW (r, rows) {
        size_t len = strlen(r->text);
        for (size_t piece = 1; piece <= len + 1; piece++) {
            struct gs_lines lines = {.rest = GS_BUF(LONGEST)};
            struct record record = {0};
            struct gs_error err = {0};
            int result = 0;
            for (size_t at = 0; at < len && result == 0; at += piece) {
                size_t part = len - at < piece ? len - at : piece;
                char *copy = malloc(part); /* so that a read past the piece is seen */
                assert_non_null(copy);
                memcpy(copy, r->text + at, part);
                result = gs_lines_feed(&lines, copy, part, note, &record, &err);
                free(copy);
            }
            row_text(r->row, record.text, r->lines);
            row_equal(r->row, result, r->code == GS_OK ? 0 : -1);
            row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
            gs_buf_release(&lines.rest);
        }
    }
}

static void a_receiver_can_stop(void **state)
{
    struct gs_lines lines = {.rest = GS_BUF(LONGEST)};
    struct record record = {.stop_at = 2};
    struct gs_error err = {0};
    assert_int_equal(gs_lines_feed(&lines, "a\nb\nc\n", 6, note, &record, &err), -1);
    assert_int_equal(err.code, GS_ECANCELED);
    assert_string_equal(record.text, "[a][b]");
    gs_buf_release(&lines.rest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_do_not_depend_on_how_bytes_arrive),
        cmocka_unit_test(a_receiver_can_stop),
    };
    return GS_RUN(tests);
}
