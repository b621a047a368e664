/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/settings.h"

#include <stdio.h>

#include "common/options.h"
#include "extender/service/service.h"
#include "gpushare/base/array.h"
#include "gpushare/http/server.h"

static bool set_policy(void *to, const char *text)
{
    return gs_placement_parse(text, strlen(text), to);
}

static bool set_names(void *to, const char *text)
{
    bool *one = to;
    *one = strcmp(text, "one") == 0;
    return *one || strcmp(text, "all") == 0;
}

/* The original listens on every address at $PORT; here loopback stays the default. */
static void apply_port(struct settings *settings)
{
    static char listen[32];
    const char *port = getenv("PORT");
    if (!port)
        return;
    snprintf(listen, sizeof(listen), "127.0.0.1:%.8s", port);
    settings->listen = listen;
}

/* "kube-system/kube-scheduler" in its parts. */
static bool split_lease(struct settings *settings)
{
    static char ns[64];
    const char *slash = strchr(settings->scheduler_lease, '/');
    size_t len = slash ? (size_t)(slash - settings->scheduler_lease) : 0;
    if (!len || len >= sizeof(ns) || !slash[1] || strchr(slash + 1, '/'))
        return false;
    memcpy(ns, settings->scheduler_lease, len);
    settings->scheduler_lease_ns = ns;
    settings->scheduler_lease_name = slash + 1;
    return gethostname(settings->host, sizeof(settings->host) - 1) == 0 && settings->host[0];
}

static bool is_empty(const char *text)
{
    return !text || !text[0];
}

static void check_address(const char *option, const char *listen)
{
    struct gs_error err = {0};
    if (!listen || gs_http_check_address(listen, &err) == 0)
        return;
    fprintf(stderr, "gpushare-extender: %s: %s\n", option, err.msg);
    exit(2);
}

/* An empty name would be that of a lease's holder when it has none. */
static void check(struct settings *set)
{
    check_address(getenv("PORT") ? "PORT" : "--listen", set->listen);
    check_address("--health-listen", set->health_listen);
    const bool exposed = !gs_http_is_loopback(set->listen);
    const struct {
        bool wrong;
        const char *why;
    } rules[] = {
        {!set->tls_cert != !set->tls_key, "--tls-cert and --tls-key must be set together"},
        {set->tls_client_ca && !set->tls_cert, "--tls-client-ca requires --tls-cert"},
        {set->tls_allowed_cn && !set->tls_client_ca, "--tls-allowed-cn requires --tls-client-ca"},
        {set->tls_cert && !set->tls_client_ca && exposed && !set->any_client_anywhere,
         "--listen beyond loopback: without --tls-client-ca any client may bind pods; "
         "set it, or --insecure-no-client-auth if the port is protected"},
        {!set->tls_cert && exposed && !set->plain_http_anywhere,
         "--listen beyond loopback: over plain HTTP any client may bind pods; set --tls-cert "
         "and --tls-client-ca, or --insecure-plain-http if the port is protected"},
        {set->leader_elect && is_empty(set->pod_name),
         "--leader-elect requires --pod-name (or POD_NAME), the holder in the Lease"},
        {set->leader_elect && is_empty(set->pod_namespace),
         "--leader-elect requires --pod-namespace (or POD_NAMESPACE), that of the Lease"},
        {set->scheduler_lease && set->leader_elect,
         "--scheduler-lease and --leader-elect are mutually exclusive"},
        {set->scheduler_lease && !split_lease(set), "--scheduler-lease must be NAMESPACE/NAME"},
        {set->bind_workers < 1 || set->bind_workers > 256, "--bind-workers must be 1 to 256"},
    };
    GS_EACH_OF (rule, rules, sizeof(rules) / sizeof(rules[0])) {
        if (!rule->wrong)
            continue;
        fprintf(stderr, "gpushare-extender: %s\n", rule->why);
        exit(2);
    }
}

void settings_read(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){
        .listen = "127.0.0.1:29999",
        .domain = "aliyun.com",
        .pod_namespace = "kube-system",
        .policy = GS_PLACEMENT_ROLLOUT,
        .bind_workers = 64,
        .gpu_metrics = true,
        .nominate = true,
        .kube_api_qps = 300,
    };
    const struct gs_option table[] = {
        OPT_STRING("kubeconfig", &settings->kubeconfig, "FILE",
                   "kubeconfig file (default: the service account of the pod)",
                   .env = "KUBECONFIG"),
        OPT_STRING("listen", &settings->listen, "ADDR:PORT",
                   "address that kube-scheduler calls (default 127.0.0.1:29999); $PORT overrides "
                   "it with 127.0.0.1:$PORT"),
        OPT_STRING("health-listen", &settings->health_listen, "ADDR:PORT",
                   "also serve healthz, readyz, metrics and version at this address, without TLS"),
        OPT_CUSTOM("policy", &settings->policy, set_policy, "binpack|spread|rollout",
                   "placement of pods without the annotation gpu-placement. binpack: the GPU with "
                   "least sufficient free memory; spread: the GPU with most; rollout: the GPU "
                   "where typical pods can use most of what stays free (default rollout)"),
        OPT_CUSTOM(
            "filter-names", &settings->names_one, set_names, "all|one",
            "nodes that filter returns of those that fit. one: the best for the pod, where it "
            "reserves the GPUs until the bind, so that kube-scheduler scores no nodes; all for "
            "pods with preferences of their own (default all)"),
        OPT_FLAG("nominate", &settings->nominate,
                 "if no node of kube-scheduler's sample (percentageOfNodesToScore) fits and "
                 "another does, nominate the pod to that node; needs Kubernetes 1.23 and the right "
                 "to patch pods/status (default true)"),
        OPT_STRING("domain", &settings->domain, "DOMAIN",
                   "domain of resource names, labels and annotations (default aliyun.com)"),
        OPT_STRING("tls-cert", &settings->tls_cert, "FILE",
                   "server certificate, PEM (default: plain HTTP)"),
        OPT_STRING("tls-key", &settings->tls_key, "FILE", "private key of --tls-cert, PEM"),
        OPT_STRING("tls-client-ca", &settings->tls_client_ca, "FILE",
                   "CA certificates, PEM, one of which must have signed a client's certificate"),
        OPT_STRING("tls-allowed-cn", &settings->tls_allowed_cn, "NAMES",
                   "comma-separated names; a client certificate must have one of them as common "
                   "name or DNS name (default any)"),
        OPT_FLAG("insecure-plain-http", &settings->plain_http_anywhere,
                 "allow plain HTTP on an address other than loopback"),
        OPT_FLAG("insecure-no-client-auth", &settings->any_client_anywhere,
                 "allow TLS without --tls-client-ca on an address other than loopback"),
        OPT_STRING("scheduler-name", &settings->scheduler_name, "NAMES",
                   "comma-separated schedulerNames; bind rejects pods of others (default any)"),
        OPT_FLAG("leader-elect", &settings->leader_elect,
                 "elect a leader by a Lease; other replicas reject scheduling requests"),
        OPT_STRING("scheduler-lease", &settings->scheduler_lease, "NAMESPACE/NAME",
                   "bind only while the kube-scheduler of this host holds this Lease: "
                   "kube-system/kube-scheduler, if each of several hosts runs a kube-scheduler and "
                   "an extender (default: not checked)"),
        OPT_STRING(
            "pod-name", &settings->pod_name, "NAME",
            "name of the pod of this program, which annotates its pod with gpushare/leader-term "
            "while it leads and, with --leader-elect, labels it gpushare/leader=true",
            .env = "POD_NAME"),
        OPT_STRING("pod-namespace", &settings->pod_namespace, "NAME",
                   "namespace of that pod and of the Lease (default kube-system; manifests set it)",
                   .env = "POD_NAMESPACE"),
        OPT_U32("bind-workers", &settings->bind_workers, "N",
                "maximum number of concurrent binds (default 64); a namespace begins none while it "
                "has as many under way as are free"),
        OPT_U32("kube-api-qps", &settings->kube_api_qps, "N",
                "maximum requests per second to the API server, after a burst of 600 (default 300; "
                "0: no limit); lists, watches and Leases are not counted"),
        OPT_FLAG("gpu-metrics", &settings->gpu_metrics,
                 "export metrics with the label gpu or node; false: only totals (default true)"),
    };
    const struct gs_command command = {
        .name = "gpushare-extender",
        .doc = "Scheduler extender for shared GPUs. kube-scheduler calls it to filter and "
               "prioritize nodes, to preempt pods, and to bind pods that request GPU memory.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
    apply_port(settings);
    check(settings);
}
