/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/*
 * Moves bytes between a non-blocking socket and an nghttp2 session; server and client share it.
 * Reads and writes happen in the loop's callbacks only, never in the functions that the layers
 * above call, so that those never find their connection freed under them.
 */
struct gs_h2 {
    struct gs_loop *loop;
    nghttp2_session *session;
    int fd;
    const uint8_t *out; /* nghttp2's bytes that are not sent yet */
    size_t out_len;
    struct gs_loop_fd watch;
    struct gs_loop_timer kick;
    void (*broken)(void *ctx); /* the connection has ended; the owner frees it, at once or later */
    void *ctx;
};

/* Adopts fd and session: *taken*, also on failure. The owner has set broken and ctx. */
int gs_h2_start(struct gs_h2 *h2, struct gs_loop *loop, int fd, nghttp2_session *session,
                struct gs_error *err);

/* Something was submitted: send it in the loop's next round. */
void gs_h2_kick(struct gs_h2 *h2);

/* Closes the socket and deletes the session. Harmless on a zeroed struct with fd -1. */
void gs_h2_close(struct gs_h2 *h2);

/* A header field; nghttp2 copies name and value when it is submitted. */
nghttp2_nv gs_h2_nv(const char *name, const char *value, size_t value_len);

/* Whether a received name or value equals the text. */
bool gs_h2_is(const uint8_t *bytes, size_t len, const char *word);
