/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "client_private.h"

/* Handles kept for the next request; more are made when more requests are in flight. */
enum { IDLE_MAX = 64 };

/* What was sent and is not acknowledged for this long means a dead peer: without it a cable pulled
 * in mid-request is noticed after a quarter of an hour. */
enum { UNACKNOWLEDGED_MS = 30000 };

/* API servers close idle connections; one that is older is not worth the risk of a request that
 * vanishes. */
enum { IDLE_CONNECTION_MAX_S = 60 };

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    unsigned timeout_ms = UNACKNOWLEDGED_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    return CURL_SOCKOPT_OK;
}

static void set_proxy(const struct gs_kube_client *client, CURL *easy)
{
    const struct gs_kube_config *config = &client->config;
    /* Never what curl itself finds in the environment: the configuration has decided. */
    curl_easy_setopt(easy, CURLOPT_PROXY, config->proxy_url ? config->proxy_url : "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, config->no_proxy ? config->no_proxy : "");
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void set_tls(const struct gs_kube_client *client, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, client->config.insecure ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, client->config.insecure ? 0L : 2L);
    if (client->connect_to)
        curl_easy_setopt(easy, CURLOPT_CONNECT_TO, client->connect_to);
}

struct gs_connection *gs_connection_new(struct gs_kube_client *client)
{
    struct gs_connection *connection = calloc(1, sizeof(*connection));
    CURL *easy = connection ? curl_easy_init() : NULL;
    if (!easy) {
        free(connection);
        return NULL;
    }
    connection->easy = easy;
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, connection->error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* no object is called ".." */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, client->user_agent);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_MAX_S);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a resolver that hangs holds nobody up */
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 128L << 10);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(client->options.connect_timeout_ns / GS_NS_PER_MS));
    set_proxy(client, easy);
    set_tls(client, easy);
    return connection;
}

void gs_connection_free(struct gs_connection *connection)
{
    curl_easy_cleanup(connection->easy);
    if (connection->creds)
        gs_creds_unref(connection->creds);
    free(connection);
}

/* Last in, first out: few warm connections rather than many cold ones. */
struct gs_connection *gs_connection_take(struct gs_kube_client *client)
{
    pthread_mutex_lock(&client->lock);
    struct gs_connection *connection = client->idle;
    if (connection) {
        client->idle = connection->next;
        client->idle_count--;
    }
    pthread_mutex_unlock(&client->lock);
    return connection ? connection : gs_connection_new(client);
}

void gs_connection_put(struct gs_kube_client *client, struct gs_connection *connection)
{
    pthread_mutex_lock(&client->lock);
    bool keep = client->idle_count < IDLE_MAX;
    if (keep) {
        connection->next = client->idle;
        client->idle = connection;
        client->idle_count++;
    }
    pthread_mutex_unlock(&client->lock);
    if (!keep)
        gs_connection_free(connection);
}
