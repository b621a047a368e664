/* SPDX-License-Identifier: Apache-2.0 */

#include "rows.h"

#include "gpushare/http/router.h"

static const struct gs_http_route routes[] = {
    {"GET", "/a", NULL, 0},      {"POST", "/a", NULL, 0}, {"GET", "/a/", NULL, GS_HTTP_PREFIX},
    {"GET", "/a/b", NULL, 0}, /* behind the prefix that swallows it */
    {"DELETE", "/a/b", NULL, 0}, {NULL, "/any", NULL, 0}, {"GET", "/", NULL, 0},
};

static void the_first_fitting_row_wins(void **state)
{
    static const struct {
        const char *name, *method, *path;
        int row; /* -1: none */
        const char *rest;
        bool known;
    } rows[] = {
        {"exact", "GET", "/a", 0, "", true},
        {"second method", "POST", "/a", 1, "", true},
        {"head is get", "HEAD", "/a", 0, "", true},
        {"prefix", "GET", "/a/x/y", 2, "x/y", true},
        {"prefix before exact", "GET", "/a/b", 2, "b", true},
        {"other method behind the prefix", "DELETE", "/a/b", 4, "", true},
        {"prefix, other method", "PUT", "/a/x", -1, NULL, true},
        {"prefix alone", "GET", "/a/", -1, NULL, false},
        {"root is no prefix", "GET", "/x", -1, NULL, false},
        {"root", "GET", "/", 6, "", true},
        {"empty path", "GET", "", -1, NULL, false},
        {"empty method", "", "/a", -1, NULL, true},
        {"lower case method", "get", "/a", -1, NULL, true},
        {"beginning of a path", "GET", "/an", -1, NULL, false},
        {"any method", "BREW", "/any", 5, "", true},
        {"head of any", "HEAD", "/any", 5, "", true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const char *rest = "untouched";
        struct gs_buf allow = GS_BUF(100);
        print_message("  %s\n", r->name);
        const struct gs_http_route *found =
            gs_http_route_find(routes, GS_COUNT_OF(routes), r->method, r->path, &rest);
        if (r->row < 0) {
            assert_null(found);
            assert_string_equal(rest, "untouched");
            gs_http_route_allow(routes, GS_COUNT_OF(routes), r->path, &allow);
            assert_int_equal(allow.len > 0, r->known);
        } else {
            assert_ptr_equal(found, &routes[r->row]);
            assert_string_equal(rest, r->rest);
        }
        gs_buf_release(&allow);
    }
}

static void an_empty_table_knows_nothing(void **state)
{
    const char *rest;
    assert_null(gs_http_route_find(NULL, 0, "GET", "/", &rest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_fitting_row_wins),
        cmocka_unit_test(an_empty_table_knows_nothing),
    };
    return cmocka_run_group_tests_name("http router", tests, NULL, NULL);
}
