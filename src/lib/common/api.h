/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>

#include "gpushare/kube/client.h"
#include "gpushare/port/kube.h"

/* A client of the API server that the kubeconfig names, NULL: of the cluster that this pod runs in;
 * logs which. *ret: gs_kube_client_free(). Errors: those of gs_kube_config_load() and
 * gs_kube_client_new(). */
int api_connect(const char *kubeconfig, const struct gs_kube_options *options,
                struct gs_kube_client **ret, struct gs_error *err);

/* The body of a watch's thread: gs_kube_ops.watch, begun again each second when it cannot begin
 * (out of memory), until *stop. A program whose watch ended would be alive and blind. */
void api_watch_until_stopped(struct gs_kube kube, const struct gs_watch_spec *spec,
                             const struct gs_watch_sink *sink, const atomic_bool *stop);
