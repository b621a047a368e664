/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>

#include "rows.h"

#include "gpushare/base/clock.h"
#include "gpushare/http/server.h"
#include "gpushare/http/stream.h"
#include "http_probe.h"

/*
 * A server whose routes answer what they were asked:
 *   GET  /hello            "hello"
 *   GET  /empty            no body
 *   *    /echo             the body
 *   *    /show/...         method, path, rest, query a, header X-Test, body length
 *   POST /where            the address of the body
 *   GET  /broken           a body that failed
 *   GET  /header           a header with a line break in it
 *   POST /wait   blocking  "waited", after fixture.gate has opened
 *   *    /wait-elsewhere    as /wait, once it is on a worker's thread
 *   POST /echo-slowly      blocking, the body
 *   GET  /compute  heavy   as /wait
 *   POST /plain-wait       as /wait, neither blocking nor heavy
 *   POST /small    small   the body
 *   GET  /much             MUCH_BYTES
 *   GET  /watch            a stream; *fixture.stream is its producer's end
 */
#define GET_MUCH "GET /much HTTP/1.1\r\nHost: x\r\n\r\n"
/* More than the kernel takes off our hands for a client that does not read. */
enum { MUCH_BYTES = 32 << 20, FIXTURE_PROBES = 64 };

struct fixture {
    struct gs_http_config config;
    struct gs_http_server *server;
    uint16_t port;
    atomic_int gate; /* 0: closed */
    atomic_int waiting;
    _Atomic(struct gs_http_stream *) stream;
    atomic_int streams_closed;
    size_t stream_ceiling_bytes;
    struct gs_clock clock; /* stands still at … */
    atomic_llong now_ns;
    struct http_probe probes[FIXTURE_PROBES]; /* closed by fixture_stop() */
    size_t probe_count;
};

/* The defaults, with the routes above and 127.0.0.1:0; change, then start. */
void fixture_init(struct fixture *fix);
void fixture_start(struct fixture *fix);
void fixture_stop(struct fixture *fix);

/* *state is an initialized fixture; one that was started is stopped afterwards. */
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Before the start: time passes by the next function alone. */
void fixture_stop_clock(struct fixture *fix);
/* So much time, no less than an eighth of the shortest limit and of 4 s, and the sweep that sees
 * that it is over. */
void fixture_pass(struct fixture *fix, int64_t ms);

struct gs_http_stats fixture_stats(const struct fixture *fix);

/* For 10 s at most. */
#define WAIT_UNTIL(condition)                                                                      \
    for (int waited_ms = 0; !(condition); waited_ms++) {                                           \
        assert_true(waited_ms < 10000);                                                            \
        sleep_ms(1);                                                                               \
    }

/* Until no more than that many connections are open. */
void wait_open(const struct fixture *fix, uint64_t most);
/* Until so many bytes of bodies and answers are counted: an answer is counted until the last of it
 * is sent, a moment after the client may have it. */
void wait_buffered(const struct fixture *fix, uint64_t bytes);
/* Until *value is at least want. */
void wait_for(const atomic_int *value, int want);
void sleep_ms(int ms);

/* A new connection, on which the second sends these bytes. */
struct http_probe *open_probe(struct fixture *fix);
struct http_probe *open_and_send(struct fixture *fix, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A new connection, and the head of a POST whose body has so many bytes. */
struct http_probe *open_and_post(struct fixture *fix, const char *path, size_t len);

/* The next answer, which has that status. */
struct http_answer expect_answer(struct http_probe *probe, int status);
void expect_header(const struct http_answer *answer, const char *name, const char *value);
/* Sends a request without body and expects that status; the second on a new connection. */
void expect_get(struct http_probe *probe, const char *path, int status);
struct http_probe *open_and_get(struct fixture *fix, const char *path, int status);
