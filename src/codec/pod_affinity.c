/* SPDX-License-Identifier: Apache-2.0 */
/* spec.affinity and spec.topologySpreadConstraints: not what they say, but that they say something
 * that kube-scheduler weighs (k8s.io/api/core/v1/types.go). What they require, it filters; of
 * nodes: pod_rules.c. */
#include "pod_reader.h"

static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
static const char preferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

/* How many entries; what is in them is passed over. */
static uint32_t count_entries(struct gs_reader *reader, const char *what)
{
    uint32_t count = 0;
    if (!gs_read_array(reader, what))
        return 0;
    while (gs_scan_element(&reader->scan)) {
        gs_scan_skip(&reader->scan);
        count++;
    }
    return count;
}

static void widen(struct gs_pod *pod, enum gs_affinity_reach reach)
{
    pod->affinity_reach = reach > pod->affinity_reach ? reach : pod->affinity_reach;
}

/* A PodAffinityTerm. */
static void read_term(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "pod affinity term"))
        return;
    widen(pr->pod, GS_AFFINITY_OWN_NAMESPACE);
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "namespaces")) {
            if (count_entries(reader, "namespaces of a pod affinity term"))
                widen(pr->pod, GS_AFFINITY_ANY_NAMESPACE);
        } else if (gs_scan_text_is(key, "namespaceSelector") && !gs_scan_null(&reader->scan)) {
            gs_scan_skip(&reader->scan);
            widen(pr->pod, GS_AFFINITY_ANY_NAMESPACE);
        } else if (!gs_scan_text_is(key, "namespaceSelector")) {
            gs_scan_skip(&reader->scan);
        }
    }
}

/* A WeightedPodAffinityTerm. */
static void read_weighted_term(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "weighted pod affinity term"))
        return;
    pr->pod->prefers_nodes = true;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "podAffinityTerm"))
            read_term(pr);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_terms(struct gs_pod_reader *pr, void (*read)(struct gs_pod_reader *pr))
{
    if (!gs_read_array(&pr->reader, "terms of a pod affinity"))
        return;
    while (gs_scan_element(&pr->reader.scan))
        read(pr);
}

/* Of podAntiAffinity's required terms no score comes. */
static void read_pod_affinity(struct gs_pod_reader *pr, bool anti)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.affinity of pods"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, preferred))
            read_terms(pr, read_weighted_term);
        else if (!anti && gs_scan_text_is(key, required))
            read_terms(pr, read_term);
        else
            gs_scan_skip(&reader->scan);
    }
}

static void read_node_affinity(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.affinity.nodeAffinity"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, required))
            gs_read_pod_node_terms(pr);
        else if (!gs_scan_text_is(key, preferred))
            gs_scan_skip(&reader->scan);
        else if (count_entries(reader, "preferred terms of nodeAffinity"))
            pr->pod->prefers_nodes = true;
    }
}

void gs_read_pod_affinity(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    struct gs_scan_text key;
    if (!gs_read_object(reader, "spec.affinity"))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        if (gs_scan_text_is(key, "nodeAffinity"))
            read_node_affinity(pr);
        else if (gs_scan_text_is(key, "podAffinity"))
            read_pod_affinity(pr, false);
        else if (gs_scan_text_is(key, "podAntiAffinity"))
            read_pod_affinity(pr, true);
        else
            gs_scan_skip(&reader->scan);
    }
}

void gs_read_pod_spread(struct gs_pod_reader *pr)
{
    struct gs_reader *reader = &pr->reader;
    if (!gs_read_array(reader, "spec.topologySpreadConstraints"))
        return;
    while (gs_scan_element(&reader->scan)) {
        struct gs_scan_text otherwise;
        gs_read_text_of(reader, "spec.topologySpreadConstraints entry",
                        GS_SLICE("whenUnsatisfiable"), "whenUnsatisfiable", &otherwise);
        pr->pod->prefers_nodes |= gs_scan_text_is(otherwise, "ScheduleAnyway");
    }
}
