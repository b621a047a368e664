/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/codec/inventory.h"
#include "gpushare/model/node.h"

/*
 * What this plugin recorded of its node: the unit in force, which index is whose, which GPUs a DRA
 * driver's slices named, and whether MPS was chosen by the node's label. It stands in the node's
 * object and, so that it is known while the API server is away, in a file on the host:
 *   DEVICE_PLUGIN_DIR/gpushare-DOMAIN/record.json      in the form of the inventory
 * (codec/inventory.h) in a folder, because kubelets up to 1.20 delete every file beside their own
 * when they start. The one with the larger rev counts, the node's if it has none: an older plugin
 * wrote it since. A file that is torn, or another node's, counts as absent. Loop thread.
 */
enum { RECORD_PATH_BYTES = 512 };

struct record {
    char folder[RECORD_PATH_BYTES], path[RECORD_PATH_BYTES + 16];
    const char *node;
    struct gs_arena arena;   /* of what follows */
    struct gs_inventory now; /* that counts; unit is unknown where there is none, or only an
                                original's */
    struct gs_slice text;    /* that now was read from */
    bool on_host;            /* there is one in the file */
    bool write_failed;       /* said once */
};

/* Reads the file. node is *borrowed*. */
void record_open(struct record *record, const char *dir, const char *domain, const char *node);
void record_release(struct record *record);

/* The node's object was read: which of the two counts is now from then on. */
void record_take_node(struct record *record, const struct gs_node *node);

/* Which GPUs a DRA driver's slices name. False: the same as before, or out of memory. */
bool record_set_others(struct record *record, const char *const *uuids, uint32_t count);

/* What is so now, of GPUs by our indices. Where that is something else than what is recorded, it is
 * written to the file, with a larger rev. Returns the rev. */
int64_t record_keep(struct record *record, const struct gs_inventory *now);
