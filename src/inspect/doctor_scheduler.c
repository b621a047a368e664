/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/extender.h"
#include "gpushare/codec/manifest.h"
#include "inspect/doctor.h"
#include "inspect/lookup.h"

/* kube-scheduler's configuration: the extender's entry, and whether it is complete. */

enum { FINDINGS_MAX = 32 };

/* Where a file is wrong: its name, its document and the extender's entry in it. */
struct config {
    struct doctor *doctor;
    json_t *root;
    const json_t *entry;
    const char *where;
    bool policy; /* the legacy Policy file */
};

#define say_config(config, level, ...)                                                             \
    doctor_say_of((config)->doctor, level, "scheduler config", (config)->where, __VA_ARGS__)

/* kube-scheduler does not start with that file. */
#define say_refused(config, fmt, ...)                                                              \
    say_config(config, FINDING_FAIL, "kube-scheduler does not start: " fmt, ##__VA_ARGS__)

static bool is_set(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* The i-th extender; NULL past the last. */
static const json_t *extender(const struct config *config, size_t i)
{
    return json_array_get(json_object_get(config->root, "extenders"), i);
}

static const json_t *find_our_extender(const struct config *config)
{
    const json_t *entry;
    for (size_t i = 0; (entry = extender(config, i)) != NULL; i++) {
        if (strstr(lookup_text(entry, "urlPrefix", NULL), "/gpushare-scheduler"))
            return entry;
    }
    return NULL;
}

/* ---- what kube-scheduler decodes: an unknown field or another type ends it ---- */

/* Each field of KubeSchedulerConfiguration, v1beta1 to v1 (k8s.io/kube-scheduler/config), with a
 * value of its type: 10s is a duration, 0.5 a number, {} and [] are not looked into. */
static const char schema[] =
    "{apiVersion: '', kind: KubeSchedulerConfiguration,"
    " healthzBindAddress: '', metricsBindAddress: '',"
    " parallelism: 16, percentageOfNodesToScore: 0,"
    " podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 10,"
    " enableProfiling: true, enableContentionProfiling: true, delayCacheUntilActive: true,"
    " leaderElection: {leaderElect: true,"
    "  leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s,"
    "  resourceLock: '', resourceName: '', resourceNamespace: ''},"
    " clientConnection: {kubeconfig: '', acceptContentTypes: '', contentType: '',"
    "  qps: 0.5, burst: 100},"
    " profiles: [{schedulerName: '', percentageOfNodesToScore: 0, plugins: {}, pluginConfig: []}],"
    " extenders: [{urlPrefix: '', filterVerb: '', preemptVerb: '', prioritizeVerb: '',"
    "  bindVerb: '', weight: 1, enableHTTPS: true, nodeCacheCapable: true, ignorable: true,"
    "  httpTimeout: 30s,"
    "  tlsConfig: {insecure: true, serverName: '', certFile: '', keyFile: '', caFile: '',"
    "   certData: '', keyData: '', caData: ''},"
    "  managedResources: [{name: '', ignoredByScheduler: true}]}]}";

static bool parse_duration(const json_t *value, int64_t *ret_ns)
{
    return json_is_string(value) && gs_parse_duration_ns(json_string_value(value), ret_ns);
}

static bool is_of_type(const json_t *value, const json_t *like)
{
    int64_t ns;
    if (parse_duration(like, &ns))
        return parse_duration(value, &ns);
    if (json_is_integer(like) && json_is_real(value))
        return json_number_value(value) == (double)(int64_t)json_number_value(value);
    return json_is_null(value) || json_typeof(value) == json_typeof(like) ||
           (json_is_boolean(value) && json_is_boolean(like)) ||
           (json_is_real(like) && json_is_integer(value));
}

static const char *type_of(const json_t *like)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number", [JSON_TRUE] = "true or false"};
    int64_t ns;
    return parse_duration(like, &ns) ? "a duration such as 10s" : names[json_typeof(like)];
}

/* in: the key of the object, or of the list that it is an item of; "" of the document. */
static void check_types(struct config *config, const char *in, json_t *of, const json_t *like)
{
    const char *key, *dot = in[0] ? "." : "";
    size_t i;
    json_t *value;
    json_array_foreach(of, i, value)
    {
        if (json_array_size(like))
            check_types(config, in, value, json_array_get(like, 0));
    }
    json_object_foreach(of, key, value)
    {
        const json_t *its = json_object_get(like, key);
        if (config->doctor->count >= FINDINGS_MAX || !json_object_size(like))
            return;
        if (!its)
            say_refused(config, "unknown field %.20s%s%.60s", in, dot, key);
        else if (!is_of_type(value, its))
            say_refused(config, "%.20s%s%.60s must be %s", in, dot, key, type_of(its));
        else
            check_types(config, key, value, its);
    }
}

/* ---- what it validates: pkg/scheduler/apis/config/validation ---- */

static int64_t integer_of(const json_t *object, const char *key, int64_t absent)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? (int64_t)json_number_value(value) : absent;
}

static int64_t duration_of(const json_t *object, const char *key, int64_t absent_s)
{
    int64_t ns = absent_s * GS_NS_PER_S;
    parse_duration(json_object_get(object, key), &ns);
    return ns;
}

static void check_ranges(struct config *config)
{
    const json_t *root = config->root, *lease = json_object_get(root, "leaderElection");
    const int64_t share = integer_of(root, "percentageOfNodesToScore", 0);
    const int64_t initial = integer_of(root, "podInitialBackoffSeconds", 1);
    if (share < 0 || share > 100)
        say_refused(config, "percentageOfNodesToScore must be from 0 to 100");
    if (integer_of(root, "parallelism", 1) <= 0)
        say_refused(config, "parallelism must be above 0");
    if (initial <= 0 || integer_of(root, "podMaxBackoffSeconds", initial) < initial)
        say_refused(config, "podInitialBackoffSeconds must be above 0 and at most "
                            "podMaxBackoffSeconds");
    if (duration_of(lease, "leaseDuration", 15) <= duration_of(lease, "renewDeadline", 10))
        say_refused(config, "leaseDuration must be above renewDeadline");
}

static void check_managed(struct config *config, const json_t *entry, json_t *seen)
{
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(entry, "managedResources"), i, item)
    {
        const char *name = lookup_text(item, "name", NULL);
        if (!strchr(name, '/') || strstr(name, "kubernetes.io/"))
            say_refused(config, "managedResources has \"%.60s\", which is not an extended resource",
                        name);
        else if (json_object_get(seen, name))
            say_refused(config, "%.100s is in managedResources twice; remove one", name);
        json_object_set_new(seen, name, json_true());
    }
}

static void check_extender_tls(struct config *config, const json_t *entry)
{
    const json_t *tls = json_object_get(entry, "tlsConfig");
    bool verified = lookup_text(tls, "caFile", NULL)[0] || lookup_text(tls, "caData", NULL)[0];
    if (is_set(tls, "insecure") && verified)
        say_refused(config, "tlsConfig has insecure: true and a CA; remove one");
    else if (entry == config->entry && !verified && is_set(entry, "enableHTTPS"))
        say_config(config, FINDING_WARN,
                   "the extender's certificate is not verified (insecure, or no CA); set "
                   "tlsConfig.caFile");
}

/* Of all extenders together, ours or not. */
static void check_extenders(struct config *config)
{
    json_auto_t *seen = json_object();
    const json_t *entry, *binder = NULL;
    for (size_t i = 0; (entry = extender(config, i)) != NULL; i++) {
        if (lookup_text(entry, "bindVerb", NULL)[0] && binder)
            say_refused(config, "two extenders have a bindVerb, %.100s and %.100s; remove one",
                        lookup_text(binder, "urlPrefix", NULL),
                        lookup_text(entry, "urlPrefix", NULL));
        binder = lookup_text(entry, "bindVerb", NULL)[0] ? entry : binder;
        if (lookup_text(entry, "prioritizeVerb", NULL)[0] && integer_of(entry, "weight", 0) <= 0)
            say_refused(config,
                        "an extender with a prioritizeVerb must have a positive weight; set "
                        "weight: 1");
        check_managed(config, entry, seen);
        check_extender_tls(config, entry);
    }
}

/* ---- what works, and not as it should ---- */

/* A verb without which pods are placed wrongly, or not at all. */
static const struct {
    const char *key;
    const char *value;
    const char *without; /* what happens */
    enum level level;
} wanted[] = {
    {"filterVerb", "filter", "pods are bound to nodes without enough free GPU memory",
     FINDING_FAIL},
    {"bindVerb", "bind", "pods are bound without a GPU index", FINDING_FAIL},
    {"prioritizeVerb", "prioritize", "nodes are scored regardless of GPU memory", FINDING_WARN},
    {"preemptVerb", "preempt", "preemption ignores GPU memory", FINDING_WARN},
};

static void check_verbs(struct config *config)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const char *is = lookup_text(config->entry, wanted[i].key, NULL);
        if (strcmp(is, wanted[i].value) != 0)
            say_config(config, wanted[i].level, "set %s: %s; otherwise %s", wanted[i].key,
                       wanted[i].value, wanted[i].without);
    }
    if (!is_set(config->entry, "nodeCacheCapable"))
        say_config(config, FINDING_WARN,
                   "set nodeCacheCapable: true; otherwise every request carries whole Node "
                   "objects");
    if (is_set(config->entry, "ignorable"))
        say_config(config, FINDING_WARN,
                   "ignorable is true, so pods are bound to full GPUs while the extender is "
                   "unavailable; set ignorable: false");
}

/* The legacy Policy file has nanoseconds. */
static void check_timeout(struct config *config)
{
    int64_t ns = integer_of(config->entry, "httpTimeout", 0);
    ns = duration_of(config->entry, "httpTimeout", ns / GS_NS_PER_S);
    if (json_object_get(config->entry, "httpTimeout") && ns < GS_NS_PER_S)
        say_config(config, FINDING_WARN,
                   "httpTimeout is below 1 s, too short for a bind, which calls the API server; "
                   "set httpTimeout: 10s");
}

static void check_address(struct config *config)
{
    const char *prefix = lookup_text(config->entry, "urlPrefix", NULL);
    bool tls = is_set(config->entry, config->policy ? "enableHttps" : "enableHTTPS");
    if (strstr(prefix, ":29998/"))
        say_config(
            config, FINDING_FAIL,
            "urlPrefix has port 29998, which serves only probes and metrics; set port 29999");
    if (tls && strncmp(prefix, "http://", 7) == 0)
        say_config(config, FINDING_FAIL,
                   "enableHTTPS is true, but urlPrefix begins with http://; set https:// if the "
                   "extender has a certificate, otherwise enableHTTPS: false");
}

static void check_resource(struct config *config)
{
    const char *resource = config->doctor->common.names.gpu_mem;
    const json_t *list = json_object_get(config->entry, "managedResources"), *entry = NULL;
    for (size_t i = 0; !entry && i < json_array_size(list); i++) {
        if (strcmp(lookup_text(json_array_get(list, i), "name", NULL), resource) == 0)
            entry = json_array_get(list, i);
    }
    if (!json_array_size(list))
        say_config(config, FINDING_WARN,
                   "no managedResources, so the extender is called for every pod of the cluster, "
                   "and none is scheduled while it is unavailable; add %s",
                   resource);
    else if (!entry)
        say_config(config, FINDING_FAIL,
                   "managedResources lacks %s, so the extender is never called; add it", resource);
    else if (is_set(entry, "ignoredByScheduler"))
        say_config(config, FINDING_WARN,
                   "ignoredByScheduler is true, so kube-scheduler does not count %s, which breaks "
                   "node capacity, preemption and Cluster Autoscaler; set it to false",
                   resource);
}

static void check_share(struct config *config)
{
    uint32_t minor = config->doctor->server_minor;
    /* absent, it takes its own: a sample */
    int64_t share = integer_of(config->root, "percentageOfNodesToScore", 0);
    if (minor && minor < GS_NOMINATES_SINCE_MINOR && share < 100 && !config->policy)
        say_config(config, FINDING_FAIL,
                   "percentageOfNodesToScore is below 100: this kube-scheduler stops before the "
                   "extender has checked every node, and a pod may stay Pending although a GPU "
                   "has enough free memory; set it to 100");
}

/* Which releases read a version of the file: kube-scheduler's own changelogs. */
static const struct {
    const char *version;
    uint32_t first, last; /* minor releases of 1.x; last 0: the newest still does */
} versions[] = {
    {"kubescheduler.config.k8s.io/v1beta1", 19, 22},
    {"kubescheduler.config.k8s.io/v1beta2", 22, 27},
    {"kubescheduler.config.k8s.io/v1beta3", 23, 28},
    {"kubescheduler.config.k8s.io/v1", 25, 0},
};

static void check_version(struct config *config)
{
    const char *version = lookup_text(config->root, "apiVersion", NULL);
    const uint32_t minor = config->doctor->server_minor;
    const size_t count = sizeof(versions) / sizeof(versions[0]);
    size_t i = 0;
    while (i < count && strcmp(version, versions[i].version) != 0)
        i++;
    if (config->policy && minor > 22)
        say_config(config, FINDING_FAIL,
                   "kube-scheduler reads no Policy file since 1.23, and this is 1.%" PRIu32
                   "; use config/kube-scheduler-config-v1.yaml",
                   minor);
    if (config->policy)
        return;
    if (i == count ||
        strcmp(lookup_text(config->root, "kind", NULL), "KubeSchedulerConfiguration") != 0)
        say_refused(config, "apiVersion or kind is not that of a KubeSchedulerConfiguration");
    else if (minor && (minor < versions[i].first || (versions[i].last && minor > versions[i].last)))
        say_config(config, FINDING_FAIL,
                   "kube-scheduler 1.%" PRIu32 " does not read apiVersion %s; see docs/install.md",
                   minor, version);
}

/* The schedulers that this file makes: who serves a pod's schedulerName. */
static void note_profiles(struct config *config)
{
    json_t *list = json_object_get(config->root, "profiles"), *served = json_object(), *item;
    size_t i;
    config->doctor->served = served;
    if (!json_array_size(list))
        json_object_set_new(served, "default-scheduler", json_true());
    json_array_foreach(list, i, item)
    {
        const bool named = json_object_get(item, "schedulerName") || json_array_size(list) > 1;
        const char *name = named ? lookup_text(item, "schedulerName", NULL) : "default-scheduler";
        if (!name[0] || json_object_get(served, name))
            say_refused(config, "each profile must have a schedulerName of its own");
        json_object_set_new(served, name, json_true());
    }
}

/* kube-scheduler reads the first document. */
static int take_document(void *ctx, const char *version, const char *kind, struct gs_slice json,
                         struct gs_error *err)
{
    (void)version;
    (void)kind;
    (void)err;
    json_t **ret_root = ctx;
    if (!*ret_root)
        *ret_root = json_loadb(json.at, json.len, 0, NULL);
    return 0;
}

static void judge(struct config *config)
{
    config->policy = strcmp(lookup_text(config->root, "kind", NULL), "Policy") == 0;
    config->entry = find_our_extender(config);
    check_version(config);
    if (!config->policy) {
        json_auto_t *like = NULL;
        gs_manifest_parse(gs_slice_of(schema), "", take_document, &like, NULL);
        check_types(config, "", config->root, like);
        check_ranges(config);
    }
    check_extenders(config);
    note_profiles(config);
    if (!config->entry) {
        say_config(config, FINDING_FAIL,
                   "no extender has a urlPrefix that ends in /gpushare-scheduler; copy the entry "
                   "from config/kube-scheduler-config-v1.yaml");
        return;
    }
    check_verbs(config);
    check_timeout(config);
    check_address(config);
    check_resource(config);
    check_share(config);
    if (doctor_is_ok(config->doctor, "scheduler config"))
        doctor_say(config->doctor, FINDING_OK, "scheduler config",
                   "%s is complete; the line \"scheduler\" shows whether kube-scheduler uses it",
                   config->where);
}

/* The file, or the text that it would have. */
static void read_config(struct doctor *doctor, const char *where, const char *text)
{
    json_auto_t *root = NULL;
    struct gs_error err = {0};
    int rc = text ? gs_manifest_parse(gs_slice_of(text), where, take_document, &root, &err)
                  : gs_manifest_read(where, take_document, &root, &err);
    struct config config = {.doctor = doctor, .root = root, .where = where};
    if (rc == 0 && root)
        judge(&config);
    else
        doctor_say(doctor, FINDING_FAIL, "scheduler config", "%s",
                   err.msg[0] ? err.msg : "the file is empty");
}

/* The ConfigMap that the second scheduler's pods mount: kustomize ends its name in a hash, the
 * chart calls it gpushare-scheduler. */
static const char *mounted_config(const json_t *deployment)
{
    const json_t *spec = json_object_get(json_object_get(deployment, "spec"), "template");
    const json_t *volumes = json_object_get(json_object_get(spec, "spec"), "volumes"), *volume;
    size_t i;
    json_array_foreach(volumes, i, volume)
    {
        const char *name = lookup_text(volume, "configMap", "name", NULL);
        if (name[0])
            return name;
    }
    return "gpushare-scheduler";
}

/* The second scheduler's (manifests/overlays/second-scheduler). */
static void read_config_map(struct doctor *doctor)
{
    const char *ns = doctor->common.system_ns;
    struct gs_error ignored = {0}, err = {0};
    char path[1024], where[320];
    snprintf(path, sizeof(path), "/apis/apps/v1/namespaces/%.200s/deployments/gpushare-scheduler",
             ns);
    json_auto_t *deployment = lookup_json(&doctor->common.source, path, NULL, &ignored);
    const char *name = mounted_config(deployment);
    snprintf(path, sizeof(path), "/api/v1/namespaces/%.200s/configmaps/%.253s", ns, name);
    json_auto_t *map = lookup_json(&doctor->common.source, path, NULL, &err);
    const char *text = lookup_text(map, "data", "config.yaml", NULL);
    snprintf(where, sizeof where, "ConfigMap %s", name);
    if (text[0])
        read_config(doctor, where, text);
    else
        doctor_say(doctor, FINDING_SKIP, "scheduler config",
                   "cannot be read from here (%s); run with --scheduler-config FILE on the host of "
                   "kube-scheduler",
                   err.msg[0] ? err.msg : "no config.yaml in the ConfigMap");
}

void doctor_check_scheduler(struct doctor *doctor)
{
    if (doctor->scheduler_config)
        read_config(doctor, doctor->scheduler_config, NULL);
    else
        read_config_map(doctor);
}
