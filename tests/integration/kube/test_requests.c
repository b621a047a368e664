/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <pthread.h>

/* gs_kube_request(): what is sent, what is tried again, what is an error. */

static void a_request_says_what_it_was_told_to(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "POST /apis/x?dryRun=All", .status = 201, .body = "{\"a\":1}"}};
    static const char *const said[] = {
        "\r\nContent-Type: application/merge-patch+json\r\n",
        "\r\nAccept: application/json\r\n",
        "\r\nUser-Agent: gpushare-test/" GS_VERSION "\r\n",
        "\r\n\r\n{\"b\":2}",
    };
    struct fixture f = {0};
    fixture_start(&f, rules, 1);
    const struct gs_kube_request request = {
        .method = "POST",
        .path = "/apis/x",
        .query = "dryRun=All",
        .content_type = "application/merge-patch+json",
        .body = "{\"b\":2}",
        .body_len = 7,
    };
    assert_int_equal(fixture_send(&f, &request), 201);
    assert_string_equal(f.body.data, "{\"a\":1}");
    const char *sent = fake_api_request(f.api, "POST", 0);
    GS_FOR_EACH_ROW (r, said)
        row_true(*r, strstr(sent, *r) != NULL);
    assert_null(strstr(sent, "Expect:"));
    assert_null(strstr(sent, "Authorization:"));
    fixture_stop(&f);
}

static void a_server_behind_a_prefix_is_asked_there(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "GET /k8s/clusters/c-1/version?a=b HTTP", .body = "{}"}};
    struct fixture f = {0};
    struct fake_api *api = fake_api_start(rules, 1);
    struct gs_kube_config config = {0};
    assert_true(asprintf(&config.server, "%s/k8s/clusters/c-1", fake_api_url(api)) > 0);
    fixture_start_with(&f, NULL, 0, &config);
    const struct gs_kube_request request = {.method = "GET", .path = "/version", .query = "a=b"};
    assert_int_equal(fixture_send(&f, &request), 200);
    fixture_stop(&f);
    fake_api_stop(api);
}

static const struct method_row {
    const char *row;
    const char *method;
    const char *body;
    const char *expected; /* beginning of what is sent */
    bool length;          /* a Content-Length is sent */
} methods[] = {
    {"GET", "GET", NULL, "GET /x HTTP/1.1\r\n", false},
    {"DELETE", "DELETE", NULL, "DELETE /x HTTP/1.1\r\n", false},
    {"DELETE with options", "DELETE", "{}", "DELETE /x HTTP/1.1\r\n", true},
    {"POST", "POST", "{}", "POST /x HTTP/1.1\r\n", true},
    {"POST of nothing", "POST", NULL, "POST /x HTTP/1.1\r\n", true},
    {"PUT", "PUT", "{}", "PUT /x HTTP/1.1\r\n", true},
    {"PATCH", "PATCH", "{}", "PATCH /x HTTP/1.1\r\n", true},
};

static void one_handle_serves_every_method_in_turn(void **state)
{
    struct fixture f = {0};
    fixture_start(&f, anything, 1);
    size_t i = 0;
    GS_FOR_EACH_ROW (r, methods) {
        const struct gs_kube_request request = {.method = r->method,
                                                .path = "/x",
                                                .body = r->body,
                                                .body_len = r->body ? strlen(r->body) : 0};
        row_equal(r->row, fixture_send(&f, &request), 200);
        const char *sent = fake_api_request(f.api, "", i++);
        row_true(r->row, strncmp(sent, r->expected, strlen(r->expected)) == 0);
        row_equal(r->row, strstr(sent, "Content-Length:") != NULL, r->length);
    }
    assert_int_equal(fake_api_connections(f.api), 1);
    fixture_stop(&f);
}

static const char too_large[100000] = {[0 ... 99998] = 'x'};

static const struct retry_row {
    const char *row;
    const char *method;
    struct fake_rule first;
    int expected_status; /* 0: an error of that code */
    enum gs_code code;
    size_t requests;
} retries[] = {
    {"503 then 200", "GET", {.times = 2, .status = 503}, 200, GS_OK, 3},
    {"500 then 200", "GET", {.times = 1, .status = 500}, 200, GS_OK, 2},
    {"502 then 200", "GET", {.times = 1, .status = 502}, 200, GS_OK, 2},
    {"504 then 200", "GET", {.times = 1, .status = 504}, 200, GS_OK, 2},
    {"503 for ever", "GET", {.times = 0, .status = 503}, 503, GS_OK, 4},
    {"503 to a POST is the answer", "POST", {.times = 1, .status = 503}, 503, GS_OK, 1},
    {"501 is the answer", "GET", {.times = 1, .status = 501}, 501, GS_OK, 1},
    {"404 is the answer", "GET", {.times = 1, .status = 404}, 404, GS_OK, 1},
    {"429 without a time", "POST", {.times = 1, .status = 429}, 200, GS_OK, 2},
    {"429 with a time",
     "POST",
     {.times = 2, .status = 429, .headers = "Retry-After: 1\r\n"},
     200,
     GS_OK,
     3},
    {"429 with a time of nothing",
     "GET",
     {.times = 4, .status = 429, .headers = "Retry-After: 0\r\n"},
     200,
     GS_OK,
     5},
    {"429 for ever",
     "GET",
     {.times = 0, .status = 429, .headers = "Retry-After: 0\r\n"},
     429,
     GS_OK,
     5},
    {"429 with a time that is no number",
     "GET",
     {.times = 1, .status = 429, .headers = "Retry-After: 99999999999999999999\r\n"},
     200,
     GS_OK,
     2},
    {"401 without anything to renew", "GET", {.times = 1, .status = 401}, 401, GS_OK, 1},
    {"an answer cut in its middle",
     "GET",
     {.times = 1, .stream = "{\"half", .end = FAKE_CUT},
     200,
     GS_OK,
     2},
    {"an answer cut in its middle for ever",
     "GET",
     {.times = 0, .stream = "{\"half", .end = FAKE_CUT},
     0,
     GS_EIO,
     4},
    {"a POST's answer cut in its middle",
     "POST",
     {.times = 0, .stream = "{\"half", .end = FAKE_CUT},
     0,
     GS_EIO,
     1},
    {"no answer at all to a POST", "POST", {.status = -1, .end = FAKE_CUT}, 0, GS_EIO, 1},
    {"a redirect is not followed",
     "GET",
     {.status = 302, .headers = "Location: /other\r\n"},
     302,
     GS_OK,
     1},
    {"silence", "GET", {.status = -1, .end = FAKE_STALL}, 0, GS_ETIMEOUT, 1},
    {"silence in the middle", "POST", {.stream = "{", .end = FAKE_STALL}, 0, GS_ETIMEOUT, 1},
    {"too large", "GET", {.body = too_large}, 0, GS_ETOOBIG, 1},
};

static void what_may_be_tried_again_is(void **state)
{
    GS_FOR_EACH_ROW (r, retries) {
        struct fake_rule rules[] = {r->first, {.match = "", .body = "{}"}};
        bool silence = r->code == GS_ETIMEOUT;
        struct fixture f = {.clock = silence ? NULL : &sleepless,
                            .patience_ns = silence ? GS_NS_PER_S / 2 : 900 * GS_NS_PER_S};
        rules[0].match = "";
        fixture_start(&f, rules, 2);
        const bool reads = strcmp(r->method, "GET") == 0;
        const struct gs_kube_request request = {.method = r->method,
                                                .path = "/x",
                                                .body = reads ? NULL : "{}",
                                                .body_len = reads ? 0 : 2};
        row_equal(r->row, fixture_send(&f, &request), r->expected_status);
        row_text(r->row, gs_code_name(f.err.code), gs_code_name(r->code));
        row_equal(r->row, fake_api_count(f.api, ""), r->requests);
        row_equal(r->row, f.err.msg[0] != '\0', r->expected_status == 0);
        row_equal(r->row, fixture_stats(&f).oversized, r->code == GS_ETOOBIG);
        fixture_stop(&f);
    }
}

static void each_kind_of_failure_has_retries_of_its_own(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "", .times = 1, .status = 503},
        {.match = "", .times = 4, .status = 429, .headers = "Retry-After: 0\r\n"},
        {.match = "", .times = 2, .status = 503},
        {.match = "", .body = "{}"}};
    struct fixture f = {.clock = &sleepless, .patience_ns = 900 * GS_NS_PER_S};
    fixture_start(&f, rules, 4);
    assert_int_equal(fixture_get(&f, "/x"), 200);
    fixture_stop(&f);
}

/* What says no time to come is as if it said none: a second. */
static void how_long_a_retry_after_is_waited_for(void **state)
{
    static const struct {
        const char *row, *header;
        int64_t most_s; /* that the options allow */
        int status;
        int64_t slept_ms; /* and a jitter of at most 50 ms */
    } rows[] = {
        {"behind the deadline", "Retry-After: 1000\r\n", 1000, 429, 0},
        {"above the bound", "Retry-After: 86400\r\n", 7, 200, 7000},
        {"none", "X-Other: 1\r\n", 9, 200, 1000},
        {"a word", "Retry-After: soon\r\n", 9, 200, 1000},
        {"less than nothing", "Retry-After: -5\r\n", 9, 200, 1000},
        {"no number", "Retry-After: 99999999999999999999\r\n", 9, 200, 1000},
        {"a date", "Retry-After: Sat, 01 Jan 1583 00:00:00 GMT\r\n", 9, 200, 1000},
    };
    GS_FOR_EACH_ROW (r, rows) {
        const struct fake_rule rules[] = {
            {.match = "", .times = 1, .status = 429, .headers = r->header},
            {.match = "", .body = "{}"}};
        struct fixture f = {.clock = &sleepless,
                            .patience_ns = 900 * GS_NS_PER_S,
                            .retry_after_max_ns = r->most_s * GS_NS_PER_S};
        fixture_start(&f, rules, 2);
        row_equal(r->row, fixture_get(&f, "/x"), r->status);
        row_true(r->row, slept_ns >= r->slept_ms * GS_NS_PER_MS);
        row_true(r->row, slept_ns <= (r->slept_ms + (r->slept_ms ? 50 : 0)) * GS_NS_PER_MS);
        fixture_stop(&f);
    }
}

static void *ask(void *arg)
{
    fixture_get(arg, "/x");
    return NULL;
}

static void a_cancelled_client_waits_for_nothing_any_more(void **state)
{
    static const struct {
        const char *row;
        struct fake_rule rule;
        enum gs_code code;
    } rows[] = {
        {"no answer", {.match = "", .status = -1, .end = FAKE_STALL}, GS_ECANCELED},
        {"half an answer", {.match = "", .stream = "x", .end = FAKE_STALL}, GS_ECANCELED},
        {"answered already: come back later",
         {.match = "", .status = 429, .headers = "Retry-After: 3600\r\n"},
         GS_OK},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f = {.patience_ns = 7200 * GS_NS_PER_S,
                            .retry_after_max_ns = 3600 * GS_NS_PER_S};
        pthread_t thread;
        fixture_start(&f, &r->rule, 1);
        assert_int_equal(pthread_create(&thread, NULL, ask, &f), 0);
        assert_true(fake_api_wait(f.api, "", 1));
        while (r->code == GS_OK && fixture_stats(&f).throttled == 0)
            sleep_ms(1); /* until it knows that it was told to come back later */
        gs_kube_client_cancel(f.client);
        pthread_join(thread, NULL); /* what went on waiting would outlive the test's limit */
        row_equal(r->row, f.err.code, r->code);
        row_equal(r->row, fixture_get(&f, "/x"), 0);
        row_equal(r->row, f.err.code, GS_ECANCELED);
        row_equal(r->row, fake_api_count(f.api, ""), 1);
        fixture_stop(&f);
    }
}

/* A watch that is only to say that there is news: it goes on for minutes. */
static void first_bytes_are_an_answer(void **state)
{
    static const struct {
        const char *row;
        struct fake_rule rule;
        bool first_bytes;
        int status;
    } rows[] = {
        {"asked for", {.match = "", .stream = "{\"type\":", .end = FAKE_STALL}, true, 200},
        {"not asked for", {.match = "", .stream = "{\"type\":", .end = FAKE_STALL}, false, 0},
        {"a refusal is read whole",
         {.match = "", .status = 403, .body = "{\"kind\":\"Status\"}"},
         true,
         403},
        {"none", {.match = "", .body = ""}, true, 200},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct fixture f = {.patience_ns = r->status ? 0 : GS_NS_PER_S / 3};
        fixture_start(&f, &r->rule, 1);
        const struct gs_kube_request request = {
            .method = "GET", .path = "/x", .first_bytes = r->first_bytes};
        row_equal(r->row, fixture_send(&f, &request), r->status);
        fixture_stop(&f);
    }
}

static void nobody_at_the_address_is_told_as_such(void **state)
{
    struct fixture f = {.clock = &sleepless};
    struct fake_api *gone = fake_api_start(NULL, 0);
    struct gs_kube_config config = {.server = strdup(fake_api_url(gone))};
    fake_api_stop(gone);
    fixture_start_with(&f, NULL, 0, &config);
    const struct gs_kube_request request = {.method = "POST", .path = "/x", .body = ""};
    assert_int_equal(fixture_send(&f, &request), 0);
    assert_int_equal(f.err.code, GS_EIO);
    assert_non_null(strstr(f.err.msg, "is the API server running"));
    struct gs_kube_stats stats = fixture_stats(&f);
    assert_int_equal(stats.retries, 3); /* nothing was sent: even a POST may be tried again */
    assert_int_equal(stats.failed, 4);
    fixture_stop(&f);
}

/* The configuration has decided: curl would look there by itself. */
static void a_proxy_of_the_environment_is_not_asked(void **state)
{
    struct fake_api *proxy = fake_api_start(anything, 1);
    struct fixture f = {0};
    setenv("http_proxy", fake_api_url(proxy), 1);
    fixture_start(&f, anything, 1);
    assert_int_equal(fixture_get(&f, "/x"), 200);
    assert_int_equal(fake_api_count(proxy, ""), 0);
    unsetenv("http_proxy");
    fixture_stop(&f);
    fake_api_stop(proxy);
}

static void an_idle_connection_that_died_is_replaced(void **state)
{
    static const struct fake_rule rules[] = {{.match = "GET /once", .body = "{}", .end = FAKE_CUT},
                                             {.match = "", .body = "{}"}};
    struct fixture f = {0};
    fixture_start(&f, rules, 2);
    assert_int_equal(fixture_get(&f, "/once"), 200);
    assert_int_equal(fixture_get(&f, "/again"), 200);
    assert_int_equal(fake_api_count(f.api, "GET /again"), 1);
    assert_int_equal(fake_api_connections(f.api), 2);
    fixture_stop(&f);
}

static void *ask_often(void *arg)
{
    struct fixture own = *(const struct fixture *)arg; /* one's own answers */
    own.body = GS_BUF(100);
    for (int i = 0; i < 50; i++)
        fixture_get(&own, "/x");
    gs_buf_release(&own.body);
    return NULL;
}

static void many_threads_share_a_client_and_its_connections(void **state)
{
    struct fixture f = {0};
    pthread_t threads[8];
    fixture_start(&f, anything, 1);
    for (size_t i = 0; i < GS_COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &f), 0);
    for (size_t i = 0; i < GS_COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    assert_in_range(fake_api_connections(f.api), 1, GS_COUNT_OF(threads));
    struct gs_kube_stats stats = fixture_stats(&f);
    assert_int_equal(stats.requests, 400);
    assert_int_equal(stats.bytes_received, 800);
    fixture_stop(&f);
}

static const struct status_row {
    const char *row;
    int status;
    const char *body;
    enum gs_code code;
    const char *words;
} statuses[] = {
    {"400", 400, "{\"kind\":\"Status\",\"message\":\"bad\"}", GS_EINVAL, "bad"},
    {"401", 401, "", GS_EAUTH, "the API server returned HTTP 401"},
    {"403", 403, "{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}", GS_EDENIED,
     "pods is forbidden"},
    {"404", 404, "404 page not found\n", GS_ENOENT, "the API server returned HTTP 404"},
    {"409", 409, "{}", GS_ECONFLICT, "the API server returned HTTP 409"},
    {"410", 410, "{\"kind\":\"Status\",\"message\":\"too old\"}", GS_EGONE, "too old"},
    {"413", 413, "", GS_ETOOBIG, "the API server returned HTTP 413"},
    {"422", 422, "", GS_EINVAL, "the API server returned HTTP 422"},
    {"429", 429, "", GS_EBUSY, "the API server returned HTTP 429"},
    {"500", 500, "", GS_EIO, "the API server returned HTTP 500"},
    {"504", 504, "<html>", GS_EIO, "the API server returned HTTP 504"},
    {"302", 302, "", GS_EPROTO,
     "the API server redirects (HTTP 302), and redirects are not followed"},
    {"999", 999, "", GS_EIO, "the API server returned HTTP 999"},
    {"100", 100, "", GS_EPROTO, "the API server returned HTTP 100"},
};

static void every_status_has_its_code_and_words(void **state)
{
    GS_FOR_EACH_ROW (r, statuses) {
        struct gs_error err = {0};
        row_equal(r->row, gs_kube_fail_status(r->status, r->body, strlen(r->body), &err), -1);
        row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
        row_text(r->row, err.msg, r->words);
    }
}

/* Two at once, then one a second: a Lease waits for nobody. */
static void requests_beyond_the_rate_are_not_sent_and_leases_are(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "GET /apis", .body = "{\"metadata\":{\"name\":\"l\"},\"spec\":{}}"},
        {.match = "", .body = "{}"},
    };
    struct fixture f = {.qps = 1, .burst = 2, .clock = &sleepless};
    fixture_start(&f, rules, 2);
    struct gs_kube_request request = {
        .method = "GET", .path = "/version", .timeout_ns = 100 * GS_NS_PER_MS};
    struct gs_kube_request lease = {.method = "GET",
                                    .path = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l",
                                    .timeout_ns = 900 * GS_NS_PER_S};
    int sent = 0, refused = 0;
    for (int i = 0; i < 10; i++) {
        if (fixture_send(&f, &request))
            sent++;
        else if (f.err.code == GS_EBUSY && strstr(f.err.msg, "--kube-api-qps"))
            refused++;
        assert_int_equal(fixture_send(&f, &lease), 200);
        lease.body = i % 2 ? NULL : "{}"; /* read, or renewed */
        lease.body_len = i % 2 ? 0 : 2;
    }
    assert_true(sent >= 1);
    assert_true(refused >= 1);
    assert_int_equal(slept_ns, 0); /* nobody waited for a turn, no Lease either */
    /* one that has the time waits for its turn */
    request.timeout_ns = 900 * GS_NS_PER_S;
    for (int i = 0; i < 2; i++)
        assert_int_equal(fixture_send(&f, &request), 200);
    assert_true(slept_ns > 0);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_says_what_it_was_told_to),
        cmocka_unit_test(a_server_behind_a_prefix_is_asked_there),
        cmocka_unit_test(one_handle_serves_every_method_in_turn),
        cmocka_unit_test(what_may_be_tried_again_is),
        cmocka_unit_test(each_kind_of_failure_has_retries_of_its_own),
        cmocka_unit_test(how_long_a_retry_after_is_waited_for),
        cmocka_unit_test(a_cancelled_client_waits_for_nothing_any_more),
        cmocka_unit_test(first_bytes_are_an_answer),
        cmocka_unit_test(nobody_at_the_address_is_told_as_such),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_asked),
        cmocka_unit_test(an_idle_connection_that_died_is_replaced),
        cmocka_unit_test(many_threads_share_a_client_and_its_connections),
        cmocka_unit_test(every_status_has_its_code_and_words),
        cmocka_unit_test(requests_beyond_the_rate_are_not_sent_and_leases_are),
    };
    return GS_RUN(tests);
}
