/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpushare/grpc/loop.h"
#include "grpc/server.h"

/* A loop whose clock stands still until the test moves it. */
struct still_loop {
    int64_t now_ns;
    struct gs_clock clock;
    struct gs_loop *loop;
};

static inline int64_t still_now(void *ctx)
{
    return *(int64_t *)ctx;
}

static inline struct gs_loop *still_loop_new(struct still_loop *still)
{
    still->now_ns = GS_NS_PER_S;
    still->clock = (struct gs_clock){still_now, still_now, &still->now_ns};
    assert_int_equal(gs_loop_new(&still->clock, &still->loop, NULL), 0);
    return still->loop;
}

static inline struct gs_grpc_message *message_of(const void *bytes, size_t len)
{
    uint8_t *body;
    struct gs_grpc_message *message = gs_grpc_message_new(len, &body);
    memcpy(body, bytes, len);
    return message;
}

/*
 * The other end of a connection, as rude as a test wants it: any headers, any bytes, nothing is
 * validated. A client towards our server, or a server towards our client; both ends share a thread
 * and take turns in peer_run().
 */
#define PEER_STREAMS 80
#define PEER_HEADERS 2048

struct peer_stream {
    int32_t id;
    char headers[PEER_HEADERS]; /* "name: value\n" of all blocks, in order */
    char *body;
    size_t body_len;
    bool ended;  /* the other side sent END_STREAM */
    bool closed; /* both did, or RST_STREAM */
    uint32_t error_code;
    const char *out; /* what we send: borrowed */
    size_t out_len, out_sent;
    bool out_end; /* END_STREAM after it */
};

struct peer {
    struct gs_loop *loop;
    nghttp2_session *session;
    int fd;
    bool eof;
    struct peer_stream streams[PEER_STREAMS];
    size_t stream_count;
};

static inline struct peer_stream *peer_find(struct peer *peer, int32_t id)
{
    for (size_t i = 0; i < peer->stream_count; i++) {
        if (peer->streams[i].id == id)
            return &peer->streams[i];
    }
    return NULL;
}

static inline struct peer_stream *peer_add(struct peer *peer, int32_t id)
{
    assert_true(peer->stream_count < PEER_STREAMS);
    struct peer_stream *stream = &peer->streams[peer->stream_count++];
    *stream = (struct peer_stream){.id = id};
    return stream;
}

static inline int peer_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                 const uint8_t *name, size_t name_len, const uint8_t *value,
                                 size_t len, uint8_t flags, void *user_data)
{
    struct peer *peer = user_data;
    struct peer_stream *stream = peer_find(peer, frame->hd.stream_id);
    if (!stream)
        stream = peer_add(peer, frame->hd.stream_id);
    size_t at = strlen(stream->headers);
    snprintf(stream->headers + at, PEER_HEADERS - at, "%.*s: %.*s\n", (int)name_len, name, (int)len,
             value);
    return 0;
}

static inline int peer_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                               const uint8_t *data, size_t len, void *user_data)
{
    struct peer_stream *stream = peer_find(user_data, id);
    if (!stream)
        return 0;
    stream->body = realloc(stream->body, stream->body_len + len + 1);
    memcpy(stream->body + stream->body_len, data, len);
    stream->body_len += len;
    return 0;
}

static inline int peer_on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                                void *user_data)
{
    struct peer_stream *stream = peer_find(user_data, frame->hd.stream_id);
    if (stream && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        stream->ended = true;
    return 0;
}

static inline int peer_on_close(nghttp2_session *session, int32_t id, uint32_t error_code,
                                void *user_data)
{
    struct peer_stream *stream = peer_find(user_data, id);
    if (stream) {
        stream->closed = true;
        stream->error_code = error_code;
    }
    return 0;
}

/* A connection to a path, or -1 with errno. */
static inline int peer_dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* Starts on one end of a socket pair and returns the other end, non-blocking. */
static inline int peer_open(struct peer *peer, struct gs_loop *loop, bool server)
{
    int fds[2];
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    *peer = (struct peer){.loop = loop};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    peer->fd = fds[0];
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_option_set_no_http_messaging(option, 1);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_on_close);
    assert_int_equal(server ? nghttp2_session_server_new2(&peer->session, callbacks, peer, option)
                            : nghttp2_session_client_new2(&peer->session, callbacks, peer, option),
                     0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(peer->session, 0, NULL, 0);
    return fds[1];
}

static inline void peer_close(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    nghttp2_session_del(peer->session);
    peer->session = NULL;
    for (size_t i = 0; i < peer->stream_count; i++)
        free(peer->streams[i].body);
    peer->stream_count = 0;
}

/* Writes raw bytes past nghttp2. */
static inline void peer_raw(struct peer *peer, const void *bytes, size_t len)
{
    assert_int_equal(send(peer->fd, bytes, len, MSG_NOSIGNAL), len);
}

static inline bool peer_turn(struct peer *peer)
{
    uint8_t buf[4096];
    bool moved = false;
    const uint8_t *out;
    ssize_t len;
    while (peer->session && (len = nghttp2_session_mem_send(peer->session, &out)) > 0) {
        for (size_t at = 0; at < (size_t)len;) {
            ssize_t sent = send(peer->fd, out + at, (size_t)len - at, MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN)
                return moved;
            at += sent > 0 ? (size_t)sent : 0;
            if (sent < 0)
                gs_loop_step(peer->loop, 0, NULL);
        }
        moved = true;
    }
    len = recv(peer->fd, buf, sizeof(buf), MSG_DONTWAIT);
    peer->eof |= len == 0 || (len < 0 && errno != EAGAIN);
    if (len <= 0)
        return moved;
    nghttp2_session_mem_recv(peer->session, buf, (size_t)len);
    return true;
}

/* Lets both ends talk until neither has anything to say. */
static inline void peer_run(struct peer *peer)
{
    for (int quiet = 0; quiet < 4; quiet++) {
        assert_int_equal(gs_loop_step(peer->loop, 0, NULL), 0);
        if (peer_turn(peer))
            quiet = 0;
    }
}

static inline ssize_t peer_read_out(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                                    uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct peer_stream *stream = peer_find(user_data, id);
    size_t take = stream->out_len - stream->out_sent;
    if (take == 0 && !stream->out_end)
        return NGHTTP2_ERR_DEFERRED;
    if (take > room)
        take = room;
    memcpy(to, stream->out + stream->out_sent, take);
    stream->out_sent += take;
    if (stream->out_sent == stream->out_len && stream->out_end)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)take;
}

/* "name: value\n" lines to header fields; text is cut up. Names may begin with a colon. */
static inline size_t peer_parse_headers(char *text, nghttp2_nv *nv, size_t room)
{
    size_t count = 0;
    while (*text && count < room) {
        char *end = strchr(text, '\n');
        char *colon = strstr(text + 1, ": ");
        *end = '\0';
        *colon = '\0';
        nv[count++] = (nghttp2_nv){.name = (uint8_t *)text,
                                   .namelen = strlen(text),
                                   .value = (uint8_t *)colon + 2,
                                   .valuelen = strlen(colon + 2)};
        text = end + 1;
    }
    return count;
}

#define PEER_GRPC_HEADERS(path)                                                                    \
    ":method: POST\n:scheme: http\n:path: " path                                                   \
    "\n:authority: localhost\ncontent-type: application/grpc\nte: trailers\n"

/* A request; body is borrowed. end: END_STREAM after it. */
static inline struct peer_stream *peer_request(struct peer *peer, const char *headers,
                                               const char *body, size_t len, bool end)
{
    char text[PEER_HEADERS];
    nghttp2_nv nv[24];
    snprintf(text, sizeof(text), "%s", headers);
    size_t count = peer_parse_headers(text, nv, GS_COUNT_OF(nv));
    struct peer_stream *stream = peer_add(peer, 0);
    stream->out = body;
    stream->out_len = len;
    stream->out_end = end;
    nghttp2_data_provider provider = {.read_callback = peer_read_out};
    stream->id = nghttp2_submit_request(peer->session, NULL, nv, count,
                                        body || !end ? &provider : NULL, NULL);
    assert_true(stream->id > 0);
    return stream;
}

/* The value of the last header of that name, or NULL. Static storage. */
static inline const char *peer_header(const struct peer_stream *stream, const char *name)
{
    static char value[PEER_HEADERS];
    const char *found = NULL;
    size_t name_len = strlen(name);
    for (const char *line = stream->headers; *line; line = strchr(line, '\n') + 1) {
        if (strncmp(line, name, name_len) == 0 && line[name_len] == ':')
            found = line + name_len + 2;
    }
    if (!found)
        return NULL;
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(found, "\n"), found);
    return value;
}
