/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_COMMON_CONNECT_H
#define GPUSHARE_APPS_COMMON_CONNECT_H

#include "gpushare/kube/client.h"

/* A client of the API server that --kubeconfig and --context name (NULL: not given), in the cluster
 * without either; logs which. *ret: gs_kube_client_free(). Errors: those of gs_kube_config_load()
 * and gs_kube_client_new(). */
int connect_api(const char *kubeconfig, const char *context, const struct gs_kube_options *options,
                struct gs_kube_client **ret, struct gs_error *err);

#endif
