/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/index.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/amount.h"
#include "gpushare/model/pod.h"
#include "gpushare/model/reason.h"

struct gs_ledger;

/* Models are numbered from 1; there are at most so many, in all and of one node, whose further ones
 * have number 0. A number is free again, and may become another model's, when no node has a GPU of
 * it. */
enum { GS_MODELS_MAX = 1024, GS_NODE_MODELS_MAX = 16 };

/*
 * A request's lists, matched before the store is locked: against each model that the ledger has
 * seen, once, and the UUIDs made numbers. Everything that looks at many nodes takes one; without it
 * gs_ask_allowed() compares texts for every GPU, which says the same. Plain data of gs_ask_match().
 */
struct gs_match {
    uint16_t models;                      /* numbers up to this one were matched */
    uint64_t allowed[GS_MODELS_MAX / 64]; /* model number - 1 */
    uint32_t uuids, uuids_denied;
    uint32_t uuid[GS_LIST_ENTRIES_MAX], uuid_denied[GS_LIST_ENTRIES_MAX]; /* hashes */
};

/* What a pod asks of a node. Selector texts are borrowed from the pod. */
struct gs_ask {
    uint32_t gpu_count;
    GS_AMOUNT_EACH; /* without units it fits everywhere */
    int32_t priority;
    enum gs_placement placement;
    int64_t cpu_milli;
    enum gs_reason broken; /* GS_FITS, or why the pod can be placed nowhere */
    bool selects;          /* one of the four lists is not empty */
    struct gs_slice model, model_deny, uuid, uuid_deny;
    const struct gs_match *match;     /* of these lists, borrowed; NULL: not matched */
    const char *uid;                  /* borrowed; its own hold does not stand in its way */
    uint64_t group;                   /* gs_pod_name_hash() of the pod's group; 0: it names none */
    const char *ns;                   /* borrowed; NULL: nobody's. Whose memory it may take */
    const struct gs_pod_rules *rules; /* the pod's, borrowed; NULL: it says nothing about nodes */
};

/* Reads a pod's ask; every broken annotation ends in ask->broken. */
void gs_ask_of_pod(struct gs_ask *ret, const struct gs_pod *pod);

/* Of all that says which GPUs and nodes are good for it, but for rules about nodes (base/index.h).
 */
static inline uint64_t gs_ask_hash(const struct gs_ask *ask)
{
    const uint64_t words[] = {
        ask->units,
        ask->gpu_count,
        ask->cores_pct,
        (uint64_t)ask->cpu_milli,
        gs_hash_slice(ask->model),
        gs_hash_slice(ask->model_deny),
        gs_hash_slice(ask->uuid),
        gs_hash_slice(ask->uuid_deny),
    };
    return gs_hash_bytes(words, sizeof(words));
}

/* Matches the lists of an ask that has any and is not broken: *room is the ask's from then on. It
 * is of the models that the ledger has now: after its lock was let go, match again. */
void gs_ask_match(struct gs_ask *ask, const struct gs_ledger *ledger, struct gs_match *room);
