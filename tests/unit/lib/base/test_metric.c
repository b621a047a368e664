/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/metric.h"
#include "rows.h"

static void expect_text(struct gs_buf *out, const char *text)
{
    assert_string_equal(out->data, text);
    gs_buf_release(out);
}

static void a_family_names_its_type_and_meaning(void **state)
{
    struct gs_buf out = GS_BUF(4096);
    gs_metric_gauge(&out, "g", "How many.", 3);
    gs_metric_counter(&out, "c_total", "How often.", UINT64_MAX);
    gs_metric_seconds(&out, "s_seconds", "gauge", "When.", 1.5);
    expect_text(&out, "# HELP g How many.\n# TYPE g gauge\ng 3\n"
                      "# HELP c_total How often.\n# TYPE c_total counter\n"
                      "c_total 18446744073709551615\n"
                      "# HELP s_seconds When.\n# TYPE s_seconds gauge\ns_seconds 1.500\n");
}

static void a_summary_has_sum_and_count(void **state)
{
    struct gs_buf out = GS_BUF(4096);
    gs_metric_summary(&out, "t_seconds", "How long.", 2, 2500000000);
    expect_text(&out, "# HELP t_seconds How long.\n# TYPE t_seconds summary\n"
                      "t_seconds_sum 2.5\nt_seconds_count 2\n");
}

static const struct label_row {
    const char *name;
    const char *value;
    const char *text;
} label_rows[] = {
    {"plain", "n1", "m{l=\"n1\"} 1\n"},
    {"empty", "", "m{l=\"\"} 1\n"},
    {"quote", "a\"} 9", "m{l=\"a\\\"} 9\"} 1\n"},
    {"backslash", "a\\", "m{l=\"a\\\\\"} 1\n"},
    {"line feed", "a\nb 2", "m{l=\"a\\nb 2\"} 1\n"},
    {"other script", "caf\u00e9", "m{l=\"caf\u00e9\"} 1\n"},
    {"speaks to a terminal", "a\x1b[2J\r\u202e", "m{l=\"a?[2J??\"} 1\n"},
    {"no UTF-8, which fails a scrape", "a\xff\xc3", "m{l=\"a??\"} 1\n"},
};

static void no_label_value_ends_its_line_or_its_quotes(void **state)
{
    GS_FOR_EACH_ROW (r, label_rows) {
        const struct label_row *row = r;
        struct gs_buf out = GS_BUF(4096);
        print_message("  %s\n", row->name);
        gs_metric_sample(&out, "m", "l", row->value, 1);
        expect_text(&out, row->text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_family_names_its_type_and_meaning),
        cmocka_unit_test(a_summary_has_sum_and_count),
        cmocka_unit_test(no_label_value_ends_its_line_or_its_quotes),
    };
    return GS_RUN(tests);
}
