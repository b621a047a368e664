/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/kube/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client_private.h"

static void default_ns(int64_t *value, int64_t otherwise)
{
    if (*value <= 0)
        *value = otherwise;
}

static void fill_defaults(struct gs_kube_options *options)
{
    if (!options->clock)
        options->clock = gs_clock_system();
    if (options->object_max_bytes == 0)
        options->object_max_bytes = GS_OBJECT_BYTES_MAX;
    if (options->page_max_bytes == 0)
        options->page_max_bytes = options->object_max_bytes;
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
    const bool ipv6 = strchr(url->host, ':') != NULL, ipv6_name = strchr(name, ':') != NULL;
    char host[300], target[320];
    snprintf(host, sizeof(host), ipv6 ? "[%s]:%u" : "%s:%u", url->host, url->port);
    snprintf(target, sizeof(target), "::%s", host); /* for any name and port in the URL */
    client->connect_to = curl_slist_append(NULL, target);
    client->host_header = strdup(host);
    if (asprintf(&client->base, ipv6_name ? "https://[%s]:%u" : "https://%s:%u", name, url->port) <
        0)
        client->base = NULL;
    if (!client->connect_to || !client->host_header || !client->base)
        return gs_fail_nomem(err);
    struct gs_url checked;
    if (gs_url_parse(client->base, &checked, NULL) < 0)
        return gs_fail(err, GS_EINVAL, "%s: tls-server-name \"%.100s\" is not a host name",
                       client->config.source, name);
    return 0;
}

static int init(struct gs_kube_client *client, struct gs_error *err)
{
    if (gs_url_parse(client->config.server, &client->url, err) < 0 || build_base(client, err) < 0)
        return -1;
    snprintf(client->user_agent, sizeof(client->user_agent), "gpushare-%s/%s",
             client->options.program, GS_VERSION);
    gs_rate_init(&client->rate, client->options.qps, client->options.burst);
    return gs_auth_new(&client->config, client->options.clock, &client->auth, err);
}

int gs_kube_client_new(struct gs_kube_config *config, const struct gs_kube_options *options,
                       struct gs_kube_client **ret_client, struct gs_error *err)
{
    struct gs_kube_client *client = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        gs_kube_config_release(config);
        return gs_fail(err, GS_EINTERNAL, "cannot initialize libcurl");
    }
    if (!(client = calloc(1, sizeof(*client)))) {
        curl_global_cleanup();
        gs_kube_config_release(config);
        return gs_fail_nomem(err);
    }
    client->config = *config;
    *config = (struct gs_kube_config){0};
    pthread_mutex_init(&client->lock, NULL);
    client->options = *options;
    fill_defaults(&client->options);
    if (init(client, err) < 0) {
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
    bool known = strcmp(client->stats.last_broken, why->msg) == 0;
    client->stats.broken_objects++;
    snprintf(client->stats.last_broken, sizeof(client->stats.last_broken), "%s", why->msg);
    pthread_mutex_unlock(&client->lock);
    if (client->options.passed_over && !known)
        client->options.passed_over(NULL, why);
}

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

/* The longest wait between two checks of the flags. */
#define LOOK_EVERY_NS (200 * GS_NS_PER_MS)

void gs_client_wait(struct gs_kube_client *client, const struct gs_runner *runner, int64_t ns)
{
    while (ns > 0 && !gs_client_stopped(client, runner) && !gs_runner_list_wanted(runner)) {
        const int64_t part_ns = ns < LOOK_EVERY_NS ? ns : LOOK_EVERY_NS;
        const int64_t begun_ns = gs_clock_now_ns(gs_clock_system());
        if (runner) { /* a wake-up ends it early */
            curl_multi_poll(runner->multi, NULL, 0, (int)(part_ns / GS_NS_PER_MS) + 1, NULL);
            ns -= gs_clock_now_ns(gs_clock_system()) - begun_ns;
        } else {
            gs_clock_sleep(client->options.clock, part_ns);
            ns -= part_ns;
        }
    }
}
