/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <errno.h>

#include "gpushare/base/error.h"

static void nobody_need_care(void **state)
{
    assert_int_equal(gs_fail(NULL, GS_EINVAL, "x"), -1);
    assert_int_equal(gs_fail_nomem(NULL), -1);
    assert_int_equal(gs_fail_errno(NULL, GS_EIO, ENOENT, "x"), -1);
    assert_int_equal(gs_error_prefix(NULL, "x"), -1);
}

static void errno_is_told_in_words(void **state)
{
    struct gs_error err = {0};
    assert_int_equal(gs_fail_errno(&err, GS_EIO, ENOENT, "cannot open %s", "/x"), -1);
    assert_int_equal(err.code, GS_EIO);
    assert_string_equal(err.msg, "cannot open /x: No such file or directory");
    gs_error_clear(&err);
    assert_int_equal(err.code, GS_OK);
    assert_string_equal(err.msg, "");
    assert_int_equal(gs_fail_nomem(&err), -1);
    assert_int_equal(err.code, GS_ENOMEM);
    assert_true(err.msg[0]);
}

static void prefix_goes_before_the_words(void **state)
{
    struct gs_error err = {0};
    gs_error_prefix(&err, "context");
    assert_string_equal(err.msg, ""); /* no failure, nothing to prefix */
    gs_fail(&err, GS_EPROTO, "no colon");
    assert_int_equal(gs_error_prefix(&err, "line %d", 7), -1);
    assert_string_equal(err.msg, "line 7: no colon");
    assert_int_equal(err.code, GS_EPROTO);
}

static void a_cut_shows_and_leaves_characters_whole(void **state)
{
    enum { ROOM = sizeof(((struct gs_error *)0)->msg) - 1 };
    static const struct {
        const char *row;
        const char *character;
    } rows[] = {{"one byte", "a"}, {"two bytes", "é"}, {"three", "漢"}, {"four", "😀"}};
    GS_FOR_EACH_ROW (r, rows) {
        size_t width = strlen(r->character);
        for (size_t before = 0; before < 8; before++) {
            char text[600] = "";
            struct gs_error err = {0};
            memset(text, '.', before);
            for (size_t at = before; at + width < sizeof(text) - 1; at += width)
                memcpy(text + at, r->character, width);
            gs_fail(&err, GS_EINVAL, "%s", text);
            size_t len = strlen(err.msg);
            print_message("%s after %zu: %zu\n", r->row, before, len);
            assert_in_range(len, ROOM - 3, ROOM);
            assert_string_equal(err.msg + len - 3, "…");
            assert_int_equal((len - 3 - before) % width, 0);
            assert_memory_equal(err.msg, text, len - 3);
        }
    }
    struct gs_error err = {0};
    gs_fail(&err, GS_EINVAL, "%*s", ROOM, "x");
    assert_int_equal(err.msg[ROOM - 1], 'x'); /* it fits: nothing is cut */
    gs_error_prefix(&err, "p");
    assert_string_equal(err.msg + ROOM - 3, "…");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_need_care),
        cmocka_unit_test(errno_is_told_in_words),
        cmocka_unit_test(prefix_goes_before_the_words),
        cmocka_unit_test(a_cut_shows_and_leaves_characters_whole),
    };
    return GS_RUN(tests);
}
