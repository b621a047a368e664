/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy_kinds.h"

#include "rows.h"

static struct gs_kinds kinds;

static int empty(void **state)
{
    kinds = (struct gs_kinds){.lock = PTHREAD_MUTEX_INITIALIZER};
    return 0;
}

static uint64_t number_of(const struct gs_ask *ask)
{
    uint32_t row = UINT32_MAX;
    const uint64_t number = gs_kinds_find(&kinds, false, ask, &row);
    assert_in_range(row, 0, GS_KINDS_MAX - 1);
    assert_int_equal(kinds.rows[row].number, number);
    return number;
}

/* One that a namespace makes up. */
static uint64_t made_up(const char *ns, uint32_t units)
{
    return number_of(&(struct gs_ask){.units = units, .gpu_count = 1, .ns = ns});
}

static void kinds_that_differ_in_anything_are_two(void **state)
{
    static const struct {
        const char *row;
        struct gs_ask ask;
    } rows[] = {
        {"plain", {.units = 8, .gpu_count = 1}},
        {"units", {.units = 9, .gpu_count = 1}},
        {"GPUs", {.units = 8, .gpu_count = 2}},
        {"compute", {.units = 8, .gpu_count = 1, .cores_pct = 1}},
        {"CPU", {.units = 8, .gpu_count = 1, .cpu_milli = 1}},
        {"model", {.units = 8, .gpu_count = 1, .model = GS_SLICE("ab")}},
        {"another model", {.units = 8, .gpu_count = 1, .model = GS_SLICE("ac")}},
        {"denied", {.units = 8, .gpu_count = 1, .model_deny = GS_SLICE("ab")}},
        {"UUID", {.units = 8, .gpu_count = 1, .uuid = GS_SLICE("ab")}},
        {"UUID denied", {.units = 8, .gpu_count = 1, .uuid_deny = GS_SLICE("ab")}},
        {"two lists", {.units = 8, .gpu_count = 1, .model = GS_SLICE("a"), .uuid = GS_SLICE("b")}},
        {"the other way",
         {.units = 8, .gpu_count = 1, .model = GS_SLICE("b"), .uuid = GS_SLICE("a")}},
    };
    uint64_t numbers[GS_COUNT_OF(rows)];
    GS_FOR_EACH_ROW (r, rows) {
        const size_t at = (size_t)(r - rows);
        numbers[at] = number_of(&r->ask);
        for (size_t i = 0; i < at; i++)
            row_true(r->row, numbers[i] != numbers[at]);
    }
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, number_of(&r->ask), numbers[r - rows]);
}

static void the_ebb_makes_kinds_too(void **state)
{
    const struct gs_ask ask = {.units = 8, .gpu_count = 1};
    uint32_t row;
    const uint64_t one = gs_kinds_find(&kinds, false, &ask, &row);
    const uint64_t two = gs_kinds_find(&kinds, true, &ask, &row);
    assert_true(one != two);
}

static void no_namespace_pushes_another_below_its_share(void **state)
{
    static const struct {
        const char *row;
        uint32_t loud;  /* namespaces that make up kind after kind */
        uint32_t quiet; /* kinds of one that does not */
    } rows[] = {
        {"one", 1, GS_KINDS_MAX / 2},
        {"three", 3, GS_KINDS_MAX / 4},
        {"seven", 7, GS_KINDS_MAX / 8},
        {"as many as there are rows", GS_KINDS_MAX - 1, 1},
    };
    GS_FOR_EACH_ROW (r, rows) {
        uint64_t numbers[GS_KINDS_MAX];
        empty(state);
        for (uint32_t i = 0; i < r->quiet; i++)
            numbers[i] = made_up("quiet", 1 + i);
        for (uint32_t i = 0; i < 100 * GS_KINDS_MAX; i++) {
            char ns[16];
            snprintf(ns, sizeof(ns), "loud-%u", i % r->loud);
            made_up(ns, 1000 + i);
        }
        for (uint32_t i = 0; i < r->quiet; i++)
            row_equal(r->row, made_up("quiet", 1 + i), numbers[i]);
    }
}

/* Who comes later gets its share as well. */
static void a_newcomer_finds_room(void **state)
{
    uint64_t numbers[GS_KINDS_MAX / 2];
    for (uint32_t i = 0; i < 2 * GS_KINDS_MAX; i++)
        made_up("loud", 1000 + i);
    for (uint32_t i = 0; i < GS_COUNT_OF(numbers); i++) {
        numbers[i] = made_up("late", 1 + i);
        made_up("loud", 5000 + i);
    }
    for (uint32_t i = 0; i < GS_COUNT_OF(numbers); i++)
        assert_int_equal(made_up("late", 1 + i), numbers[i]);
}

static void of_ones_own_kinds_the_oldest_goes(void **state)
{
    const uint64_t first = made_up("a", 1), second = made_up("a", 2);
    for (uint32_t i = 2; i < GS_KINDS_MAX; i++)
        made_up("a", 1 + i);
    assert_int_equal(made_up("a", 1), first);
    made_up("a", 1000);
    assert_int_equal(made_up("a", 1), first);
    assert_true(made_up("a", 2) != second);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, empty)
    const struct CMUnitTest tests[] = {
        T(kinds_that_differ_in_anything_are_two),       T(the_ebb_makes_kinds_too),
        T(no_namespace_pushes_another_below_its_share), T(a_newcomer_finds_room),
        T(of_ones_own_kinds_the_oldest_goes),
    };
    return GS_RUN(tests);
}
