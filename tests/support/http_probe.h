/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An HTTP client for tests of servers: it sends exactly the bytes it is given, whole or in pieces,
 * and takes answers apart. One probe is one connection to 127.0.0.1; not thread-safe.
 *
 *   struct http_probe probe;
 *   struct http_answer answer;
 *   http_probe_open(&probe, port);
 *   http_probe_text(&probe, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
 *   if (http_probe_answer(&probe, &answer))
 *       use answer.status, answer.body
 *   http_probe_close(&probe);
 *
 * Every wait ends after timeout_ms (10 s unless changed).
 */
struct http_probe {
    int fd; /* -1: could not connect */
    int timeout_ms;
    char *bytes; /* received, not yet taken */
    size_t len, cap;
    char *answer_text; /* what the last answer's pointers point into */
};

/* *Borrowed until* the next answer or the probe's end. */
struct http_answer {
    int status;
    const char *head; /* status line and headers, without the empty line */
    const char *body; /* chunks put together; NUL-terminated */
    size_t body_len;
};

bool http_probe_open(struct http_probe *probe, uint16_t port);
/* By another address of this machine (INADDR_LOOPBACK + 1). */
bool http_probe_open_from(struct http_probe *probe, uint16_t port, uint32_t host);
void http_probe_close(struct http_probe *probe);

/* False when the server has closed. */
bool http_probe_send(struct http_probe *probe, const void *bytes, size_t len);
bool http_probe_text(struct http_probe *probe, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The next whole answer; false when the connection ends or time is up before. 100-continue is
 * skipped. */
bool http_probe_answer(struct http_probe *probe, struct http_answer *ret);
/* The same after a HEAD request: there is no body, whatever the head says. Also the head alone of
 * an answer whose body is then read with http_probe_chunk(). */
bool http_probe_head(struct http_probe *probe, struct http_answer *ret);

/* The next chunk of a chunked body, NUL-terminated, *borrowed until* the next call; NULL when the
 * connection ends or time is up. The last chunk is empty. */
const char *http_probe_chunk(struct http_probe *probe, size_t *ret_len);

/* Waits for the server to close; false when time is up or bytes came instead. */
bool http_probe_closed(struct http_probe *probe);

/* The value of a header in answer->head, copied to `out`, cut at its size; false when absent. */
bool http_answer_header(const struct http_answer *answer, const char *name, char *out, size_t size);

/* One request on a connection of its own; the status, or 0. */
int http_probe_get(uint16_t port, const char *path);
