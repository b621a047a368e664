/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/model/enforced.h"

static void every_word_is_read_back(void **state)
{
    for (int i = 0; i < GS_ENFORCED_COUNT; i++) {
        const enum gs_enforced word = (enum gs_enforced)i;
        const char *row = gs_enforced_why(word)[0] ? gs_enforced_why(word) : gs_enforced_by(word);
        row_equal(row, gs_enforced_parse(gs_enforced_by(word), gs_enforced_why(word)), word);
        row_equal(row, gs_enforced_lacks(word), gs_enforced_why(word)[0] != '\0');
        row_equal(row, gs_enforced_lacks(word), gs_enforced_reason(word)[0] != '\0');
        row_equal(row, gs_enforced_lacks(word), strcmp(gs_enforced_name(word), "none") == 0);
        row_equal(row, strpbrk(gs_enforced_why(word), " \"\\(") != NULL, false);
        row_equal(row, gs_enforced_holds(word) && gs_enforced_lacks(word), false);
    }
}

static void what_others_say_is_understood(void **state)
{
    static const struct {
        const char *row, *by, *why;
        enum gs_enforced enforced;
    } rows[] = {
        {"nothing", "", "", GS_ENFORCED_UNKNOWN},
        {"a reason alone", "", "not-enabled", GS_ENFORCED_UNKNOWN},
        {"a reason in place of the word", "not-enabled", "", GS_ENFORCED_UNKNOWN},
        {"a later word", "magic", "", GS_ENFORCED_UNKNOWN},
        {"mps", "mps", "", GS_ENFORCED_MPS},
        {"mig", "mig", "", GS_ENFORCED_MIG},
        {"hook", "hook", "", GS_ENFORCED_HOOK},
        {"another case", "DMEM", "", GS_ENFORCED_UNKNOWN},
        {"a later reason", "none", "the moon is full", GS_ENFORCED_OTHER},
        {"none for no reason", "none", "", GS_ENFORCED_OTHER},
        {"none, and what would", "none", "dmem", GS_ENFORCED_OTHER},
        {"dmem whatever the reason", "dmem", "not-enabled", GS_ENFORCED_DMEM},
    };
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, gs_enforced_parse(r->by, r->why), r->enforced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_is_read_back),
        cmocka_unit_test(what_others_say_is_understood),
    };
    return GS_RUN(tests);
}
