/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim/apiserver/cluster.h"

/* What happens to an API server now and then, done to the simulator's storage. */

/* Forgets the log and all snapshots of lists under way. */
void gs_sim_cluster_compact(struct gs_sim_cluster *cluster);

/* Every watch now open ends with GS_EIO. */
void gs_sim_cluster_cut_watches(struct gs_sim_cluster *cluster);
