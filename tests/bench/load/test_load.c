/* SPDX-License-Identifier: Apache-2.0 */
/* bench_load against an extender that counts, and answers as the row says. */
#include "rows.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/base/clock.h"
#include "gpushare/http/server.h"

static const char filter_good[] = "{\"NodeNames\":[],\"FailedNodes\":{},\"Error\":\"\"}";
static const char filter_bad[] = "{\"NodeNames\":null,\"FailedNodes\":{},\"Error\":\"no leader\"}";
static const char scores_good[] = "[{\"Host\":\"n\",\"Score\":1}]";

/* Longer than a busy machine keeps anybody waiting. */
enum { SLOW_MS = 4000 };

struct world {
    struct gs_http_server *server;
    char address[64];
    atomic_uint filters, prioritizes;
    unsigned status;   /* of filter */
    const char *text;  /* of filter */
    unsigned slow;     /* so many prioritizes take SLOW_MS */
    uint32_t bad_from; /* from this filter on, status and text count; before it all is well */
};

static void handle_filter(void *ctx, const struct gs_http_request *req,
                          struct gs_http_response *res)
{
    struct world *world = ctx;
    bool bad = atomic_fetch_add(&world->filters, 1) >= world->bad_from;
    res->status = bad ? world->status : 200;
    gs_buf_puts(&res->body, bad ? world->text : filter_good);
}

static void handle_prioritize(void *ctx, const struct gs_http_request *req,
                              struct gs_http_response *res)
{
    struct world *world = ctx;
    if (atomic_fetch_add(&world->prioritizes, 1) < world->slow)
        usleep(SLOW_MS * 1000);
    gs_buf_puts(&res->body, scores_good);
}

static void open_world(struct world *world)
{
    static const struct gs_http_route routes[] = {
        {.method = "POST", .path = "/gpushare-scheduler/filter", .handler = handle_filter},
        {.method = "POST",
         .path = "/gpushare-scheduler/prioritize",
         .handler = handle_prioritize,
         .flags = GS_HTTP_BLOCKING},
    };
    struct gs_http_config config = GS_HTTP_CONFIG_DEFAULTS;
    struct gs_error err = {0};
    config.listen = "127.0.0.1:0";
    config.routes = routes;
    config.route_count = GS_COUNT_OF(routes);
    config.ctx = world;
    config.threads = 1;
    if (gs_http_server_start(&config, &world->server, &err) < 0)
        fail_msg("%s", err.msg);
    snprintf(world->address, sizeof(world->address), "127.0.0.1:%u",
             gs_http_server_port(world->server));
}

static void close_world(struct world *world)
{
    gs_http_server_stop(world->server, GS_NS_PER_S);
    gs_http_server_free(world->server);
}

/* What the program printed, by file descriptor; the exit code. */
static int load(const char *words, const char *address, char *out, size_t out_size, char *errors,
                size_t errors_size)
{
    char line[512], program[] = BENCH_LOAD, *argv[32] = {program};
    char *rest = line;
    int argc = 1, pipes[2][2], status = -1;
    snprintf(line, sizeof(line), "%s%s%s", words, address ? " --extender " : "",
             address ? address : "");
    for (char *word; (word = strsep(&rest, " "));) {
        if (*word)
            argv[argc++] = word;
    }
    assert_true(pipe2(pipes[0], O_CLOEXEC) == 0 && pipe2(pipes[1], O_CLOEXEC) == 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[0][1], STDOUT_FILENO);
        dup2(pipes[1][1], STDERR_FILENO);
        execv(program, argv);
        _exit(127);
    }
    const struct {
        char *to;
        size_t size;
    } texts[] = {{out, out_size}, {errors, errors_size}};
    for (int i = 0; i < 2; i++) {
        size_t len = 0;
        close(pipes[i][1]);
        for (ssize_t got; len + 1 < texts[i].size && (got = read(pipes[i][0], texts[i].to + len,
                                                                 texts[i].size - len - 1)) > 0;)
            len += (size_t)got;
        texts[i].to[len] = '\0';
        close(pipes[i][0]);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void wrong_options_are_bad_usage(void **state)
{
    static const struct {
        const char *row;
        const char *words;
        int code;
        const char *why;
    } rows[] = {
        {"without an end", "--duration 0", 2, "--duration 0 needs --requests"},
        {"unknown verb", "--verb filter,dance", 2, "verb"},
        {"rate is no number", "--rate fast", 2, "rate"},
        {"nobody there", "--extender 127.0.0.1:1 --requests 3 --warmup 0", 1, "no answer"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char out[4096], errors[4096];
        row_equal(r->row, load(r->words, NULL, out, sizeof(out), errors, sizeof(errors)), r->code);
        if (!strstr(errors, r->why))
            print_error("%s: %s", r->row, errors);
        row_true(r->row, strstr(errors, r->why) != NULL);
    }
}

static json_int_t number(const json_t *report, const char *verb, const char *key)
{
    const json_t *of = verb ? json_object_get(json_object_get(report, "verbs"), verb) : report;
    return json_integer_value(json_object_get(of, key));
}

static void requests_are_counted_once_each(void **state)
{
    static const struct {
        const char *row;
        const char *words;
        unsigned filters, prioritizes; /* what the extender saw */
        unsigned counted;              /* of filter, in the report */
    } rows[] = {
        {"one client", "--requests 50 --warmup 0", 50, 0, 50},
        {"the first do not count", "--requests 50 --warmup 20", 50, 0, 30},
        {"two verbs in turn", "--requests 60 --verb filter,prioritize --warmup 0", 30, 30, 30},
        {"whole nodes", "--requests 5 --names 10 --node-bytes 800 --warmup 0", 5, 0, 5},
        {"at a rate", "--requests 40 --rate 400 --warmup 0", 40, 0, 40},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct world world = {.bad_from = UINT32_MAX};
        char words[256], out[4096], errors[4096];
        open_world(&world);
        snprintf(words, sizeof(words), "--names 10 --duration 0 %s", r->words);
        int code = load(words, world.address, out, sizeof(out), errors, sizeof(errors));
        close_world(&world);
        row_text(r->row, errors, "");
        row_equal(r->row, code, 0);
        row_equal(r->row, atomic_load(&world.filters), r->filters);
        row_equal(r->row, atomic_load(&world.prioritizes), r->prioritizes);
        json_t *report = json_loads(out, 0, NULL);
        row_true(r->row, report != NULL);
        row_equal(r->row, number(report, "filter", "count"), r->counted);
        row_equal(r->row, number(report, NULL, "errors"), 0);
        json_decref(report);
    }
}

/* As long as a client is free, nobody's slow answer makes another request late. */
static void an_open_loop_is_late_only_when_all_clients_wait(void **state)
{
    static const struct {
        const char *row;
        unsigned slow;
        bool late;
    } rows[] = {{"one of two", 1, false}, {"both", 2, true}};
    GS_FOR_EACH_ROW (r, rows) {
        struct world world = {.slow = r->slow, .bad_from = UINT32_MAX};
        char out[4096], errors[4096];
        open_world(&world);
        int code = load("--names 10 --verb filter,prioritize --clients 2 --rate 40 "
                        "--requests 60 --duration 0 --warmup 0",
                        world.address, out, sizeof(out), errors, sizeof(errors));
        close_world(&world);
        row_equal(r->row, code, 0);
        json_t *report = json_loads(out, 0, NULL);
        row_true(r->row, report != NULL);
        double most = json_number_value(
            json_object_get(json_object_get(json_object_get(report, "verbs"), "filter"), "max_ms"));
        row_equal(r->row, most > SLOW_MS / 2.0, r->late);
        json_decref(report);
    }
}

static void bad_answers_are_counted_and_told(void **state)
{
    static const struct {
        const char *row;
        unsigned status;
        const char *text;
        uint32_t bad_from;
        unsigned errors;
        const char *told;
    } rows[] = {
        {"all well", 200, filter_good, 0, 0, ""},
        {"an Error in the answer", 200, filter_bad, 0, 10, "no leader"},
        {"another answer", 200, "{}", 0, 10, "filter: answer ends in"},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct world world = {.status = r->status, .text = r->text, .bad_from = r->bad_from};
        char out[4096], errors[4096];
        open_world(&world);
        int code = load("--names 10 --requests 10 --duration 0 --warmup 0", world.address, out,
                        sizeof(out), errors, sizeof(errors));
        close_world(&world);
        row_equal(r->row, code, r->errors ? 1 : 0);
        row_true(r->row, strstr(errors, r->told) != NULL);
        json_t *report = json_loads(out, 0, NULL);
        row_true(r->row, report != NULL);
        row_equal(r->row, number(report, NULL, "errors"), r->errors);
        row_equal(r->row, number(report, "filter", "errors"), r->errors);
        json_decref(report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_bad_usage),
        cmocka_unit_test(requests_are_counted_once_each),
        cmocka_unit_test(an_open_loop_is_late_only_when_all_clients_wait),
        cmocka_unit_test(bad_answers_are_counted_and_told),
    };
    return GS_RUN(tests);
}
