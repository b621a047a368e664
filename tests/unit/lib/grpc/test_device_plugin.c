/* SPDX-License-Identifier: Apache-2.0 */
#include "h2_peer.h"

#include "gpushare/grpc/device_plugin.h"
#include "rows.h"

/* The device plugin service, spoken to in raw frames: the encodings below are written by hand. */
struct fixture {
    struct still_loop still;
    struct gs_loop *loop;
    struct gs_dp *dp;
    struct peer peer;
    struct gs_dp_call *held;
    struct gs_dp_container answer;
    size_t answer_count;
    struct gs_error failure; /* answered instead, when it has a code */
    char seen[256];          /* the last request: "a b; c" */
    bool hold;
};

static void note_ids(struct fixture *f, const struct gs_dp_ids *ids, size_t count)
{
    int at = 0;
    f->seen[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        at += snprintf(f->seen + at, sizeof(f->seen) - (size_t)at, "%s", i > 0 ? ";" : "");
        for (size_t k = 0; k < ids[i].count; k++)
            at += snprintf(f->seen + at, sizeof(f->seen) - (size_t)at, "%s%s", k > 0 ? " " : "",
                           ids[i].ids[k]);
    }
}

static void on_allocate(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *wanted,
                        size_t count)
{
    struct fixture *f = ctx;
    note_ids(f, wanted, count);
    if (f->hold)
        f->held = call;
    else if (f->failure.code)
        gs_dp_call_fail(call, &f->failure);
    else
        gs_dp_allocate_reply(call, &f->answer, f->answer_count);
}

static void on_pre_start(void *ctx, struct gs_dp_call *call, const struct gs_dp_ids *ids)
{
    struct fixture *f = ctx;
    note_ids(f, ids, 1);
    if (f->hold)
        f->held = call;
    else if (f->failure.code)
        gs_dp_call_fail(call, &f->failure);
    else
        gs_dp_pre_start_reply(call);
}

static const struct gs_dp_ops ops = {on_allocate, on_pre_start};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->answer_count = 1;
    f->loop = still_loop_new(&f->still);
    assert_int_equal(gs_dp_new(f->loop, &ops, f, &f->dp, NULL), 0);
    assert_int_equal(gs_dp_adopt(f->dp, peer_open(&f->peer, f->loop, false), NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    peer_close(&f->peer);
    if (f->dp)
        gs_dp_free(f->dp);
    gs_loop_free(f->loop);
    free(f);
    return 0;
}

#define CALL(method) PEER_GRPC_HEADERS("/v1beta1.DevicePlugin/" method)
#define EMPTY        "\0\0\0\0\0", 5

static struct peer_stream *ask(struct fixture *f, const char *headers, const char *body, size_t len)
{
    struct peer_stream *stream = peer_request(&f->peer, headers, body, len, true);
    peer_run(&f->peer);
    return stream;
}

static void expect_body(const char *row, const struct peer_stream *stream, const char *body,
                        size_t len)
{
    row_equal(row, stream->body_len, len);
    if (len > 0)
        row_true(row, memcmp(stream->body, body, len) == 0);
}

/* ---- options ---- */

static void the_options_want_pre_start(void **state)
{
    struct peer_stream *stream = ask(*state, CALL("GetDevicePluginOptions"), EMPTY);
    assert_string_equal(peer_header(stream, "grpc-status"), "0");
    expect_body("wanted", stream, "\0\0\0\0\2\x08\1", 7); /* pre_start_required = true */
}

/* ---- the list ---- */

static void the_largest_list_arrives_and_a_larger_one_is_refused(void **state)
{
    enum { MOST = 127100 };
    static char ids[MOST + 1][21];
    static const char *list[MOST + 1];
    struct fixture *f = *state;
    struct gs_error err = {0};
    GS_FOR_EACH_ROW (id, ids) {
        snprintf(*id, sizeof(*id), "gpu-%07zu-abcdefgh", (size_t)(id - ids));
        list[id - ids] = *id;
    }
    assert_int_equal(gs_dp_set_devices(f->dp, list, MOST, NULL), 0);
    struct peer_stream *stream = ask(f, CALL("ListAndWatch"), EMPTY);
    assert_int_equal(stream->body_len, 5 + MOST * 33);
    assert_int_equal(gs_dp_set_devices(f->dp, list, MOST + 1, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    assert_string_equal(
        err.msg, "a list of 127101 devices has 4194333 bytes, and the kubelet accepts 4194304");
    peer_run(&f->peer);
    assert_int_equal(stream->body_len, 5 + MOST * 33);
}

static void ids_that_the_api_forbids_are_refused(void **state)
{
    struct fixture *f = *state;
    char id[65];
    memset(id, 'x', 64);
    id[64] = '\0';
    const char *const overlong[] = {"a", id}, *const fits[] = {id + 1}, *const empty[] = {""};
    struct gs_error err = {0};
    assert_int_equal(gs_dp_set_devices(f->dp, overlong, 2, &err), -1);
    assert_int_equal(err.code, GS_EINVAL);
    assert_int_equal(gs_dp_set_devices(f->dp, empty, 1, NULL), -1);
    assert_int_equal(gs_dp_set_devices(f->dp, fits, 1, NULL), 0);
}

static void set_device(struct fixture *f, const char *id)
{
    assert_int_equal(gs_dp_set_devices(f->dp, &id, 1, NULL), 0);
    peer_run(&f->peer);
}

static void updates_go_to_every_stream(void **state)
{
    struct fixture *f = *state;
    struct peer second;
    assert_int_equal(gs_dp_adopt(f->dp, peer_open(&second, f->loop, false), NULL), 0);
    struct peer_stream *one = ask(f, CALL("ListAndWatch"), EMPTY);
    struct peer_stream *two = ask(f, CALL("ListAndWatch"), EMPTY);
    struct peer_stream *three = peer_request(&second, CALL("ListAndWatch"), "\0\0\0\0\0", 5, true);
    peer_run(&second);
    assert_int_equal(gs_dp_streams(f->dp), 3);
    assert_int_equal(one->body_len, 0); /* nothing is known yet */
    set_device(f, "a");
    peer_run(&second);
    set_device(f, "b");
    peer_run(&second);
    const struct peer_stream *streams[] = {one, two, three};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(streams[i]->body_len, 2 * 19);
        assert_memory_equal(streams[i]->body + 19, "\0\0\0\0\x0E\x0A\x0C\x0A\1b\x12\7Healthy", 19);
    }
    peer_close(&second);
    for (int i = 0; i < 3; i++)
        gs_loop_step(f->loop, 0, NULL);
    assert_int_equal(gs_dp_streams(f->dp), 2);
    nghttp2_submit_rst_stream(f->peer.session, 0, one->id, NGHTTP2_CANCEL);
    peer_run(&f->peer);
    assert_int_equal(gs_dp_streams(f->dp), 1);
    set_device(f, "a");
    assert_int_equal(two->body_len, 3 * 19);
    assert_int_equal(one->body_len, 2 * 19);
}

static void an_equal_list_is_not_sent_again(void **state)
{
    struct fixture *f = *state;
    struct peer_stream *stream = ask(f, CALL("ListAndWatch"), EMPTY);
    for (int i = 0; i < 3; i++) {
        set_device(f, "a");
    }
    assert_int_equal(stream->body_len, 19);
    assert_int_equal(gs_dp_set_devices(f->dp, NULL, 0, NULL), 0); /* no device is a list, too */
    peer_run(&f->peer);
    assert_int_equal(stream->body_len, 24);
}

/* ---- Allocate ---- */

static const struct {
    const char *row;
    const char *body;
    size_t len;
    const char *seen;
    const char *status;
} allocates[] = {
    {"one container", "\0\0\0\0\x08\x0A\6\x0A\1x\x0A\1y", 13, "x y", "0"},
    {"an unknown field", "\0\0\0\0\x07\x0A\3\x0A\1x\x10\1", 12, "x", "0"},
    {"two containers, answered as one", "\0\0\0\0\x0D\x0A\6\x0A\1x\x0A\1y\x0A\3\x0A\1z", 18,
     "x y;z", "13"},
    {"no container", "\0\0\0\0\0", 5, "", "3"},
    {"not protobuf", "\0\0\0\0\3\xFF\xFF\xFF", 8, "", "3"},
    {"cut short", "\0\0\0\0\3\x0A\6\x0A", 8, "", "3"},
};

static void requests_are_decoded_or_refused(void **state)
{
    struct fixture *f = *state;
    GS_FOR_EACH_ROW (r, allocates) {
        f->seen[0] = '\0';
        struct peer_stream *stream = ask(f, CALL("Allocate"), r->body, r->len);
        row_text(r->row, f->seen, r->seen);
        row_text(r->row, peer_header(stream, "grpc-status"), r->status);
        row_true(r->row, stream->closed);
    }
}

#define ONE_ID "\0\0\0\0\5\x0A\3\x0A\1x", 10

static void an_answer_carries_all_that_a_container_is_given(void **state)
{
    struct fixture *f = *state;
    const struct gs_dp_pair envs[] = {{"K", "v"}, {"E", ""}};
    const struct gs_dp_pair annotations[] = {{"a", "b"}};
    const struct gs_dp_path mounts[] = {{"/h", "/m"}, {"/h", "/m", true}}, nodes[] = {{"/d", "/e"}};
    const char *const names[] = {"n/g=0"};
    f->answer = (struct gs_dp_container){.envs = envs,
                                         .env_count = 2,
                                         .mounts = mounts,
                                         .mount_count = 2,
                                         .devices = nodes,
                                         .device_count = 1,
                                         .annotations = annotations,
                                         .annotation_count = 1,
                                         .cdi_devices = names,
                                         .cdi_device_count = 1};
    struct peer_stream *stream = ask(f, CALL("Allocate"), ONE_ID);
    /* An empty value is left out, which says the same. */
    static const char expected[] = "\0\0\0\0\x44"
                                   "\x0A\x42"
                                   "\x0A\6\x0A\1K\x12\1v"
                                   "\x0A\3\x0A\1E"
                                   "\x12\x08\x0A\2/m\x12\2/h"
                                   "\x12\x0A\x0A\2/m\x12\2/h\x18\1"
                                   "\x1A\x0C\x0A\2/e\x12\2/d\x1A\2rw"
                                   "\x22\6\x0A\1a\x12\1b"
                                   "\x2A\7\x0A\5n/g=0";
    expect_body("answer", stream, expected, sizeof(expected) - 1);
    assert_string_equal(peer_header(stream, "grpc-status"), "0");
}

static void text_that_is_not_utf8_never_leaves(void **state)
{
    struct fixture *f = *state;
    const struct gs_dp_pair good = {"k", "v"}, bad_key = {"\xFF", "v"}, bad_value = {"k", "\xC3"};
    const char *const bad_names[] = {"\x80"};
    const struct gs_dp_path bad_host = {"\x80", "/c"}, bad_container = {"/h", "\x80"};
    const struct {
        const char *row;
        struct gs_dp_container answer;
    } rows[] = {
        {"environment name", {.envs = &bad_key, .env_count = 1}},
        {"environment value", {.envs = &bad_value, .env_count = 1}},
        {"annotation name",
         {.envs = &good, .env_count = 1, .annotations = &bad_key, .annotation_count = 1}},
        {"annotation value", {.annotations = &bad_value, .annotation_count = 1}},
        {"CDI name", {.cdi_devices = bad_names, .cdi_device_count = 1}},
        {"mount, in the container", {.mounts = &bad_container, .mount_count = 1}},
        {"mount, on the host", {.mounts = &bad_host, .mount_count = 1}},
        {"device, in the container", {.devices = &bad_container, .device_count = 1}},
        {"device, on the host", {.devices = &bad_host, .device_count = 1}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        f->answer = r->answer;
        struct peer_stream *stream = ask(f, CALL("Allocate"), ONE_ID);
        row_text(r->row, peer_header(stream, "grpc-status"), "13");
        row_equal(r->row, stream->body_len, 0);
    }
}

static void a_failure_is_told_in_its_words(void **state)
{
    struct fixture *f = *state;
    gs_fail(&f->failure, GS_EBUSY, "no GPU has 100%% left");
    struct peer_stream *stream = ask(f, CALL("Allocate"), ONE_ID);
    assert_string_equal(peer_header(stream, "grpc-status"), "14");
    assert_string_equal(peer_header(stream, "grpc-message"), "no GPU has 100%25 left");
    stream = ask(f, CALL("PreStartContainer"), "\0\0\0\0\3\x0A\1z", 8);
    assert_string_equal(peer_header(stream, "grpc-status"), "14");
    assert_string_equal(f->seen, "z");
}

/* ---- PreStartContainer ---- */

static void a_late_pre_start_is_dropped(void **state)
{
    static const struct {
        const char *row;
        bool free_plugin;
    } rows[] = {{"out of time", false}, {"plugin freed", true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture *f;
        setup((void **)&f);
        f->hold = true;
        struct peer_stream *stream =
            ask(f, CALL("PreStartContainer") "grpc-timeout: 29999977u\n", EMPTY);
        if (r->free_plugin) {
            gs_dp_free(f->dp);
            f->dp = NULL;
        }
        f->still.now_ns += 30 * GS_NS_PER_S;
        peer_run(&f->peer);
        row_text(r->row, peer_header(stream, "grpc-status"), r->free_plugin ? NULL : "4");
        gs_dp_pre_start_reply(f->held);
        peer_run(&f->peer);
        row_equal(r->row, stream->body_len, 0);
        teardown((void **)&f);
    }
}

static void an_old_answers_environment_is_read(void **state)
{
    static const struct {
        const char *row, *bytes, *value; /* value NULL: none */
        size_t len;
        bool refused;
    } rows[] = {
        {"one of two", "\n\b\n\3IDX\22\0010\n\b\n\3ABC\22\0011", "0", 20, false},
        {"the last one", "\n\b\n\3IDX\22\0010\n\b\n\3IDX\22\0011", "1", 20, false},
        {"beside a mount and a CDI name", "\22\4\n\2/a\n\b\n\3IDX\22\0010*\5\n\3x=y", "0", 23,
         false},
        {"an empty one", "\n\5\n\3IDX", "", 7, false},
        {"none", "\n\b\n\3ABC\22\0011", NULL, 10, false},
        {"cut short", "\n\b\n\3IDX\22\001", NULL, 9, true},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_arena arena = {0};
        const char *value = "untouched";
        struct gs_error err = {0};
        int result = gs_dp_answer_env(&arena, r->bytes, r->len, "IDX", &value, &err);
        row_equal(r->row, result, r->refused ? -1 : 0);
        row_equal(r->row, err.code, r->refused ? GS_EPROTO : GS_OK);
        row_text(r->row, value ? value : "none",
                 r->refused ? "untouched"
                 : r->value ? r->value
                            : "none");
        gs_arena_release(&arena);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_answers_environment_is_read),
        TEST(the_options_want_pre_start),
        TEST(the_largest_list_arrives_and_a_larger_one_is_refused),
        TEST(ids_that_the_api_forbids_are_refused),
        TEST(updates_go_to_every_stream),
        TEST(an_equal_list_is_not_sent_again),
        TEST(requests_are_decoded_or_refused),
        TEST(an_answer_carries_all_that_a_container_is_given),
        TEST(text_that_is_not_utf8_never_leaves),
        TEST(a_failure_is_told_in_its_words),
        cmocka_unit_test(a_late_pre_start_is_dropped),
    };
    return GS_RUN(tests);
}
