/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"

static void text_by_a_format_has_any_length(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    assert_string_equal(gs_arena_printf(&arena, "%s=%u", "a", 7), "a=7");
    assert_string_equal(gs_arena_printf(&arena, "%s", ""), "");
    const char *wide = gs_arena_printf(&arena, "%5000d", 1);
    assert_int_equal(strlen(wide), 5000);
    assert_int_equal(wide[4999], '1');
}

static void absurd_sizes_give_null(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    assert_null(gs_arena_alloc(&arena, SIZE_MAX));
    assert_null(gs_arena_alloc(&arena, SIZE_MAX - 8));
    assert_null(gs_arena_calloc(&arena, SIZE_MAX / 2, 3));
    assert_null(gs_arena_calloc(&arena, SIZE_MAX / 8, 8));
    assert_null(gs_arena_calloc(&arena, SIZE_MAX / 16 + 2, 16)); /* would wrap to 16 */
    assert_null(gs_arena_strndup(&arena, "abc", SIZE_MAX));
    assert_null(arena.head);
    assert_non_null(gs_arena_calloc(&arena, 3, 5));
    assert_non_null(gs_arena_calloc(&arena, 0, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_by_a_format_has_any_length),
        cmocka_unit_test(absurd_sizes_give_null),
    };
    return GS_RUN(tests);
}
