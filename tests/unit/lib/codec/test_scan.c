/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/base/cleanup.h"
#include "gpushare/codec/scan.h"

/* Memory of exactly the text's size, so that a sanitizer sees a read past its end. */
static char *exact(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    return copy;
}

/* Which texts are JSON is compared with jansson (tests/fuzz/codec_scan.c). */
static void what_is_no_json_is_told_with_its_place(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        const char *why; /* NULL: accepted */
    } rows[] = {
        {"only spaces", " \t\r\n", "JSON: unexpected end of input at byte 4"},
        {"leading zero", "01", "JSON: invalid number at byte 0"},
        {"open string", "\"abc", "JSON: unexpected end of input at byte 4"},
        {"newline in a string", "\"a\n\"", "JSON: invalid character in a string at byte 2"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        size_t len = strlen(r->text);
        char *text = exact(r->text, len);
        struct gs_scan scan;
        struct gs_error err = {0};
        gs_scan_init(&scan, (struct gs_slice){text, len});
        row_equal(r->row, gs_scan_skip(&scan) && gs_scan_finish(&scan, &err) == 0, !r->why);
        gs_scan_finish(&scan, &err);
        row_text(r->row, err.msg, r->why ? r->why : "");
        row_equal(r->row, err.code, r->why ? GS_EPROTO : GS_OK);
        free(text);
    }
}

/* A pod's owner chooses how deep its managedFields are: nobody reads them. */
static void only_managed_fields_may_be_deeper(void **state)
{
    static const struct {
        const char *row, *key;
        int levels;
        bool closed, taken;
    } rows[] = {
        {"managedFields", "managedFields", 5000, true, true},
        {"not closed", "managedFields", 5000, false, false},
        {"another key", "managedField", GS_SCAN_DEPTH_MAX, true, false},
        {"another key's", "labels", 5000, true, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char *deep = test_calloc(2 * (size_t)r->levels + 1, 1);
        memset(deep, '[', (size_t)r->levels);
        memset(deep + r->levels, r->closed ? ']' : ' ', (size_t)r->levels);
        char *text = NULL;
        assert_true(asprintf(&text, "{\"a\":{\"%s\":%s,\"b\":1}}", r->key, deep) > 0);
        struct gs_scan scan;
        gs_scan_init(&scan, gs_slice_of(text));
        gs_scan_skip(&scan);
        row_equal(r->row, gs_scan_finish(&scan, NULL) == 0, r->taken);
        free(text);
        test_free(deep);
    }
}

/* On trust, too: each byte meets each place of a block, and the seam between two. */
static void what_is_skipped_on_trust_ends_where_it_ends(void **state)
{
    static const struct {
        const char *row;
        const char *before, *after; /* padding goes between */
        const char *rest;           /* NULL: the text ends too early */
    } rows[] = {
        {"object", "{\"a\":\"", "\"},1", ",1"},
        {"brackets in a string", "[\"]}", "[{\"]]", "]"},
        {"escaped backslash", "[\"", "\\\\\"]]", "]"},
        {"three backslashes", "[\"", "\\\\\\\"]\"]]", "]"},
        {"escape at the start", "[\"\\\"", "\"]]", "]"},
        {"nested", "{\"a\":[{\"b\":[\"", "\"]},{}],\"c\":{}}}", "}"},
        {"open string", "[\"", "]", NULL},
        {"open string after an escape", "[\"", "\\\"]", NULL},
        {"backslash at the end", "[\"", "\\", NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        for (size_t pad = 0; pad < 200; pad++) {
            char text[300];
            size_t len = strlen(r->before);
            memcpy(text, r->before, len);
            memset(text + len, 'x', pad);
            memcpy(text + len + pad, r->after, strlen(r->after));
            len += pad + strlen(r->after);
            _cleanup_free_ char *copy = exact(text, len);
            struct gs_scan scan;
            gs_scan_init(&scan, (struct gs_slice){copy, len});
            scan.trusting = true;
            row_equal(r->row, gs_scan_skip(&scan), r->rest != NULL);
            row_equal(r->row, scan.failed, r->rest == NULL);
            row_equal(r->row, copy + len - scan.at, r->rest ? strlen(r->rest) : 0);
        }
    }
}

static void a_value_of_another_type_fails_with_its_name(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        char read; /* which reader */
        const char *why;
    } rows[] = {
        {"array", " {}", 'a', "field is not an array at byte 1"},
        {"string", "12", 's', "field is not a string at byte 0"},
        {"boolean", "null", 'b', "field is not true or false at byte 0"},
        {"boolean misspelt", "trux", 'b', "JSON: invalid literal at byte 0"},
        {"number", "\"1\"", 'n', "field is not a number at byte 0"},
        {"integer with a fraction", "1.0", 'i', "field is not an integer in range at byte 3"},
        {"integer with an exponent", "1e2", 'i', "field is not an integer in range at byte 3"},
        {"integer above 64 bits", "9223372036854775808", 'i',
         "field is not an integer in range at byte 19"},
        {"integer above 32 bits", "2147483648", 'j', "field is not an integer in range at byte 10"},
        {"integer below 32 bits", "-2147483649", 'j',
         "field is not an integer in range at byte 11"},
        {"nothing", "", 's', "JSON: unexpected end of input at byte 0"},
        {"no value", "]", 'o', "JSON: invalid syntax at byte 0"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_scan scan;
        struct gs_scan_text text = {.len = 7};
        struct gs_slice number = {.len = 7};
        struct gs_error err = {0};
        int64_t wide = 7;
        int32_t narrow = 7;
        bool truth = true, taken = true;
        gs_scan_init(&scan, gs_slice_of(r->text));
        switch (r->read) {
        case 'o':
            taken = gs_scan_object(&scan, "field");
            break;
        case 'a':
            taken = gs_scan_array(&scan, "field");
            break;
        case 's':
            taken = gs_scan_string(&scan, "field", &text);
            break;
        case 'b':
            taken = gs_scan_bool(&scan, "field", &truth);
            break;
        case 'n':
            taken = gs_scan_number(&scan, "field", &number);
            break;
        case 'i':
            taken = gs_scan_i64(&scan, "field", &wide);
            break;
        default:
            taken = gs_scan_i32(&scan, "field", &narrow);
        }
        row_true(r->row, !taken);
        row_true(r->row, wide == 7 && narrow == 7 && truth && text.len == 7 && number.len == 7);
        row_equal(r->row, gs_scan_finish(&scan, &err), -1);
        row_text(r->row, err.msg, r->why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_json_is_told_with_its_place),
        cmocka_unit_test(only_managed_fields_may_be_deeper),
        cmocka_unit_test(what_is_skipped_on_trust_ends_where_it_ends),
        cmocka_unit_test(a_value_of_another_type_fails_with_its_name),
    };
    return GS_RUN(tests);
}
