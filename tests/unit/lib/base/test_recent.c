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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_seen_lately_is_known),
    };
    return GS_RUN(tests);
}
