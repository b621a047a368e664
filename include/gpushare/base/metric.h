/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/buf.h"

/*
 * Prometheus text format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats), and only what
 * OpenMetrics would take too: every family has its HELP and TYPE, counters end in _total, units are
 * seconds and bytes, and no two families differ in _total alone.
 *
 *   gs_metric_gauge(out, "gpushare_nodes", "Nodes known.", 3);
 *   gs_metric_family(out, "gpushare_requeues_total", "counter", "Pods requeued, by outcome.");
 *   gs_metric_sample(out, "gpushare_requeues_total", "outcome", "sent", 7);
 *
 * Labels come from fixed words, from what only an administrator can name (nodes, GPUs), and from
 * namespaces and pods where their number has a ceiling (docs/operate.md): whoever may create
 * pods cannot create series without end.
 */

/* The head of a family; its samples follow. type: "counter", "gauge", "histogram", "summary". */
void gs_metric_family(struct gs_buf *out, const char *name, const char *type, const char *help);

/* One sample with one label. */
void gs_metric_sample(struct gs_buf *out, const char *name, const char *label, const char *value,
                      uint64_t number);

/* `label="value"`, escaped as the format wants it; '?' for what is no UTF-8, of which Prometheus
 * takes none, and for what would speak to a terminal (base/utf8.h). */
void gs_metric_label(struct gs_buf *out, const char *label, const char *value);

/* A family of one sample without labels. */
void gs_metric_gauge(struct gs_buf *out, const char *name, const char *help, uint64_t number);
void gs_metric_counter(struct gs_buf *out, const char *name, const char *help, uint64_t number);

/* A family of one sample in seconds. */
void gs_metric_seconds(struct gs_buf *out, const char *name, const char *type, const char *help,
                       double seconds);

/* A summary without quantiles: how often, and how long together. */
void gs_metric_summary(struct gs_buf *out, const char *name, const char *help, uint64_t count,
                       uint64_t sum_ns);
