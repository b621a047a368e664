/* SPDX-License-Identifier: Apache-2.0 */
/* Where a request ends. */
#include "fixture.h"

static int start(void **state)
{
    struct fixture *fix = test_malloc(sizeof(*fix));
    fixture_init(fix);
    fixture_start(fix);
    *state = fix;
    return 0;
}

static int stop(void **state)
{
    fixture_stop(*state);
    test_free(*state);
    return 0;
}

#define POST  "POST /echo HTTP/1.1\r\nHost: x\r\n"
#define CHUNK "\r\n\r\n2\r\nab\r\n0\r\n\r\n"
#define ROW(name, request)                                                                         \
    {                                                                                              \
        name, request, sizeof(request) - 1                                                         \
    }

/* A request whose end two parsers may see in two places: it is refused, and what stands behind it
 * is nobody's request. */
static void a_request_whose_end_is_in_doubt_is_the_last(void **state)
{
    const struct fixture *fix = *state;
    static const struct {
        const char *name, *request;
        size_t len;
    } rows[] = {
        ROW("two lengths", POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nab"),
        ROW("the longer first", POST "Content-Length: 3\r\nContent-Length: 2\r\n\r\nab"),
        ROW("the same length twice", POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab"),
        ROW("the first of two is none", POST "Content-Length: 0\r\nContent-Length: 2\r\n\r\nab"),
        ROW("a chunk size that ends with LF",
            POST "Transfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n"),
        ROW("chunks", POST "Transfer-Encoding: chunked" CHUNK),
        ROW("two codings", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity" CHUNK),
        ROW("the same coding twice",
            POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" CHUNK),
        ROW("a list of codings", POST "Transfer-Encoding: gzip, chunked" CHUNK),
        ROW("length, then coding", POST "Content-Length: 2\r\nTransfer-Encoding: chunked" CHUNK),
        ROW("coding, then length", POST "Transfer-Encoding: chunked\r\nContent-Length: 2" CHUNK),
        ROW("coding in HTTP/1.0", "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\n"
                                  "Transfer-Encoding: chunked" CHUNK),
        ROW("blank before the length's colon", POST "Content-Length : 2\r\n\r\nab"),
        ROW("tab before the coding's colon", POST "Transfer-Encoding\t: chunked" CHUNK),
        ROW("a folded line", POST "X-A: b\r\n c\r\nContent-Length: 2\r\n\r\nab"),
        ROW("a coding on a folded line", POST "Transfer-Encoding:\r\n chunked" CHUNK),
        ROW("a line that begins with a blank", "POST /echo HTTP/1.1\r\n Host: x\r\n\r\n"),
        ROW("two hosts", POST "Host: y\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL in a value", POST "X-A: b\0c\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL at a value's end", POST "X-A: b\0\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL in the last value", POST "Content-Length: 2\r\nX-A: b\0c\r\n\r\nab"),
        ROW("NUL in a name", POST "X\0-A: b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL at a line's begin", POST "\0X-A: b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("NUL in the version", "GET /hello HTTP/1.1\0x\r\nHost: x\r\n\r\n"),
        ROW("lines that end with LF", "POST /echo HTTP/1.1\nHost: x\nContent-Length: 2\n\nab"),
        ROW("one line that ends with LF", POST "X-A: b\nContent-Length: 2\r\n\r\nab"),
        ROW("a head that ends with LF", POST "Content-Length: 2\r\n\nab"),
        ROW("CR in a value", POST "X-A: b\rContent-Length: 0\r\nContent-Length: 2\r\n\r\nab"),
        ROW("control in a value", POST "X-A: b\x01\r\nContent-Length: 2\r\n\r\nab"),
        ROW("no name", POST ": b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("parenthesis in a name", POST "X(A: b\r\nContent-Length: 2\r\n\r\nab"),
        ROW("another version", "GET /hello HTTP/1.9\r\nHost: x\r\n\r\n"),
    };
    for (size_t i = 0; i < GS_COUNT_OF(rows); i++) {
        struct http_probe probe;
        struct http_answer answer = {0};
        print_message("  %s\n", rows[i].name);
        assert_true(http_probe_open(&probe, fix->port));
        assert_true(http_probe_send(&probe, rows[i].request, rows[i].len));
        http_probe_text(&probe, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        bool answered = http_probe_answer(&probe, &answer);
        assert_true(!answered || answer.status == 400 || answer.status == 411);
        while (answered && (answered = http_probe_answer(&probe, &answer)))
            assert_int_equal(answer.status, 400); /* libmicrohttpd's own come twice */
        assert_true(http_probe_closed(&probe));
        http_probe_close(&probe);
    }
}

static void lines_may_be_written_in_more_than_one_way(void **state)
{
    const struct fixture *fix = *state;
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nhOST:x\r\ncontent-length:2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \t 2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nContent-Length: 2\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nX-Empty: \r\nContent-Length: 2\r\nX-Last:\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=d\r\nContent-Length: 2\r\n\r\n",
        "POST /echo?a=b&c HTTP/1.1\r\nHost: x\r\nX-T: \xc3\xa4\tb \r\nContent-Length: 2\r\n\r\n",
        "POST /echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n",
    };
    struct http_probe probe;
    assert_true(http_probe_open(&probe, fix->port));
    GS_FOR_EACH_ROW (r, heads) { /* on one connection */
        struct http_answer answer;
        print_message("  %s\n", *r);
        http_probe_text(&probe, "%sab", *r);
        assert_true(http_probe_answer(&probe, &answer));
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, "ab");
    }
    http_probe_close(&probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_whose_end_is_in_doubt_is_the_last, start, stop),
        cmocka_unit_test_setup_teardown(lines_may_be_written_in_more_than_one_way, start, stop),
    };
    return cmocka_run_group_tests_name("http framing", tests, NULL, NULL);
}
