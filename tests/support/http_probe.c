/* SPDX-License-Identifier: Apache-2.0 */
#include "http_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gpushare/base/num.h"

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool http_probe_open_from(struct http_probe *probe, uint16_t port, uint32_t host)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    *probe = (struct http_probe){.timeout_ms = 10000};
    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe->fd < 0)
        return false;
    if ((host && bind(probe->fd, (const struct sockaddr *)(const void *)&from, sizeof(from)) < 0) ||
        connect(probe->fd, (const struct sockaddr *)(const void *)&addr, sizeof(addr)) < 0) {
        close(probe->fd);
        probe->fd = -1;
    }
    return probe->fd >= 0;
}

bool http_probe_open(struct http_probe *probe, uint16_t port)
{
    return http_probe_open_from(probe, port, INADDR_ANY);
}

void http_probe_close(struct http_probe *probe)
{
    if (probe->fd >= 0)
        close(probe->fd);
    free(probe->bytes);
    free(probe->answer_text);
    *probe = (struct http_probe){.fd = -1};
}

bool http_probe_send(struct http_probe *probe, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t put = send(probe->fd, at, len, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        len -= (size_t)put;
    }
    return true;
}

bool http_probe_text(struct http_probe *probe, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    bool sent = len >= 0 && http_probe_send(probe, text, (size_t)len);
    free(text);
    return sent;
}

/* 1: bytes came, 0: the server has closed, -1: time is up. */
static int receive(struct http_probe *probe, int64_t until_ms)
{
    struct pollfd poll_fd = {.fd = probe->fd, .events = POLLIN};
    int64_t left_ms = until_ms - now_ms();
    if (left_ms < 0 || poll(&poll_fd, 1, (int)left_ms) <= 0)
        return -1;
    if (probe->cap - probe->len < 65536) {
        probe->cap = probe->cap * 2 + 131072;
        probe->bytes = realloc(probe->bytes, probe->cap);
        if (!probe->bytes)
            abort();
    }
    ssize_t got = recv(probe->fd, probe->bytes + probe->len, probe->cap - probe->len - 1, 0);
    if (got <= 0)
        return 0;
    probe->len += (size_t)got;
    probe->bytes[probe->len] = '\0';
    return 1;
}

/* Waits until `count` bytes are there. */
static bool want(struct http_probe *probe, size_t count)
{
    int64_t until_ms = now_ms() + probe->timeout_ms;
    while (probe->len < count) {
        if (receive(probe, until_ms) <= 0)
            return false;
    }
    return true;
}

/* Length up to and with `mark`, or 0. */
static size_t want_text(struct http_probe *probe, const char *mark)
{
    int64_t until_ms = now_ms() + probe->timeout_ms;
    for (;;) {
        const char *found =
            probe->len ? memmem(probe->bytes, probe->len, mark, strlen(mark)) : NULL;
        if (found)
            return (size_t)(found - probe->bytes) + strlen(mark);
        if (receive(probe, until_ms) <= 0)
            return 0;
    }
}

static void take(struct http_probe *probe, size_t count)
{
    probe->len -= count;
    memmove(probe->bytes, probe->bytes + count, probe->len);
}

/* Appends the first count bytes to answer_text, which holds *len bytes. */
static void keep(struct http_probe *probe, size_t count, size_t *len)
{
    probe->answer_text = realloc(probe->answer_text, *len + count + 1);
    if (!probe->answer_text)
        abort();
    memcpy(probe->answer_text + *len, probe->bytes, count);
    *len += count;
    probe->answer_text[*len] = '\0';
    take(probe, count);
}

/* Keeps the next chunk behind what is kept, and takes the line end after it. */
static bool keep_chunk(struct http_probe *probe, size_t *kept, size_t *ret_len)
{
    size_t line = want_text(probe, "\r\n");
    if (!line || sscanf(probe->bytes, "%zx", ret_len) != 1)
        return false;
    take(probe, line);
    if (!want(probe, *ret_len + 2))
        return false;
    keep(probe, *ret_len, kept);
    take(probe, 2);
    return true;
}

const char *http_probe_chunk(struct http_probe *probe, size_t *ret_len)
{
    size_t kept = 0;
    return keep_chunk(probe, &kept, ret_len) ? probe->answer_text : NULL;
}

bool http_answer_header(const struct http_answer *answer, const char *name, char *out, size_t size)
{
    size_t name_len = strlen(name);
    for (const char *line = strstr(answer->head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
            continue;
        const char *value = line + name_len + 1;
        value += strspn(value, " ");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\r\n"), value);
        return true;
    }
    return false;
}

bool http_probe_head(struct http_probe *probe, struct http_answer *ret)
{
    size_t head_len, kept;
    uint32_t status;
    do {
        kept = 0;
        head_len = want_text(probe, "\r\n\r\n");
        if (!head_len)
            return false;
        keep(probe, head_len, &kept);
        if (kept < 12 || !gs_parse_u32(probe->answer_text + 9, 3, &status))
            return false;
    } while (status == 100);
    probe->answer_text[head_len - 4] = '\0';
    *ret = (struct http_answer){
        .status = (int)status, .head = probe->answer_text, .body = probe->answer_text + head_len};
    return true;
}

bool http_probe_answer(struct http_probe *probe, struct http_answer *ret)
{
    struct http_answer answer;
    char value[32];
    if (!http_probe_head(probe, &answer))
        return false;
    size_t head_len = (size_t)(answer.body - answer.head);
    size_t len = head_len;
    uint32_t body_len = 0;
    if (http_answer_header(&answer, "Transfer-Encoding", value, sizeof(value))) {
        for (size_t chunk = 1; chunk > 0;) {
            if (!keep_chunk(probe, &len, &chunk))
                return false;
        }
    } else if (http_answer_header(&answer, "Content-Length", value, sizeof(value))) {
        if (!gs_parse_u32(value, strlen(value), &body_len) || !want(probe, body_len))
            return false;
        keep(probe, body_len, &len);
    }
    *ret = (struct http_answer){.status = answer.status,
                                .head = probe->answer_text,
                                .body = probe->answer_text + head_len,
                                .body_len = len - head_len};
    return true;
}

bool http_probe_closed(struct http_probe *probe)
{
    return probe->len == 0 && receive(probe, now_ms() + probe->timeout_ms) == 0;
}

int http_probe_get(uint16_t port, const char *path)
{
    struct http_probe probe;
    struct http_answer answer;
    int status = 0;
    if (http_probe_open(&probe, port) &&
        http_probe_text(&probe, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path) &&
        http_probe_answer(&probe, &answer))
        status = answer.status;
    http_probe_close(&probe);
    return status;
}
