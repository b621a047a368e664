/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/nominating.h"

#include "rows.h"

#define ALLOWED "{\"kind\":\"SelfSubjectAccessReview\",\"spec\":{},\"status\":{\"allowed\":true}}"

static void pods_are_nominated_where_that_helps_and_is_granted(void **state)
{
    static const struct {
        const char *row, *version, *review;
        const char *why; /* a part; NULL: they are */
    } rows[] = {
        {"the newest", "{\"major\":\"1\",\"minor\":\"36\"}", ALLOWED, NULL},
        {"the oldest", "{\"minor\":\"23\"}", ALLOWED, NULL},
        {"a provider's", "{\"minor\":\"27+\",\"gitVersion\":\"v1.27.3-gke.100\"}", ALLOWED, NULL},
        {"its kube-scheduler may be 1.21", "{\"minor\":\"22\"}", ALLOWED, "older than 1.23"},
        {"old", "{\"minor\":\"9\"}", ALLOWED, "older than 1.23"},
        {"no number", "{\"minor\":\"x\"}", ALLOWED, "older than 1.23"},
        {"not told", "{}", ALLOWED, "older than 1.23"},
        {"no answer", "", ALLOWED, "older than 1.23"},
        {"no text", "{\"minor\":36}", ALLOWED, "older than 1.23"},
        {"cut", "{\"minor\":\"36\"", ALLOWED, "older than 1.23"},
        {"not granted", "{\"minor\":\"36\"}", "{\"status\":{\"allowed\":false}}", "no permission"},
        {"nothing said of it", "{\"minor\":\"36\"}", "{\"status\":{\"reason\":\"\"}}",
         "no permission"},
        {"cannot be asked", "{\"minor\":\"36\"}", "", "no permission"},
        {"elsewhere in it", "{\"minor\":\"36\"}", "{\"spec\":{\"allowed\":true}}", "no permission"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const char *why = "untouched";
        bool may = nominating_may(gs_slice_of(r->version), gs_slice_of(r->review), &why);
        row_equal(r->row, may, !r->why);
        row_equal(r->row, why != NULL, r->why != NULL);
        if (r->why)
            row_true(r->row, strstr(why, r->why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_nominated_where_that_helps_and_is_granted),
    };
    return GS_RUN(tests);
}
