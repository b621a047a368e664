/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"

enum { CONNECTIONS_MAX = 512, REQUESTS_MAX = 4096, REQUEST_BYTES_MAX = 4 << 20, WAIT_S = 10 };

struct fake_api {
    struct fake_rule *rules;
    int *used;
    size_t rule_count;
    int listener;
    int port;
    char url[64];
    pthread_t acceptor;
    pthread_mutex_t lock; /* guards all below, and used */
    pthread_cond_t more;
    bool stopping;
    char *requests[REQUESTS_MAX];
    size_t request_count;
    pthread_t threads[CONNECTIONS_MAX];
    int fds[CONNECTIONS_MAX]; /* -1 once closed */
    size_t connection_count;
};

struct connection {
    struct fake_api *api;
    size_t slot;
    int fd;
    char *bytes; /* read and not yet used */
    size_t len;
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    abort();
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool send_text(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool send_text(int fd, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    must(len >= 0 && (size_t)len < sizeof(text), "a head that fits");
    return send_all(fd, text, (size_t)len);
}

/* Reads until one whole request is there. 0: the client went away. Returns its length. */
static size_t read_request(struct connection *connection)
{
    for (;;) {
        char *head_end = connection->len > 0 ? strstr(connection->bytes, "\r\n\r\n") : NULL;
        if (head_end) {
            size_t need = (size_t)(head_end - connection->bytes) + 4;
            const char *field = strcasestr(connection->bytes, "\r\nContent-Length:");
            uint64_t length = 0;
            if (field && field < head_end) {
                field += strlen("\r\nContent-Length:");
                field += strspn(field, " ");
                gs_parse_u64(field, strcspn(field, "\r"), &length);
            }
            if (connection->len >= need + length)
                return need + length;
        }
        char chunk[65536];
        ssize_t got = recv(connection->fd, chunk, sizeof(chunk), 0);
        if (got <= 0 || connection->len + (size_t)got > REQUEST_BYTES_MAX)
            return 0;
        char *grown = realloc(connection->bytes, connection->len + (size_t)got + 1);
        must(grown != NULL, "memory");
        memcpy(grown + connection->len, chunk, (size_t)got);
        connection->len += (size_t)got;
        grown[connection->len] = '\0';
        connection->bytes = grown;
    }
}

static bool rule_matches(const struct fake_rule *rule, const char *request)
{
    size_t line = strcspn(request, "\r");
    if (strncmp(request, rule->match, strlen(rule->match)) != 0)
        return false;
    return !rule->contains || memmem(request, line, rule->contains, strlen(rule->contains));
}

/* Notes the request and picks the rule that answers it; NULL: none. */
static const struct fake_rule *note(struct fake_api *api, const char *request, size_t len)
{
    const struct fake_rule *found = NULL;
    pthread_mutex_lock(&api->lock);
    must(api->request_count < REQUESTS_MAX, "few requests");
    for (size_t i = 0; i < api->rule_count && !found; i++) {
        const struct fake_rule *rule = &api->rules[i];
        if ((rule->times == 0 || api->used[i] < rule->times) && rule_matches(rule, request)) {
            api->used[i]++;
            found = rule;
        }
    }
    api->requests[api->request_count++] = strndup(request, len);
    pthread_cond_broadcast(&api->more);
    pthread_mutex_unlock(&api->lock);
    return found;
}

static bool send_stream(int fd, const struct fake_rule *rule)
{
    const char *part = rule->stream;
    while (*part) {
        size_t len = strcspn(part, "|");
        if (len > 0 &&
            (!send_text(fd, "%zx\r\n", len) || !send_all(fd, part, len) || !send_text(fd, "\r\n")))
            return false;
        part += len;
        if (*part == '|') {
            part++;
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        }
    }
    if (rule->end == FAKE_KEEP)
        return send_text(fd, "0\r\n\r\n");
    return true;
}

static bool send_answer(int fd, const struct fake_rule *rule)
{
    int status = rule->status == 0 ? 200 : rule->status;
    const char *headers = rule->headers ? rule->headers : "";
    const char *type = "Content-Type: application/json\r\n";
    if (rule->stream)
        return send_text(fd, "HTTP/1.1 %d X\r\n%s%sTransfer-Encoding: chunked\r\n\r\n", status,
                         type, headers) &&
               send_stream(fd, rule);
    const char *body = rule->body ? rule->body : "";
    size_t len = strlen(body);
    return send_text(fd, "HTTP/1.1 %d X\r\n%s%sContent-Length: %zu\r\n\r\n", status, type, headers,
                     len) &&
           send_all(fd, body, len);
}

/* True: the connection serves another request. */
static bool answer(int fd, const struct fake_rule *rule)
{
    static const struct fake_rule nothing = {.status = 404, .body = "{}"};
    rule = rule ? rule : &nothing;
    if (rule->status >= 0 && !send_answer(fd, rule))
        return false;
    if (rule->end == FAKE_STALL) {
        char byte;
        while (recv(fd, &byte, 1, 0) > 0)
            ;
    }
    return rule->end == FAKE_KEEP;
}

static void *serve(void *arg)
{
    struct connection *connection = arg;
    size_t len;
    while ((len = read_request(connection)) > 0) {
        const struct fake_rule *rule = note(connection->api, connection->bytes, len);
        if (!answer(connection->fd, rule))
            break;
        memmove(connection->bytes, connection->bytes + len, connection->len - len + 1);
        connection->len -= len;
    }
    pthread_mutex_lock(&connection->api->lock);
    connection->api->fds[connection->slot] = -1;
    close(connection->fd);
    pthread_mutex_unlock(&connection->api->lock);
    free(connection->bytes);
    free(connection);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct fake_api *api = arg;
    for (;;) {
        int fd = accept(api->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        struct connection *connection = calloc(1, sizeof(*connection));
        must(connection != NULL, "memory");
        pthread_mutex_lock(&api->lock);
        must(api->connection_count < CONNECTIONS_MAX, "few connections");
        *connection = (struct connection){.api = api, .fd = fd, .slot = api->connection_count++};
        api->fds[connection->slot] = fd;
        must(pthread_create(&api->threads[connection->slot], NULL, serve, connection) == 0,
             "a thread");
        if (api->stopping)
            shutdown(fd, SHUT_RDWR);
        pthread_mutex_unlock(&api->lock);
    }
}

struct fake_api *fake_api_start(const struct fake_rule *rules, size_t count)
{
    struct fake_api *api = calloc(1, sizeof(*api));
    must(api != NULL, "memory");
    api->rules = calloc(count + 1, sizeof(*api->rules));
    api->used = calloc(count + 1, sizeof(*api->used));
    must(api->rules && api->used, "memory");
    if (count > 0)
        memcpy(api->rules, rules, count * sizeof(*rules));
    api->rule_count = count;
    pthread_mutex_init(&api->lock, NULL);
    pthread_cond_init(&api->more, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    api->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(api->listener >= 0 && bind(api->listener, (struct sockaddr *)&address, len) == 0 &&
             listen(api->listener, 64) == 0 &&
             getsockname(api->listener, (struct sockaddr *)&address, &len) == 0,
         "a listening socket");
    api->port = ntohs(address.sin_port);
    snprintf(api->url, sizeof(api->url), "http://127.0.0.1:%d", api->port);
    must(pthread_create(&api->acceptor, NULL, accept_all, api) == 0, "a thread");
    return api;
}

void fake_api_stop(struct fake_api *api)
{
    pthread_mutex_lock(&api->lock);
    api->stopping = true;
    for (size_t i = 0; i < api->connection_count; i++)
        if (api->fds[i] >= 0)
            shutdown(api->fds[i], SHUT_RDWR);
    pthread_mutex_unlock(&api->lock);
    shutdown(api->listener, SHUT_RDWR);
    pthread_join(api->acceptor, NULL);
    close(api->listener);
    for (size_t i = 0; i < api->connection_count; i++)
        pthread_join(api->threads[i], NULL);
    for (size_t i = 0; i < api->request_count; i++)
        free(api->requests[i]);
    pthread_cond_destroy(&api->more);
    pthread_mutex_destroy(&api->lock);
    free(api->rules);
    free(api->used);
    free(api);
}

const char *fake_api_url(const struct fake_api *api)
{
    return api->url;
}

int fake_api_port(const struct fake_api *api)
{
    return api->port;
}

static size_t count_locked(const struct fake_api *api, const char *match)
{
    size_t count = 0;
    for (size_t i = 0; i < api->request_count; i++)
        count += strncmp(api->requests[i], match, strlen(match)) == 0;
    return count;
}

size_t fake_api_count(struct fake_api *api, const char *match)
{
    pthread_mutex_lock(&api->lock);
    size_t count = count_locked(api, match);
    pthread_mutex_unlock(&api->lock);
    return count;
}

bool fake_api_wait(struct fake_api *api, const char *match, size_t count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    pthread_mutex_lock(&api->lock);
    int waited = 0;
    while (count_locked(api, match) < count && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&api->more, &api->lock, &until);
    bool enough = count_locked(api, match) >= count;
    pthread_mutex_unlock(&api->lock);
    return enough;
}

const char *fake_api_request(struct fake_api *api, const char *match, size_t i)
{
    const char *found = NULL;
    pthread_mutex_lock(&api->lock);
    for (size_t at = 0; at < api->request_count && !found; at++)
        if (strncmp(api->requests[at], match, strlen(match)) == 0 && i-- == 0)
            found = api->requests[at];
    pthread_mutex_unlock(&api->lock);
    return found;
}

size_t fake_api_connections(struct fake_api *api)
{
    pthread_mutex_lock(&api->lock);
    size_t count = api->connection_count;
    pthread_mutex_unlock(&api->lock);
    return count;
}
