/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include "grpc/server_internal.h"

/* A server with methods that echo, fail, stream and wait; a rude client on a socket pair. */
struct fixture {
    struct still_loop still;
    struct gs_loop *loop;
    struct gs_grpc_server *server;
    struct peer peer;
    struct gs_grpc_call *held; /* that waits for the test */
};

static void send_bytes(struct gs_grpc_call *call, const void *bytes, size_t len)
{
    struct gs_grpc_message *message = message_of(bytes, len);
    gs_grpc_call_send(call, message);
    gs_grpc_message_unref(message);
}

static void echo(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    send_bytes(call, message, len);
    gs_grpc_call_finish(call, GS_GRPC_OK, NULL);
}

static void refuse(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    gs_grpc_call_finish(call, GS_GRPC_FAILED_PRECONDITION, "100% \xC3\xA4\xFF");
}

static void hold(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    ((struct fixture *)ctx)->held = call;
}

static void hold_ended(struct gs_grpc_call *call, void *ctx)
{
    assert_true(call->answered);
}

static const struct gs_grpc_method methods[] = {
    {"/t.T/Echo", echo, NULL},
    {"/t.T/Fail", refuse, NULL},
    {"/t.T/Hold", hold, hold_ended},
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->loop = still_loop_new(&f->still);
    assert_int_equal(gs_grpc_server_new(f->loop, methods, 3, f, &f->server, NULL), 0);
    int fd = peer_open(&f->peer, f->loop, false);
    assert_int_equal(gs_grpc_server_adopt(f->server, fd, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    peer_close(&f->peer);
    gs_grpc_server_free(f->server);
    gs_loop_free(f->loop);
    free(f);
    return 0;
}

#define ECHO PEER_GRPC_HEADERS("/t.T/Echo")
#define HOLD PEER_GRPC_HEADERS("/t.T/Hold")

static void expect_status(const char *row, const struct peer_stream *stream, const char *status)
{
    row_text(row, peer_header(stream, "grpc-status"), status);
    row_text(row, peer_header(stream, ":status"), "200");
    row_text(row, peer_header(stream, "content-type"), "application/grpc");
    row_true(row, stream->ended);
}

/* ---- what requests get ---- */

static const struct {
    const char *row;
    const char *headers;
    const char *body;
    size_t len;
    const char *http;
    const char *status;  /* grpc-status, or NULL */
    const char *message; /* grpc-message, or NULL */
} requests[] = {
    {"echo", ECHO, "\0\0\0\0\2hi", 7, "200", "0", NULL},
    {"raw path as authority",
     ":method: POST\n:scheme: http\n:path: /t.T/Echo\n:authority: "
     "/var/lib/kubelet/device-plugins/p.sock\ncontent-type: application/grpc\n",
     "\0\0\0\0\0", 5, "200", "0", NULL},
    {"no authority at all",
     ":method: POST\n:scheme: http\n:path: /t.T/Echo\ncontent-type: application/grpc+proto\n",
     "\0\0\0\0\0", 5, "200", "0", NULL},
    {"encoding announced but not used", ECHO "grpc-encoding: gzip\n", "\0\0\0\0\0", 5, "200", "0",
     NULL},
    {"the largest timeout", ECHO "grpc-timeout: 99999999H\n", "\0\0\0\0\0", 5, "200", "0", NULL},
    {"error text is escaped and sane", PEER_GRPC_HEADERS("/t.T/Fail"), "\0\0\0\0\0", 5, "200", "9",
     "100%25 %C3%A4%EF%BF%BD"},
    {"unknown method", PEER_GRPC_HEADERS("/t.T/Nope"), "\0\0\0\0\0", 5, "200", "12",
     "unknown method"},
    {"path with more behind it", PEER_GRPC_HEADERS("/t.T/Echo2"), "\0\0\0\0\0", 5, "200", "12",
     "unknown method"},
    {"no message", ECHO, "", 0, "200", "13", "the request is not a single message"},
    {"half a message", ECHO, "\0\0\0\0\3ab", 7, "200", "13", "the request is not a single message"},
    {"two messages", ECHO, "\0\0\0\0\0\0\0\0\0\0", 10, "200", "13",
     "more than one request message"},
    {"a message and a half", ECHO, "\0\0\0\0\0\0\0", 7, "200", "13",
     "the request is not a single message"},
    {"compressed as announced", ECHO "grpc-encoding: gzip\n", "\1\0\0\0\1x", 6, "200", "12",
     "compressed messages are not supported"},
    {"compressed without a word", ECHO, "\1\0\0\0\1x", 6, "200", "13",
     "compressed messages are not supported"},
    {"compressed as identity", ECHO "grpc-encoding: identity\n", "\1\0\0\0\1x", 6, "200", "13",
     "compressed messages are not supported"},
    {"bad flag", ECHO, "\7\0\0\0\1x", 6, "200", "13", "malformed message frame"},
    {"above the ceiling", ECHO, "\0\0\100\0\1", 5, "200", "8", "request message too large"},
    {"malformed timeout", ECHO "grpc-timeout: 5\n", "\0\0\0\0\0", 5, "200", "13",
     "malformed grpc-timeout"},
    {"GET", ":method: GET\n:scheme: http\n:path: /t.T/Echo\ncontent-type: application/grpc\n", "",
     0, "405", NULL, NULL},
    {"no content type", ":method: POST\n:scheme: http\n:path: /t.T/Echo\n", "\0\0\0\0\0", 5, "415",
     NULL, NULL},
    {"gRPC-Web",
     ":method: POST\n:scheme: http\n:path: /t.T/Echo\ncontent-type: application/grpc-web\n",
     "\0\0\0\0\0", 5, "415", NULL, NULL},
    {"no path", ":method: POST\n:scheme: http\ncontent-type: application/grpc\n", "\0\0\0\0\0", 5,
     NULL, NULL, NULL},
    {"no method", ":scheme: http\n:path: /t.T/Echo\ncontent-type: application/grpc\n", "\0\0\0\0\0",
     5, NULL, NULL, NULL},
    {"two methods", ECHO ":method: POST\n", "\0\0\0\0\0", 5, NULL, NULL, NULL},
};

static void every_request_gets_its_answer(void **state)
{
    struct fixture *f = *state;
    GS_FOR_EACH_ROW (r, requests) {
        struct peer_stream *stream = peer_request(&f->peer, r->headers, r->body, r->len, true);
        peer_run(&f->peer);
        row_text(r->row, peer_header(stream, ":status"), r->http);
        row_text(r->row, peer_header(stream, "grpc-status"), r->status);
        row_text(r->row, peer_header(stream, "grpc-message"), r->message);
        row_true(r->row, stream->closed);
        row_equal(r->row, stream->error_code, r->http ? NGHTTP2_NO_ERROR : NGHTTP2_PROTOCOL_ERROR);
    }
    /* The connection survived all that. */
    struct peer_stream *stream = peer_request(&f->peer, ECHO, "\0\0\0\0\2hi", 7, true);
    peer_run(&f->peer);
    expect_status("afterwards", stream, "0");
    assert_int_equal(stream->body_len, 7);
    assert_memory_equal(stream->body, "\0\0\0\0\2hi", 7);
}

static void a_refused_request_need_not_be_sent_to_its_end(void **state)
{
    struct fixture *f = *state;
    struct peer_stream *stream =
        peer_request(&f->peer, PEER_GRPC_HEADERS("/t.T/Nope"), "\0\0", 2, false);
    peer_run(&f->peer);
    expect_status("refused", stream, "12");
    assert_true(stream->closed);
    assert_int_equal(stream->error_code, NGHTTP2_NO_ERROR);
}

static void requests_in_flight_have_a_common_ceiling(void **state)
{
    struct fixture *f = *state;
    const size_t len = (4 << 20) - 1; /* all but the last byte: the server keeps waiting */
    char *request = calloc(1, 5 + len + 1);
    memcpy(request, "\0\0\100\0\0", 5);
    struct peer_stream *streams[5];
    for (size_t i = 0; i < 5; i++) { /* those that were answered are not in flight */
        streams[i] = peer_request(&f->peer, ECHO, request, 5 + len + 1, true);
        peer_run(&f->peer);
        assert_string_equal(peer_header(streams[i], "grpc-status"), "0");
    }
    for (size_t i = 0; i < 5; i++) {
        streams[i] = peer_request(&f->peer, ECHO, request, 5 + len, false);
        peer_run(&f->peer);
    }
    unsigned refused = 0;
    for (size_t i = 0; i < 5; i++) {
        const char *status = peer_header(streams[i], "grpc-status");
        refused += status && strcmp(status, "8") == 0;
    }
    assert_int_equal(refused, 1);
    nghttp2_submit_rst_stream(f->peer.session, 0, streams[0]->id, NGHTTP2_CANCEL);
    struct peer_stream *next = peer_request(&f->peer, ECHO, request, 5 + len, false);
    peer_run(&f->peer);
    assert_null(peer_header(next, "grpc-status")); /* what was held is free again */
    free(request);
}

/* ---- streams ---- */

static void a_message_that_began_is_finished_before_the_newest(void **state)
{
    struct fixture *f = *state;
    const size_t len = 1 << 20;
    char *big = calloc(1, len);
    struct peer_stream *stream = peer_request(&f->peer, HOLD, "\0\0\0\0\0", 5, true);
    peer_run(&f->peer);
    send_bytes(f->held, big, len);
    for (int i = 0; i < 3; i++)
        assert_int_equal(gs_loop_step(f->loop, 0, NULL), 0); /* the window takes a part */
    send_bytes(f->held, "never", 5);
    send_bytes(f->held, "last", 4);
    peer_run(&f->peer);
    assert_int_equal(stream->body_len, 5 + len + 5 + 4);
    assert_memory_equal(stream->body + 5 + len, "\0\0\0\0\4last", 9);
    gs_grpc_call_finish(f->held, GS_GRPC_OK, NULL);
    free(big);
}

static void a_full_socket_is_written_to_when_it_empties(void **state)
{
    struct fixture *f = *state;
    const size_t len = 1 << 20; /* more than the socket takes at once */
    const nghttp2_settings_entry wide = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 24};
    char *big = calloc(1, len);
    nghttp2_submit_settings(f->peer.session, 0, &wide, 1);
    nghttp2_submit_window_update(f->peer.session, 0, 0, 1 << 24);
    struct peer_stream *stream = peer_request(&f->peer, HOLD, "\0\0\0\0\0", 5, true);
    peer_run(&f->peer);
    send_bytes(f->held, big, len);
    for (int i = 0; i < 3; i++)
        assert_int_equal(gs_loop_step(f->loop, 0, NULL), 0);
    peer_run(&f->peer); /* reads, and has nothing to say that would wake the server */
    assert_int_equal(stream->body_len, 5 + len);
    gs_grpc_call_finish(f->held, GS_GRPC_OK, NULL);
    free(big);
}

/* ---- connections ---- */

static void nonsense_closes_its_connection_only(void **state)
{
    struct fixture *f = *state;
    struct peer other;
    int fd = peer_open(&other, f->loop, false);
    assert_int_equal(gs_grpc_server_adopt(f->server, fd, NULL), 0);
    assert_int_equal(f->server->conn_count, 2);
    peer_raw(&other, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    for (int i = 0; i < 5; i++)
        gs_loop_step(f->loop, 0, NULL);
    assert_int_equal(f->server->conn_count, 1);
    peer_close(&other);
    struct peer_stream *stream = peer_request(&f->peer, ECHO, "\0\0\0\0\0", 5, true);
    peer_run(&f->peer);
    expect_status("the other one", stream, "0");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_request_gets_its_answer),
        TEST(a_refused_request_need_not_be_sent_to_its_end),
        TEST(requests_in_flight_have_a_common_ceiling),
        TEST(a_message_that_began_is_finished_before_the_newest),
        TEST(a_full_socket_is_written_to_when_it_empties),
        TEST(nonsense_closes_its_connection_only),
    };
    return GS_RUN(tests);
}
