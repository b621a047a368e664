/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/arena.h"
#include "gpushare/base/cleanup.h"

static void memory_is_zeroed_aligned_and_separate(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    static const size_t sizes[] = {1, 0, 3, 16, 1000, 5, 5000, 0, 70000, 1};
    unsigned char *mem[GS_COUNT_OF(sizes)];
    for (size_t i = 0; i < GS_COUNT_OF(sizes); i++) {
        mem[i] = gs_arena_alloc(&arena, sizes[i]);
        assert_non_null(mem[i]);
        assert_int_equal((uintptr_t)mem[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(mem[i][k], 0);
        memset(mem[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < GS_COUNT_OF(sizes); i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(mem[i][k], i + 1);
    }
}

static void memory_is_zeroed_again_after_reset(void **state)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    memset(gs_arena_alloc(&arena, 10), 0xFF, 10);
    char *large = gs_arena_alloc(&arena, 9000);
    memset(large, 0xFF, 9000);
    gs_arena_reset(&arena);
    char *again = gs_arena_alloc(&arena, 9000);
    assert_ptr_equal(again, large); /* the largest chunk was kept */
    for (int i = 0; i < 9000; i++)
        assert_int_equal(again[i], 0);
}

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
        cmocka_unit_test(memory_is_zeroed_aligned_and_separate),
        cmocka_unit_test(memory_is_zeroed_again_after_reset),
        cmocka_unit_test(text_by_a_format_has_any_length),
        cmocka_unit_test(absurd_sizes_give_null),
    };
    return GS_RUN(tests);
}
