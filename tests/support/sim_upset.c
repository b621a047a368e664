/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_upset.h"

#include <string.h>

#include "sim/apiserver/store.h"

void gs_sim_cluster_compact(struct gs_sim_cluster *cluster)
{
    struct gs_sim_snapshot *dropped[GS_SIM_SNAPSHOTS_MAX];
    pthread_mutex_lock(&cluster->lock);
    memcpy(dropped, cluster->snapshots, sizeof(dropped));
    memset(cluster->snapshots, 0, sizeof(cluster->snapshots));
    /* A version that nobody has seen: every watch that is taken up again finds its own too old. */
    cluster->version++;
    for (size_t kind = 0; kind < GS_SIM_KINDS; kind++)
        gs_sim_log_clear(&cluster->tables[kind].log, cluster->version);
    cluster->cuts++;
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&cluster->lock);
    for (size_t i = 0; i < GS_SIM_SNAPSHOTS_MAX; i++)
        gs_sim_snapshot_unref(dropped[i]);
}

void gs_sim_cluster_cut_watches(struct gs_sim_cluster *cluster)
{
    pthread_mutex_lock(&cluster->lock);
    cluster->cuts++;
    pthread_cond_broadcast(&cluster->changed);
    pthread_mutex_unlock(&cluster->lock);
}
