/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* First what cmocka.h needs, and what every test needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpushare/base/error.h"

/*
 * Tables of named rows, whose failures name the row:
 *
 *   static const struct { const char *row; const char *text; bool ok; } rows[] = {
 *       {"empty", "", false}, ...
 *   };
 *   GS_FOR_EACH_ROW (r, rows) {
 *       row_equal(r->row, parse(r->text), r->ok);
 *   }
 */
#define GS_COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

/* What the main() of a table of tests returns. */
#define GS_RUN(tests) cmocka_run_group_tests(tests, NULL, NULL)

#define GS_FOR_EACH_ROW(r, table)                                                                  \
    for (__typeof__(&(table)[0]) r = (table); r < (table) + GS_COUNT_OF(table); r++)

#define row_true(row, condition) row_check_(!!(condition), row, #condition, __FILE__, __LINE__)

#define row_equal(row, actual, expected)                                                           \
    row_equal_(row, (long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)

#define row_text(row, actual, expected)                                                            \
    row_text_(row, actual, expected, #actual, __FILE__, __LINE__)

static inline void row_check_(bool holds, const char *row, const char *what, const char *file,
                              int line)
{
    if (holds)
        return;
    print_error("row \"%s\": %s does not hold\n", row, what);
    _fail(file, line);
}

static inline void row_equal_(const char *row, long long actual, long long expected,
                              const char *what, const char *file, int line)
{
    if (actual == expected)
        return;
    print_error("row \"%s\": %s is %lld, expected %lld\n", row, what, actual, expected);
    _fail(file, line);
}

static inline void row_text_(const char *row, const char *actual, const char *expected,
                             const char *what, const char *file, int line)
{
    if (actual && expected ? strcmp(actual, expected) == 0 : actual == expected)
        return;
    print_error("row \"%s\": %s is \"%s\", expected \"%s\"\n", row, what,
                actual ? actual : "(null)", expected ? expected : "(null)");
    _fail(file, line);
}

/* "EINVAL" */
static inline const char *gs_code_name(enum gs_code code)
{
    static const char *const names[] = {
        [GS_OK] = "OK",
        [GS_EINVAL] = "EINVAL",
        [GS_EPROTO] = "EPROTO",
        [GS_ETOOBIG] = "ETOOBIG",
        [GS_ENOMEM] = "ENOMEM",
        [GS_ENOENT] = "ENOENT",
        [GS_EEXIST] = "EEXIST",
        [GS_ECONFLICT] = "ECONFLICT",
        [GS_EAUTH] = "EAUTH",
        [GS_EDENIED] = "EDENIED",
        [GS_EGONE] = "EGONE",
        [GS_EBUSY] = "EBUSY",
        [GS_ETIMEOUT] = "ETIMEOUT",
        [GS_EIO] = "EIO",
        [GS_ENOTREADY] = "ENOTREADY",
        [GS_ECANCELED] = "ECANCELED",
        [GS_EINTERNAL] = "EINTERNAL",
    };
    return (size_t)code < sizeof(names) / sizeof(names[0]) ? names[code] : "UNKNOWN";
}
