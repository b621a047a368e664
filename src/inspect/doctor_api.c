/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/pod.h"
#include "inspect/doctor.h"
#include "inspect/installed.h"
#include "inspect/lookup.h"

/* Does the API server answer, where is the extender, does it answer, and does anybody ask it? Which
 * nodes do the device plugins' DaemonSets select? */

int doctor_check_api(struct doctor *doctor, struct gs_error *err)
{
    json_auto_t *version = lookup_json(&doctor->common.source, "/version", NULL, err);
    if (!version)
        return -1;
    const char *text = lookup_text(version, "gitVersion", NULL);
    if (strncmp(text, "v1.", 3) == 0)
        gs_parse_u32(text + 3, strcspn(text + 3, "."), &doctor->server_minor);
    doctor_say(doctor, FINDING_OK, "api server", "%s at %s", text, doctor->common.source.server);
    return 0;
}

/* ---- the layout ---- */

void doctor_find_extender(struct doctor *doctor)
{
    doctor->pods = installed_extenders(&doctor->common, &doctor->pods_err);
    const json_t *first = json_array_get(json_object_get(doctor->pods, "items"), 0);
    const char *name = lookup_text(first, "metadata", "labels", "app.kubernetes.io/name", NULL);
    doctor->second = strcmp(name, "gpushare-scheduler") == 0;
}

/* ---- the extender ---- */

/* 2007 of "v2.7.1"; -2: it is none. */
static int64_t find_minor(const char *text)
{
    static const char digits[] = "0123456789";
    uint32_t major, minor;
    text += strcspn(text, digits);
    const size_t len = strspn(text, digits);
    return gs_parse_u32(text, len, &major) && text[len] == '.' &&
                   gs_parse_u32(text + len + 1, strspn(text + len + 1, digits), &minor)
               ? (int64_t)major * 1000 + minor
               : -2;
}

/* At most one minor release from this program's. */
static bool is_near(const char *version)
{
    return llabs(find_minor(version) - find_minor(GS_VERSION)) <= 1;
}

static void check_version(struct doctor *doctor, const char *name)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    struct gs_error err = {0};
    if (installed_get(&doctor->common, name, INSTALLED_EXTENDER("version"), &body, &err) < 0) {
        doctor_say(doctor, FINDING_SKIP, "extender",
                   "pod %s is ready, but its version is unknown: %s", name, err.msg);
        return;
    }
    const char *text = body.data ? body.data : "";
    const bool near = is_near(text);
    doctor_say(doctor, near ? FINDING_OK : FINDING_WARN, "extender",
               "%s runs %.*s; this program is " GS_VERSION "%s", name, (int)strcspn(text, "\n"),
               text, near ? "" : ": use releases that are at most one minor version apart");
}

/* Counters of all replicas together, since they started: kube-scheduler is configured by hand, and
 * nothing in the API shows whether it calls the extender. */
enum count { FILTERS, BOUND, TRIED, LEAD, COUNTS };

static const char *const series[COUNTS] = {
    [FILTERS] = "gpushare_requests_total{verb=\"filter\",",
    [BOUND] = "gpushare_bind_attempts_total{outcome=\"bound\"}",
    [TRIED] = "gpushare_bind_attempts_total{",
    [LEAD] = "gpushare_leader ",
};

/* Adds the samples that begin so in a text of metrics. */
static void add_samples(const struct gs_buf *text, const char *prefix, uint64_t *sum)
{
    for (const char *at = text->data; at && (at = strstr(at, prefix)); at += strlen(prefix)) {
        const char *number = strchr(at, ' ');
        uint64_t value;
        if (number && (at == text->data || at[-1] == '\n') &&
            gs_parse_u64(number + 1, strcspn(number + 1, "\n"), &value))
            *sum += value;
    }
}

static int add_pod(const struct doctor *doctor, const char *name, uint64_t counts[COUNTS],
                   struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    if (installed_get(&doctor->common, name, INSTALLED_EXTENDER("metrics"), &body, err) < 0)
        return -1;
    for (int i = 0; i < COUNTS; i++)
        add_samples(&body, series[i], &counts[i]);
    return 0;
}

static void say_asked(struct doctor *doctor, const uint64_t counts[COUNTS])
{
    const unsigned waiting = HASH_COUNT(doctor->snapshot.waiting);
    if (counts[FILTERS])
        doctor_say(doctor, FINDING_OK, "scheduler",
                   "kube-scheduler calls the extender: %" PRIu64 " filters, %" PRIu64
                   " binds, %" PRIu64 " of them rejected or failed",
                   counts[FILTERS], counts[TRIED], counts[TRIED] - counts[BOUND]);
    else if (waiting)
        doctor_say(doctor, FINDING_FAIL, "scheduler",
                   "%u pods with GPU memory are pending, and no kube-scheduler has called the "
                   "extender since it started; configure kube-scheduler, or set the pods' "
                   "schedulerName to the second scheduler (docs/install.md)",
                   waiting);
    else
        doctor_say(
            doctor, FINDING_SKIP, "scheduler",
            "no kube-scheduler has called the extender yet, which is normal before the first pod "
            "with GPU memory; kube-scheduler must be configured (docs/install.md)");
    if (counts[FILTERS] && counts[TRIED] && !counts[LEAD])
        doctor_say(doctor, FINDING_WARN, "scheduler",
                   "no extender is the leader now, so no pods are bound; if this lasts, see "
                   "kubectl get leases -A and the extenders' logs");
}

void doctor_check_extender(struct doctor *doctor)
{
    const json_t *items = json_object_get(doctor->pods, "items");
    struct gs_error err = {0};
    uint64_t counts[COUNTS] = {0};
    size_t i, ready = 0, count = json_array_size(items);
    json_t *pod;
    json_array_foreach(items, i, pod)
    {
        const char *name = lookup_text(pod, "metadata", "name", NULL);
        if (!lookup_is_ready(pod)) {
            doctor_say(doctor, FINDING_WARN, "extender",
                       "pod %s is not ready; see kubectl logs -n %s %s -c extender", name,
                       doctor->common.system_ns, name);
            continue;
        }
        if (ready++ == 0)
            check_version(doctor, name);
        if (!err.code)
            add_pod(doctor, name, counts, &err);
    }
    if (!doctor->pods)
        doctor_say(doctor, FINDING_SKIP, "extender", "%s", doctor->pods_err.msg);
    else if (!count)
        doctor_say(doctor, FINDING_SKIP, "extender",
                   "no extender pods in namespace %s (--system-namespace); ask one that runs "
                   "without a pod for /readyz and /version",
                   doctor->common.system_ns);
    else if (!ready)
        doctor_say(doctor, FINDING_FAIL, "extender",
                   "none of the %zu extender pods is ready: pods with GPU memory stay Pending; see "
                   "the pods' logs",
                   count);
    if (err.code)
        doctor_say(doctor, FINDING_SKIP, "scheduler",
                   "unknown whether kube-scheduler calls the extender: %s", err.msg);
    else if (ready)
        say_asked(doctor, counts);
}

/* ---- the nodes that its DaemonSets select ---- */

/* By labels alone: whether a node is cordoned or tainted is not asked. */
static void mark_selected(struct doctor *doctor, const json_t *spec)
{
    json_auto_t *pod = json_pack(
        "{s:{s:s,s:s},s:{s:O*,s:O*,s:[{s:s}]}}", "metadata", "name", "plugin", "uid", "plugin",
        "spec", "nodeSelector", json_object_get(spec, "nodeSelector"), "affinity",
        json_object_get(spec, "affinity"), "tolerations", "operator", "Exists");
    _cleanup_free_ char *text = pod ? json_dumps(pod, JSON_COMPACT) : NULL;
    struct gs_pod read = {0};
    if (text && gs_codec_pod(&doctor->common.names, gs_slice_of(text), &read, NULL) == 0) {
        EACH_NODE (node, &doctor->snapshot)
            node->labelled |= gs_eligible_perhaps(
                gs_node_facts_eligible(&doctor->snapshot.cluster.facts, node->slot, &read));
    }
    gs_pod_release(&read);
}

void doctor_find_plugin_nodes(struct doctor *doctor)
{
    char path[512];
    size_t i;
    json_t *set;
    snprintf(path, sizeof(path), "/apis/apps/v1/namespaces/%.200s/daemonsets",
             doctor->common.system_ns);
    struct gs_error ignored = {0};
    json_auto_t *list = lookup_json(
        &doctor->common.source, path,
        "labelSelector=app.kubernetes.io%2Fname%3Dgpushare-device-plugin&limit=500", &ignored);
    const json_t *items = json_object_get(list, "items");
    if (!json_array_size(items))
        return;
    EACH_NODE (node, &doctor->snapshot)
        node->labelled = false;
    json_array_foreach(items, i, set)
    {
        const json_t *template = json_object_get(json_object_get(set, "spec"), "template");
        mark_selected(doctor, json_object_get(template, "spec"));
    }
}
