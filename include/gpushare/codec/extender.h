/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/arena.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/names.h"
#include "gpushare/model/pod.h"
#include "gpushare/model/reason.h"

/*
 * The four verbs of kube-scheduler's extender, bodies ⇄ plain data
 * (k8s.io/kube-scheduler/extender/v1/types.go: no JSON tags, so Go writes the field names as they
 * are and reads them in any case). Pure: any thread, each with its own structs.
 *
 * Decoders empty the struct first and keep its memory, so that one struct serves many requests; a
 * zeroed struct is fine. Slices *borrow* from the body, and from the struct until its next decode
 * or release. A field that is null counts as absent. On failure the struct is empty.
 *   GS_EPROTO   no JSON, a field of the wrong type, or a Pod that gs_codec_pod() refuses
 *   GS_EINVAL   a field without which there is nothing to answer is missing (the message names it)
 *   GS_ETOOBIG  more than GS_EXTENDER_NODES_MAX nodes, or victims in all
 *   GS_ENOMEM
 * Encoders append to a buffer whose failure the caller checks once, at the end.
 */
enum { GS_EXTENDER_NODES_MAX = 100000, GS_EXTENDER_VICTIMS_MAX = 1000000 };

/* 1.x of the API server from which pods are nominated: its kube-scheduler, which may be one release
 * older, is 1.22 at least and tries status.nominatedNodeName first (pkg/scheduler:
 * evaluateNominatedNode). */
enum { GS_NOMINATES_SINCE_MINOR = 23 };

/* ExtenderArgs, the request of filter and prioritize. kube-scheduler calls prioritize with the
 * names that filter answered: NodeNames that are byte for byte those of the last decode are not
 * read again. */
struct gs_filter_args {
    struct gs_pod pod;
    bool has_names;         /* NodeNames is there: answer by name */
    bool has_nodes;         /* Nodes is there: judge these objects, answer with them */
    struct gs_slice *names; /* NodeNames in order, decoded */
    uint32_t name_count;
    struct gs_slice *nodes;      /* Nodes.items in order: raw JSON for gs_codec_node() */
    struct gs_slice *node_names; /* metadata.name of each, "" when absent */
    uint32_t node_count;

    uint64_t names_id; /* another one after each decode that may have changed names; never 0 then */

    bool names_plain;   /* private: names are runs of one text, the body or `kept` */
    struct gs_buf kept; /* the last NodeNames as they stood, which names point into; "": none */
    uint32_t kept_count;
    bool node_names_plain;
    uint32_t name_room, node_room, node_name_room;
    struct gs_arena arena;
};

/* GS_EINVAL: no Pod, or neither NodeNames nor Nodes. */
int gs_codec_filter_args(const struct gs_names *names, struct gs_slice body,
                         struct gs_filter_args *ret, struct gs_error *err);
void gs_filter_args_release(struct gs_filter_args *args);

/* How many candidates, and the name of one: from NodeNames when has_names, else from Nodes. */
static inline uint32_t gs_filter_args_count(const struct gs_filter_args *args)
{
    return args->has_names ? args->name_count : args->node_count;
}

static inline const struct gs_slice *gs_filter_args_names(const struct gs_filter_args *args)
{
    return args->has_names ? args->names : args->node_names;
}

static inline struct gs_slice gs_filter_args_name(const struct gs_filter_args *args, uint32_t i)
{
    return gs_filter_args_names(args)[i];
}

/*
 * ExtenderFilterResult. reasons[i] (enum gs_reason) is the verdict on candidate i: GS_FITS keeps
 * it, in order and byte for byte; GS_VERDICT_LEFT_OUT names it nowhere; else it goes to FailedNodes
 * with the reason's text, and when gs_reason_unresolvable() also to FailedAndUnresolvableNodes,
 * which kube-scheduler 1.20 does not know; told_once: to that map only, for newer ones, which skip
 * what is in both (pkg/scheduler: findNodesThatPassExtenders). Answers NodeNames when has_names,
 * else Nodes. The request's body must still be there.
 */
enum { GS_VERDICT_LEFT_OUT = 255 };
void gs_codec_filter_result(struct gs_buf *out, const struct gs_filter_args *args,
                            const uint8_t *reasons, bool told_once);

/* The same type with only Error set; '%' is left out of the text, because kube-scheduler has used
 * it as a format string. */
void gs_codec_filter_error(struct gs_buf *out, const char *error);

/* HostPriorityList: every candidate with scores[i] (0..10), but for those whose score is
 * GS_SCORE_UNTOLD. */
enum { GS_SCORE_UNTOLD = 255 };
void gs_codec_host_priorities(struct gs_buf *out, const struct gs_filter_args *args,
                              const uint8_t *scores);

/* ExtenderBindingArgs. Strings lie in the arena, NUL-terminated. */
struct gs_binding_args {
    const char *name;
    const char *ns;
    const char *uid;
    const char *node;
    struct gs_arena arena;
};

/* GS_EINVAL: one of the four is absent or empty. */
int gs_codec_binding_args(struct gs_slice body, struct gs_binding_args *ret, struct gs_error *err);
void gs_binding_args_release(struct gs_binding_args *args);

/* ExtenderBindingResult; "" for success. '%' is left out. */
void gs_codec_binding_result(struct gs_buf *out, const char *error);

/* One proposed victim. */
struct gs_victim {
    const char *uid;     /* "" when the request has none */
    struct gs_slice pod; /* raw JSON for gs_codec_pod(); empty in the form with UIDs only */
};

/* One node that kube-scheduler proposes, with what it would evict there. */
struct gs_victims {
    const char *node;
    struct gs_victim *pods;
    uint32_t pod_count;
    int64_t pdb_violations; /* 0 when the request has none (1.20 sends none with UIDs only) */
};

/* ExtenderPreemptionArgs. When both maps are there, NodeNameToMetaVictims counts. */
struct gs_preemption_args {
    struct gs_pod pod;
    bool meta;                /* NodeNameToMetaVictims: UIDs only */
    struct gs_victims *nodes; /* in the request's order */
    uint32_t node_count;
    struct gs_arena arena;
};

/* GS_EINVAL: no Pod, or neither map. */
int gs_codec_preemption_args(const struct gs_names *names, struct gs_slice body,
                             struct gs_preemption_args *ret, struct gs_error *err);
void gs_preemption_args_release(struct gs_preemption_args *args);

/* ExtenderPreemptionResult, always with NodeNameToMetaVictims, which every release reads. Of each
 * victim only uid is used: the caller may build entries of its own. */
void gs_codec_preemption_result(struct gs_buf *out, const struct gs_victims *nodes,
                                uint32_t node_count);
