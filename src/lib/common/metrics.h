/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/buf.h"
#include "gpushare/kube/client.h"

/* What every serving program shows on its metrics page besides its own. */

/* gpushare_build_info, and process_* as Prometheus' client libraries name them. */
void metrics_process(struct gs_buf *out);

/* What a client of the API server counts. */
void metrics_kube(struct gs_kube_client *client, struct gs_buf *out);
