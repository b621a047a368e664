/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/codec/pod.h"
#include "gpushare/kube/kubeconfig.h"
#include "inspect/doctor.h"
#include "inspect/installed.h"
#include "inspect/lookup.h"

/* Does the API server answer, where is the extender, does it answer, and does anybody ask it? Which
 * release do the device plugins run, and where? */

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
    doctor->layout = installed_layouts;
    if (!doctor->extender)
        doctor->pods = installed_extenders(&doctor->common, &doctor->layout, &doctor->pods_err);
}

/* ---- the extender ---- */

/* How far a release ("gpushare 0.1.0") is from this program's. */
enum skew { SKEW_SAME, SKEW_ONE_APART, SKEW_FAR };

/* The minor release behind "0." of this program's or another's text; false: another major, or no
 * version at all. */
static bool read_minor(const char *text, uint32_t *ret)
{
    const char *at = text + strcspn(text, "0123456789");
    size_t major = strcspn(at, ".");
    if (!at[0] || strncmp(at, GS_VERSION, major + 1) != 0 || at[major] != '.')
        return false;
    at += major + 1;
    return gs_parse_u32(at, strspn(at, "0123456789"), ret);
}

static enum skew skew_of(const char *version)
{
    uint32_t own = 0, other = 0;
    if (strstr(version, GS_VERSION))
        return SKEW_SAME;
    if (!read_minor(GS_VERSION, &own) || !read_minor(version, &other))
        return SKEW_FAR;
    return own > other + 1 || other > own + 1 ? SKEW_FAR : SKEW_ONE_APART;
}

/* The version's text, and what it means. */
static void judge_version(struct doctor *doctor, const char *where, const struct gs_buf *body)
{
    const char *text = body->data ? body->data : "";
    int len = (int)strcspn(text, "\n");
    enum skew skew = skew_of(text);
    doctor_say(doctor, skew == SKEW_FAR ? FINDING_WARN : FINDING_OK, "extender",
               "%s answers: %.*s%s", where, len > 80 ? 80 : len, text,
               skew == SKEW_SAME        ? ""
               : skew == SKEW_ONE_APART ? "; this program is " GS_VERSION ", which goes together"
                                        : "; this program is " GS_VERSION
                                          ": use releases that are one apart at most");
}

static int copy_text(const char *text, char **ret, struct gs_error *err)
{
    if (text && !(*ret = strdup(text)))
        return gs_fail_nomem(err);
    return 0;
}

static int name_file(const char *path, struct gs_kube_pem *pem, struct gs_error *err)
{
    if (path && !(pem->file = realpath(path, NULL)))
        return gs_fail(err, GS_EINVAL, "%s: %s", path, strerror(errno));
    return 0;
}

static int connect_directly(const struct doctor *doctor, struct gs_kube_client **ret,
                            struct gs_error *err)
{
    _cleanup_(gs_kube_config_release) struct gs_kube_config config = {0};
    const struct gs_kube_options options = {.program = "inspect",
                                            .request_timeout_ns = doctor->common.timeout_ns};
    if (gs_kube_config_plain(doctor->extender, &config, err) < 0 ||
        name_file(doctor->extender_ca, &config.ca, err) < 0 ||
        name_file(doctor->extender_cert, &config.client_cert, err) < 0 ||
        name_file(doctor->extender_key, &config.client_key, err) < 0 ||
        copy_text(doctor->extender_name, &config.tls_server_name, err) < 0)
        return -1;
    return gs_kube_client_new(&config, &options, ret, err);
}

static void ask_directly(struct doctor *doctor)
{
    _cleanup_(gs_kube_client_freep) struct gs_kube_client *client = NULL;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 20);
    const struct gs_kube_request ready = {.method = "GET", .path = "/readyz"};
    const struct gs_kube_request version = {.method = "GET", .path = "/version"};
    struct gs_error err = {0};
    int status = 0;
    if (connect_directly(doctor, &client, &err) < 0 ||
        gs_kube_request(client, &ready, &status, &body, &err) < 0) {
        doctor_say(doctor, FINDING_FAIL, "extender", "%s%s; is it running there?",
                   err.code == GS_EIO ? doctor->extender : err.msg,
                   err.code == GS_EIO ? " does not answer" : "");
        return;
    }
    if (status != 200) {
        doctor_say(doctor, FINDING_FAIL, "extender", "%s is not ready: %.100s; see its log",
                   doctor->extender, body.data ? body.data : "");
        return;
    }
    if (gs_kube_request(client, &version, &status, &body, &err) == 0 && status == 200)
        judge_version(doctor, doctor->extender, &body);
}

static void ask_pod(struct doctor *doctor, const char *name)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    struct gs_error err = {0};
    if (installed_get(&doctor->common, name, INSTALLED_EXTENDER("version"), &body, &err) < 0) {
        doctor_say(doctor, FINDING_SKIP, "extender",
                   "pod %s is ready, its version is not known: %s", name, err.msg);
        return;
    }
    judge_version(doctor, name, &body);
}

void doctor_check_extender(struct doctor *doctor)
{
    const json_t *items = json_object_get(doctor->pods, "items");
    size_t i, ready = 0, count = json_array_size(items);
    json_t *pod;
    if (doctor->extender) {
        ask_directly(doctor);
        return;
    }
    json_array_foreach(items, i, pod)
    {
        if (!lookup_is_ready(pod))
            doctor_say(doctor, FINDING_WARN, "extender",
                       "pod %s is not ready; kubectl logs -n %s %s -c extender",
                       lookup_text(pod, "metadata", "name", NULL), doctor->common.system_ns,
                       lookup_text(pod, "metadata", "name", NULL));
        else if (ready++ == 0)
            ask_pod(doctor, lookup_text(pod, "metadata", "name", NULL));
    }
    if (!doctor->pods)
        doctor_say(doctor, FINDING_SKIP, "extender", "%s", doctor->pods_err.msg);
    else if (!count)
        doctor_say(doctor, FINDING_SKIP, "extender",
                   "no pod of it in namespace %s; beside kube-scheduler? give --extender URL, or "
                   "--system-namespace",
                   doctor->common.system_ns);
    else if (!ready)
        doctor_say(doctor, FINDING_FAIL, "extender",
                   "none of its %zu pods is ready: pods with GPU memory stay Pending", count);
}

/* ---- whether it is asked ---- */

/* Does a kube-scheduler ask at all? That is what an operator sets up by hand, and nothing in the
 * API shows it: the extender's own counters do. */

/* Of all replicas together, since they started. Histograms' bounds are fixed (docs/reference.md).
 */
enum count {
    FILTERS,
    TIMED,
    IN_TIME,
    BINDS,
    BINDS_TIMED,
    BINDS_IN_TIME,
    BOUND,
    TRIED,
    LEAD,
    COUNTS
};

#define FILTER_BUCKET "gpushare_request_duration_seconds_bucket{verb=\"filter\",le="
#define BIND_BUCKET   "gpushare_request_duration_seconds_bucket{verb=\"bind\",le="

static const char *const series[COUNTS] = {
    [FILTERS] = "gpushare_requests_total{verb=\"filter\",",
    [TIMED] = FILTER_BUCKET "\"+Inf\"}",
    [IN_TIME] = FILTER_BUCKET "\"0.0064\"}",
    [BINDS] = "gpushare_requests_total{verb=\"bind\",",
    [BINDS_TIMED] = BIND_BUCKET "\"+Inf\"}",
    [BINDS_IN_TIME] = BIND_BUCKET "\"0.1024\"}",
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

static unsigned percent(uint64_t part, uint64_t all)
{
    return (unsigned)(part * 100 / all);
}

/* Is it healthy, and is it what holds pods up? */
static void say_asked(struct doctor *doctor, const uint64_t counts[COUNTS])
{
    char filters[96] = "", binds[160] = "";
    if (counts[TIMED])
        snprintf(filters, sizeof(filters), ": %" PRIu64 " filters, %u %% within 6.4 ms",
                 counts[FILTERS], percent(counts[IN_TIME], counts[TIMED]));
    if (counts[TIMED] && counts[BINDS_TIMED])
        snprintf(binds, sizeof(binds),
                 "; %" PRIu64 " binds, %u %% within 0.1 s, %" PRIu64 " refused or failed",
                 counts[BINDS], percent(counts[BINDS_IN_TIME], counts[BINDS_TIMED]),
                 counts[TRIED] - counts[BOUND]);
    doctor_say(doctor, FINDING_OK, "scheduler", "kube-scheduler asks the extender%s%s", filters,
               binds);
    if (counts[TRIED] && !counts[LEAD])
        doctor_say(doctor, FINDING_WARN, "scheduler",
                   "no extender leads now, and nothing is bound meanwhile; if that lasts: kubectl "
                   "get leases -A, and the extenders' logs");
}

void doctor_check_asked(struct doctor *doctor)
{
    uint64_t counts[COUNTS] = {0};
    size_t i, known = 0;
    json_t *pod;
    json_array_foreach(json_object_get(doctor->pods, "items"), i, pod)
    {
        struct gs_error err = {0};
        if (!lookup_is_ready(pod))
            continue;
        if (add_pod(doctor, lookup_text(pod, "metadata", "name", NULL), counts, &err) < 0) {
            doctor_say(doctor, FINDING_SKIP, "scheduler",
                       "whether kube-scheduler asks is not known: %s", err.msg);
            return;
        }
        known++;
    }
    if (known == 0)
        return;
    unsigned waiting = HASH_COUNT(doctor->snapshot.waiting);
    if (counts[FILTERS] > 0)
        say_asked(doctor, counts);
    else if (waiting > 0)
        doctor_say(doctor, FINDING_FAIL, "scheduler",
                   "%u pods with GPU memory wait, and no kube-scheduler has asked the extender "
                   "since it started; let it read the configuration, or give the pods the second "
                   "scheduler's schedulerName (docs/install.md)",
                   waiting);
    else
        doctor_say(doctor, FINDING_SKIP, "scheduler",
                   "nobody has asked the extender yet: as it should be before there is a pod with "
                   "GPU memory; kube-scheduler has to be told to ask (docs/install.md)");
}

/* ---- the device plugin's pods: that they run one release, and which ---- */

/* One page says enough: an image that a few of 500 nodes do not have is what to look for. */
#define PLUGIN_QUERY "labelSelector=app.kubernetes.io%2Fname%3Dgpushare-device-plugin&limit=500"

static json_t *list_plugins(const struct doctor *doctor, const char *path)
{
    struct gs_error ignored = {0};
    return lookup_json(&doctor->common.source, path, PLUGIN_QUERY, &ignored);
}

static const char *image_of(const json_t *pod)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    return lookup_text(json_array_get(containers, 0), "image", NULL);
}

static void check_images(struct doctor *doctor, const json_t *items)
{
    const char *first = image_of(json_array_get(items, 0));
    struct doctor_names others = {0};
    size_t i;
    json_t *pod;
    json_array_foreach(items, i, pod)
    {
        if (strcmp(image_of(pod), first) != 0)
            doctor_add_name(&others, lookup_text(pod, "spec", "nodeName", NULL));
    }
    doctor_say_list(doctor, FINDING_WARN, "device plugin", &others,
                    "another image of the device plugin than on other nodes; kubectl rollout "
                    "status, or wait for it");
}

static void check_release(struct doctor *doctor, const json_t *pod)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(1 << 20);
    struct gs_error ignored = {0};
    const char *name = lookup_text(pod, "metadata", "name", NULL);
    if (installed_get(&doctor->common, name, INSTALLED_PLUGIN("version"), &body, &ignored) < 0)
        return;
    const char *text = body.data ? body.data : "";
    if (skew_of(text) == SKEW_FAR)
        doctor_say(doctor, FINDING_WARN, "device plugin",
                   "%s answers: %.*s; this program is " GS_VERSION
                   ": use releases that are one apart at most",
                   name, (int)strcspn(text, "\n"), text);
}

void doctor_check_plugin_pods(struct doctor *doctor)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    source_pods(&path, doctor->common.system_ns, NULL);
    if (gs_buf_failed(&path))
        return;
    json_auto_t *list = list_plugins(doctor, path.data);
    const json_t *items = json_object_get(list, "items");
    size_t i;
    json_t *pod;
    if (!json_array_size(items))
        return;
    check_images(doctor, items);
    json_array_foreach(items, i, pod)
    {
        if (!lookup_is_ready(pod))
            continue;
        check_release(doctor, pod);
        return;
    }
}

/* ---- the nodes that its DaemonSets select ---- */

static void note_labels(struct doctor *doctor, const json_t *spec)
{
    json_t *selector = json_object_get(spec, "nodeSelector"), *value;
    char *words = doctor->labels;
    const char *key;
    words[0] = 0;
    if (json_object_get(spec, "affinity"))
        return;
    json_object_foreach(selector, key, value)
    {
        size_t len = strlen(words), left = sizeof(doctor->labels) - len;
        const char *text = json_string_value(value);
        if (snprintf(words + len, left, "%s%s=%s", len ? " " : "", key, text ? text : "") >=
            (int)left) {
            words[0] = 0;
            return;
        }
    }
}

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
        for (struct snap_node *node = doctor->snapshot.nodes; node; node = node->hh.next)
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
    json_auto_t *list = list_plugins(doctor, path);
    const json_t *items = json_object_get(list, "items");
    snprintf(doctor->labels, sizeof(doctor->labels), "%s=true", GS_NODE_LABEL);
    if (!json_array_size(items))
        return;
    for (struct snap_node *node = doctor->snapshot.nodes; node; node = node->hh.next)
        node->labelled = false;
    json_array_foreach(items, i, set)
    {
        const json_t *template = json_object_get(json_object_get(set, "spec"), "template");
        const json_t *spec = json_object_get(template, "spec");
        note_labels(doctor, spec);
        mark_selected(doctor, spec);
    }
    if (json_array_size(items) > 1)
        doctor->labels[0] = 0;
}
