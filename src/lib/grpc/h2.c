/* SPDX-License-Identifier: Apache-2.0 */
#include "h2.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK_BYTES      16384
#define CHUNKS_PER_ROUND 8 /* so that a busy peer does not block the others */

/* 0: everything that can be sent now was sent. -1: the connection has ended. */
static int flush(struct gs_h2 *h2)
{
    for (;;) {
        if (h2->out_len == 0) {
            ssize_t got = nghttp2_session_mem_send(h2->session, &h2->out);
            if (got < 0)
                return -1;
            if (got == 0)
                break;
            h2->out_len = (size_t)got;
        }
        ssize_t sent = send(h2->fd, h2->out, h2->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return -1;
        if (sent < 0)
            break;
        h2->out += sent;
        h2->out_len -= (size_t)sent;
    }
    gs_loop_fd_events(&h2->watch, (short)(POLLIN | (h2->out_len > 0 ? POLLOUT : 0)));
    bool alive = h2->out_len > 0 || nghttp2_session_want_read(h2->session) ||
                 nghttp2_session_want_write(h2->session);
    return alive ? 0 : -1;
}

/* 0: nothing more to read now. -1: the connection has ended. */
static int drain(struct gs_h2 *h2)
{
    uint8_t chunk[CHUNK_BYTES];
    for (int i = 0; i < CHUNKS_PER_ROUND; i++) {
        ssize_t got = recv(h2->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN ? 0 : -1;
        if (got == 0)
            return -1;
        if (nghttp2_session_mem_recv(h2->session, chunk, (size_t)got) < 0) {
            /* Send a pending GOAWAY, which has the reason. */
            flush(h2);
            return -1;
        }
        if ((size_t)got < sizeof(chunk))
            return 0;
    }
    return 0;
}

static void on_ready(void *ctx, short revents)
{
    struct gs_h2 *h2 = ctx;
    int result = 0;
    if (revents & (POLLIN | POLLHUP | POLLERR))
        result = drain(h2);
    if (result == 0)
        result = flush(h2);
    if (result < 0)
        h2->broken(h2->ctx);
}

static void on_kick(void *ctx)
{
    struct gs_h2 *h2 = ctx;
    if (flush(h2) < 0)
        h2->broken(h2->ctx);
}

int gs_h2_start(struct gs_h2 *h2, struct gs_loop *loop, int fd, nghttp2_session *session,
                struct gs_error *err)
{
    h2->loop = loop;
    h2->fd = fd;
    h2->session = session;
    h2->out_len = 0;
    h2->watch = (struct gs_loop_fd){.fn = on_ready, .ctx = h2};
    h2->kick = (struct gs_loop_timer){.fn = on_kick, .ctx = h2};
    if (gs_loop_fd_add(loop, &h2->watch, fd, POLLIN, err) < 0) {
        gs_h2_close(h2);
        return -1;
    }
    gs_h2_kick(h2); /* the SETTINGS */
    return 0;
}

void gs_h2_kick(struct gs_h2 *h2)
{
    gs_loop_timer_arm(h2->loop, &h2->kick, INT64_MIN);
}

void gs_h2_close(struct gs_h2 *h2)
{
    if (h2->loop) {
        gs_loop_timer_disarm(h2->loop, &h2->kick);
        gs_loop_fd_remove(h2->loop, &h2->watch);
    }
    nghttp2_session_del(h2->session);
    h2->session = NULL;
    if (h2->fd >= 0)
        close(h2->fd);
    h2->fd = -1;
}

nghttp2_nv gs_h2_nv(const char *name, const char *value, size_t value_len)
{
    return (nghttp2_nv){
        .name = (uint8_t *)name,
        .namelen = strlen(name),
        .value = (uint8_t *)value,
        .valuelen = value_len,
    };
}

bool gs_h2_is(const uint8_t *bytes, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(bytes, word, len) == 0;
}
