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

/* If sent bytes are not acknowledged for this long, the peer is dead. The default is a quarter of
 * an hour. It also applies to keepalive probes (tcp(7)), so an idle connection is checked in the
 * same time. */
enum { UNACKNOWLEDGED_MS = 10000, PROBE_AFTER_S = 4, PROBE_EVERY_S = 2 };

/* API servers close idle connections. An older one is not reused, because the request could be
 * lost. */
enum { IDLE_CONNECTION_MAX_S = 60 };

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    unsigned timeout_ms = UNACKNOWLEDGED_MS;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
    return CURL_SOCKOPT_OK;
}

/* Discards unsent bytes in the kernel: an abandoned request must not be sent when the network
 * recovers. */
static int on_close(void *ctx, curl_socket_t fd)
{
    const struct linger at_once = {.l_onoff = 1};
    int unsent = 0;
    if (ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return close(fd);
}

/* Options of every request. */
static const struct {
    CURLoption option;
    long value;
} numbers[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_PATH_AS_IS, 1}, /* no object is named ".." */
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_BUFFERSIZE, 128 << 10},
    {CURLOPT_TCP_NODELAY, 1},
    {CURLOPT_TCP_KEEPALIVE, 1},
    {CURLOPT_TCP_KEEPIDLE, PROBE_AFTER_S},
    {CURLOPT_TCP_KEEPINTVL, PROBE_EVERY_S},
    {CURLOPT_MAXAGE_CONN, IDLE_CONNECTION_MAX_S},
    {CURLOPT_QUICK_EXIT, 1}, /* a resolver that hangs must not block the thread */
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
};
static const struct {
    CURLoption option;
    const char *value;
} texts[] = {
    {CURLOPT_PROTOCOLS_STR, "http,https"},
    {CURLOPT_PROXY, ""}, /* ignore proxies in the environment */
    {CURLOPT_SSLCERTTYPE, "PEM"},
    {CURLOPT_SSLKEYTYPE, "PEM"},
    {CURLOPT_KEYPASSWD, ""}, /* 7.88 reads through a NULL when PEM is encrypted */
};

/* An option that failed for lack of memory could be one that secures the connection. */
static bool set_options(const struct gs_kube_client *client, struct gs_connection *connection)
{
    CURL *easy = connection->easy;
    const bool verify = !client->config.insecure;
    CURLcode failed = CURLE_OK;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        failed |= curl_easy_setopt(easy, numbers[i].option, numbers[i].value);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        failed |= curl_easy_setopt(easy, texts[i].option, texts[i].value);
    failed |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, connection->error);
    failed |= curl_easy_setopt(easy, CURLOPT_USERAGENT, client->user_agent);
    failed |= curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    failed |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    failed |= curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->config.unix_socket);
    failed |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                               (long)(client->options.connect_timeout_ns / GS_NS_PER_MS));
    failed |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
    failed |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
    failed |= curl_easy_setopt(easy, CURLOPT_CONNECT_TO, client->connect_to);
    return failed == CURLE_OK;
}

struct gs_connection *gs_connection_new(struct gs_kube_client *client)
{
    struct gs_connection *connection = calloc(1, sizeof(*connection));
    if (connection && (connection->easy = curl_easy_init()) && set_options(client, connection))
        return connection;
    if (connection)
        gs_connection_free(connection);
    return NULL;
}

void gs_connection_free(struct gs_connection *connection)
{
    curl_easy_cleanup(connection->easy);
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
