/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim_port.h"

/* What the two halves of the port share. */
struct gs_sim_port {
    struct gs_sim_cluster *cluster;
    const struct gs_names *names;
};

/* The cluster's error in the words of port/kube.h; returns -1. */
int gs_sim_port_fail(const struct gs_error *cause, struct gs_error *err);

/* A node's name, "spec.nodeName=" and a NUL. */
enum { GS_SIM_FIELD_BYTES = 300 };

/* Pods of a node or the node itself; NULL: all. *ret borrows field. */
int gs_sim_port_query(enum gs_sim_kind kind, const char *node, char field[GS_SIM_FIELD_BYTES],
                      struct gs_sim_query *ret, struct gs_error *err);

int gs_sim_port_watch(void *ctx, const struct gs_watch_spec *spec, const struct gs_watch_sink *sink,
                      const atomic_bool *stop, struct gs_error *err);
