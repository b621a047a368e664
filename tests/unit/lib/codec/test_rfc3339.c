/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/rfc3339.h"

#define S 1000000000LL

static void times_are_read_in_every_form(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        bool ok;
        int64_t ns;
    } rows[] = {
        {"epoch", "1970-01-01T00:00:00Z", true, 0},
        {"second", "2026-11-21T10:00:00Z", true, 1795255200 * S},
        {"micro", "2026-11-21T10:00:00.000001Z", true, 1795255200 * S + 1000},
        {"nano", "1970-01-01T00:00:00.123456789Z", true, 123456789},
        {"one digit", "1970-01-01T00:00:00.5Z", true, 500000000},
        {"lower case", "1970-01-01t00:00:01z", true, S},
        {"east", "1970-01-01T05:30:00+05:30", true, 0},
        {"west", "1969-12-31T23:59:00-00:01", true, 0},
        {"before the epoch", "1969-12-31T23:59:59.5Z", true, -500000000},
        {"leap day", "2024-02-29T00:00:00Z", true, 1709164800 * S},
        {"leap day of a century", "2000-02-29T00:00:00Z", true, 951782400 * S},
        {"no leap day", "2023-02-29T00:00:00Z", false, 0},
        {"no leap day of a century", "2100-02-29T00:00:00Z", false, 0},
        {"leap second", "2016-12-31T23:59:60Z", true, 1483228800 * S},
        {"last", "2262-04-11T23:47:16.854775807Z", true, INT64_MAX},
        {"after the last", "2262-04-11T23:47:16.854775808Z", false, 0},
        {"year one", "0001-01-01T00:00:00Z", false, 0},
        {"year 9999", "9999-12-31T23:59:59Z", false, 0},
        {"empty", "", false, 0},
        {"date only", "2026-11-21", false, 0},
        {"no zone", "2026-11-21T10:00:00", false, 0},
        {"space", "2026-11-21 10:00:00Z", false, 0},
        {"month 0", "2026-00-01T00:00:00Z", false, 0},
        {"month 13", "2026-13-01T00:00:00Z", false, 0},
        {"day 0", "2026-01-00T00:00:00Z", false, 0},
        {"day 32", "2026-01-32T00:00:00Z", false, 0},
        {"June 31", "2026-06-31T00:00:00Z", false, 0},
        {"hour 24", "2026-01-01T24:00:00Z", false, 0},
        {"minute 60", "2026-01-01T00:60:00Z", false, 0},
        {"second 61", "2026-01-01T00:00:61Z", false, 0},
        {"short year", "26-01-01T00:00:00Z", false, 0},
        {"point without digits", "2026-01-01T00:00:00.Z", false, 0},
        {"ten digits", "2026-01-01T00:00:00.1234567890Z", false, 0},
        {"zone without a colon", "2026-01-01T00:00:00+0100", false, 0},
        {"zone of 24 hours", "2026-01-01T00:00:00+24:00", false, 0},
        {"more", "2026-01-01T00:00:00Z ", false, 0},
        {"sign in a number", "2026-01--1T00:00:00Z", false, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        int64_t ns = 77;
        row_equal(r->row, gs_rfc3339_parse(gs_slice_of(r->text), &ns), r->ok);
        row_equal(r->row, ns, r->ok ? r->ns : 77);
    }
}

static void times_are_written_in_utc_and_cut(void **state)
{
    static const struct {
        const char *row;
        int64_t ns;
        int digits;
        const char *text;
    } rows[] = {
        {"epoch", 0, 0, "1970-01-01T00:00:00Z"},
        {"seconds are cut", 999999999, 0, "1970-01-01T00:00:00Z"},
        {"milli", 1999999, 3, "1970-01-01T00:00:00.001Z"},
        {"micro", 1795255200 * S + 1999, 6, "2026-11-21T10:00:00.000001Z"},
        {"nano", 123456789, 9, "1970-01-01T00:00:00.123456789Z"},
        {"before the epoch", -1, 6, "1969-12-31T23:59:59.999999Z"},
        {"last", INT64_MAX, 9, "2262-04-11T23:47:16.854775807Z"},
        {"first", INT64_MIN, 9, "1677-09-21T00:12:43.145224192Z"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char text[GS_RFC3339_BYTES];
        row_text(r->row, gs_rfc3339_format(r->ns, r->digits, text), r->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_in_every_form),
        cmocka_unit_test(times_are_written_in_utc_and_cut),
    };
    return GS_RUN(tests);
}
