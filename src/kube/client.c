/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_private.h"
#include "kubeconfig_private.h"

static void default_ns(int64_t *value, int64_t otherwise)
{
    if (*value <= 0)
        *value = otherwise;
}

static void fill_defaults(struct gs_kube_options *options)
{
    if (!options->program)
        options->program = "client";
    if (!options->clock)
        options->clock = gs_clock_system();
    if (options->body_max_bytes == 0)
        options->body_max_bytes = 64u << 20;
    if (options->event_max_bytes == 0)
        options->event_max_bytes = 16u << 20;
    if (options->page_limit == 0)
        options->page_limit = 500;
    default_ns(&options->connect_timeout_ns, 5 * GS_NS_PER_S);
    default_ns(&options->request_timeout_ns, 15 * GS_NS_PER_S);
    default_ns(&options->retry_after_max_ns, 10 * GS_NS_PER_S);
    default_ns(&options->list_timeout_ns, 60 * GS_NS_PER_S);
    default_ns(&options->backoff_min_ns, 800 * GS_NS_PER_MS);
    default_ns(&options->backoff_max_ns, 30 * GS_NS_PER_S);
    default_ns(&options->watch_timeout_ns, 300 * GS_NS_PER_S);
    default_ns(&options->stall_timeout_ns, 150 * GS_NS_PER_S);
    default_ns(&options->exec_timeout_ns, 60 * GS_NS_PER_S);
}

/* Requests go to the server's own address, or, with tls-server-name, to a URL with that name and
 * the address behind it: curl has no other way to check a certificate for another name. */
static int build_base(struct gs_kube_client *client, struct gs_error *err)
{
    const char *name = client->config.tls_server_name;
    const struct gs_url *url = &client->url;
    if (!url->tls || !name || !name[0]) {
        client->base = strdup(client->config.server);
        return client->base ? 0 : gs_fail_nomem(err);
    }
    const char *open = strchr(url->host, ':') ? "[" : "", *close = open[0] ? "]" : "";
    const char *name_open = strchr(name, ':') ? "[" : "", *name_close = name_open[0] ? "]" : "";
    char target[800];
    snprintf(target, sizeof(target), "%s%s%s:%u:%s%s%s:%u", name_open, name, name_close, url->port,
             open, url->host, close, url->port);
    client->connect_to = curl_slist_append(NULL, target);
    if (!client->connect_to || asprintf(&client->base, "https://%s%s%s:%u%s", name_open, name,
                                        name_close, url->port, url->prefix) < 0) {
        client->base = NULL;
        return gs_fail_nomem(err);
    }
    if (asprintf(&client->host_header, "%s%s%s:%u", open, url->host, close, url->port) < 0) {
        client->host_header = NULL;
        return gs_fail_nomem(err);
    }
    struct gs_url checked;
    if (gs_url_parse(client->base, &checked, NULL) < 0)
        return gs_fail(err, GS_EINVAL, "%s: tls-server-name \"%.100s\" is no host name",
                       client->config.source, name);
    return 0;
}

static int init(struct gs_kube_client *client, const struct gs_kube_config *config,
                struct gs_error *err)
{
    if (gs_kube_config_copy(config, &client->config, err) < 0 ||
        gs_url_parse(client->config.server, &client->url, err) < 0 || build_base(client, err) < 0)
        return -1;
    snprintf(client->user_agent, sizeof(client->user_agent), "gpushare-%s/%s",
             client->options.program, GS_VERSION);
    client->options.program = NULL; /* copied above */
    gs_random_init(&client->random);
    gs_rate_init(&client->rate, client->options.qps, client->options.burst);
    return gs_auth_new(&client->config, client->options.clock, client->options.exec_timeout_ns,
                       &client->auth, err);
}

int gs_kube_client_new(const struct gs_kube_config *config, const struct gs_kube_options *options,
                       struct gs_kube_client **ret_client, struct gs_error *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return gs_fail(err, GS_EINTERNAL, "libcurl cannot be initialised");
    struct gs_kube_client *client = calloc(1, sizeof(*client));
    if (!client) {
        curl_global_cleanup();
        return gs_fail_nomem(err);
    }
    pthread_mutex_init(&client->lock, NULL);
    client->options = *options;
    fill_defaults(&client->options);
    if (init(client, config, err) < 0) {
        gs_kube_client_free(client);
        return -1;
    }
    *ret_client = client;
    return 0;
}

void gs_kube_client_cancel(struct gs_kube_client *client)
{
    atomic_store(&client->canceled, true);
}

void gs_kube_client_free(struct gs_kube_client *client)
{
    if (!client)
        return;
    while (client->idle) {
        struct gs_connection *connection = client->idle;
        client->idle = connection->next;
        gs_connection_free(connection);
    }
    if (client->auth)
        gs_auth_free(client->auth);
    gs_kube_config_release(&client->config);
    curl_slist_free_all(client->connect_to);
    free(client->host_header);
    free(client->base);
    pthread_mutex_destroy(&client->lock);
    free(client);
    curl_global_cleanup();
}

void gs_kube_client_stats(struct gs_kube_client *client, struct gs_kube_stats *ret)
{
    pthread_mutex_lock(&client->lock);
    *ret = client->stats;
    pthread_mutex_unlock(&client->lock);
}

void gs_client_broken(struct gs_kube_client *client, const struct gs_error *why)
{
    pthread_mutex_lock(&client->lock);
    client->stats.broken_objects++;
    snprintf(client->stats.last_broken, sizeof(client->stats.last_broken), "%s", why->msg);
    pthread_mutex_unlock(&client->lock);
}

int64_t gs_client_backoff_ns(struct gs_kube_client *client, uint32_t attempt, int64_t min_ns,
                             int64_t max_ns)
{
    pthread_mutex_lock(&client->lock);
    int64_t wait_ns = gs_backoff_ns(&client->random, attempt, min_ns, max_ns);
    pthread_mutex_unlock(&client->lock);
    return wait_ns;
}

/* No sleep is longer than this without a look at the flag, whoever forgets to wake us. */
enum { LOOK_MS = 1000 };

int gs_runner_open(struct gs_kube_client *client, const atomic_bool *stop, struct gs_runner *runner,
                   struct gs_error *err)
{
    CURLM *multi = curl_multi_init();
    struct gs_connection *connection = multi ? gs_connection_new(client) : NULL;
    if (!connection) {
        curl_multi_cleanup(multi);
        return gs_fail_nomem(err);
    }
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 1L);
    *runner = (struct gs_runner){.multi = multi, .stop = stop, .connection = connection};
    pthread_mutex_lock(&client->lock);
    runner->next = client->runners;
    client->runners = runner;
    pthread_mutex_unlock(&client->lock);
    return 0;
}

void gs_runner_close(struct gs_kube_client *client, struct gs_runner *runner)
{
    pthread_mutex_lock(&client->lock);
    struct gs_runner **link = &client->runners;
    while (*link != runner)
        link = &(*link)->next;
    *link = runner->next;
    pthread_mutex_unlock(&client->lock);
    gs_connection_free(runner->connection);
    curl_multi_cleanup(runner->multi);
}

void gs_runner_sleep(const struct gs_runner *runner, int64_t ns)
{
    const struct gs_clock *clock = gs_clock_system();
    int64_t until_ns = gs_clock_now_ns(clock) + ns;
    for (int64_t left = ns;
         left > 0 && !gs_runner_stopped(runner) && !gs_runner_list_wanted(runner);
         left = until_ns - gs_clock_now_ns(clock)) {
        int64_t ms = left / GS_NS_PER_MS + 1;
        curl_multi_poll(runner->multi, NULL, 0, ms > LOOK_MS ? LOOK_MS : (int)ms, NULL);
    }
}
