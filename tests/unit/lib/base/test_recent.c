/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/recent.h"

static const char *text(uint32_t i)
{
    static char buffer[16];
    snprintf(buffer, sizeof(buffer), "u%u", i);
    return buffer;
}

/* Hashes are seeded per process. Nine of 256 in one of 512 sets: one run of a thousand million. */
static void what_was_seen_lately_is_known(void **state)
{
    struct gs_recent recent = {0};
    enum { ALL = 20000, LATELY = 256 };
    assert_false(gs_recent_has(&recent, text(0)));
    for (uint32_t i = 0; i < ALL; i++) {
        gs_recent_add(&recent, text(i));
        assert_true(gs_recent_has(&recent, text(i)));
    }
    for (uint32_t i = ALL - LATELY; i < ALL; i++)
        assert_true(gs_recent_has(&recent, text(i)));
    uint32_t known = 0;
    for (uint32_t i = 0; i < ALL; i++)
        known += gs_recent_has(&recent, text(i));
    assert_in_range(known, GS_RECENT_MAX / 2, GS_RECENT_MAX);
    gs_recent_release(&recent);
}

static void what_is_removed_makes_room_for_another(void **state)
{
    struct gs_recent recent = {0};
    for (uint32_t i = 0; i < 512; i++)
        gs_recent_add(&recent, text(i));
    uint32_t before = 0, after = 0;
    for (uint32_t i = 0; i < 256; i++)
        before += gs_recent_has(&recent, text(i));
    for (uint32_t i = 1000; i < 5000; i++) {
        gs_recent_add(&recent, text(i));
        gs_recent_add(&recent, text(i)); /* once is enough */
        gs_recent_remove(&recent, text(i));
        gs_recent_remove(&recent, text(i));
        assert_false(gs_recent_has(&recent, text(i)));
    }
    for (uint32_t i = 0; i < 256; i++)
        after += gs_recent_has(&recent, text(i));
    assert_in_range(after, before - 8, before); /* only where a set was full */
    gs_recent_release(&recent);
    assert_false(gs_recent_has(&recent, text(511)));
    gs_recent_release(&recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_seen_lately_is_known),
        cmocka_unit_test(what_is_removed_makes_room_for_another),
    };
    return GS_RUN(tests);
}
