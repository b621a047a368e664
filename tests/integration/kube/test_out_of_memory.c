/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <curl/curl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_fail.h"

/*
 * Every allocation of the client and of libcurl fails once: an error or a right answer, nothing
 * lost (sanitizers look), and the client works afterwards. The server lives in a process of its
 * own, so that only the client goes short.
 */

#define TOKEN_CONFIG                                                                               \
    "current-context: c\ncontexts:\n- {name: c, context: {cluster: k, user: u}}\n"                 \
    "clusters:\n- name: k\n  cluster: {server: \"%s\"}\n"                                          \
    "users:\n- name: u\n  user: {token: t}\n"

static pid_t server;
static char url[64];

static int start_server(void **state)
{
    static const struct fake_rule rules[] = {
        {.match = "GET /api/v1/pods?limit",
         .contains = "continue",
         .body =
             "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"metadata\":{\"name\":\"b\"}}"
             "]}"},
        {.match = "GET /api/v1/pods?limit",
         .body = "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[{"
                 "\"metadata\":{\"name\":\"a\"}}]}"},
        {.match = "GET /api/v1/pods?watch",
         .stream =
             "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\",\"resourceVersion\":"
             "\"6\"}}}\n",
         .end = FAKE_STALL},
        {.match = "", .body = "{\"metadata\":{\"name\":\"p\"}}"}};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct fake_api *api = fake_api_start(rules, GS_COUNT_OF(rules));
        const char *own = fake_api_url(api);
        if (write(fds[1], own, strlen(own) + 1) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_true(read(fds[0], url, sizeof(url)) > 0);
    close(fds[0]);
    close(fds[1]);
    /* libcurl's own allocations fail with ours. */
    assert_int_equal(
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, free, realloc, strdup, calloc), 0);
    return 0;
}

static int stop_server(void **state)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    curl_global_cleanup();
    return 0;
}

static int count_pods(void *ctx, const struct gs_pod *pod)
{
    ++*(unsigned *)ctx;
    return 0;
}

static int open_client(const struct gs_names *names, struct gs_kube_client **ret,
                       struct gs_error *err)
{
    char text[512];
    snprintf(text, sizeof(text), TOKEN_CONFIG, url);
    struct gs_kube_config config = {0};
    const struct gs_kube_options options = {.program = "oom",
                                            .names = names,
                                            .request_timeout_ns = 2 * GS_NS_PER_S,
                                            .backoff_min_ns = GS_NS_PER_MS,
                                            .backoff_max_ns = 5 * GS_NS_PER_MS};
    if (gs_kube_config_parse(text, strlen(text), "/d/f", &config, err) < 0)
        return -1;
    return gs_kube_client_new(&config, &options, ret, err);
}

/* A write, a read and a list, each of which may fail alone. Returns how many did. */
static unsigned use_client(struct gs_kube_client *client)
{
    struct gs_kube kube = gs_kube_client_port(client);
    struct gs_error err = {0};
    struct gs_kv note = {"k", "v"};
    struct gs_binding binding = {.ns = "d",
                                 .name = "p",
                                 .uid = "u",
                                 .node = "n",
                                 .annotations = &note,
                                 .annotation_count = 1};
    struct gs_pod pod = {0};
    unsigned failures = 0, seen = 0;
    if (kube.ops->bind(kube.ctx, &binding, &err) < 0)
        failures += err.code != GS_OK;
    gs_error_clear(&err);
    if (kube.ops->get_pod(kube.ctx, "d", "p", &pod, &err) < 0)
        failures += err.code != GS_OK;
    else
        assert_string_equal(pod.name, "p");
    gs_error_clear(&err);
    if (kube.ops->list_pods(kube.ctx, NULL, GS_NS_PER_S, count_pods, &seen, &err) < 0)
        failures += err.code != GS_OK;
    else
        assert_int_equal(seen, 2);
    gs_pod_release(&pod);
    return failures;
}

static void every_allocation_of_a_request_may_fail(void **state)
{
    struct gs_names names;
    struct gs_error err = {0};
    assert_int_equal(gs_names_init(&names, "aliyun.com", &err), 0);
    unsigned opened = 0, n = 1;
    for (bool happened = true; happened; n++) {
        struct gs_kube_client *client = NULL;
        unsigned failures = 0;
        gs_error_clear(&err);
        alloc_fail_begin(n);
        int result = open_client(&names, &client, &err);
        if (result == 0)
            failures = use_client(client);
        happened = alloc_fail_end();
        if (result < 0) {
            assert_int_equal(err.code, GS_ENOMEM);
            continue;
        }
        opened++;
        assert_in_range(failures, 0, 1);         /* one allocation spoils one operation */
        assert_int_equal(use_client(client), 0); /* and nothing after it */
        gs_kube_client_free(client);
    }
    assert_in_range(n, 60, 5000);
    assert_in_range(opened, 20, n);
}

struct follower {
    struct gs_kube kube;
    atomic_bool stop, list_wanted;
    unsigned pods;
};

static int on_pod(void *ctx, const struct gs_pod *pod)
{
    struct follower *follower = ctx;
    follower->pods++;
    if (strcmp(pod->name, "c") == 0) {
        atomic_store(&follower->stop, true); /* the stream's own pod: all that can be seen */
        follower->kube.ops->wake(follower->kube.ctx);
    }
    return 0;
}

static int on_mark(void *ctx, enum gs_kind kind)
{
    return 0;
}

/* It lists at once: the pause after a failure is no matter of memory. */
static void on_live(void *ctx, enum gs_kind kind, bool live, const char *why)
{
    atomic_store(&((struct follower *)ctx)->list_wanted, !live);
}

static void a_watch_outlives_every_allocation_that_fails(void **state)
{
    struct gs_names names;
    struct gs_error err = {0};
    struct gs_kube_client *client = NULL;
    assert_int_equal(gs_names_init(&names, "aliyun.com", &err), 0);
    assert_int_equal(open_client(&names, &client, &err), 0);
    unsigned n = 1, refused = 0;
    for (bool happened = true; happened; n++) {
        struct follower follower = {.kube = gs_kube_client_port(client)};
        struct gs_watch_sink sink = {.ctx = &follower,
                                     .list_begin = on_mark,
                                     .list_end = on_mark,
                                     .pod = on_pod,
                                     .pod_gone = on_pod,
                                     .live = on_live};
        const struct gs_watch_spec spec = {.kind = GS_KIND_POD,
                                           .list_wanted = &follower.list_wanted};
        gs_error_clear(&err);
        alloc_fail_begin(n);
        int result =
            follower.kube.ops->watch(follower.kube.ctx, &spec, &sink, &follower.stop, &err);
        happened = alloc_fail_end();
        if (result < 0) {
            assert_int_equal(err.code, GS_ENOMEM); /* before it began */
            refused++;
        } else {
            assert_true(follower.pods >= 3);
        }
    }
    assert_in_range(n, 30, 5000);
    assert_in_range(refused, 1, n / 2);
    gs_kube_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_request_may_fail),
        cmocka_unit_test(a_watch_outlives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
