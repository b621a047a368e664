/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_POD_READER_H
#define GPUSHARE_CODEC_POD_READER_H

#include "gpushare/model/names.h"
#include "gpushare/model/pod.h"
#include "reader.h"

/* Private to pod.c (metadata, status, annotations), pod_spec.c (containers) and
 * pod_rules.c. */

struct gs_container_list {
    struct gs_container *items;
    uint32_t count;
};

struct gs_pod_reader {
    struct gs_reader reader;
    const struct gs_names *names;
    struct gs_pod *pod;
    struct gs_container_list init, main;
    struct gs_scan_text phase, qos;
    const char *group_label, *old_group_label; /* NULL: not there */
    struct gs_slice labels;                    /* metadata.labels as it stands there */
    struct gs_scan_text owner_api, owner_kind, owner_name, template_hash;
    /* annotations and the label, judged when all of the text was read */
    struct gs_scan_text count_label, count_annotation;
    struct gs_scan_text idx, allocation, assigned, assume_time, placement, enforce, mirror, offer,
        term;
    uint32_t rules, rule_values; /* of pod_rules.c: how many were kept */
    struct gs_scan_text model, model_deny, uuid, uuid_deny;
};

void gs_read_pod_spec(struct gs_pod_reader *pr);
void gs_read_pod_affinity(struct gs_pod_reader *pr);
void gs_read_pod_tolerations(struct gs_pod_reader *pr);
void gs_read_pod_node_selector(struct gs_pod_reader *pr);
/* A LabelSelector: matchLabels and matchExpressions. */
void gs_read_label_selector(struct gs_pod_reader *pr, struct gs_term_of_nodes *ret);

/* Init containers first, whatever order they came in. -1: out of memory. */
int gs_pod_reader_join(struct gs_pod_reader *pr);

#endif
