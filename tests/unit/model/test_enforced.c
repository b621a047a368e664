/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/model/enforced.h"

static void every_word_is_read_back(void **state)
{
    for (int i = 0; i < GS_ENFORCED_COUNT; i++) {
        enum gs_enforced word = (enum gs_enforced)i;
        const char *reason = gs_enforced_reason(word);
        row_equal(reason, gs_enforced_parse(gs_enforced_name(word), reason), word);
        row_equal(reason, reason[0] == '\0', i < GS_ENFORCED_NOT_ON);
    }
}

static void what_others_say_is_understood(void **state)
{
    static const struct {
        const char *row, *name, *reason;
        enum gs_enforced enforced;
    } rows[] = {
        {"nothing", "", "", GS_ENFORCED_UNKNOWN},
        {"a reason alone", "", "limits are not switched on (--enforce)", GS_ENFORCED_UNKNOWN},
        {"a later word", "mps", "", GS_ENFORCED_UNKNOWN},
        {"mps", "mps (per process, cooperative)", "", GS_ENFORCED_MPS},
        {"mig", "mig", "", GS_ENFORCED_MIG},
        {"hook", "hook (cooperative)", "", GS_ENFORCED_HOOK},
        {"another case", "DMEM", "", GS_ENFORCED_UNKNOWN},
        {"a later reason", "none", "the moon is full", GS_ENFORCED_OTHER},
        {"none for no reason", "none", "", GS_ENFORCED_OTHER},
        {"dmem whatever the reason", "dmem", "the moon is full", GS_ENFORCED_DMEM},
    };
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, gs_enforced_parse(r->name, r->reason), r->enforced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_is_read_back),
        cmocka_unit_test(what_others_say_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
