/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/model/names.h"
#include "gpushare/model/pod.h"
#include "reader.h"

/* Private to pod.c (metadata, status, annotations), pod_spec.c (containers) and
 * pod_rules.c. */

struct gs_container_list {
    struct gs_container *items;
    uint32_t count;
};

/* An entry of metadata.ownerReferences. */
struct gs_pod_owner {
    bool controller;
    const char *uid, *api, *kind, *name;
};

struct gs_pod_reader {
    struct gs_reader reader; /* first, so that callbacks can cast their reader to this struct */
    struct gs_pod pod;
    struct gs_container_list init, main;
    struct gs_scan_text created, phase, qos, deleted, preemption;
    const char *group_label, *old_group_label; /* NULL: absent */
    struct gs_slice labels;                    /* metadata.labels as raw JSON */
    struct gs_pod_owner owner;
    struct gs_scan_text template_hash;
    /* annotations and the label, checked once the pod is read */
    struct gs_scan_text count_label, count_annotation;
    struct gs_scan_text idx, allocation, assigned, assume_time, placement, enforce, mirror;
    int64_t own_cpu_milli, own_memory_bytes; /* spec.resources; -1: absent */
    uint32_t rules, rule_values;             /* how many pod_rules.c has kept */
};

#define GS_POD_MEMBER(key, field) GS_MEMBER(struct gs_pod_reader, key, field)

extern const struct gs_member gs_pod_spec_members[], gs_pod_affinity_members[];

void gs_read_pod_toleration(struct gs_reader *reader, void *to);
void gs_read_pod_spread(struct gs_reader *reader, void *to);
void gs_read_pod_node_selector(struct gs_reader *reader, void *to);
/* A LabelSelector: matchLabels and matchExpressions. */
void gs_read_label_selector(struct gs_pod_reader *pr, struct gs_term_of_nodes *ret);

/* Joins the lists of containers, init containers first. -1: out of memory. */
int gs_pod_reader_join(struct gs_pod_reader *pr);
