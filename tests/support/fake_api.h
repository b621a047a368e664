/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * An API server that says what the test wrote down, on plain sockets of loopback, one thread per
 * connection: canned answers, watches that are cut in mid-line or fall silent, 401 and then 200.
 *
 *   static const struct fake_rule rules[] = {
 *       {.match = "GET /version", .times = 1, .status = 401},
 *       {.match = "GET /version", .body = "{}"},
 *   };
 *   struct fake_api *api = fake_api_start(rules, 2);
 *   ... fake_api_url(api) ...
 *   fake_api_stop(api);
 *
 * The first rule that matches and is not used up answers. A request without a rule gets 404.
 */
enum fake_end {
    FAKE_KEEP,  /* the answer ends properly, the connection stays */
    FAKE_CUT,   /* the connection breaks without the answer's end */
    FAKE_STALL, /* nothing more comes, until the client goes away */
};

struct fake_rule {
    const char *match;    /* beginning of "METHOD TARGET" */
    const char *contains; /* somewhere in the target; NULL: anything */
    int times;            /* 0: for ever */
    int status;           /* 0: 200; -1: not one byte is answered, `end` follows at once */
    const char *headers;  /* "Name: value\r\n"…; NULL: none */
    const char *body;     /* sent with Content-Length … */
    const char *stream;   /* … or as a chunked body, each '|' begins a new chunk after 20 ms */
    enum fake_end end;
};

struct fake_api;

struct fake_api *fake_api_start(const struct fake_rule *rules, size_t count);
void fake_api_stop(struct fake_api *api);

/* "http://127.0.0.1:PORT" */
const char *fake_api_url(const struct fake_api *api);
int fake_api_port(const struct fake_api *api);

/* Requests so far whose "METHOD TARGET" begins with match. */
size_t fake_api_count(struct fake_api *api, const char *match);

/* Waits (10 s) for that many. */
bool fake_api_wait(struct fake_api *api, const char *match, size_t count);

/* Head and body of the i-th request (from 0) that begins with match; *borrowed* until stop; NULL
 * when there were fewer. */
const char *fake_api_request(struct fake_api *api, const char *match, size_t i);

/* Connections that were ever accepted. */
size_t fake_api_connections(struct fake_api *api);
