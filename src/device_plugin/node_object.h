/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/names.h"
#include "gpushare/port/gpu_source.h"
#include "gpushare/port/kube.h"

/* What this node's object shall say about its GPUs. */
struct node_object {
    const struct gs_gpu_set *set; /* with mem_units; it and the next two: of a write (writes.c) */
    enum gs_unit unit;
    bool unit_doubted; /* nothing new may come: the unit is not the one that was asked for */
    bool due;          /* to be looked at */
    bool written; /* by this process; what an earlier one left behind is not looked at but replaced
                   */
    bool missing; /* the API server has no such node */
    bool upgrading;    /* nothing new may come: somebody replaces the driver */
    bool leaving;      /* nothing new may come: nobody will serve the kubelet for a while */
    int64_t rev;       /* of the record (record.h) */
    const char *moved; /* the text of gpu-reassigned */
};

/*
 * Any thread: reads the node and writes what differs: the annotations inventory and gpu-reassigned,
 * in one patch, the label gpu-enforced, and the number of GPUs in capacity and allocatable.
 * *ret_changed: something was written; *ret: what was read, *caller frees* it, also after an
 * error. Errors are the port's.
 */
int node_object_write(const struct gs_kube *kube, const struct gs_names *names, const char *node,
                      const struct node_object *desired, bool *ret_changed, struct gs_node *ret,
                      struct gs_error *err);
