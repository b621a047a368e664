/* SPDX-License-Identifier: Apache-2.0 */
#include "extender/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/options.h"
#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/http/server.h"
#include "gpushare/service/service.h"

static bool set_policy(void *to, const char *text)
{
    return gs_placement_parse(text, strlen(text), to);
}

static bool set_quantise(void *to, const char *text)
{
    return gs_quantise_parse(text, strlen(text), to);
}

/* The original listens on every address at $PORT; here loopback stays the default. */
static void apply_port(struct settings *settings)
{
    static char listen[32];
    if (!settings->port)
        return;
    snprintf(listen, sizeof(listen), "127.0.0.1:%.8s", settings->port);
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

/* What is said of an option that cannot be meant. */
static const char *no_address(const char *option, const char *listen)
{
    static char words[320];
    struct gs_error err = {0};
    if (!listen || gs_http_check_address(listen, &err) == 0)
        return NULL;
    snprintf(words, sizeof(words), "%s: %s", option, err.msg);
    return words;
}

static const char *wrong_port(const struct settings *settings)
{
    const char *wrong = no_address(settings->port ? "PORT" : "--listen", settings->listen);
    if (wrong)
        return wrong;
    if (!settings->tls_cert != !settings->tls_key)
        return "--tls-cert and --tls-key go together";
    if (settings->tls_client_ca && !settings->tls_cert)
        return "--tls-client-ca needs --tls-cert";
    if (settings->tls_allowed_cn && !settings->tls_client_ca)
        return "--tls-allowed-cn needs --tls-client-ca";
    if (settings->tls_cert && !settings->tls_client_ca && !gs_http_is_loopback(settings->listen) &&
        !settings->any_client_anywhere)
        return "TLS beyond loopback that asks clients for no certificate lets everybody bind pods: "
               "give --tls-client-ca, or --any-client-anywhere if something else protects the port";
    if (!settings->tls_cert && !gs_http_is_loopback(settings->listen) &&
        !settings->plain_http_anywhere)
        return "plain HTTP beyond loopback lets everybody bind pods: give --tls-cert and "
               "--tls-client-ca, or --plain-http-anywhere if something else protects the port";
    return no_address("--health-listen", settings->health_listen);
}

/* An empty name would be that of a lease's holder when it has none. */
static const char *wrong_election(struct settings *settings)
{
    if (settings->leader_elect && is_empty(settings->pod_name))
        return "--leader-elect needs --pod-name (or POD_NAME): the name in the Lease";
    if (settings->leader_elect && is_empty(settings->pod_namespace))
        return "--leader-elect needs --pod-namespace (or POD_NAMESPACE): where the Lease is";
    if (settings->leader_elect && is_empty(settings->lease_name))
        return "--leader-elect needs --lease-name";
    if (settings->scheduler_lease && settings->leader_elect)
        return "--scheduler-lease and --leader-elect are for different layouts: give one";
    if (settings->scheduler_lease && !split_lease(settings))
        return "--scheduler-lease is NAMESPACE/NAME";
    return NULL;
}

static const char *wrong_number(const struct settings *settings)
{
    if (settings->threads < 1 || settings->threads > 64 || settings->bind_workers < 1 ||
        settings->bind_workers > 256)
        return "--threads is 1 to 64, --bind-workers 1 to 256";
    return settings->reconcile_ns > 0 ? NULL : "--reconcile-every is more than 0";
}

static void check(struct settings *settings)
{
    const char *wrong = wrong_port(settings);
    wrong = wrong ? wrong : wrong_election(settings);
    wrong = wrong ? wrong : wrong_number(settings);
    if (!wrong)
        return;
    fprintf(stderr, "gpushare-extender: %s\n", wrong);
    exit(2);
}

void settings_read(struct settings *settings, int argc, char **argv)
{
    *settings = (struct settings){
        .listen = "127.0.0.1:39999",
        .domain = "aliyun.com",
        .lease_name = "gpushare-extender",
        .pod_namespace = "kube-system",
        .policy = GS_PLACEMENT_ROLLOUT,
        .quantise = GS_QUANTISE_COARSE,
        .threads = 2,
        .bind_workers = 16,
        .grace_ns = 10 * GS_NS_PER_S,
        .reconcile_ns = 300 * GS_NS_PER_S,
        .gpu_metrics = true,
        .nominate = true,
        .kube_api_qps = 300,
        .kube_api_burst = 600,
    };
    const struct gs_option table[] = {
        OPT_STRING("kubeconfig", &settings->kubeconfig, "FILE",
                   "how to reach the API server; without it $KUBECONFIG, ~/.kube/config, then "
                   "in-cluster"), /* $KUBECONFIG may name several files: the loader reads it */
        OPT_STRING("context", &settings->context, "NAME", "context of the kubeconfig"),
        OPT_STRING(
            "listen", &settings->listen, "ADDR:PORT",
            "where kube-scheduler asks (127.0.0.1:39999); the environment's PORT changes the port"),
        OPT_STRING("health-listen", &settings->health_listen, "ADDR:PORT",
                   "healthz, readyz, metrics and version also here, without TLS"),
        OPT_CUSTOM("policy", &settings->policy, set_policy, "binpack|spread|fgd|rollout",
                   "placement of pods that name none (rollout)"),
        OPT_CUSTOM("quantise", &settings->quantise, set_quantise, "coarse|range|one-hot",
                   "how prioritize spreads its scores over 0 to 10 (coarse)"),
        OPT_FLAG(
            "sparse-scores", &settings->sparse_scores,
            "prioritize leaves out the nodes of the least score, and takes it off the others': for "
            "kube-scheduler, which adds up what it is told, the same, and less to read"),
        OPT_FLAG("nominate", &settings->nominate,
                 "kube-scheduler may look at a sample of the nodes (percentageOfNodesToScore): a "
                 "pod whose sample had no room is nominated to a node that has; from Kubernetes "
                 "1.23 on, where patch of pods/status is granted (true)"),
        OPT_STRING("domain", &settings->domain, "DOMAIN",
                   "domain of resources and annotations (aliyun.com)"),
        OPT_STRING("tls-cert", &settings->tls_cert, "FILE", "server certificate, PEM"),
        OPT_STRING("tls-key", &settings->tls_key, "FILE", "its key"),
        OPT_STRING("tls-client-ca", &settings->tls_client_ca, "FILE",
                   "clients must show a certificate signed by one of these"),
        OPT_STRING("tls-allowed-cn", &settings->tls_allowed_cn, "NAMES",
                   "comma list of common names or DNS names: a client's certificate must bear one "
                   "of them (any)"),
        OPT_FLAG("plain-http-anywhere", &settings->plain_http_anywhere,
                 "allow plain HTTP on an address that is not loopback"),
        OPT_FLAG("any-client-anywhere", &settings->any_client_anywhere,
                 "allow TLS without --tls-client-ca on an address that is not loopback"),
        OPT_STRING("scheduler-name", &settings->scheduler_name, "NAMES",
                   "comma list of spec.schedulerName: bind refuses other schedulers' pods (any)"),
        OPT_FLAG("leader-elect", &settings->leader_elect,
                 "one of several replicas behind a Service answers: needs a Lease"),
        OPT_STRING("lease-name", &settings->lease_name, "NAME",
                   "the Lease of the election (gpushare-extender)"),
        OPT_STRING(
            "scheduler-lease", &settings->scheduler_lease, "NAMESPACE/NAME",
            "bind only while this Lease is held by the kube-scheduler of this host (none); for "
            "several hosts with a kube-scheduler and an extender each: kube-system/kube-scheduler"),
        OPT_STRING("pod-name", &settings->pod_name, "NAME",
                   "this replica's pod: marked when it begins to lead; with --leader-elect "
                   "labelled gpushare/leader=true while it leads",
                   .env = "POD_NAME"),
        OPT_STRING("pod-namespace", &settings->pod_namespace, "NAME",
                   "namespace of the pod and the Lease (kube-system)", .env = "POD_NAMESPACE"),
        OPT_U32("threads", &settings->threads, "N", "threads that read requests (2)"),
        OPT_U32("bind-workers", &settings->bind_workers, "N", "binds at the same time (16)"),
        OPT_U32("kube-api-qps", &settings->kube_api_qps, "N",
                "requests to the API server a second (300; 0: no limit); its lists, watches and "
                "Leases do not count"),
        OPT_U32("kube-api-burst", &settings->kube_api_burst, "N",
                "of these, how many may come at once (600)"),
        OPT_DURATION("grace", &settings->grace_ns, "TIME",
                     "how long requests may take to finish after SIGTERM (10s)"),
        OPT_DURATION("reconcile-every", &settings->reconcile_ns, "TIME",
                     "between full comparisons of ledger and API (5m)"),
        OPT_FLAG("gpu-metrics", &settings->gpu_metrics,
                 "two metrics per GPU of the cluster; false leaves the sums (true)"),
        OPT_STRING("port", &settings->port, "PORT", "port on loopback, as the original's PORT",
                   .env = "PORT"),
    };
    const struct gs_command command = {
        .name = "gpushare-extender",
        .doc = "Scheduler extender that shares GPU memory: kube-scheduler asks it to filter, "
               "prioritize, preempt and bind pods with GPU memory.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
    apply_port(settings);
    check(settings);
}
