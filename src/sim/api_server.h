/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "sim/apiserver/api.h"

/*
 * An embedded cluster's REST API on the HTTP layer: requests become gs_sim_api_handle(), watches
 * become streams, each with a thread of its own that sleeps in the cluster.
 *
 *   struct api_server *server;
 *   api_server_start(cluster, NULL, "127.0.0.1:0", &server, &err);
 *   ... api_server_port(server)
 *   api_server_stop(server);
 */
struct api_server;

/* token: as in struct gs_sim_api. It and cluster are *borrowed until* the stop. Errors as
 * gs_http_server_start(). */
int api_server_start(struct gs_sim_cluster *cluster, const char *token, const char *listen,
                     struct api_server **ret_server, struct gs_error *err);
uint16_t api_server_port(const struct api_server *server);

/* Ends watches, lets requests finish, frees. NULL is fine. */
void api_server_stop(struct api_server *server);
GS_DEFINE_CLEANUP(struct api_server *, api_server_stop)
