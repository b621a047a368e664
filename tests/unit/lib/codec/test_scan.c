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

static void json_is_accepted_by_its_grammar_only(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        const char *why; /* NULL: accepted */
    } rows[] = {
        {"empty", "", "JSON: unexpected end of input at byte 0"},
        {"only spaces", " \t\r\n", "JSON: unexpected end of input at byte 4"},
        {"empty object", "{}", NULL},
        {"empty array", " [ ] ", NULL},
        {"nested", "{\"a\":[1,{\"b\":null}],\"c\":\"d\"}", NULL},
        {"words", "[true,false,null]", NULL},
        {"word cut", "[tru]", "JSON: invalid literal at byte 1"},
        {"word misspelt", "nul1", "JSON: invalid literal at byte 0"},
        {"word grown", "nullx", "JSON: unexpected data after the value at byte 4"},
        {"two values", "1 2", "JSON: unexpected data after the value at byte 2"},
        {"open object", "{\"a\":1", "JSON: unexpected end of input at byte 6"},
        {"open array", "[1", "JSON: unexpected end of input at byte 2"},
        {"open array after a comma", "[1,", "JSON: unexpected end of input at byte 3"},
        {"wrong bracket", "[1}", "JSON: invalid syntax at byte 2"},
        {"wrong brace", "{\"a\":1]", "JSON: invalid syntax at byte 6"},
        {"comma before the end of an array", "[1,]", "JSON: invalid syntax at byte 3"},
        {"comma before the end of an object", "{\"a\":1,}", "JSON: invalid syntax at byte 7"},
        {"comma first", "[,1]", "JSON: invalid syntax at byte 1"},
        {"two commas", "[1,,1]", "JSON: invalid syntax at byte 3"},
        {"no comma", "[1 1]", "JSON: invalid syntax at byte 3"},
        {"no colon", "{\"a\" 1}", "JSON: invalid syntax at byte 5"},
        {"no value", "{\"a\":}", "JSON: invalid syntax at byte 5"},
        {"key is no string", "{1:1}", "JSON: invalid syntax at byte 1"},
        {"byte order mark", "\xEF\xBB\xBF{}", "JSON: invalid syntax at byte 0"},
        {"comment", "/**/1", "JSON: invalid syntax at byte 0"},
        {"single quotes", "'a'", "JSON: invalid syntax at byte 0"},
        {"minus", "-", "JSON: invalid number at byte 0"},
        {"plus", "+1", "JSON: invalid syntax at byte 0"},
        {"leading zero", "01", "JSON: invalid number at byte 0"},
        {"zero", "-0", NULL},
        {"point without digits", "1.", "JSON: invalid number at byte 0"},
        {"point first", ".5", "JSON: invalid syntax at byte 0"},
        {"exponent without digits", "1e+", "JSON: invalid number at byte 0"},
        {"all of a number", "-12.034E-56", NULL},
        {"longer than any type", "123456789012345678901234567890", NULL},
        {"open string", "\"abc", "JSON: unexpected end of input at byte 4"},
        {"open escape", "\"a\\", "JSON: invalid character in a string at byte 2"},
        {"unknown escape", "\"\\x\"", "JSON: invalid character in a string at byte 1"},
        {"all escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", NULL},
        {"short unicode escape", "\"\\u00e\"", "JSON: invalid character in a string at byte 1"},
        {"unicode escape with g", "\"\\u00eg\"", "JSON: invalid character in a string at byte 1"},
        {"pair", "\"\\ud83d\\ude00\"", NULL},
        {"high surrogate alone", "\"\\ud83d\"", "JSON: invalid character in a string at byte 1"},
        {"low surrogate alone", "\"\\ude00\"", "JSON: invalid character in a string at byte 1"},
        {"high surrogate and a letter", "\"\\ud83dabcdef\"",
         "JSON: invalid character in a string at byte 1"},
        {"two high surrogates", "\"\\ud83d\\ud83d\"",
         "JSON: invalid character in a string at byte 1"},
        {"control character", "\"a\x1f\"", "JSON: invalid character in a string at byte 2"},
        {"newline in a string", "\"a\n\"", "JSON: invalid character in a string at byte 2"},
        {"delete is no control character here", "\"\x7f\"", NULL},
        {"UTF-8", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"", NULL},
        {"UTF-8 cut", "\"\xE2\x82\"", "JSON: invalid character in a string at byte 1"},
        {"overlong UTF-8", "\"\xC0\xAF\"", "JSON: invalid character in a string at byte 1"},
        {"surrogate in UTF-8", "\"\xED\xA0\x80\"", "JSON: invalid character in a string at byte 1"},
        {"Latin-1", "\"\xE9\"", "JSON: invalid character in a string at byte 1"},
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

static void nesting_ends_at_its_ceiling(void **state)
{
    for (int levels = GS_SCAN_DEPTH_MAX - 1; levels <= GS_SCAN_DEPTH_MAX + 1; levels++) {
        char text[2 * GS_SCAN_DEPTH_MAX + 8];
        memset(text, '[', (size_t)levels);
        memset(text + levels, ']', (size_t)levels);
        struct gs_scan skipped, walked;
        struct gs_error err = {0};
        gs_scan_init(&skipped, (struct gs_slice){text, (size_t)levels * 2});
        walked = skipped;
        gs_scan_skip(&skipped);
        int depth = 0;
        while (gs_scan_array(&walked, "level") && gs_scan_element(&walked))
            depth++;
        bool fits = levels <= GS_SCAN_DEPTH_MAX;
        assert_int_equal(depth, fits ? levels - 1 : GS_SCAN_DEPTH_MAX);
        assert_int_equal(walked.failed, !fits);
        assert_int_equal(gs_scan_finish(&skipped, &err), fits ? 0 : -1);
        assert_string_equal(err.msg,
                            fits ? "" : "JSON: nested more than 64 levels deep at byte 64");
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

/* Every length and alignment, so that each byte meets each place of the wide comparison. */
static void strings_end_wherever_they_stand(void **state)
{
    static const char *const odd[] = {"", "\\n", "\xC3\xA9", "\x01", "\xFF"};
    for (size_t o = 0; o < GS_COUNT_OF(odd); o++) {
        for (size_t before = 0; before < 40; before++) {
            for (size_t after = 0; after < 40; after += 3) {
                char text[128];
                size_t len = 0;
                text[len++] = '"';
                memset(text + len, '~', before);
                len += before;
                memcpy(text + len, odd[o], strlen(odd[o]));
                len += strlen(odd[o]);
                memset(text + len, ' ', after);
                len += after;
                text[len++] = '"';
                char *copy = exact(text, len);
                struct gs_scan scan;
                struct gs_scan_text found = {0};
                gs_scan_init(&scan, (struct gs_slice){copy, len});
                bool taken = gs_scan_string(&scan, "text", &found);
                assert_int_equal(taken, o < 3);
                if (taken) {
                    assert_ptr_equal(found.at, copy + 1);
                    assert_int_equal(found.len, len - 2);
                    assert_int_equal(found.escaped, o == 1);
                    assert_int_equal(gs_scan_finish(&scan, NULL), 0);
                } else {
                    assert_int_equal(scan.at - copy, 1 + before);
                }
                free(copy);
            }
        }
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
        {"array", "[[\"", "\"],{}]]", "]"},
        {"brackets in a string", "[\"]}", "[{\"]]", "]"},
        {"escaped quote", "[\"", "\\\"]\"]]", "]"},
        {"escaped backslash", "[\"", "\\\\\"]]", "]"},
        {"three backslashes", "[\"", "\\\\\\\"]\"]]", "]"},
        {"four backslashes", "[\"", "\\\\\\\\\"]]", "]"},
        {"escape at the start", "[\"\\\"", "\"]]", "]"},
        {"nested", "{\"a\":[{\"b\":[\"", "\"]},{}],\"c\":{}}}", "}"},
        {"open string", "[\"", "]", NULL},
        {"open string after an escape", "[\"", "\\\"]", NULL},
        {"open array", "[[\"", "\"]", NULL},
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
        {"object", "[]", 'o', "field is not an object at byte 0"},
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

static void a_failure_sticks_and_ends_every_loop(void **state)
{
    struct gs_scan scan;
    struct gs_scan_text key;
    struct gs_slice raw;
    struct gs_error err = {0};
    gs_scan_init(&scan, GS_SLICE("{\"a\":1,\"b\":[2],\"c\":null}"));
    assert_true(gs_scan_object(&scan, "outer"));
    assert_true(gs_scan_key(&scan, &key));
    assert_false(gs_scan_refuse(&scan, "a", "is refused"));
    const char *at = scan.at;
    assert_false(gs_scan_refuse(&scan, "b", "comes too late"));
    assert_false(gs_scan_key(&scan, &key));
    assert_false(gs_scan_element(&scan));
    assert_false(gs_scan_skip(&scan));
    assert_false(gs_scan_raw(&scan, &raw));
    assert_false(gs_scan_null(&scan));
    assert_false(gs_scan_object(&scan, "inner"));
    assert_int_equal(gs_scan_peek(&scan), GS_SCAN_NOTHING);
    assert_ptr_equal(scan.at, at);
    assert_int_equal(gs_scan_finish(&scan, &err), -1);
    assert_string_equal(err.msg, "a is refused at byte 5");
}

static void a_value_that_is_not_taken_is_noticed(void **state)
{
    struct gs_scan scan;
    struct gs_scan_text key;
    gs_scan_init(&scan, GS_SLICE("{\"a\":1,\"b\":2}"));
    gs_scan_object(&scan, "object");
    assert_true(gs_scan_key(&scan, &key));
    assert_false(gs_scan_key(&scan, &key));
    assert_int_equal(gs_scan_finish(&scan, NULL), -1);
    gs_scan_init(&scan, GS_SLICE("[1,2]"));
    gs_scan_array(&scan, "array");
    assert_true(gs_scan_element(&scan));
    assert_false(gs_scan_element(&scan));
    assert_int_equal(gs_scan_finish(&scan, NULL), -1);
}

static void objects_and_arrays_are_walked_in_order(void **state)
{
    static const char json[] = " { \"a\" : [ 1 , -2 , [ ] , { } ] , \"b\" : { \"c\" : true } , "
                               "\"a\" : \"again\" } ";
    struct gs_scan scan;
    struct gs_scan_text key, text;
    struct gs_slice raw = {0};
    int64_t number;
    bool truth = false;
    gs_scan_init(&scan, GS_SLICE(json));
    assert_true(gs_scan_object(&scan, "outer"));
    assert_true(gs_scan_key(&scan, &key) && gs_scan_text_is(key, "a"));
    assert_true(gs_scan_array(&scan, "a"));
    assert_true(gs_scan_element(&scan) && gs_scan_i64(&scan, "a", &number) && number == 1);
    assert_true(gs_scan_element(&scan) && gs_scan_i64(&scan, "a", &number) && number == -2);
    assert_true(gs_scan_element(&scan) && gs_scan_raw(&scan, &raw));
    assert_true(gs_slice_eq(raw, GS_SLICE("[ ]")));
    assert_true(gs_scan_element(&scan));
    assert_int_equal(gs_scan_peek(&scan), GS_SCAN_OBJECT);
    assert_true(gs_scan_skip(&scan));
    assert_false(gs_scan_element(&scan));
    assert_true(gs_scan_key(&scan, &key) && gs_scan_text_is(key, "b"));
    assert_true(gs_scan_object(&scan, "b"));
    assert_true(gs_scan_key(&scan, &key) && gs_scan_text_is(key, "c"));
    assert_false(gs_scan_null(&scan));
    assert_true(gs_scan_bool(&scan, "c", &truth) && truth);
    assert_false(gs_scan_key(&scan, &key));
    assert_true(gs_scan_key(&scan, &key) && gs_scan_text_is(key, "a"));
    assert_true(gs_scan_string(&scan, "a", &text) && gs_scan_text_is(text, "again"));
    assert_false(gs_scan_key(&scan, &key));
    assert_int_equal(gs_scan_finish(&scan, NULL), 0);
}

/* Takes the strings of an array, as many at a time as `max` allows (0: each by itself), and writes
 * them down with where and how it ended. */
static void walk_strings(const char *json, uint32_t max, char *ret, size_t size)
{
    struct gs_scan scan;
    struct gs_slice some[8];
    size_t len = 0;
    char *text = exact(json, strlen(json));
    gs_scan_init(&scan, (struct gs_slice){text, strlen(json)});
    gs_scan_array(&scan, "strings");
    for (;;) {
        uint32_t count = max ? gs_scan_plain_strings(&scan, some, max) : 0;
        assert_in_range(count, 0, max);
        for (uint32_t i = 0; i < count; i++)
            len += (size_t)snprintf(ret + len, size - len, "%.*s|", (int)some[i].len, some[i].at);
        struct gs_scan_text found;
        if (!gs_scan_element(&scan) || !gs_scan_string(&scan, "string", &found))
            break;
        len += (size_t)snprintf(ret + len, size - len, "%.*s|", (int)found.len, found.at);
    }
    struct gs_error err = {0};
    int result = gs_scan_finish(&scan, &err);
    snprintf(ret + len, size - len, " %d %zu %s", result, (size_t)(scan.at - text), err.msg);
    free(text);
}

/* Many at a time or each by itself: it is the same text. */
static void strings_taken_together_are_those_taken_singly(void **state)
{
    static const char *const texts[] = {
        "[]",
        "[\"a\"]",
        "[\"a\",\"b\",\"\",\"a name of more than sixteen bytes\",\"e\"]",
        "[ \"a\",\"b\"]",
        "[\"a\", \"b\",\"c\" ,\"d\"]",
        "[\"a\",\"b\\n\",\"c\"]",
        "[\"a\",\"\xC3\xA9\",\"c\"]",
        "[\"a\",\"b\x01\"]",
        "[\"a\",\"\xFF\"]",
        "[\"a\",1]",
        "[\"a\",null,\"b\"]",
        "[\"a\"",
        "[\"a\",",
        "[\"a\",\"",
        "[\"a",
        "[\"",
        "[",
        "[\"a\"\"b\"]",
        "[\"a\",,\"b\"]",
        "[,\"a\"]",
        "[\"a\",]",
        "[\"a\"}",
        "[\"a\"]\"b\"",
        "{\"a\":1}",
    };
    GS_FOR_EACH_ROW (r, texts) {
        char singly[512], together[512];
        walk_strings(*r, 0, singly, sizeof(singly));
        for (uint32_t max = 1; max <= 8; max++) {
            walk_strings(*r, max, together, sizeof(together));
            assert_string_equal(together, singly);
        }
    }
}

static void types_are_told_by_their_first_byte(void **state)
{
    static const struct {
        const char *row;
        const char *text;
        enum gs_scan_type type;
    } rows[] = {
        {"object", " {", GS_SCAN_OBJECT},   {"array", "[", GS_SCAN_ARRAY},
        {"string", "\n\"", GS_SCAN_STRING}, {"negative", "-", GS_SCAN_NUMBER},
        {"zero", "0", GS_SCAN_NUMBER},      {"nine", "9", GS_SCAN_NUMBER},
        {"true", "t", GS_SCAN_BOOL},        {"false", "f", GS_SCAN_BOOL},
        {"null", "n", GS_SCAN_NULL},        {"end", "", GS_SCAN_NOTHING},
        {"comma", ",", GS_SCAN_NOTHING},    {"colon, the byte after 9", ":", GS_SCAN_NOTHING},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_scan scan;
        gs_scan_init(&scan, gs_slice_of(r->text));
        row_equal(r->row, gs_scan_peek(&scan), r->type);
        row_true(r->row, !scan.failed);
    }
}

static struct gs_scan_text text_of(const char *json)
{
    struct gs_scan scan;
    struct gs_scan_text text = {0};
    gs_scan_init(&scan, gs_slice_of(json));
    assert_true(gs_scan_string(&scan, "text", &text));
    return text;
}

static void texts_compare_as_characters(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *other;
        bool equal, any_case;
    } rows[] = {
        {"same", "\"NodeNames\"", "NodeNames", true, true},
        {"other case", "\"nodenames\"", "NodeNames", false, true},
        {"shorter", "\"NodeName\"", "NodeNames", false, false},
        {"longer", "\"NodeNamesX\"", "NodeNames", false, false},
        {"empty", "\"\"", "", true, true},
        {"empty and not", "\"\"", "a", false, false},
        {"escaped", "\"N\\u006fdeNames\"", "NodeNames", true, true},
        {"escaped in another case", "\"n\\u006FDENAMES\"", "NodeNames", false, true},
        {"escaped and shorter", "\"\\u004e\"", "No", false, false},
        {"escaped and longer", "\"\\u004eod\"", "No", false, false},
        {"escaped slash", "\"aliyun.com\\/gpu-mem\"", "aliyun.com/gpu-mem", true, true},
        {"not a letter", "\"[\"", "{", false, false},
        {"escaped and not a letter", "\"\\u005b\"", "{", false, false},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_scan_text text = text_of(r->json);
        row_equal(r->row, gs_scan_text_eq(text, gs_slice_of(r->other)), r->equal);
        row_equal(r->row, gs_scan_text_eq_nocase(text, gs_slice_of(r->other)), r->any_case);
    }
    assert_false(gs_scan_text_is((struct gs_scan_text){0}, ""));
    assert_false(gs_scan_text_eq_nocase((struct gs_scan_text){0}, GS_SLICE("")));
}

static void texts_are_copied_as_characters(void **state)
{
    static const struct {
        const char *row;
        const char *json;
        const char *copy;
        size_t slice_len;
    } rows[] = {
        {"plain", "\"abc\"", "abc", 3},
        {"empty", "\"\"", "", 0},
        {"all escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"two bytes", "\"\\u00E9\"", "\xC3\xA9", 2},
        {"three bytes", "\"\\u20ac\"", "\xE2\x82\xAC", 3},
        {"pair", "\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80", 4},
        {"first pair", "\"\\ud800\\udc00\"", "\xF0\x90\x80\x80", 4},
        {"last pair", "\"\\udbff\\udfff\"", "\xF4\x8F\xBF\xBF", 4},
        {"UTF-8 beside an escape", "\"\xC3\xA9\\n\"", "\xC3\xA9\n", 3},
        {"NUL ends C strings", "\"a\\u0000b\"",
         "a\xEF\xBF\xBD"
         "b",
         3},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_arena arena = {0};
        struct gs_slice slice;
        char room[32] = "before";
        struct gs_scan_text text = text_of(r->json);
        row_true(r->row, gs_scan_text_slice(&arena, text, &slice));
        row_equal(r->row, slice.len, r->slice_len);
        row_true(r->row, text.escaped || slice.at == text.at);
        row_text(r->row, gs_scan_string_dup(&arena, text), r->copy);
        row_true(r->row, !gs_scan_text_copy(text, room, strlen(r->copy)));
        row_text(r->row, room, "before");
        row_true(r->row, gs_scan_text_copy(text, room, strlen(r->copy) + 1));
        row_text(r->row, room, r->copy);
        gs_arena_release(&arena);
    }
}

static void a_text_that_was_never_filled_is_empty(void **state)
{
    struct gs_arena arena = {0};
    struct gs_slice slice;
    char room[4] = "abc";
    assert_true(gs_scan_text_slice(&arena, (struct gs_scan_text){0}, &slice));
    assert_int_equal(slice.len, 0);
    assert_string_equal(gs_scan_string_dup(&arena, (struct gs_scan_text){0}), "");
    assert_true(gs_scan_text_copy((struct gs_scan_text){0}, room, 1));
    assert_string_equal(room, "");
    gs_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_accepted_by_its_grammar_only),
        cmocka_unit_test(nesting_ends_at_its_ceiling),
        cmocka_unit_test(only_managed_fields_may_be_deeper),
        cmocka_unit_test(strings_end_wherever_they_stand),
        cmocka_unit_test(what_is_skipped_on_trust_ends_where_it_ends),
        cmocka_unit_test(a_value_of_another_type_fails_with_its_name),
        cmocka_unit_test(a_failure_sticks_and_ends_every_loop),
        cmocka_unit_test(a_value_that_is_not_taken_is_noticed),
        cmocka_unit_test(objects_and_arrays_are_walked_in_order),
        cmocka_unit_test(strings_taken_together_are_those_taken_singly),
        cmocka_unit_test(types_are_told_by_their_first_byte),
        cmocka_unit_test(texts_compare_as_characters),
        cmocka_unit_test(texts_are_copied_as_characters),
        cmocka_unit_test(a_text_that_was_never_filled_is_empty),
    };
    return GS_RUN(tests);
}
