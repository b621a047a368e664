/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_APPS_INSPECT_WAITS_H
#define GPUSHARE_APPS_INSPECT_WAITS_H

#include "inspect/doc.h"
#include "inspect/terminal.h"
#include "inspect/verdict.h"

/*
 * Every pod that asks for GPU memory and has no node, and why: the reason of the node that comes
 * nearest to taking it. The same for `why` without a pod, doctor, -o wide, json and the page.
 * Everything borrows from the snapshot.
 */
struct wait {
    const struct snap_waiting *waiting;
    struct gs_ask ask;
    uint32_t fits;              /* nodes that could take it now */
    uint64_t rules;             /* hash of what the pod says about nodes */
    enum gs_obstacle obstacle;  /* of the nearest node */
    enum gs_reason reason;      /* when that is GS_OBSTACLE_GPU, else GS_FITS */
    bool never;                 /* no GPU of this cluster could ever take it */
    struct verdict_group group; /* the nodes of that reason, and the nearest of them */
    bool other_scheduler;       /* it names another scheduler than all that have their GPU */
};

struct waits {
    struct wait *all; /* who waits longest first */
    size_t count;
    uint64_t units; /* of all GPUs they ask for */
    uint32_t never;
    const char *unit;
    const char *scheduler; /* who places pods with GPU memory here; NULL: nobody has yet */
};

/* Longest text of waits_reason() and waits_nearest(). */
enum { WAIT_TEXT_BYTES = 512 };

/* ns NULL: of all namespaces. GS_ENOMEM. Release it also then. */
int waits_find(const struct snapshot *snapshot, const char *ns, struct waits *ret,
               struct gs_error *err);
void waits_release(struct waits *waits);

/* One sentence, or a word or two for narrow tables, which json has with underscores. */
void waits_reason(const struct waits *waits, const struct wait *wait, char to[WAIT_TEXT_BYTES]);
const char *waits_label(const struct wait *wait);

/* "large GPU3: 35 free, 15 missing", or "". */
void waits_nearest(const struct wait *wait, char to[WAIT_TEXT_BYTES]);

/* "35", "15 on each of 2 GPUs" */
void waits_asks(const struct wait *wait, char to[WAIT_TEXT_BYTES]);

/* "5m", since Unix second from; "-" when from is 0. */
void waits_since(int64_t from_s, int64_t now_s, char to[24]);

/* "5 pods wait for 560 GiB, 2 of them fit no GPU of this cluster" */
void waits_sum(const struct waits *waits, char to[WAIT_TEXT_BYTES]);

/* The table with its sum, on standard output; nothing when nobody waits. -1: out of memory. */
int waits_print(const struct waits *waits, const struct terminal *terminal, int64_t now_s);

/* The member "waiting". */
void waits_document(struct doc *doc, const struct waits *waits);

#endif
