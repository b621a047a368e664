/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_EXTENDER_PROCESS_METRICS_H
#define GPUSHARE_APPS_EXTENDER_PROCESS_METRICS_H

#include "extender/routes.h"

/* Appends what the HTTP server, the Kubernetes client and the process count themselves. */
void process_metrics(const struct routes_ctx *app, struct gs_buf *out);

#endif
