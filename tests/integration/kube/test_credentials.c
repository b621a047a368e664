/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "scratch.h"

#include <unistd.h>

#include "watch_texts.h"

/* Which credentials travel, and how they are renewed. */

static struct fixture f;

static int setup(void **state)
{
    f = (struct fixture){.clock = &sleepless};
    scratch_enter();
    return 0;
}

static int teardown(void **state)
{
    scratch_leave();
    if (f.api)
        fixture_stop(&f);
    return 0;
}

/* The i-th request carries this header line. */
static bool carries(size_t i, const char *line)
{
    const char *request = fake_api_request(f.api, "", i);
    return request && strstr(request, line) != NULL;
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* As kubectl: what stands in the kubeconfig counts while the file is away. */
static void a_token_is_a_bearer(void **state)
{
    static const char *const files[] = {NULL, "/no/token"};
    GS_FOR_EACH_ROW (file, files) {
        struct gs_kube_config config = {.token = strdup(" secret\n"), .token_file = copy(*file)};
        fixture_start_with(&f, anything, 1, &config);
        assert_int_equal(fixture_get(&f, "/x"), 200);
        assert_true(carries(0, "\r\nAuthorization: Bearer secret\r\n"));
        fixture_stop(&f);
        f.api = NULL;
    }
}

/* 0.0.0.0 leads to this machine and is no loopback address. */
static void credentials_do_not_travel_in_the_clear(void **state)
{
    struct gs_kube_config config = {.token = strdup("secret")};
    struct fake_api *elsewhere = fake_api_start(anything, 1);
    assert_true(
        asprintf(&config.server, "http://0.0.0.0%s", strrchr(fake_api_url(elsewhere), ':')) > 0);
    fixture_start_with(&f, NULL, 0, &config);
    assert_int_equal(fixture_get(&f, "/x"), 200);
    const char *request = fake_api_request(elsewhere, "GET /x", 0);
    assert_non_null(request);
    assert_null(strstr(request, "Authorization"));
    fake_api_stop(elsewhere);
}

static void a_token_file_that_changed_is_read_again(void **state)
{
    struct gs_kube_config config = {.token = strdup("static"), .token_file = strdup("token")};
    scratch_text("token", "one\n");
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x"), 200);
    assert_true(carries(0, "Bearer one\r\n"));
    scratch_text("token", "two\n");
    slept_ns += GS_NS_PER_S; /* looked at once a second at most */
    assert_int_equal(fixture_get(&f, "/x"), 200);
    assert_true(carries(1, "Bearer two\r\n"));
    unlink("token"); /* what cannot be read any more stays good */
    slept_ns += GS_NS_PER_S;
    assert_int_equal(fixture_get(&f, "/x"), 200);
    assert_true(carries(2, "Bearer two\r\n"));
    assert_int_equal(fake_api_connections(f.api), 1);
}

static void a_refused_token_is_read_again_at_once(void **state)
{
    static const struct fake_rule rules[] = {{.match = "GET /first", .body = "{}"},
                                             {.match = "GET /x", .times = 1, .status = 401},
                                             {.match = "GET /x", .body = "{}"},
                                             {.match = "GET /never", .status = 401}};
    struct gs_kube_config config = {.token_file = strdup("token")};
    scratch_text("token", "one");
    fixture_start_with(&f, rules, 4, &config);
    assert_int_equal(fixture_get(&f, "/first"), 200);
    scratch_text("token", "two");
    assert_int_equal(fixture_get(&f, "/x"), 200);
    assert_true(carries(0, "Bearer one\r\n"));
    assert_true(carries(2, "Bearer two\r\n"));
    assert_int_equal(fixture_get(&f, "/never"), 401);
    assert_int_equal(fake_api_count(f.api, "GET /never"), 2); /* once more, not for ever */
    assert_int_equal(fixture_stats(&f).unauthorized, 3);
}

static void a_refused_certificate_is_read_again_too(void **state)
{
    static const struct fake_rule rules[] = {{.match = "", .times = 1, .status = 401},
                                             {.match = "", .body = "{}"}};
    struct gs_kube_config config = {.client_cert.file = strdup("c"),
                                    .client_key.file = strdup("c")};
    scratch_text("c", "x");
    fixture_start_with(&f, rules, 2, &config);
    assert_int_equal(fixture_get(&f, "/x"), 200);
}

static void a_refused_watch_renews_its_token_too(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = IS_LIST, .body = LIST("5", "", "")},
        {.match = IS_WATCH, .times = 1, .stream = ADDED("b", "6")},
        {.match = IS_WATCH, .times = 1, .status = 401},
        {.match = IS_WATCH, .times = 1, .stream = ADDED("b", "7")},
        {.match = IS_WATCH, .times = 2, .status = 401},
        {.match = IS_WATCH, .stream = "", .end = FAKE_STALL}};
    struct gs_kube_config config = {.token_file = strdup("token")};
    scratch_text("token", "one");
    fixture_start_with(&f, rules, GS_COUNT_OF(rules), &config);
    struct watch_recorder *recorder =
        recorder_start(f.kube, &(struct gs_watch_spec){.kind = GS_KIND_POD});
    assert_true(fake_api_wait(f.api, IS_WATCH, 6));
    assert_int_equal(recorder_count(recorder, "lost"), 1); /* not the first time of each */
    assert_int_equal(recorder_stop(recorder), 0);
}

static const struct refused_row {
    const char *row, *server, *token, *token_file, *cert, *key;
    enum gs_code code;
    const char *why;
} refused[] = {
    {"a token that smuggles a header", "http://127.0.0.1:1", .token = "a\r\nX-Evil: 1",
     .code = GS_EAUTH, .why = ""},
    {"a token's file that is missing", "http://127.0.0.1:1", .token_file = "/nowhere/token",
     .code = GS_ENOENT, .why = "/nowhere/token"},
    {"a token's file that is empty", "http://127.0.0.1:1", .token_file = "/dev/null",
     .code = GS_EAUTH, .why = "/dev/null is empty"},
    /* libcurl would ask for a pass phrase that nobody can give it */
    {"PKCS#8, encrypted", "https://127.0.0.1:1", .cert = "c",
     .key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n", .code = GS_EAUTH,
     .why = "is encrypted"},
    {"a traditional key, encrypted", "https://127.0.0.1:1", .cert = "c",
     .key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", .code = GS_EAUTH,
     .why = "is encrypted"},
    {"a certificate, encrypted", "https://127.0.0.1:1",
     .cert = "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n", .key = "k", .code = GS_EAUTH,
     .why = "is encrypted"},
};

static void what_cannot_be_used_is_refused_at_once(void **state)
{
    GS_FOR_EACH_ROW (r, refused) {
        struct gs_kube_config config = {
            .server = copy(r->server),
            .token = copy(r->token),
            .token_file = copy(r->token_file),
            .client_cert = {.data = copy(r->cert), .len = r->cert ? strlen(r->cert) : 0},
            .client_key = {.data = copy(r->key), .len = r->key ? strlen(r->key) : 0}};
        print_message("  %s\n", r->row);
        fixture_refuses(&config, r->code, r->why);
    }
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_token_is_a_bearer),
        IN_A_FOLDER(credentials_do_not_travel_in_the_clear),
        IN_A_FOLDER(a_token_file_that_changed_is_read_again),
        IN_A_FOLDER(a_refused_token_is_read_again_at_once),
        IN_A_FOLDER(a_refused_certificate_is_read_again_too),
        IN_A_FOLDER(a_refused_watch_renews_its_token_too),
        cmocka_unit_test(what_cannot_be_used_is_refused_at_once),
    };
    return GS_RUN(tests);
}
