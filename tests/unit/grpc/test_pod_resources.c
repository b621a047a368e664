/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <unistd.h>

#include "../../../src/grpc/server.h"
#include "gpushare/grpc/pod_resources.h"

/* ---- decoding; encodings written by hand ---- */

static const struct {
    const char *row;
    const char *bytes;
    size_t len;
    enum gs_code code;
    const char *text; /* "ns/pod{container:resource=id,id }" */
} lists[] = {
    {"empty", "", 0, GS_OK, ""},
    {"a pod without anything", "\x0A\0", 2, GS_OK, "/{}"},
    {"a pod and its name space", "\x0A\6\x0A\1p\x12\1n", 8, GS_OK, "n/p{}"},
    {"a container without devices", "\x0A\x0B\x0A\1p\x12\1n\x1A\3\x0A\1c", 13, GS_OK, "n/p{c:}"},
    {"devices", "\x0A\x18\x0A\1p\x12\1n\x1A\x10\x0A\1c\x12\x0B\x0A\1r\x12\1x\x12\1y\x1A\0", 26,
     GS_OK, "n/p{c:r=x,y}"},
    {"NUMA nodes are passed over",
     "\x0A\x19\x0A\1p\x12\1n\x1A\x11\x0A\1c\x12\x0C\x0A\1r\x12\1x\x1A\4\x0A\2\x08\1", 27, GS_OK,
     "n/p{c:r=x}"},
    {"the same resource twice",
     "\x0A\x19\x0A\1p\x12\1n\x1A\x11\x0A\1c\x12\x05\x0A\1r\x12\0\x12\x05\x0A\1r\x12\0", 27, GS_OK,
     "n/p{c:r= r=}"},
    {"two pods", "\x0A\3\x0A\1p\x0A\3\x0A\1q", 10, GS_OK, "/p{}/q{}"},
    {"fields of newer kubelets", "\x0A\7\x0A\1p\x20\1\x20\2", 9, GS_OK, "/p{}"},
    {"length beyond the end", "\x0A\7\x0A\1p", 5, GS_EPROTO, NULL},
    {"endless length", "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 11, GS_EPROTO, NULL},
    {"field number zero", "\2\0", 2, GS_EPROTO, NULL},
    {"end-group", "\x0C", 1, GS_EPROTO, NULL},
};

static void put_devices(struct gs_buf *out, const struct gs_podres_devices *devices)
{
    gs_buf_printf(out, "%s=", devices->resource_name);
    for (size_t i = 0; i < devices->id_count; i++)
        gs_buf_printf(out, "%s%s", i > 0 ? "," : "", devices->ids[i]);
}

static char *to_text(const struct gs_podres_list *list)
{
    struct gs_buf out = GS_BUF(10000);
    for (size_t p = 0; p < list->pod_count; p++) {
        const struct gs_podres_pod *pod = &list->pods[p];
        gs_buf_printf(&out, "%s/%s{", pod->ns, pod->name);
        for (size_t c = 0; c < pod->container_count; c++) {
            gs_buf_printf(&out, "%s:", pod->containers[c].name);
            for (size_t d = 0; d < pod->containers[c].device_count; d++) {
                gs_buf_puts(&out, d > 0 ? " " : "");
                put_devices(&out, &pod->containers[c].devices[d]);
            }
        }
        gs_buf_putc(&out, '}');
    }
    return gs_buf_steal(&out);
}

static void lists_are_decoded_or_refused(void **state)
{
    GS_FOR_EACH_ROW (r, lists) {
        struct gs_arena arena = {0};
        struct gs_podres_list list = {.pod_count = 4711};
        struct gs_error err = {0};
        int result = gs_podres_decode(&arena, r->bytes, r->len, &list, &err);
        row_equal(r->row, err.code, r->code);
        row_equal(r->row, result, r->code ? -1 : 0);
        if (r->code) {
            row_equal(r->row, list.pod_count, 4711);
        } else {
            char *text = to_text(&list);
            row_text(r->row, text, r->text);
            free(text);
        }
        gs_arena_release(&arena);
    }
}

static void memory_is_bounded_by_the_answers_size(void **state)
{
    const size_t len = 4 << 20;
    char *bytes = malloc(len);
    for (size_t i = 0; i < len; i += 2)
        memcpy(bytes + i, "\x0A\0", 2); /* two million pods without anything */
    struct gs_arena arena = {0};
    struct gs_podres_list list;
    struct gs_error err = {0};
    assert_int_equal(gs_podres_decode(&arena, bytes, len, &list, &err), -1);
    assert_int_equal(err.code, GS_ETOOBIG);
    gs_arena_release(&arena);
    free(bytes);
}

/* ---- the call, on a server of ours ---- */

struct fixture {
    char dir[64];
    char path[96];
    struct gs_loop *loop;
    struct gs_grpc_server *server;
    enum gs_grpc_status status;
    const char *bytes;
    size_t len;
    unsigned asked, done;
    char *text;
    struct gs_error failure;
};

static void on_list(struct gs_grpc_call *call, const void *message, size_t len, void *ctx)
{
    struct fixture *f = ctx;
    f->asked++;
    assert_int_equal(len, 0); /* ListPodResourcesRequest has no fields */
    if (f->status == GS_GRPC_OK) {
        char *copy = malloc(f->len + 1);
        memcpy(copy, f->bytes, f->len);
        struct gs_grpc_message *answer = gs_grpc_message_take(copy, f->len);
        gs_grpc_call_send(call, answer);
        gs_grpc_message_unref(answer);
    }
    gs_grpc_call_finish(call, f->status, "in its words");
}

static const struct gs_grpc_method methods[] = {{"/v1.PodResourcesLister/List", on_list, NULL}};

static void on_done(void *ctx, const struct gs_podres_list *list, const struct gs_error *failure)
{
    struct fixture *f = ctx;
    f->done++;
    assert_true((list == NULL) != (failure == NULL));
    if (list)
        f->text = to_text(list);
    else
        f->failure = *failure;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/gs-podres-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/kubelet.sock", f->dir);
    assert_int_equal(gs_loop_new(gs_clock_system(), &f->loop, NULL), 0);
    assert_int_equal(gs_grpc_server_new(f->loop, methods, 1, f, &f->server, NULL), 0);
    assert_int_equal(gs_grpc_server_listen(f->server, f->path, NULL), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    gs_grpc_server_free(f->server);
    gs_loop_free(f->loop);
    rmdir(f->dir);
    free(f->text);
    free(f);
    return 0;
}

static void ask(struct fixture *f, const char *path)
{
    assert_int_equal(gs_podres_list_start(f->loop, path, 5 * GS_NS_PER_S, on_done, f, NULL, NULL),
                     0);
    for (int i = 0; i < 10000 && f->done == 0; i++)
        gs_loop_step(f->loop, GS_NS_PER_MS, NULL);
    assert_int_equal(f->done, 1);
}

static void a_list_comes_over_the_socket(void **state)
{
    struct fixture *f = *state;
    f->bytes = "\x0A\x0B\x0A\1p\x12\1n\x1A\3\x0A\1c";
    f->len = 13;
    ask(f, f->path);
    assert_int_equal(f->asked, 1);
    assert_string_equal(f->text, "n/p{c:}");
}

static void a_large_list_comes_whole(void **state)
{
    struct fixture *f = *state;
    const size_t pods = 100000;
    char *bytes = malloc(pods * 5);
    for (size_t i = 0; i < pods; i++)
        memcpy(bytes + i * 5, "\x0A\3\x0A\1p", 5);
    f->bytes = bytes;
    f->len = pods * 5;
    ask(f, f->path);
    assert_int_equal(f->failure.code, GS_OK);
    assert_null(f->text); /* more than the text's ceiling: it did come */
    free(bytes);
}

static const struct {
    const char *row;
    enum gs_grpc_status status;
    const char *bytes;
    size_t len;
    enum gs_code code;
    const char *msg;
} failures[] = {
    {"rate limit", GS_GRPC_RESOURCE_EXHAUSTED, "", 0, GS_EBUSY,
     "in its words (RESOURCE_EXHAUSTED)"},
    {"old kubelet", GS_GRPC_UNIMPLEMENTED, "", 0, GS_ENOENT, "in its words (UNIMPLEMENTED)"},
    {"nonsense", GS_GRPC_OK, "\xFF", 1, GS_EPROTO, "malformed ListPodResourcesResponse"},
};

static void failures_keep_their_words(void **state)
{
    GS_FOR_EACH_ROW (r, failures) {
        struct fixture *f;
        setup((void **)&f);
        f->status = r->status;
        f->bytes = r->bytes;
        f->len = r->len;
        ask(f, f->path);
        row_equal(r->row, f->failure.code, r->code);
        row_text(r->row, f->failure.msg, r->msg);
        teardown((void **)&f);
    }
}

static void without_a_kubelet_the_failure_is_io(void **state)
{
    struct fixture *f = *state;
    ask(f, "/nonexistent/kubelet.sock");
    assert_int_equal(f->failure.code, GS_EIO);
}

static void a_cancelled_list_is_never_told(void **state)
{
    struct fixture *f = *state;
    struct gs_podres_call *call = NULL;
    assert_int_equal(gs_podres_list_start(f->loop, f->path, GS_NS_PER_S, on_done, f, &call, NULL),
                     0);
    gs_podres_cancel(call);
    for (int i = 0; i < 5; i++)
        gs_loop_step(f->loop, 0, NULL);
    assert_int_equal(f->done, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_decoded_or_refused),
        cmocka_unit_test(memory_is_bounded_by_the_answers_size),
        TEST(a_list_comes_over_the_socket),
        TEST(a_large_list_comes_whole),
        cmocka_unit_test(failures_keep_their_words),
        TEST(without_a_kubelet_the_failure_is_io),
        TEST(a_cancelled_list_is_never_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
