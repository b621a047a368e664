/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_EXTENDER_HTTP_METRICS_H
#define GPUSHARE_APPS_EXTENDER_HTTP_METRICS_H

#include "gpushare/base/buf.h"
#include "gpushare/http/server.h"

/* What the scheduling port's server counts. */
void http_metrics(struct gs_http_server *server, struct gs_buf *out);

#endif
