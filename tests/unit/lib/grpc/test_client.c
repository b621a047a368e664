/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include "grpc/client.h"

/* Our client against a server that answers whatever the row says. */
struct fixture {
    struct still_loop still;
    struct gs_loop *loop;
    struct peer peer;
    struct gs_grpc_unary *call;
    unsigned done;
    enum gs_grpc_status status;
    char text[2000];
    char *message;
    size_t len;
};

static void on_done(void *ctx, const struct gs_grpc_reply *reply)
{
    struct fixture *f = ctx;
    f->done++;
    f->call = NULL;
    f->status = reply->status;
    snprintf(f->text, sizeof(f->text), "%s", reply->text);
    if (reply->message) {
        f->message = malloc(reply->len + 1);
        memcpy(f->message, reply->message, reply->len);
        f->len = reply->len;
    }
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->loop = still_loop_new(&f->still);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->call)
        gs_grpc_unary_cancel(f->call);
    if (f->peer.session)
        peer_close(&f->peer);
    gs_loop_free(f->loop);
    free(f->message);
    free(f);
    return 0;
}

static const struct gs_grpc_unary_options defaults = {
    .socket_path = "/nonexistent/k.sock",
    .method_path = "/t.T/Do",
    .timeout_ns = 5 * GS_NS_PER_S,
    .max_reply_bytes = 100,
    .done = on_done,
};

/* Starts a call and lets the request arrive; returns it as the server sees it. */
static struct peer_stream *call_peer(struct fixture *f)
{
    struct gs_grpc_unary_options options = defaults;
    options.ctx = f;
    int fd = peer_open(&f->peer, f->loop, true);
    assert_int_equal(
        gs_grpc_unary_start_fd(f->loop, fd, &options, message_of("", 0), &f->call, NULL), 0);
    peer_run(&f->peer);
    assert_int_equal(f->peer.stream_count, 1);
    return &f->peer.streams[0];
}

#define OK_HEADERS ":status: 200\ncontent-type: application/grpc\n"

static const struct {
    const char *row;
    const char *headers;
    const char *body; /* NULL: the headers end the stream */
    size_t len;
    const char *trailers; /* NULL: the body ends the stream */
    enum gs_grpc_status status;
    const char *text;
    const char *message;
} answers[] = {
    {"a message", OK_HEADERS, "\0\0\0\0\2hi", 7, "grpc-status: 0\n", GS_GRPC_OK, "", "hi"},
    {"an empty message", OK_HEADERS, "\0\0\0\0\0", 5, "grpc-status: 0\n", GS_GRPC_OK, "", ""},
    {"content type with a suffix", ":status: 200\ncontent-type: application/grpc+proto\n",
     "\0\0\0\0\0", 5, "grpc-status: 0\n", GS_GRPC_OK, "", ""},
    {"an error in one block", OK_HEADERS "grpc-status: 9\ngrpc-message: 100%25 %C3%A4\n", NULL, 0,
     NULL, GS_GRPC_FAILED_PRECONDITION, "100%25 %C3%A4", NULL},
    {"an error in trailers", OK_HEADERS, "", 0, "grpc-status: 14\ngrpc-message: later\n",
     GS_GRPC_UNAVAILABLE, "later", NULL},
    {"an error behind a message", OK_HEADERS, "\0\0\0\0\2hi", 7, "grpc-status: 13\n",
     GS_GRPC_INTERNAL, "", NULL},
    {"an error without gRPC's type", ":status: 200\ngrpc-status: 8\n", NULL, 0, NULL,
     GS_GRPC_RESOURCE_EXHAUSTED, "", NULL},
    {"a status that is no number", OK_HEADERS "grpc-status: x\n", NULL, 0, NULL, GS_GRPC_UNKNOWN,
     "", NULL},
    {"OK without a message", OK_HEADERS "grpc-status: 0\n", NULL, 0, NULL, GS_GRPC_INTERNAL,
     "the answer is not a single message", NULL},
    {"OK with two messages", OK_HEADERS, "\0\0\0\0\0\0\0\0\0\0", 10, "grpc-status: 0\n",
     GS_GRPC_INTERNAL, "the answer is not a single message", NULL},
    {"no status at all", OK_HEADERS, "\0\0\0\0\0", 5, NULL, GS_GRPC_INTERNAL,
     "the call was reset: NO_ERROR", NULL},
    {"not gRPC", ":status: 200\ncontent-type: text/html\n", "<p>later</p>", 12, "grpc-status: 0\n",
     GS_GRPC_UNKNOWN, "the answer is not gRPC", NULL},
    {"HTTP not found", ":status: 404\n", NULL, 0, NULL, GS_GRPC_UNAVAILABLE, "HTTP status 404",
     NULL},
    {"HTTP unavailable with a page", ":status: 503\ncontent-type: text/html\n", "<p>later</p>", 12,
     NULL, GS_GRPC_UNAVAILABLE, "HTTP status 503", NULL},
    {"compressed", OK_HEADERS "grpc-encoding: gzip\n", "\1\0\0\0\1x", 6, "grpc-status: 0\n",
     GS_GRPC_INTERNAL, "the answer's frame is malformed or compressed", NULL},
    {"above the ceiling", OK_HEADERS, "\0\0\0\0\145", 5, "grpc-status: 0\n",
     GS_GRPC_RESOURCE_EXHAUSTED, "the response is larger than 100 bytes", NULL},
};

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
                           uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    struct peer_stream *stream = peer_find(user_data, id);
    size_t take = stream->out_len - stream->out_sent;
    memcpy(to, stream->out + stream->out_sent, take);
    stream->out_sent += take;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (source->ptr) {
        char text[PEER_HEADERS];
        nghttp2_nv nv[8];
        snprintf(text, sizeof(text), "%s", (const char *)source->ptr);
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, nv, peer_parse_headers(text, nv, 8));
    }
    return (ssize_t)take;
}

static void answer(struct fixture *f, struct peer_stream *stream, const char *headers,
                   const char *body, size_t len, const char *trailers)
{
    char text[PEER_HEADERS];
    nghttp2_nv nv[8];
    snprintf(text, sizeof(text), "%s", headers);
    size_t count = peer_parse_headers(text, nv, 8);
    stream->out = body;
    stream->out_len = len;
    nghttp2_data_provider provider = {.source.ptr = (void *)trailers, .read_callback = read_answer};
    nghttp2_submit_response(f->peer.session, stream->id, nv, count, body ? &provider : NULL);
    peer_run(&f->peer);
}

static void every_answer_gets_its_reply(void **state)
{
    GS_FOR_EACH_ROW (r, answers) {
        struct fixture *f;
        setup((void **)&f);
        answer(f, call_peer(f), r->headers, r->body, r->len, r->trailers);
        row_equal(r->row, f->done, 1);
        row_equal(r->row, f->status, r->status);
        row_text(r->row, f->text, r->text);
        row_equal(r->row, f->message != NULL, r->message != NULL);
        if (r->message) {
            row_equal(r->row, f->len, strlen(r->message));
            row_true(r->row, memcmp(f->message, r->message, f->len) == 0);
        }
        row_true(r->row, f->peer.eof); /* the connection is not kept */
        teardown((void **)&f);
    }
}

static void a_reset_says_why(void **state)
{
    struct fixture *f = *state;
    struct peer_stream *stream = call_peer(f);
    nghttp2_submit_rst_stream(f->peer.session, 0, stream->id, NGHTTP2_ENHANCE_YOUR_CALM);
    peer_run(&f->peer);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->status, GS_GRPC_INTERNAL);
    assert_string_equal(f->text, "the call was reset: ENHANCE_YOUR_CALM");
}

static void a_connection_that_speaks_something_else_is_unavailable(void **state)
{
    struct fixture *f = *state;
    call_peer(f);
    peer_raw(&f->peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    peer_run(&f->peer);
    assert_int_equal(f->done, 1);
    assert_int_equal(f->status, GS_GRPC_UNAVAILABLE);
}

static void a_path_too_long_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    char path[200];
    struct gs_error err = {0};
    struct gs_grpc_unary_options options = defaults;
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    options.socket_path = path;
    options.ctx = f;
    assert_int_equal(gs_grpc_unary_start(f->loop, &options, message_of("", 0), &f->call, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_null(f->call);
}

static void a_cancelled_call_is_never_told(void **state)
{
    struct fixture *f = *state;
    call_peer(f);
    gs_grpc_unary_cancel(f->call);
    f->call = NULL;
    peer_run(&f->peer);
    assert_true(f->peer.eof);
    assert_int_equal(f->done, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_gets_its_reply),
        TEST(a_reset_says_why),
        TEST(a_connection_that_speaks_something_else_is_unavailable),
        TEST(a_path_too_long_is_refused_at_once),
        TEST(a_cancelled_call_is_never_told),
    };
    return GS_RUN(tests);
}
