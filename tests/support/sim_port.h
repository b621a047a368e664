/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/model/names.h"
#include "gpushare/port/kube.h"
#include "sim/apiserver/cluster.h"

/*
 * The cluster port of include/gpushare/port/kube.h on a cluster in memory: the same results and
 * error codes as the curl client, without a socket. Tests run the shipped service on it.
 *
 *   struct gs_sim_port *port;
 *   gs_sim_port_new(cluster, &names, &port, &err);
 *   struct gs_kube kube = gs_sim_port_kube(port);
 *
 * Watches deliver from the cluster's log and block in real time only; wake() ends their wait.
 */
struct gs_sim_port;

/* cluster and names are *borrowed until* the port is freed. *ret_port: *caller frees*. GS_ENOMEM.
 */
int gs_sim_port_new(struct gs_sim_cluster *cluster, const struct gs_names *names,
                    struct gs_sim_port **ret_port, struct gs_error *err);

/* No thread may be in it any more. */
void gs_sim_port_free(struct gs_sim_port *port);
GS_DEFINE_CLEANUP(struct gs_sim_port *, gs_sim_port_free)

/* *Borrowed until* the port is freed. */
struct gs_kube gs_sim_port_kube(struct gs_sim_port *port);
