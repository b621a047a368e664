/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/codec/quantity.h"

#define BAD   GS_QUANTITY_MALFORMED
#define PART  GS_QUANTITY_FRACTION
#define LARGE GS_QUANTITY_TOO_LARGE

static void quantities_are_read_as_kubernetes_does(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        enum gs_quantity whole;
        int64_t value; /* rounded up */
        enum gs_quantity as_milli;
        int64_t milli;
    } rows[] = {
        {"empty", "", BAD, 0, BAD, 0},
        {"zero", "0", 0, 0, 0, 0},
        {"minus zero", "-0", 0, 0, 0, 0},
        {"zeros", "000", 0, 0, 0, 0},
        {"one", "1", 0, 1, 0, 1000},
        {"plus", "+1", 0, 1, 0, 1000},
        {"minus", "-1", 0, -1, 0, -1000},
        {"sign alone", "-", BAD, 0, BAD, 0},
        {"two signs", "+-1", BAD, 0, BAD, 0},
        {"point alone", ".", BAD, 0, BAD, 0},
        {"point last", "1.", 0, 1, 0, 1000},
        {"point first", ".5", PART, 1, 0, 500},
        {"two points", "1.2.3", BAD, 0, BAD, 0},
        {"half", "0.5", PART, 1, 0, 500},
        {"minus half rounds away from zero", "-0.5", PART, -1, 0, -500},
        {"zeros after the point", "2.000", 0, 2, 0, 2000},
        {"milli", "1500m", PART, 2, 0, 1500},
        {"whole milli", "3000m", 0, 3, 0, 3000},
        {"micro rounds up to a milli", "1u", PART, 1, 0, 1},
        {"nano", "1n", PART, 1, 0, 1},
        {"whole nano", "1000000000n", 0, 1, 0, 1000},
        {"below nano", "0.0000000001", PART, 1, 0, 1},
        {"kilo", "2k", 0, 2000, 0, 2000000},
        {"kilo with a fraction", "1.5k", 0, 1500, 0, 1500000},
        {"mega", "1M", 0, 1000000, 0, 1000000000},
        {"giga", "1G", 0, 1000000000, 0, 1000000000000},
        {"tera", "1T", 0, 1000000000000, 0, 1000000000000000},
        {"peta", "1P", 0, 1000000000000000, 0, 1000000000000000000},
        {"exa", "1E", 0, 1000000000000000000, LARGE, 0},
        {"kibi", "1Ki", 0, 1024, 0, 1024000},
        {"kibi with a fraction", "1.5Ki", 0, 1536, 0, 1536000},
        {"kibi with too fine a fraction", "0.0001Ki", PART, 1, 0, 103},
        {"mebi", "1Mi", 0, 1048576, 0, 1048576000},
        {"gibi", "16Gi", 0, 17179869184, 0, 17179869184000},
        {"tebi", "1Ti", 0, 1099511627776, 0, 1099511627776000},
        {"pebi", "1Pi", 0, 1125899906842624, 0, 1125899906842624000},
        {"exbi", "7Ei", 0, 8070450532247928832, LARGE, 0},
        {"too many exbi", "8Ei", LARGE, 0, LARGE, 0},
        {"half an exbi", "0.5Ei", 0, 576460752303423488, LARGE, 0},
        {"exponent", "1e3", 0, 1000, 0, 1000000},
        {"capital exponent", "1E3", 0, 1000, 0, 1000000},
        {"exponent with plus", "1e+3", 0, 1000, 0, 1000000},
        {"negative exponent", "1500e-3", PART, 2, 0, 1500},
        {"exponent and point", "1.25e2", 0, 125, 0, 125000},
        {"exponent without digits", "1e", BAD, 0, BAD, 0},
        {"exponent with a fraction", "1e1.5", BAD, 0, BAD, 0},
        {"zero with a huge exponent", "0e99999999999", 0, 0, 0, 0},
        {"huge exponent", "1e99999999999", LARGE, 0, LARGE, 0},
        {"tiny exponent", "1e-99999999999", PART, 1, 0, 1},
        {"largest", "9223372036854775807", 0, INT64_MAX, LARGE, 0},
        {"above the largest", "9223372036854775808", LARGE, 0, LARGE, 0},
        {"rounds above the largest", "9223372036854775807.1", PART, 0, LARGE, 0},
        {"beyond 64 bits", "99999999999999999999", LARGE, 0, LARGE, 0},
        {"smallest", "-9223372036854775807", 0, -INT64_MAX, LARGE, 0},
        {"largest in milli", "9223372036854775.807", PART, 9223372036854776, 0, INT64_MAX},
        {"above the largest in milli", "9223372036854775.808", PART, 9223372036854776, LARGE, 0},
        {"unknown suffix", "1x", BAD, 0, BAD, 0},
        {"kilo is small", "1K", BAD, 0, BAD, 0},
        {"kibi is capital", "1ki", BAD, 0, BAD, 0},
        {"byte", "1GiB", BAD, 0, BAD, 0},
        {"two suffixes", "1mk", BAD, 0, BAD, 0},
        {"suffix alone", "Gi", BAD, 0, BAD, 0},
        {"space", " 1", BAD, 0, BAD, 0},
        {"space after", "1 ", BAD, 0, BAD, 0},
        {"hexadecimal", "0x10", BAD, 0, BAD, 0},
    };
    GS_FOR_EACH_ROW (r, rows) {
        int64_t whole = 7, value = 7, milli = 7;
        struct gs_slice text = gs_slice_of(r->text);
        row_equal(r->row, gs_quantity_read(text, GS_QUANTITY_WHOLE, &whole), r->whole);
        row_equal(r->row, whole, r->whole == GS_QUANTITY_OK ? r->value : 7);
        bool too_large = r->whole == LARGE || (r->whole == PART && r->value == 0);
        enum gs_quantity rounded = r->whole == BAD ? BAD : too_large ? LARGE : GS_QUANTITY_OK;
        row_equal(r->row, gs_quantity_read(text, GS_QUANTITY_VALUE, &value), rounded);
        row_equal(r->row, value, rounded == GS_QUANTITY_OK ? r->value : 7);
        row_equal(r->row, gs_quantity_read(text, GS_QUANTITY_MILLI, &milli), r->as_milli);
        row_equal(r->row, milli, r->as_milli == GS_QUANTITY_OK ? r->milli : 7);
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

static void every_answer_has_words(void **state)
{
    assert_string_equal(gs_quantity_why(GS_QUANTITY_OK), "");
    assert_string_equal(gs_quantity_why(GS_QUANTITY_MALFORMED), "is not a quantity");
    assert_string_equal(gs_quantity_why(GS_QUANTITY_FRACTION), "is not an integer");
    assert_string_equal(gs_quantity_why(GS_QUANTITY_TOO_LARGE), "is too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_are_read_as_kubernetes_does),
        cmocka_unit_test(very_long_numbers_are_exact_or_refused),
        cmocka_unit_test(every_answer_has_words),
    };
    return GS_RUN(tests);
}
