/* SPDX-License-Identifier: Apache-2.0 */
#include "server_fixture.h"

/* Calls that end before they were answered, or while their answer leaves. */

enum ending { RESET, DISCONNECT, FREE_SERVER, DEADLINE };

static const struct {
    const char *row;
    enum ending ending;
    bool finish_in_ended;
} endings[] = {
    {"reset, answered late", RESET, false},
    {"reset, answered at once", RESET, true},
    {"disconnected, answered late", DISCONNECT, false},
    {"disconnected, answered at once", DISCONNECT, true},
    {"server freed, answered late", FREE_SERVER, false},
    {"server freed, answered at once", FREE_SERVER, true},
    {"out of time, answered late", DEADLINE, false},
    {"out of time, answered at once", DEADLINE, true},
};

static void come_to_an_end(struct fixture *f, struct peer_stream *stream, enum ending ending)
{
    switch (ending) {
    case RESET:
        nghttp2_submit_rst_stream(f->peer.session, 0, stream->id, NGHTTP2_CANCEL);
        break;
    case DISCONNECT:
        shutdown(f->peer.fd, SHUT_RDWR);
        break;
    case FREE_SERVER:
        gs_grpc_server_free(f->server);
        f->server = NULL;
        break;
    case DEADLINE:
        f->now_ns += 30 * GS_NS_PER_S;
        break;
    }
    peer_run(&f->peer);
}

static void late_answers_are_dropped(void **state)
{
    GS_FOR_EACH_ROW (r, endings) {
        struct fixture *f;
        setup((void **)&f);
        f->finish_in_ended = r->finish_in_ended;
        struct peer_stream *stream =
            peer_request(&f->peer, HOLD "grpc-timeout: 29999977u\n", "\0\0\0\0\0", 5, true);
        peer_run(&f->peer);
        row_equal(r->row, f->held_count, 1);
        row_true(r->row, !f->held[0]->answered);
        row_equal(r->row, f->held[0]->deadline.at_ns, 30999977000);
        come_to_an_end(f, stream, r->ending);
        row_equal(r->row, f->ended, 1);
        if (!r->finish_in_ended) {
            row_true(r->row, f->held[0]->answered);
            send_bytes(f->held[0], "late", 4);
            gs_grpc_call_finish(f->held[0], GS_GRPC_OK, NULL);
        }
        peer_run(&f->peer);
        row_equal(r->row, stream->body_len, 0);
        row_text(r->row, peer_header(stream, "grpc-status"), r->ending == DEADLINE ? "4" : NULL);
        row_equal(r->row, f->ended, 1);
        teardown((void **)&f);
    }
}

static void a_deadline_before_the_request_is_whole_starts_nothing(void **state)
{
    struct fixture *f = *state;
    struct peer_stream *stream =
        peer_request(&f->peer, HOLD "grpc-timeout: 1S\n", "\0\0", 2, false);
    peer_run(&f->peer);
    f->now_ns += GS_NS_PER_S;
    peer_run(&f->peer);
    expect_status("late request", stream, "4");
    assert_int_equal(f->started, 0);
}

static void an_answer_in_time_disarms_the_deadline(void **state)
{
    struct fixture *f = *state;
    struct peer_stream *stream =
        peer_request(&f->peer, HOLD "grpc-timeout: 1S\n", "\0\0\0\0\0", 5, true);
    peer_run(&f->peer);
    gs_grpc_call_finish(f->held[0], GS_GRPC_OK, NULL);
    f->now_ns += 5 * GS_NS_PER_S;
    peer_run(&f->peer);
    expect_status("in time", stream, "0");
    assert_int_equal(f->ended, 0);
}

static void an_answer_that_is_slow_to_leave_keeps_its_status(void **state)
{
    struct fixture *f = *state;
    const size_t len = 1 << 20; /* more than the window and the socket take at once */
    char *big = calloc(1, len);
    struct peer_stream *stream =
        peer_request(&f->peer, HOLD "grpc-timeout: 1S\n", "\0\0\0\0\0", 5, true);
    peer_run(&f->peer);
    send_bytes(f->held[0], big, len);
    gs_grpc_call_finish(f->held[0], GS_GRPC_OK, NULL);
    assert_int_equal(gs_loop_step(f->loop, 0, NULL), 0);
    f->now_ns += 5 * GS_NS_PER_S;
    peer_run(&f->peer);
    expect_status("slow", stream, "0");
    assert_int_equal(stream->body_len, 5 + len);
    free(big);
}

static void unfinished_requests_end_quietly(void **state)
{
    struct fixture *f = *state;
    struct peer_stream *stream = peer_request(&f->peer, HOLD, "\0\0", 2, false);
    peer_run(&f->peer);
    nghttp2_submit_rst_stream(f->peer.session, 0, stream->id, NGHTTP2_CANCEL);
    peer_run(&f->peer);
    assert_int_equal(f->started + f->ended, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_answers_are_dropped),
        TEST(a_deadline_before_the_request_is_whole_starts_nothing),
        TEST(an_answer_in_time_disarms_the_deadline),
        TEST(an_answer_that_is_slow_to_leave_keeps_its_status),
        TEST(unfinished_requests_end_quietly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
