/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/base/slice.h"

static void slices_compare_by_bytes(void **state)
{
    static const struct {
        const char *row;
        struct gs_slice a, b;
        bool equal;
    } rows[] = {
        {"same", {"abc", 3}, {"abcd", 3}, true},
        {"other bytes", {"abc", 3}, {"abd", 3}, false},
        {"prefix", {"abc", 3}, {"abc", 2}, false},
        {"both empty", {NULL, 0}, {"x", 0}, true},
        {"inner NUL", {"a\0b", 3}, {"a\0c", 3}, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        row_equal(r->row, gs_slice_eq(r->a, r->b), r->equal);
    }
    assert_int_equal(gs_slice_of("abc").len, 3);
    assert_int_equal(GS_SLICE("abcd").len, 4);
}

static void steal_leaves_null(void **state)
{
    char *text = strdup("abc");
    _cleanup_free_ char *mine = gs_steal(&text);
    assert_null(text);
    assert_string_equal(mine, "abc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_compare_by_bytes),
        cmocka_unit_test(steal_leaves_null),
    };
    return GS_RUN(tests);
}
