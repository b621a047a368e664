/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/file.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/extender.h"
#include "gpushare/codec/yaml.h"
#include "inspect/doctor.h"
#include "inspect/lookup.h"

/* kube-scheduler's configuration: the extender's entry, and whether it is complete. */

enum { CONFIG_BYTES_MAX = 1 << 20 };

/* The entry of extenders that is ours; NULL without one. */
static const struct gs_yaml_node *our_extender(const struct gs_yaml *yaml)
{
    const struct gs_yaml_node *list = gs_yaml_member(yaml, gs_yaml_root(yaml), "extenders"), *entry;
    for (size_t i = 0; (entry = gs_yaml_item(yaml, list, i)) != NULL; i++) {
        if (strstr(gs_yaml_text(yaml, entry, "urlPrefix"), "/gpushare-scheduler"))
            return entry;
    }
    return NULL;
}

/* Where a file is wrong: its name, its document and the extender's entry in it. */
struct config {
    struct doctor *doctor;
    const struct gs_yaml *yaml;
    const struct gs_yaml_node *entry;
    const char *where;
    uint32_t findings;
};

static void say_config(struct config *config, enum finding finding, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say_config(struct config *config, enum finding finding, const char *fmt, ...)
{
    char what[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    config->findings++;
    doctor_say(config->doctor, finding, "scheduler config", "%s: %s", config->where, what);
}

static const char *value(const struct config *config, const char *key)
{
    return gs_yaml_text(config->yaml, config->entry, key);
}

/* A verb without which pods are placed wrongly, or not at all. */
static const struct {
    const char *key;
    const char *value;
    const char *without; /* what happens */
    enum finding finding;
} wanted[] = {
    {"filterVerb", "filter", "pods land on nodes without a GPU that fits", FINDING_FAIL},
    {"bindVerb", "bind", "pods are bound without a GPU", FINDING_FAIL},
    {"prioritizeVerb", "prioritize", "nodes are chosen without regard to GPU memory", FINDING_WARN},
    {"preemptVerb", "preempt", "pods of high priority do not make room", FINDING_WARN},
    {"nodeCacheCapable", "true", "whole Node objects travel with every request", FINDING_WARN},
};

static void check_verbs(struct config *config)
{
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        const char *is = value(config, wanted[i].key);
        if (!is[0])
            say_config(config, wanted[i].finding, "add %s: %s; without it %s", wanted[i].key,
                       wanted[i].value, wanted[i].without);
        else if (strcmp(is, wanted[i].value) != 0)
            say_config(config, wanted[i].finding, "%s is \"%.60s\", not %s: %s", wanted[i].key, is,
                       wanted[i].value, wanted[i].without);
    }
    if (strcmp(value(config, "ignorable"), "true") == 0)
        say_config(config, FINDING_WARN,
                   "set ignorable: false; while the extender is away pods land on full GPUs");
}

/* pkg/scheduler/apis/config/validation: an extender that prioritizes has a positive weight. */
static void check_weight(struct config *config)
{
    uint32_t weight = 0;
    const char *text = value(config, "weight");
    bool number = gs_parse_u32(text, strlen(text), &weight);
    if (value(config, "prioritizeVerb")[0] && (!number || weight == 0))
        say_config(
            config, FINDING_FAIL,
            "weight is %s: with a prioritizeVerb kube-scheduler does not start without a positive "
            "one; weight: 1",
            text[0] ? text : "missing");
}

/* "10s"; the legacy Policy file has nanoseconds. */
static void check_timeout(struct config *config)
{
    const char *text = value(config, "httpTimeout");
    int64_t ns = 0;
    uint64_t number;
    if (gs_parse_u64(text, strlen(text), &number))
        ns = (int64_t)number;
    else if (!gs_parse_duration_ns(text, strlen(text), &ns))
        ns = 0;
    if (ns && ns < GS_NS_PER_S)
        say_config(
            config, FINDING_WARN,
            "httpTimeout: %.40s is so short that a bind, which asks the API server, is given up: "
            "10s",
            text);
}

static void check_address(struct config *config)
{
    const char *prefix = value(config, "urlPrefix");
    const char *https = value(config, "enableHTTPS");
    bool tls = strcmp(https[0] ? https : value(config, "enableHttps"), "true") == 0;
    if (strstr(prefix, ":39998/"))
        say_config(config, FINDING_FAIL,
                   "urlPrefix has port 39998, which serves probes and metrics only; the extender "
                   "schedules on 39999");
    if (tls && strncmp(prefix, "http://", 7) == 0)
        say_config(config, FINDING_FAIL,
                   "enableHTTPS: true, and urlPrefix begins with http://: make it https:// for an "
                   "extender with a certificate, else enableHTTPS: false");
}

static const struct gs_yaml_node *managed(const struct config *config, const char *resource)
{
    const struct gs_yaml_node *list =
                                  gs_yaml_member(config->yaml, config->entry, "managedResources"),
                              *item;
    for (size_t i = 0; (item = gs_yaml_item(config->yaml, list, i)) != NULL; i++) {
        if (strcmp(gs_yaml_text(config->yaml, item, "name"), resource) == 0)
            return item;
    }
    return NULL;
}

static void check_resource(struct config *config)
{
    const char *resource = config->doctor->common.names.gpu_mem;
    const struct gs_yaml_node *entry = managed(config, resource);
    if (!gs_yaml_member(config->yaml, config->entry, "managedResources"))
        say_config(
            config, FINDING_WARN,
            "no managedResources: the extender is asked about every pod of the cluster, and none "
            "is scheduled while it is away; name %s",
            resource);
    else if (!entry)
        say_config(config, FINDING_FAIL, "managedResources lacks %s: the extender is never asked",
                   resource);
    else if (strcmp(gs_yaml_text(config->yaml, entry, "ignoredByScheduler"), "true") == 0)
        say_config(config, FINDING_WARN,
                   "ignoredByScheduler: true: kube-scheduler does not count %s, so quota of nodes, "
                   "preemption and Cluster Autoscaler go wrong; false",
                   resource);
}

static void check_share(struct config *config)
{
    uint32_t minor = config->doctor->server_minor;
    const struct gs_yaml_node *root = gs_yaml_root(config->yaml);
    const char *text = gs_yaml_text(config->yaml, root, "percentageOfNodesToScore");
    bool policy_file = strcmp(gs_yaml_text(config->yaml, root, "kind"), "Policy") == 0;
    uint32_t share = 0; /* its own choice: a sample */
    gs_parse_u32(text, strlen(text), &share);
    if (minor && minor < GS_NOMINATES_SINCE_MINOR && share < 100 && !policy_file)
        say_config(config, FINDING_FAIL,
                   "percentageOfNodesToScore is %s: this kube-scheduler stops looking before the "
                   "extender has seen every node, and a pod may stay Pending beside a GPU that is "
                   "free; 100",
                   text[0] ? text : "missing");
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
    const struct gs_yaml_node *root = gs_yaml_root(config->yaml);
    const char *version = gs_yaml_text(config->yaml, root, "apiVersion");
    const char *kind = gs_yaml_text(config->yaml, root, "kind");
    uint32_t minor = config->doctor->server_minor;
    if (!minor)
        return;
    if (strcmp(kind, "Policy") == 0 && minor > 22)
        say_config(config, FINDING_FAIL,
                   "a Policy file is not read since 1.23, and this is 1.%" PRIu32
                   "; config/kube-scheduler-config-v1.yaml",
                   minor);
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        if (strcmp(version, versions[i].version) == 0 &&
            (minor < versions[i].first || (versions[i].last && minor > versions[i].last)))
            say_config(config, FINDING_FAIL,
                       "kube-scheduler 1.%" PRIu32 " does not read apiVersion %s", minor, version);
    }
}

/* The schedulers that this file makes: who serves a pod's schedulerName. */
static void note_profiles(struct config *config)
{
    struct doctor *doctor = config->doctor;
    const struct gs_yaml_node *root = gs_yaml_root(config->yaml);
    const struct gs_yaml_node *list = gs_yaml_member(config->yaml, root, "profiles"), *item;
    if (!gs_yaml_is_list(list))
        snprintf(doctor->served, sizeof(doctor->served), "default-scheduler");
    for (size_t i = 0; (item = gs_yaml_item(config->yaml, list, i)) != NULL; i++) {
        const char *name = gs_yaml_text(config->yaml, item, "schedulerName");
        size_t len = strlen(doctor->served);
        snprintf(doctor->served + len, sizeof(doctor->served) - len, "%s%.200s", len ? "," : "",
                 name[0] ? name : "default-scheduler");
    }
}

static void judge(struct doctor *doctor, const struct gs_yaml *yaml, const char *where)
{
    struct config config = {
        .doctor = doctor, .yaml = yaml, .entry = our_extender(yaml), .where = where};
    check_version(&config);
    if (!config.entry) {
        say_config(
            &config, FINDING_FAIL,
            "no extender has a urlPrefix that ends in /gpushare-scheduler; take the entry from "
            "config/kube-scheduler-config-v1.yaml");
        return;
    }
    check_verbs(&config);
    check_weight(&config);
    check_timeout(&config);
    check_address(&config);
    check_resource(&config);
    check_share(&config);
    note_profiles(&config);
    if (!config.findings)
        doctor_say(doctor, FINDING_OK, "scheduler config",
                   "%s is complete; that a kube-scheduler was started with it shows elsewhere "
                   "(it asks the extender)",
                   where);
}

static void parse(struct doctor *doctor, const char *text, size_t len, const char *where)
{
    struct gs_yaml yaml;
    struct gs_error err = {0};
    if (gs_yaml_load(&yaml, text, len, where, NULL, &err) < 0) {
        doctor_say(doctor, FINDING_FAIL, "scheduler config", "%s", err.msg);
        return;
    }
    judge(doctor, &yaml, where);
    gs_yaml_release(&yaml);
}

static void read_file(struct doctor *doctor, const char *path)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    struct gs_error err = {0};
    if (gs_file_read(path, CONFIG_BYTES_MAX, &text, &len, &err) < 0)
        doctor_say(doctor, FINDING_FAIL, "scheduler config", "%s", err.msg);
    else
        parse(doctor, text, len, path);
}

static json_t *get_in_system(struct doctor *doctor, const char *api, const char *kind,
                             const char *name, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    gs_buf_puts(&path, api);
    gs_url_escape(&path, doctor->common.system_ns);
    gs_buf_puts(&path, kind);
    gs_url_escape(&path, name);
    return gs_buf_failed(&path) ? NULL : lookup_json(&doctor->common.source, path.data, NULL, err);
}

/* The ConfigMap that the second scheduler's pods mount: kustomize ends its name in a hash, the
 * chart calls it gpushare-scheduler. */
static const char *mounted_config(const json_t *deployment)
{
    const json_t *spec = json_object_get(json_object_get(deployment, "spec"), "template");
    const json_t *volumes = json_object_get(json_object_get(spec, "spec"), "volumes");
    const char *name = "";
    size_t i = 0;
    const json_t *volume = NULL;
    json_array_foreach(volumes, i, volume)
    {
        if (!name[0])
            name = lookup_text(volume, "configMap", "name", NULL);
    }
    return name[0] ? name : "gpushare-scheduler";
}

/* The second scheduler's (manifests/overlays/second-scheduler). */
static void read_config_map(struct doctor *doctor)
{
    struct gs_error err = {0};
    char where[320];
    json_auto_t *deployment = get_in_system(doctor, "/apis/apps/v1/namespaces/", "/deployments/",
                                            "gpushare-scheduler", &err);
    const char *name = mounted_config(deployment);
    err = (struct gs_error){0};
    json_auto_t *map = get_in_system(doctor, "/api/v1/namespaces/", "/configmaps/", name, &err);
    const char *text = lookup_text(map, "data", "config.yaml", NULL);
    snprintf(where, sizeof where, "ConfigMap %s", name);
    if (text[0])
        parse(doctor, text, strlen(text), where);
    else
        doctor_say(doctor, FINDING_SKIP, "scheduler config",
                   "not readable from here (%s); give --scheduler-config FILE where kube-scheduler "
                   "runs",
                   err.msg[0] ? err.msg : "no config.yaml in the ConfigMap");
}

void doctor_check_scheduler(struct doctor *doctor)
{
    if (doctor->scheduler_config)
        read_file(doctor, doctor->scheduler_config);
    else
        read_config_map(doctor);
}
