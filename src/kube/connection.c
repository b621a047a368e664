/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_private.h"

/* Handles kept for the next request; more are made when more requests are in flight. */
enum { IDLE_MAX = 64 };

/* What was sent and is not acknowledged for this long means a dead peer: without it a cable pulled
 * in mid-request is noticed after a quarter of an hour. It counts for keepalive probes too
 * (tcp(7)), which go out while nothing else does: so a silent peer is found in the same time. */
enum { UNACKNOWLEDGED_MS = 10000, PROBE_AFTER_S = 4, PROBE_EVERY_S = 2 };

/* API servers close idle connections; one that is older is not worth the risk of a request that
 * vanishes. */
enum { IDLE_CONNECTION_MAX_S = 60 };

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    unsigned timeout_ms = UNACKNOWLEDGED_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    return CURL_SOCKOPT_OK;
}

/* A request that was given up must not go out behind our back when the network comes back: what the
 * kernel still holds of it is thrown away. */
static int on_close(void *ctx, curl_socket_t fd)
{
    const struct linger at_once = {.l_onoff = 1};
    int unsent = 0;
    if (ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return close(fd);
}

/* An option that did not take, for want of memory, may be the one that keeps a connection safe. */
#define SET(easy, ok, option, value)                                                               \
    do {                                                                                           \
        *(ok) = curl_easy_setopt((easy), (option), (value)) == CURLE_OK && *(ok);                  \
    } while (0)

static void set_proxy(const struct gs_kube_client *client, CURL *easy, bool *ok)
{
    const struct gs_kube_config *config = &client->config;
    /* Never what curl itself finds in the environment: the configuration has decided. */
    SET(easy, ok, CURLOPT_PROXY, config->proxy_url ? config->proxy_url : "");
    SET(easy, ok, CURLOPT_NOPROXY, config->no_proxy ? config->no_proxy : "");
    SET(easy, ok, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

static void set_tls(const struct gs_kube_client *client, CURL *easy, bool *ok)
{
    SET(easy, ok, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(easy, ok, CURLOPT_SSLCERTTYPE, "PEM");
    SET(easy, ok, CURLOPT_SSLKEYTYPE, "PEM");
    SET(easy, ok, CURLOPT_SSL_VERIFYPEER, client->config.insecure ? 0L : 1L);
    SET(easy, ok, CURLOPT_SSL_VERIFYHOST, client->config.insecure ? 0L : 2L);
    if (client->connect_to)
        SET(easy, ok, CURLOPT_CONNECT_TO, client->connect_to);
}

static void set_http(const struct gs_kube_client *client, CURL *easy, bool *ok)
{
    SET(easy, ok, CURLOPT_FOLLOWLOCATION, 0L);
    SET(easy, ok, CURLOPT_PATH_AS_IS, 1L); /* no object is called ".." */
    SET(easy, ok, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, ok, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, ok, CURLOPT_USERAGENT, client->user_agent);
    SET(easy, ok, CURLOPT_BUFFERSIZE, 128L << 10);
}

static void set_tcp(const struct gs_kube_client *client, CURL *easy, bool *ok)
{
    SET(easy, ok, CURLOPT_TCP_NODELAY, 1L);
    SET(easy, ok, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(easy, ok, CURLOPT_TCP_KEEPIDLE, (long)PROBE_AFTER_S);
    SET(easy, ok, CURLOPT_TCP_KEEPINTVL, (long)PROBE_EVERY_S);
    SET(easy, ok, CURLOPT_SOCKOPTFUNCTION, on_socket);
    SET(easy, ok, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    SET(easy, ok, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_MAX_S);
    SET(easy, ok, CURLOPT_QUICK_EXIT, 1L); /* a resolver that hangs holds nobody up */
    SET(easy, ok, CURLOPT_CONNECTTIMEOUT_MS,
        (long)(client->options.connect_timeout_ns / GS_NS_PER_MS));
}

struct gs_connection *gs_connection_new(struct gs_kube_client *client)
{
    struct gs_connection *connection = calloc(1, sizeof(*connection));
    CURL *easy = connection ? curl_easy_init() : NULL;
    bool ok = true;
    if (!easy) {
        free(connection);
        return NULL;
    }
    connection->easy = easy;
    SET(easy, &ok, CURLOPT_ERRORBUFFER, connection->error);
    SET(easy, &ok, CURLOPT_NOSIGNAL, 1L);
    set_http(client, easy, &ok);
    set_tcp(client, easy, &ok);
    set_proxy(client, easy, &ok);
    set_tls(client, easy, &ok);
    if (ok)
        return connection;
    gs_connection_free(connection);
    return NULL;
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
