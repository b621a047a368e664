/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_CONNECT_H
#define GPUSHARE_APPS_INSPECT_CONNECT_H

#include "inspect/app.h"

/* app.connect for an API server: credentials as kubectl finds them. Nothing is sent yet. */
int connect_kube(const struct connection *connection, struct source *ret, struct gs_error *err);

#endif
