/* SPDX-License-Identifier: Apache-2.0 */
#include "codec_fixture.h"

#include "gpushare/codec/rfc3339.h"

static void times_are_read_in_every_form_and_written_in_utc(void **state)
{
    static const struct {
        const char *row, *text, *again; /* again NULL: refused */
    } rows[] = {
        {"one digit", "1970-01-01T00:00:00.5Z", "1970-01-01T00:00:00.500000000Z"},
        {"lower case", "1970-01-01t00:00:01z", "1970-01-01T00:00:01.000000000Z"},
        {"east", "1970-01-01T05:30:00+05:30", "1970-01-01T00:00:00.000000000Z"},
        {"west", "1969-12-31T23:59:00-00:01", "1970-01-01T00:00:00.000000000Z"},
        {"before the epoch", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000000Z"},
        {"leap day", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000000Z"},
        {"no leap day", "2023-02-29T00:00:00Z"},
        {"no leap day of a century", "2100-02-29T00:00:00Z"},
        {"leap second", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000000Z"},
        {"last", "2262-04-11T23:47:16.854775807Z", "2262-04-11T23:47:16.854775807Z"},
        {"after the last", "2262-04-11T23:47:16.854775808Z"},
        {"year one", "0001-01-01T00:00:00Z"},
        {"year 9999", "9999-12-31T23:59:59Z"},
        {"no zone", "2026-11-21T10:00:00"},
        {"month 13", "2026-13-01T00:00:00Z"},
        {"day 32", "2026-01-32T00:00:00Z"},
        {"June 31", "2026-06-31T00:00:00Z"},
        {"hour 24", "2026-01-01T24:00:00Z"},
        {"minute 60", "2026-01-01T00:60:00Z"},
        {"second 61", "2026-01-01T00:00:61Z"},
        {"point without digits", "2026-01-01T00:00:00.Z"},
        {"ten digits", "2026-01-01T00:00:00.1234567890Z"},
        {"zone without a colon", "2026-01-01T00:00:00+0100"},
        {"zone of 24 hours", "2026-01-01T00:00:00+24:00"},
        {"zone of 60 minutes", "2026-01-01T00:00:00+00:60"},
        {"more", "2026-01-01T00:00:00Z "},
        {"sign in a number", "2026-01--1T00:00:00Z"},
    };
    int64_t ns;
    char text[GS_RFC3339_BYTES];
    GS_FOR_EACH_ROW (r, rows) {
        ns = 77;
        row_equal(r->row, gs_rfc3339_parse(gs_slice_of(r->text), &ns), r->again != NULL);
        if (r->again)
            row_text(r->row, gs_rfc3339_format(ns, 9, text), r->again);
        else
            row_equal(r->row, ns, 77);
    }
    assert_true(gs_rfc3339_parse(gs_slice_of("2026-11-21T10:00:00Z"), &ns));
    assert_int_equal(ns, 1795255200000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_in_every_form_and_written_in_utc),
    };
    return GS_RUN(tests);
}
