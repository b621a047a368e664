/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/nominating.h"

#include "rows.h"

static void pods_are_nominated_where_that_helps(void **state)
{
    static const struct {
        const char *row, *version;
        bool may;
    } rows[] = {
        {"the newest", "{\"major\":\"1\",\"minor\":\"36\"}", true},
        {"the oldest", "{\"minor\":\"23\"}", true},
        {"a provider's", "{\"minor\":\"27+\",\"gitVersion\":\"v1.27.3-gke.100\"}", true},
        {"its kube-scheduler may be 1.21", "{\"minor\":\"22\"}", false},
        {"old", "{\"minor\":\"9\"}", false},
        {"no number", "{\"minor\":\"x\"}", false},
        {"not told", "{}", false},
        {"no answer", "", false},
        {"no text", "{\"minor\":36}", false},
        {"cut", "{\"minor\":\"36\"", false},
    };
    GS_FOR_EACH_ROW (r, rows)
        row_equal(r->row, nominating_may(gs_slice_of(r->version)), r->may);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_nominated_where_that_helps),
    };
    return GS_RUN(tests);
}
