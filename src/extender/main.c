/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <sys/random.h>

#include "common/api.h"
#include "common/process.h"
#include "extender/candidate.h"
#include "extender/feed.h"
#include "extender/routes.h"
#include "extender/settings.h"
#include "gpushare/base/log.h"

/* gpushare-extender: starts its parts in order, serves until SIGTERM, and stops them in reverse. */

#define LEASE       "gpushare-extender"
#define RESIGN_NS   (5 * GS_NS_PER_S)
#define WITHDRAW_NS (1 * GS_NS_PER_S)
#define GRACE_NS    (10 * GS_NS_PER_S) /* for requests and binds under way after SIGTERM */
enum { KUBE_API_BURST = 600 };

/* Everything that lives as long as the program, in the order it is built. */
struct app {
    struct settings settings;
    struct gs_names names;
    struct gs_kube_client *client;
    struct candidate candidate;
    char identity[256]; /* in the Lease */
    struct gs_service *service;
    struct routes_ctx routes;
    struct feed feed;
    struct gs_http_server *server;
    struct gs_http_server *health;
};

/* As client-go's: a name can be two processes', of a pod that was made anew while the node of the
 * old one is cut off, or of a container that was started again; the Lease of one is not the
 * other's. */
static void make_identity(struct app *app)
{
    uint64_t number = 0;
    (void)!getrandom(&number, sizeof(number), 0);
    snprintf(app->identity, sizeof(app->identity), "%.200s_%016llx", app->settings.pod_name,
             (unsigned long long)number);
}

static int start_service(struct app *app, struct gs_error *err)
{
    const struct settings *set = &app->settings;
    struct gs_kube kube = gs_kube_client_port(app->client);
    struct gs_election_config election = {.kube = kube, .clock = gs_clock_system()};
    if (set->leader_elect) {
        election.ns = set->pod_namespace;
        election.name = LEASE;
        make_identity(app);
        election.identity = app->identity;
    } else if (set->scheduler_lease) {
        election.ns = set->scheduler_lease_ns;
        election.name = set->scheduler_lease_name;
        election.identity = set->host;
        election.follows = true;
    }
    if (election.name && candidate_start(&app->candidate, &election, err) < 0)
        return -1;
    const struct gs_service_config config = {
        .names = &app->names,
        .clock = gs_clock_system(),
        .kube = kube,
        .election = app->candidate.election,
        .pod_ns = set->pod_namespace,
        .pod_name = set->pod_name,
        .labels_leader = set->leader_elect,
        /* an election waits for such binds by itself */
        .first_bind_ns =
            election.name ? 0 : gs_clock_now_ns(gs_clock_system()) + GS_ELECTION_BIND_NS,
        .policy = set->policy,
        .names_one = set->names_one,
        .scheduler_name = set->scheduler_name,
        .no_gpu_metrics = !set->gpu_metrics,
    };
    app->service = gs_service_new(&config, err);
    return app->service ? feed_start(&app->feed, app->service, app->client, set->nominate, err)
                        : -1;
}

static void tell_tls_files(void *ctx, const char *why)
{
    if (why)
        gs_log(GS_LOG_ERROR, "cannot load changed TLS files, the previous ones stay in use",
               GS_STR("error", why));
    else
        gs_log(GS_LOG_INFO, "TLS files reloaded");
}

static void warn_too_large(void *ctx, uint64_t claimed_bytes)
{
    gs_log(GS_LOG_WARN,
           "request refused: its body is too large; without nodeCacheCapable: true kube-scheduler "
           "sends whole Nodes",
           GS_INT("bytes", claimed_bytes), GS_INT("limit", GS_HTTP_CONFIG_DEFAULTS.max_body_bytes));
}

static int serve(struct app *app, struct gs_error *err)
{
    const struct settings *set = &app->settings;
    app->routes.service = app->service;
    app->routes.client = app->client;
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    config.listen = set->listen;
    config.routes = routes_all;
    config.route_count = routes_all_count;
    config.ctx = &app->routes;
    config.workers = set->bind_workers;
    config.max_connections = 1000; /* kube-scheduler needs a few dozen */
    config.tls_cert = set->tls_cert;
    config.tls_key = set->tls_key;
    config.tls_client_ca = set->tls_client_ca;
    config.tls_allowed_names = set->tls_allowed_cn;
    config.on_tls_files = tell_tls_files;
    config.on_too_large = warn_too_large;
    if (gs_http_server_start(&config, &app->server, err) < 0)
        return gs_error_prefix(err, "--listen %s", set->listen);
    app->routes.server = app->server;
    if (!set->health_listen)
        return 0;
    struct gs_http_config health = gs_http_health_config(256);
    health.listen = set->health_listen;
    health.routes = routes_health;
    health.route_count = routes_health_count;
    health.ctx = &app->routes;
    if (gs_http_server_start(&health, &app->health, err) < 0)
        return gs_error_prefix(err, "--health-listen %s", set->health_listen);
    return 0;
}

/* True: there are none, within that time. */
static bool wait_for_none(const struct gs_service *service,
                          uint32_t (*count)(const struct gs_service *service), int64_t timeout_ns)
{
    const struct timespec pause = {.tv_nsec = 10 * GS_NS_PER_MS};
    const int64_t until_ns = gs_clock_now_ns(gs_clock_system()) + timeout_ns;
    while (count(service) > 0 && gs_clock_now_ns(gs_clock_system()) < until_ns)
        nanosleep(&pause, NULL);
    return count(service) == 0;
}

/* Nothing is reserved for nominated pods any more. What is not taken back in time is
 * left to the next leader. */
static void withdraw_nominations(const struct app *app)
{
    if (!app->feed.service)
        return;
    gs_service_withdraw(app->service);
    wait_for_none(app->service, gs_service_nominations, WITHDRAW_NS);
}

/* Whoever takes a lease that is given back believes that no bind of ours can still be carried out:
 * where one can, the lease has to run out. */
static void resign(struct app *app)
{
    if (!app->candidate.election || !app->service)
        return;
    bool settled = wait_for_none(app->service, gs_service_unresolved_binds, GRACE_NS);
    if (!settled)
        gs_log(GS_LOG_WARN, "Lease not released: unresolved binds remain",
               GS_INT("binds", gs_service_unresolved_binds(app->service)));
    if (!candidate_resign(&app->candidate, settled, RESIGN_NS))
        gs_log(GS_LOG_WARN, "Lease not released: the API server does not respond");
    gs_service_tick_part(app->service, GS_TICK_TERM); /* the label */
}

/* In the opposite order, but for nominations, which take ticks: nobody may ask what is gone. An API
 * server that does not answer delays nothing but binds that have begun. */
static void tear_down(struct app *app)
{
    withdraw_nominations(app);
    if (app->server)
        gs_http_server_stop(app->server, GRACE_NS);
    resign(app);
    if (app->client)
        gs_kube_client_cancel(app->client);
    gs_http_server_free(app->health);
    gs_http_server_free(app->server);
    feed_stop(&app->feed);
    gs_service_free(app->service);
    candidate_stop(&app->candidate);
    gs_kube_client_free(app->client);
}

int main(int argc, char **argv)
{
    struct app app = {0};
    struct gs_error err = {0};
    process_keep_secrets();
    settings_read(&app.settings, argc, argv);
    if (gs_names_init(&app.names, app.settings.domain, &err) < 0) {
        gs_log(GS_LOG_ERROR, "invalid options", GS_STR("error", err.msg));
        return 2;
    }
    process_block_signals();
    process_raise_files();
    /* large bodies go back to the system when they are done */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    const struct gs_kube_options options = {.program = "extender",
                                            .names = &app.names,
                                            .qps = app.settings.kube_api_qps,
                                            .burst = KUBE_API_BURST};
    int result = api_connect(app.settings.kubeconfig, &options, &app.client, &err);
    if (result == 0)
        result = start_service(&app, &err);
    if (result == 0)
        result = serve(&app, &err);
    if (result == 0) {
        gs_log(GS_LOG_INFO, "serving", GS_STR("version", GS_VERSION),
               GS_STR("listen", app.settings.listen),
               GS_STR("policy", gs_placement_name(app.settings.policy)),
               GS_STR("domain", app.names.domain));
        int number = process_wait_for_stop();
        gs_log(GS_LOG_INFO, "stopping", GS_STR("signal", sigabbrev_np(number)));
    } else {
        gs_log(GS_LOG_ERROR, "cannot start", GS_STR("error", err.msg));
    }
    tear_down(&app);
    return result == 0 ? 0 : 1;
}
