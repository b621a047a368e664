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

static void a_user_name_is_basic(void **state)
{
    struct gs_kube_config config = {.username = strdup("Aladdin"),
                                    .password = strdup("open sesame")};
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
}

static void a_token_cannot_smuggle_a_header(void **state)
{
    struct gs_kube_config config = {.token = strdup("a\r\nX-Evil: 1")};
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 0);
    assert_int_equal(err.code, GS_EAUTH);
    assert_int_equal(fake_api_count(f.api, ""), 0);
}

static void nothing_travels_in_the_clear(const char *server, struct gs_kube_config *config)
{
    /* The fake server stands for a proxy here: it sees what would go to the other host. */
    struct fixture own = {0};
    struct fake_api *proxy = fake_api_start(anything, 1);
    config->server = strdup(server);
    config->proxy_url = strdup(fake_api_url(proxy));
    fixture_start_with(&own, NULL, 0, config);
    assert_int_equal(fixture_get(&own, "/x", NULL, &err), 200);
    const char *request = fake_api_request(proxy, "GET http://", 0);
    assert_non_null(request);
    assert_non_null(strstr(request, server));
    assert_null(strstr(request, "Authorization"));
    fixture_stop(&own);
    fake_api_stop(proxy);
}

static void credentials_do_not_travel_in_the_clear(void **state)
{
    /* the last two are this machine's, but the proxy may be anywhere */
    static const char *const servers[] = {"http://kubernetes.test:8080", "http://127.0.0.1:8080",
                                          "http://localhost:8080"};
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
        print_message("  %s\n", servers[i]);
        nothing_travels_in_the_clear(servers[i],
                                     &(struct gs_kube_config){.token = strdup("secret")});
        nothing_travels_in_the_clear(
            servers[i], &(struct gs_kube_config){.username = strdup("n"), .password = strdup("p")});
    }
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
    gs_kube_config_release(&config);
}

/* ---- credential plugins ---- */

/* A plugin that counts its runs in FOLDER/runs and prints `answer` with $N replaced by the count.
 */
static struct gs_kube_config plugin_config(const char *script)
{
    struct gs_kube_exec *exec = calloc(1, sizeof(*exec));
    assert_non_null(exec);
    exec->command = folder_write(&folder, "plugin", script, 0700);
    exec->args = calloc(2, sizeof(char *));
    exec->args[0] = strdup("argument one");
    exec->env = calloc(2, sizeof(char *));
    assert_true(asprintf(&exec->env[0], "DIR=%s", folder.path) > 0);
    exec->api_version = strdup("client.authentication.k8s.io/v1");
    exec->install_hint = strdup("");
    exec->interactive = GS_KUBE_INTERACTIVE_NEVER;
    return (struct gs_kube_config){.exec = exec};
}

#define COUNT_RUNS                                                                                 \
    "#!/bin/sh\n"                                                                                  \
    "echo run >> \"$DIR/runs\"\n"                                                                  \
    "N=$(wc -l < \"$DIR/runs\" | tr -d ' ')\n"
#define CREDENTIAL(status)                                                                         \
    "cat <<END\n"                                                                                  \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","             \
    "\"status\":{" status "}}\nEND\n"

static void a_plugin_is_asked_once_while_its_answer_is_good(void **state)
{
    struct gs_kube_config config = plugin_config(COUNT_RUNS CREDENTIAL(
        "\"token\":\"t$N\",\"expirationTimestamp\":\"2200-01-01T00:00:00Z\""));
    fixture_start_with(&f, anything, 1, &config);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "Bearer t1\r\n"));
    assert_true(carries(2, "Bearer t1\r\n"));
}

/* Or one that expires before the request may be there. */
static void an_expired_answer_makes_the_plugin_run_again(void **state)
{
    struct gs_kube_config config = plugin_config(COUNT_RUNS CREDENTIAL(
        "\"token\":\"t$N\",\"expirationTimestamp\":\"$(date -ud '+4 sec' +%FT%TZ)\""));
    fixture_start_with(&f, anything, 1, &config);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "Bearer t1\r\n"));
    assert_true(carries(1, "Bearer t2\r\n"));
}

static void a_refused_answer_makes_the_plugin_run_again(void **state)
{
    static const struct fake_rule rules[] = {{.match = "", .times = 1, .status = 401},
                                             {.match = "", .body = "{}"}};
    struct gs_kube_config config = plugin_config(COUNT_RUNS CREDENTIAL("\"token\":\"t$N\""));
    fixture_start_with(&f, rules, 2, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    assert_true(carries(0, "Bearer t1\r\n"));
    assert_true(carries(1, "Bearer t2\r\n"));
}

static void a_plugin_sees_arguments_environment_and_input(void **state)
{
    struct gs_kube_config config =
        plugin_config("#!/bin/sh\n"
                      "printf '%s|%s|%s|%s' \"$1\" \"$KUBERNETES_EXEC_INFO\" \"$DI\" \"$(ls "
                      "/proc/self/fd | wc -l)\" "
                      "> \"$DIR/seen\"\n" CREDENTIAL("\"token\":\"t\""));
    config.exec->provide_cluster_info = true;
    assert_int_equal(setenv("DI", "own", 1), 0); /* not DIR, which is set for it */
    config.exec->cluster_config = strdup("{\"audience\":\"x\"}");
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 200);
    char path[128], seen[1024] = "";
    snprintf(path, sizeof(path), "%s/seen", folder.path);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(seen, 1, sizeof(seen) - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(seen, "argument one|{\"kind\":\"ExecCredential\",\"apiVersion\":"
                                 "\"client.authentication.k8s.io/v1\",\"spec\":{"
                                 "\"interactive\":false,\"cluster\":{\"server\":"));
    assert_non_null(strstr(seen, ",\"config\":{\"audience\":\"x\"}}}}|own|"));
}

static const struct plugin_row {
    const char *row;
    const char *script;
    enum gs_code code;
    const char *words;
} broken_plugins[] = {
    {"fails", "#!/bin/sh\nexit 3\n", GS_EAUTH, "failed with exit status 3"},
    {"is killed", "#!/bin/sh\nkill -9 $$\n", GS_EAUTH, "was ended by signal 9"},
    {"says nothing", "#!/bin/sh\n", GS_EAUTH, "its output is no JSON"},
    {"says nonsense", "#!/bin/sh\necho '{\"kind\":\"Pod\"}'\n", GS_EAUTH,
     "its output is no ExecCredential"},
    {"sleeps", "#!/bin/sh\nsleep 60\n", GS_ETIMEOUT, "did not finish in time"},
    {"closes its output and sleeps", "#!/bin/sh\nexec >&-\nsleep 60\n", GS_ETIMEOUT,
     "did not finish in time"},
    {"never stops talking", "#!/bin/sh\nexec cat /dev/zero\n", GS_EAUTH, "printed more than"},
    {"is no program", "not a program\n", GS_EAUTH, "plugin"},
};

static void a_broken_plugin_is_told_as_such(void **state)
{
    GS_FOR_EACH_ROW (r, broken_plugins) {
        teardown(NULL);
        setup(NULL);
        struct gs_kube_config config = plugin_config(r->script);
        fixture_start_with(&f, anything, 1, &config);
        row_equal(r->row, fixture_get(&f, "/x", NULL, &err), 0);
        row_text(r->row, gs_code_name(err.code), gs_code_name(r->code));
        if (!strstr(err.msg, r->words))
            row_text(r->row, err.msg, r->words);
        row_equal(r->row, fake_api_count(f.api, "GET /x"), 0);
    }
}

/* The lease that a bind is sent under may be another's by then. */
static void nothing_is_sent_when_the_plugin_took_all_the_time(void **state)
{
    struct gs_kube_config config =
        plugin_config("#!/bin/sh\nsleep 0.5\n" CREDENTIAL("\"token\":\"t\""));
    fixture_start_with(&f, anything, 1, &config);
    fixture_bind_runs_out(&f);
    assert_int_equal(fake_api_count(f.api, ""), 0);
}

static void a_plugin_that_does_not_exist_comes_with_its_hint(void **state)
{
    struct gs_kube_config config = plugin_config("");
    free(config.exec->command);
    free(config.exec->install_hint);
    config.exec->command = strdup("gpushare-no-such-plugin");
    config.exec->install_hint = strdup("install it with pip");
    fixture_start_with(&f, anything, 1, &config);
    assert_int_equal(fixture_get(&f, "/x", NULL, &err), 0);
    assert_int_equal(err.code, GS_EAUTH);
    assert_non_null(strstr(err.msg, "install it with pip"));
    assert_non_null(strstr(err.msg, "gpushare-no-such-plugin"));
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_token_is_a_bearer),
        IN_A_FOLDER(a_user_name_is_basic),
        IN_A_FOLDER(a_token_cannot_smuggle_a_header),
        IN_A_FOLDER(credentials_do_not_travel_in_the_clear),
        IN_A_FOLDER(a_token_file_that_changed_is_read_again),
        IN_A_FOLDER(a_refused_token_is_read_again_at_once),
        IN_A_FOLDER(a_refused_watch_renews_its_token_too),
        IN_A_FOLDER(a_file_that_is_missing_from_the_start_is_named),
        IN_A_FOLDER(a_plugin_is_asked_once_while_its_answer_is_good),
        IN_A_FOLDER(an_expired_answer_makes_the_plugin_run_again),
        IN_A_FOLDER(a_refused_answer_makes_the_plugin_run_again),
        IN_A_FOLDER(a_plugin_sees_arguments_environment_and_input),
        IN_A_FOLDER(a_broken_plugin_is_told_as_such),
        IN_A_FOLDER(nothing_is_sent_when_the_plugin_took_all_the_time),
        IN_A_FOLDER(a_plugin_that_does_not_exist_comes_with_its_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
