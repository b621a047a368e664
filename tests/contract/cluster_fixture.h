/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube_ops_contract.h"
#include "sim/apiserver/cluster.h"

/* The scene-setting half of a fixture, on an embedded cluster; both backends that are made of one
 * begin with it. Must be the first member of the backend's own struct. */
struct cluster_fixture {
    struct gs_sim_cluster *cluster;
    struct gs_names names;
};

/* Fills all of *ret but kube. */
int cluster_fixture_open(struct cluster_fixture *fixture, struct gs_kube_fixture *ret);
void cluster_fixture_close(struct cluster_fixture *fixture);
