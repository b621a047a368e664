/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_SERVICE_NEW_NODES_H
#define GPUSHARE_SERVICE_NEW_NODES_H

#include <stdint.h>

/*
 * Nodes that have gained GPUs since the first list of pods began. Of pods without GPU memory the
 * ledger keeps the CPU on GPU nodes only, so those that were there already have to be read once
 * more. The names are guarded by the store's lock.
 */
enum { GS_NEW_NODES_MAX = 256 };

struct gs_service;

struct gs_new_nodes {
    char *names[GS_NEW_NODES_MAX];
    uint32_t count;
    int64_t next_ns; /* not before: the last attempt failed. Of the thread that compares */
};

void gs_new_nodes_release(struct gs_new_nodes *new_nodes);

/* Store locked for writing. Best effort: beyond the maximum or without memory the CPU of a node's
 * pods comes in with their next events. */
void gs_new_nodes_add(struct gs_new_nodes *new_nodes, const char *node);

/* Reads the pods of one such node; the next one at the next tick. Call without the lock. */
void gs_new_nodes_tick(struct gs_service *service, int64_t now_ns);

#endif
