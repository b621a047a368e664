/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <sys/stat.h>
#include <time.h>

#include "gpushare/base/cleanup.h"

/* Which credentials travel, and how they are renewed. */

static const struct fake_rule anything[] = {{.match = "", .body = "{}"}};

static struct fixture f;
static struct folder folder;
static struct gs_error err;

static int setup(void **state)
{
    f = (struct fixture){0};
    gs_error_clear(&err);
    folder_make(&folder);
    return 0;
}

static int teardown(void **state)
{
    folder_remove(&folder);
    if (f.api)
        fixture_stop(&f);
    return 0;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
              NULL);
}

/* The i-th request carries this header line. */
static bool carries(size_t i, const char *line)
{
    const char *request = fake_api_request(f.api, "", i);
    return request && strstr(request, line) != NULL;
}

static void a_token_is_a_bearer(void **state)
{
    struct gs_kube_config config = {.token = strdup(" secret\n")};
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "\r\nAuthorization: Bearer secret\r\n"));
}

static void a_token_cannot_smuggle_a_header(void **state)
{
    struct gs_kube_client *client = NULL;
    struct gs_kube_config config = {.source = strdup("test"),
                                    .server = strdup("http://127.0.0.1:1"),
                                    .token = strdup("a\r\nX-Evil: 1")};
    assert_int_equal(gs_kube_client_new(&config, &(struct gs_kube_options){0}, &client, &err), -1);
    assert_int_equal(err.code, GS_EAUTH);
}

/* 0.0.0.0 leads to this machine and is no loopback address. */
static void credentials_do_not_travel_in_the_clear(void **state)
{
    struct gs_kube_config config = {.token = strdup("secret")};
    struct fake_api *elsewhere = fake_api_start(anything, 1);
    assert_true(
        asprintf(&config.server, "http://0.0.0.0%s", strrchr(fake_api_url(elsewhere), ':')) > 0);
    fixture_start_with(&f, NULL, 0, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    const char *request = fake_api_request(elsewhere, "GET /x", 0);
    assert_non_null(request);
    assert_null(strstr(request, "Authorization"));
    fake_api_stop(elsewhere);
}

/* As kubectl: what stands in the kubeconfig counts while the file is away. */
static void a_token_stands_in_for_its_missing_file(void **state)
{
    struct gs_kube_config config = {.token = strdup("static"), .token_file = strdup("/no/token")};
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "Bearer static\r\n"));
}

static void a_token_file_that_changed_is_read_again(void **state)
{
    struct gs_kube_config config = {.token = strdup("static"),
                                    .token_file = folder_write(&folder, "token", "one\n", 0600)};
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "Bearer one\r\n"));
    free(folder_write(&folder, "token", "two\n", 0600));
    sleep_ms(1100); /* looked at once a second at most */
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(1, "Bearer two\r\n"));
    folder_remove(&folder); /* what cannot be read any more stays good */
    sleep_ms(1100);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(2, "Bearer two\r\n"));
    assert_int_equal(fake_api_connections(f.api), 1);
}

static void a_refused_token_is_read_again_at_once(void **state)
{
    static const struct fake_rule rules[] = {{.match = "GET /first", .body = "{}"},
                                             {.match = "GET /x", .times = 1, .status = 401},
                                             {.match = "GET /x", .body = "{}"},
                                             {.match = "GET /never", .status = 401}};
    struct gs_kube_config config = {.token_file = folder_write(&folder, "token", "one", 0600)};
    fixture_start_with(&f, rules, 4, &config);
    assert_int_equal(fixture_get(&f, "/first", NULL, &err), 200);
    free(folder_write(&folder, "token", "two", 0600));
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "Bearer one\r\n"));
    assert_true(carries(2, "Bearer two\r\n"));
    assert_int_equal(fixture_get(&f, "/never", NULL, &err), 401);
    assert_int_equal(fake_api_count(f.api, "GET /never"), 2); /* once more, not for ever */
    struct gs_kube_stats stats;
    gs_kube_client_stats(f.client, &stats);
    assert_int_equal(stats.unauthorized, 3);
}

static void a_refused_watch_renews_its_token_too(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "GET /api/v1/pods?limit",
         .body = "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}"},
        {.match = "GET /api/v1/pods?watch", .times = 2, .status = 401},
        {.match = "GET /api/v1/pods?watch", .stream = "", .end = FAKE_STALL}};
    struct gs_kube_config config = {.token_file = folder_write(&folder, "token", "one", 0600)};
    fixture_start_with(&f, rules, 3, &config);
    struct watch_recorder *recorder =
        recorder_start(f.kube, &(struct gs_watch_spec){.kind = GS_KIND_POD});
    assert_true(recorder_wait(recorder, NULL, "live"));
    assert_int_equal(recorder_count(recorder, "lost"), 1); /* not the first time */
    assert_int_equal(recorder_stop(recorder), 0);
}

static void a_file_that_is_missing_from_the_start_is_named(void **state)
{
    struct gs_kube_client *client = NULL;
    struct gs_names names;
    assert_int_equal(gs_names_init(&names, "aliyun.com", &err), 0);
    struct gs_kube_config config = {.source = strdup("test"),
                                    .server = strdup("http://127.0.0.1:1"),
                                    .token_file = strdup("/nowhere/token")};
    assert_int_equal(
        gs_kube_client_new(&config, &(struct gs_kube_options){.names = &names}, &client, &err), -1);
    assert_int_equal(err.code, GS_ENOENT);
    assert_non_null(strstr(err.msg, "/nowhere/token"));
    assert_null(client);
}

static const struct encrypted_row {
    const char *row, *cert, *key;
} encrypted[] = {
    {"PKCS#8", "c", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"},
    {"traditional", "c", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"},
    {"a certificate", "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n", "k"},
};

/* libcurl would ask for a pass phrase that nobody can give it. */
static void encrypted_pem_is_refused_at_once(void **state)
{
    GS_FOR_EACH_ROW (r, encrypted) {
        struct gs_kube_client *client = NULL;
        struct gs_kube_config config = {
            .source = strdup("test"),
            .server = strdup("https://127.0.0.1:1"),
            .client_cert = {.data = strdup(r->cert), .len = strlen(r->cert)},
            .client_key = {.data = strdup(r->key), .len = strlen(r->key)}};
        gs_error_clear(&err);
        row_equal(r->row, gs_kube_client_new(&config, &(struct gs_kube_options){0}, &client, &err),
                  -1);
        row_equal(r->row, err.code, GS_EAUTH);
        row_true(r->row, strstr(err.msg, "is encrypted") != NULL);
        row_true(r->row, config.server == NULL); /* taken */
    }
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_token_is_a_bearer),
        IN_A_FOLDER(a_token_cannot_smuggle_a_header),
        IN_A_FOLDER(credentials_do_not_travel_in_the_clear),
        IN_A_FOLDER(a_token_stands_in_for_its_missing_file),
        IN_A_FOLDER(a_token_file_that_changed_is_read_again),
        IN_A_FOLDER(a_refused_token_is_read_again_at_once),
        IN_A_FOLDER(a_refused_watch_renews_its_token_too),
        IN_A_FOLDER(a_file_that_is_missing_from_the_start_is_named),
        IN_A_FOLDER(encrypted_pem_is_refused_at_once),
    };
    return GS_RUN(tests);
}
