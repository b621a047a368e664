/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uthash.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/array.h"
#include "gpushare/base/clock.h"
#include "gpushare/model/gpu.h"
#include "inspect/source.h"

/*
 * What pods use: the page /usage of the device plugins (docs/operate.md), asked through
 * the API server's proxy with the user's own rights. Who answers for a node is the pod there of the
 * DaemonSet, in the namespace of the installation, which its controller's reference says: a label
 * can be had by anybody. It is believed about its own node only. So many are asked at once, each
 * for so long, and all together for query.timeout_ns. What a plugin refuses, leaves unsaid or says
 * at too great length is not known, of its node alone. Pods are named only by plugins that were
 * told to.
 *
 *   struct usage usage;
 *   const struct usage_query query = {&source, clock, NULL, "gpushare-system", USAGE_TIME_NS};
 *   usage_fetch(&query, &usage);
 *   const struct usage_pod *pod = usage_pod_find(&usage, node, uid);      NULL: not known
 *   usage_release(&usage);
 */
enum {
    USAGE_AT_ONCE = 32,
    USAGE_ANSWER_BYTES_MAX = 1 << 20,
    USAGE_PODS_MAX = 1024, /* of a node; kubelets take 110 by themselves */
};
#define USAGE_NODE_NS (2 * GS_NS_PER_S) /* for one answer */
#define USAGE_TIME_NS (5 * GS_NS_PER_S) /* for all, unless told otherwise */
#define USAGE_PLUGIN  "gpushare-device-plugin"

struct usage_query {
    const struct source *source;
    const struct gs_clock *clock;
    const char *node;      /* only that one's; NULL: all */
    const char *system_ns; /* where the device plugins run */
    int64_t timeout_ns;    /* for all together */
};

/* Of one pod on one GPU. */
struct usage_gpu {
    uint32_t idx;
    bool known; /* the kernel counts it */
    uint64_t used_bytes, peak_bytes;
};

/* Words are the plugin's: its host's, and others'. They are calmed (base/utf8.h). */
struct usage_pod {
    const char *ns, *name, *uid, *owner, *node;
    enum gs_enforced enforced; /* what limits it; gs_enforced_lacks(): nothing */
    const char *reason;        /* why nothing does */
    uint64_t given_bytes;      /* on each of its GPUs */
    uint64_t limit_bytes;      /* likewise, what a limit would be: more where contexts count */
    struct usage_gpu *gpus;
    uint32_t gpu_count;
    bool known;                      /* of some GPU; then the most on one of them: */
    uint64_t used_bytes, peak_bytes; /* now, and ever */
    UT_hash_handle hh;               /* by node and uid */
};

struct usage_node {
    const char *name;
    const char *path; /* of its plugin's page */
    bool answered;
    bool names_pods;
    const char *mode;                 /* its --enforce; NULL: not said */
    uint64_t over_pods;               /* use more than their request */
    gs_gpu_mask known;                /* of these GPUs, by index: */
    uint64_t used_bytes[GS_GPUS_MAX]; /* what all that runs there uses, as the driver counts;
                                         else what its pods use, as the kernel counts */
    UT_hash_handle hh;                /* by name */
};

struct usage {
    struct gs_arena arena;
    struct usage_node *nodes;
    struct usage_pod *pods;
    uint32_t asked, answered; /* device plugins */
    bool names_pods;          /* some of them do */
    struct gs_error why;      /* the first that failed */
};

/* Never fails: what is missing is not known, and ret->why says why. */
void usage_fetch(const struct usage_query *query, struct usage *ret);
void usage_release(struct usage *usage);

/* On standard error, how many did not answer; nothing when all did. */
void usage_say_missing(const struct usage *usage);

/* NULL: not known. usage NULL: nothing is. */
const struct usage_node *usage_node_find(const struct usage *usage, const char *name);
const struct usage_pod *usage_pod_find(const struct usage *usage, const char *node,
                                       const char *uid);

/* "3.1", in units. */
enum { USAGE_TEXT_BYTES = 24 };
void usage_text(uint64_t bytes, enum gs_unit unit, char to[USAGE_TEXT_BYTES]);
