/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/codec/quantity.h"

static const char *read_as(const char *text, enum gs_quantity_as as)
{
    static char said[3][24];
    int64_t value = 7;
    const enum gs_quantity result = gs_quantity_read(gs_slice_of(text), as, &value);
    if (result)
        assert_int_equal(value, 7);
    snprintf(said[as], sizeof(said[as]), "%lld", (long long)value);
    return result ? gs_quantity_why(result) : said[as];
}

static void quantities_are_read_as_kubernetes_does(void **state)
{
    static const struct {
        const char *row, *text, *read; /* as a whole number, rounded up, in thousandths */
    } rows[] = {
        {"empty", "", "is not a quantity"},
        {"zero", "0", "0; 0; 0"},
        {"sign alone", "-", "is not a quantity"},
        {"point alone", ".", "is not a quantity"},
        {"point first", ".5", "is not an integer; 1; 500"},
        {"minus half rounds away from zero", "-0.5", "is not an integer; -1; -500"},
        {"milli", "1500m", "is not an integer; 2; 1500"},
        {"micro rounds up to a milli", "1u", "is not an integer; 1; 1"},
        {"kilo", "2k", "2000; 2000; 2000000"},
        {"mega", "1M", "1000000; 1000000; 1000000000"},
        {"giga", "1G", "1000000000; 1000000000; 1000000000000"},
        {"tera", "1T", "1000000000000; 1000000000000; 1000000000000000"},
        {"peta", "1P", "1000000000000000; 1000000000000000; 1000000000000000000"},
        {"exa", "1E", "1000000000000000000; 1000000000000000000; is too large"},
        {"kibi", "1Ki", "1024; 1024; 1024000"},
        {"kibi with too fine a fraction", "0.0001Ki", "is not an integer; 1; 103"},
        {"mebi", "1Mi", "1048576; 1048576; 1048576000"},
        {"gibi", "16Gi", "17179869184; 17179869184; 17179869184000"},
        {"tebi", "1Ti", "1099511627776; 1099511627776; 1099511627776000"},
        {"pebi", "1Pi", "1125899906842624; 1125899906842624; 1125899906842624000"},
        {"exbi", "7Ei", "8070450532247928832; 8070450532247928832; is too large"},
        {"too many exbi", "8Ei", "is too large"},
        {"half an exbi", "0.5Ei", "576460752303423488; 576460752303423488; is too large"},
        {"capital exponent", "1E3", "1000; 1000; 1000000"},
        {"exponent with plus", "1e+3", "1000; 1000; 1000000"},
        {"exponent without digits", "1e", "is not a quantity"},
        {"exponent with a fraction", "1e1.5", "is not a quantity"},
        {"zero with a huge exponent", "0e99999999999", "0; 0; 0"},
        {"tiny exponent", "1e-99999999999", "is not an integer; 1; 1"},
        {"largest", "9223372036854775807",
         "9223372036854775807; 9223372036854775807; is too large"},
        {"above the largest", "9223372036854775808", "is too large"},
        {"rounds above the largest", "9223372036854775807.1",
         "is not an integer; is too large; is too large"},
        {"smallest", "-9223372036854775807",
         "-9223372036854775807; -9223372036854775807; is too large"},
        {"largest in milli", "9223372036854775.807",
         "is not an integer; 9223372036854776; 9223372036854775807"},
        {"above the largest in milli", "9223372036854775.808",
         "is not an integer; 9223372036854776; is too large"},
        {"kilo is small", "1K", "is not a quantity"},
        {"kibi is capital", "1ki", "is not a quantity"},
        {"byte", "1GiB", "is not a quantity"},
        {"two suffixes", "1mk", "is not a quantity"},
        {"space after", "1 ", "is not a quantity"},
        {"hexadecimal", "0x10", "is not a quantity"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char text[96];
        const char *whole = read_as(r->text, GS_QUANTITY_WHOLE);
        const char *value = read_as(r->text, GS_QUANTITY_VALUE);
        const char *milli = read_as(r->text, GS_QUANTITY_MILLI);
        snprintf(text, sizeof(text), "%s; %s; %s", whole, value, milli);
        row_text(r->row, whole == milli ? whole : text, r->read); /* all three refuse it alike */
    }
}

static void very_long_numbers_are_exact_or_refused(void **state)
{
    char text[1100];
    int64_t value = 7;
    /* 0.000…1e1000, the 1 at the thousandth place */
    memset(text, '0', sizeof(text));
    text[1] = '.';
    text[1001] = '1';
    memcpy(text + 1002, "e1000", 5);
    assert_int_equal(gs_quantity_read((struct gs_slice){text, 1007}, GS_QUANTITY_WHOLE, &value),
                     GS_QUANTITY_OK);
    assert_int_equal(value, 1);
    memset(text, '0', sizeof(text));
    assert_int_equal(gs_quantity_read((struct gs_slice){text, 1000}, GS_QUANTITY_WHOLE, &value),
                     GS_QUANTITY_OK);
    assert_int_equal(gs_quantity_read((struct gs_slice){text, 1001}, GS_QUANTITY_WHOLE, &value),
                     GS_QUANTITY_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_are_read_as_kubernetes_does),
        cmocka_unit_test(very_long_numbers_are_exact_or_refused),
    };
    return GS_RUN(tests);
}
