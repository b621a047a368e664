/* SPDX-License-Identifier: Apache-2.0 */
/* The contract on the cluster in memory, in-process. */
#include <stdlib.h>
#include <string.h>

#include "cluster_fixture.h"
#include "sim_port.h"

struct memory {
    struct cluster_fixture cluster;
    struct gs_sim_port *port;
};

static int open_memory(struct gs_kube_fixture *ret)
{
    struct memory *memory = calloc(1, sizeof(*memory));
    if (!memory || cluster_fixture_open(&memory->cluster, ret) < 0 ||
        gs_sim_port_new(memory->cluster.cluster, &memory->cluster.names, &memory->port, NULL) < 0)
        return -1;
    ret->kube = gs_sim_port_kube(memory->port);
    return 0;
}

static void close_memory(struct gs_kube_fixture *fixture)
{
    struct memory *memory = fixture->ctx;
    gs_sim_port_free(memory->port);
    cluster_fixture_close(&memory->cluster);
    free(memory);
}

int main(void)
{
    return gs_kube_ops_contract_run(&(struct gs_kube_backend){
        .name = "cluster in memory", .open = open_memory, .close = close_memory});
}
