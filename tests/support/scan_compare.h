/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/scan.h"

/*
 * The pull scanner against jansson, on any bytes: same verdict, same keys, strings and numbers.
 * scan_compare() returns NULL when they agree, else what differs (static text).
 */
static inline const char *scan_compare_value_(struct gs_scan *scan, const json_t *tree);

static inline const char *scan_compare_text_(struct gs_scan_text text, const char *want, size_t len)
{
    struct gs_arena arena = {0};
    struct gs_slice slice, expected = {want, len};
    const char *problem = NULL;
    if (!gs_scan_text_slice(&arena, text, &slice) || !gs_slice_eq(slice, expected))
        problem = "characters of a string";
    else if (!gs_scan_text_eq(text, expected) || !gs_scan_text_eq_nocase(text, expected))
        problem = "comparison of a string";
    const char *copy = problem ? NULL : gs_scan_string_dup(&arena, text);
    if (copy && !memchr(want, 0, len) && strcmp(copy, want) != 0)
        problem = "copy of a string";
    else if (copy && strlen(copy) < len)
        problem = "copy of a string with a NUL";
    gs_arena_release(&arena);
    return problem;
}

static inline const char *scan_compare_number_(struct gs_scan *scan, const json_t *tree)
{
    struct gs_slice number = {0};
    int64_t integer = 0;
    struct gs_scan again = *scan;
    if (!gs_scan_number(scan, "number", &number))
        return "a number is none";
    if (json_is_integer(tree) != gs_scan_i64(&again, "number", &integer))
        return "kind of a number";
    if (json_is_integer(tree))
        return integer == json_integer_value(tree) ? NULL : "value of an integer";
    char *text = strndup(number.at, number.len);
    double value = text ? strtod(text, NULL) : 0;
    free(text);
    return memcmp(&value, &(double){json_real_value(tree)}, sizeof(value)) == 0 ? NULL
                                                                                : "value of a real";
}

static inline const char *scan_compare_object_(struct gs_scan *scan, const json_t *tree)
{
    struct gs_scan_text key;
    size_t count = 0;
    if (!gs_scan_object(scan, "object"))
        return "an object is none";
    while (gs_scan_key(scan, &key)) {
        struct gs_arena arena = {0};
        struct gs_slice name = {0};
        const json_t *member = NULL;
        if (gs_scan_text_slice(&arena, key, &name))
            member = json_object_getn(tree, name.at, name.len);
        gs_arena_release(&arena);
        if (!member)
            return "a key";
        const char *problem = scan_compare_value_(scan, member);
        if (problem)
            return problem;
        count++;
    }
    return count == json_object_size(tree) ? NULL : "number of keys";
}

static inline const char *scan_compare_array_(struct gs_scan *scan, const json_t *tree)
{
    size_t count = 0;
    if (!gs_scan_array(scan, "array"))
        return "an array is none";
    while (gs_scan_element(scan)) {
        if (count == json_array_size(tree))
            return "number of elements";
        const char *problem = scan_compare_value_(scan, json_array_get(tree, count++));
        if (problem)
            return problem;
    }
    return count == json_array_size(tree) ? NULL : "number of elements";
}

static inline const char *scan_compare_value_(struct gs_scan *scan, const json_t *tree)
{
    struct gs_scan_text text;
    bool truth = false;
    switch (json_typeof(tree)) {
    case JSON_OBJECT:
        return scan_compare_object_(scan, tree);
    case JSON_ARRAY:
        return scan_compare_array_(scan, tree);
    case JSON_STRING:
        if (!gs_scan_string(scan, "string", &text))
            return "a string is none";
        return scan_compare_text_(text, json_string_value(tree), json_string_length(tree));
    case JSON_NULL:
        return gs_scan_null(scan) ? NULL : "a null is none";
    case JSON_TRUE:
    case JSON_FALSE:
        if (!gs_scan_bool(scan, "bool", &truth))
            return "a boolean is none";
        return truth == json_is_true(tree) ? NULL : "value of a boolean";
    default:
        return scan_compare_number_(scan, tree);
    }
}

/* What is skipped on trust ends where the grammar says, when it is JSON. */
static inline const char *scan_compare_trusting_(const char *bytes, size_t len, bool accepted)
{
    struct gs_scan scan;
    gs_scan_init(&scan, (struct gs_slice){bytes, len});
    scan.trusting = true;
    bool taken = gs_scan_skip(&scan);
    if (scan.at < bytes || scan.at > bytes + len)
        return "left the text on trust";
    if (accepted && (!taken || gs_scan_finish(&scan, NULL) < 0))
        return "another end on trust";
    return NULL;
}

/* jansson refuses what the grammar allows: numbers beyond its types, NUL in keys. */
static inline bool scan_compare_own_limit_(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);
    return code == json_error_numeric_overflow || code == json_error_null_byte_in_key;
}

static inline const char *scan_compare(const char *bytes, size_t len)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    struct gs_scan scan;
    gs_scan_init(&scan, (struct gs_slice){bytes, len});
    gs_scan_skip(&scan);
    bool accepted = gs_scan_finish(&scan, NULL) == 0;
    bool too_deep = scan.failed && strcmp(scan.why, "nested more than 64 levels deep") == 0;
    const char *trusting = scan_compare_trusting_(bytes, len, accepted);
    if (trusting)
        return trusting;

    /* a NUL is never JSON; jansson 2.14 loses one that follows a number */
    if (len && memchr(bytes, 0, len))
        return accepted ? "accepted a NUL" : NULL;

    json_error_t error;
    json_t *tree = json_loadb(bytes, len, flags | JSON_REJECT_DUPLICATES, &error);
    const char *problem = NULL;
    if (!tree && json_error_code(&error) == json_error_duplicate_key) {
        /* jansson keeps one of them, the scanner tells all: only the verdicts compare */
        tree = json_loadb(bytes, len, flags, &error);
        if (!tree != !accepted && !too_deep && !(!tree && scan_compare_own_limit_(&error)))
            problem = "verdict with a key that is duplicated";
    } else if (!tree) {
        if (accepted && !scan_compare_own_limit_(&error))
            problem = "accepted what jansson refuses";
    } else if (!accepted) {
        if (!too_deep)
            problem = "refused what jansson accepts";
    } else {
        gs_scan_init(&scan, (struct gs_slice){bytes, len});
        problem = scan_compare_value_(&scan, tree);
        if (!problem && gs_scan_finish(&scan, NULL) < 0)
            problem = "walk failed where skipping did not";
    }
    json_decref(tree);
    return problem;
}
