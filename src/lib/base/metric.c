/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/metric.h"

#include <string.h>

#include "gpushare/base/utf8.h"

void gs_metric_family(struct gs_buf *out, const char *name, const char *type, const char *help)
{
    gs_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void gs_metric_label(struct gs_buf *out, const char *label, const char *value)
{
    gs_buf_printf(out, "%s=\"", label);
    for (size_t left = strlen(value), width; left; value += width, left -= width) {
        width = gs_utf8_width(value, left);
        bool calm = width && !gs_utf8_acts(value, width);
        width = width ? width : 1;
        if (*value == '\\' || *value == '"')
            gs_buf_putc(out, '\\');
        if (calm)
            gs_buf_append(out, value, width);
        else
            gs_buf_puts(out, *value == '\n' ? "\\n" : "?");
    }
    gs_buf_putc(out, '"');
}

void gs_metric_sample(struct gs_buf *out, const char *name, const char *label, const char *value,
                      uint64_t number)
{
    gs_buf_printf(out, "%s{", name);
    gs_metric_label(out, label, value);
    gs_buf_printf(out, "} %llu\n", (unsigned long long)number);
}

static void one(struct gs_buf *out, const char *name, const char *type, const char *help,
                uint64_t number)
{
    gs_metric_family(out, name, type, help);
    gs_buf_printf(out, "%s %llu\n", name, (unsigned long long)number);
}

void gs_metric_gauge(struct gs_buf *out, const char *name, const char *help, uint64_t number)
{
    one(out, name, "gauge", help, number);
}

void gs_metric_counter(struct gs_buf *out, const char *name, const char *help, uint64_t number)
{
    one(out, name, "counter", help, number);
}

void gs_metric_seconds(struct gs_buf *out, const char *name, const char *type, const char *help,
                       double seconds)
{
    gs_metric_family(out, name, type, help);
    gs_buf_printf(out, "%s %.3f\n", name, seconds);
}

void gs_metric_summary(struct gs_buf *out, const char *name, const char *help, uint64_t count,
                       uint64_t sum_ns)
{
    gs_metric_family(out, name, "summary", help);
    gs_buf_printf(out, "%s_sum %.9g\n%s_count %llu\n", name, (double)sum_ns / 1e9, name,
                  (unsigned long long)count);
}
