/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

#include "gpushare/core/fragmentation.h"
#include "inspect/limits.h"
#include "inspect/snapshot.h"
#include "inspect/usage.h"
#include "inspect/waits.h"

/*
 * The view model: what every printer shows, computed once. Everything borrows from the snapshot,
 * which must not change while the view is in use.
 *
 * A pod whose annotation names its GPUs counts as allocated there. One without (PENDING) counts
 * once on its node, as the original counts it; for placement, and so in `free`, it is charged to
 * every GPU that could hold it.
 */
struct view_gpu {
    const struct gs_gpu *gpu; /* UUID, model, health */
    uint32_t idx;
    uint64_t total_units;
    uint64_t used_units;     /* by pods that name this GPU */
    uint32_t used_cores_pct; /* what its pods ask for of its compute */
    uint64_t free_units;     /* for a new pod; 0 when the GPU or its node takes none */
    bool usable;             /* new pods may come: the GPU's state, and its node's */
    bool overfull;
};

struct view_node {
    const struct snap_node *node;
    const struct gs_node_view *state;
    struct view_gpu *gpus; /* ascending idx */
    uint32_t gpu_count;
    uint32_t columns;        /* highest index + 1 */
    struct gs_claim *claims; /* by first GPU, namespace, name; those without a GPU last */
    uint32_t claim_count;
    uint64_t total_units;
    uint64_t used_units;    /* with pending */
    uint64_t pending_units; /* of pods that name no GPU */
    uint32_t pending_pods;
    /* used + free + unusable = total + over, whatever the API shows: neither given nor for a new
     * pod (of a GPU or node that takes none, or blocked by pods that name no GPU); given beyond
     * what the GPUs have. */
    uint64_t unusable_units, over_units;
    const struct usage_node *usage; /* what its plugin says; NULL: nothing */
    uint32_t limited_gpus;          /* something limits pods there */
    uint32_t blocked_pods;          /* `required` would block them, as far as is known */
    uint64_t used_cores_pct;        /* asked for of its GPUs' compute, 100 of each */
    uint64_t used_bytes;            /* truly in use of its GPUs together, as far as it says */
    int64_t least_cpu_milli;        /* of its pods; 0 without one */
    struct gs_fragmentation fragmentation;
};

#define EACH_GPU(gpu, node)     GS_EACH_OF (gpu, (node)->gpus, (node)->gpu_count)
#define EACH_CLAIM(claim, node) GS_EACH_OF (claim, (node)->claims, (node)->claim_count)
#define EACH_ROW(node, view)    GS_EACH_OF (node, (view)->nodes, (view)->node_count)

struct view_sum {
    struct view_node all; /* the nodes' sums, the most columns, usage where one has it; no GPUs */
    uint32_t gpus;
    uint64_t largest_gpu_units; /* at least 1 */
    uint32_t pods;              /* that a filter means; without one all */
    uint64_t meant_units;       /* given to them, */
    uint64_t meant_used_bytes;  /* and used by those of a filter, */
    uint32_t meant_used_pods;   /* so many of which are known */
    uint32_t overfull_gpus, unusable_gpus;
};

struct view_options {
    const char *ns; /* only nodes with pods of this namespace, and of their pods only these */
    bool some;      /* not all nodes are in the snapshot */
    const struct usage *usage; /* borrowed; NULL: not asked */
    bool waits;                /* find out who waits and why, too */
    int64_t now_s;             /* Unix time */
};

/* What a reader asked for; "" is anything. */
struct view_filter {
    const char *text; /* part of a node's name, of a pod's or, of one that waits, its owner's */
    const char *ns;
    const char *model;
    const char *owner; /* "Deployment/web", of a namespace */
};

struct view {
    struct view_node *nodes;
    size_t node_count;
    struct view_space *namespaces; /* most used first */
    size_t ns_count;
    const struct view_filter *filter; /* of view_narrow(); NULL: everything */
    struct view_sum sum;              /* of the nodes shown */
    const char *unit;                 /* "GiB", …; "mixed units" when nodes differ */
    bool mixed_units;
    const struct usage *usage; /* what pods use; NULL: not asked */
    struct waits waits;        /* their number and sum; and each, when asked for */
    int64_t now_s;
    const char *scope; /* whose sums: "Cluster", "Nodes Shown" */
    const struct snapshot *snapshot;
    struct gs_claim *all_claims;
    struct view_gpu *all_gpus;
};

/* GS_ENOMEM. Release it also then. */
int view_build(struct snapshot *snapshot, const struct view_options *options, struct view *ret,
               struct gs_error *err);
void view_release(struct view *view);

/* Its GPU with that index; NULL: it has none. */
const struct view_gpu *view_gpu_at(const struct view_node *node, uint32_t idx);

/* What is to be known of a GPU or a node, with a text before each word; "" when nothing is. Both
 * return `to`. */
enum { VIEW_WORDS_BYTES = 64 };
const char *view_gpu_words(const struct view_gpu *gpu, const char *before,
                           char to[VIEW_WORDS_BYTES]);
const char *view_node_words(const struct snap_node *node, const char *before,
                            char to[VIEW_WORDS_BYTES]);
/* Of its GPUs: "A100", "mixed GPUs", "" when it is not known. */
const char *view_node_model(const struct view_node *node);

/* What limits pods on such a GPU (gs_enforced_holds()), in a sentence. */
const char *view_limits(enum gs_enforced enforced);

/* So many more pods of 1, 2, 4, … GiB would fit now, on one GPU each, as what-if --ignore-pending
 * counts them; false: no GPU has that much, or there is no unit to tell it in. */
struct view_fit {
    uint32_t gib, units;
    uint64_t pods;
};
bool view_fit(const struct view *view, uint32_t nth, struct view_fit *ret);

/* The unit of a word such as view.unit: GiB where it names none. */
enum gs_unit view_unit(const char *word);
/* The unit of the node's figures. */
enum gs_unit view_unit_of(const struct view *view, const struct view_node *node);

/* The part of a view that the filter means, with sums of its own, of the nodes that match or have
 * pods that do; their other pods stay. Waiting pods match by themselves, by their owner or by the
 * node that comes nearest; of a model are those that such a GPU could take. Borrows from the whole,
 * and from *filter. -1: GS_ENOMEM; release it also then. */
int view_narrow(const struct view *whole, const struct view_filter *filter, struct view *ret);

/* The filter means this pod on that node. */
bool view_means(const struct view *view, const struct view_node *node,
                const struct gs_claim *claim);

/* A namespace's scheduled pods: of those that the filter means. */
struct view_space {
    const char *ns;
    uint32_t pods;
    uint64_t units;
    UT_hash_handle hh; /* while they are summed up */
};

/* For view_build(): sums and namespaces of the nodes that are there; -1: GS_ENOMEM. */
int view_sum_up(struct view *view);

/* used / total in whole percent, cut as the original cuts it; 0 of nothing. */
uint64_t view_percent(uint64_t used, uint64_t total);
