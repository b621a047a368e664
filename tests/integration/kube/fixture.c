/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <time.h>

const struct fake_rule anything[1] = {{.match = "", .body = "{}"}};

_Atomic int64_t slept_ns;

static int64_t now_and_slept(void *ctx)
{
    return gs_clock_now_ns(gs_clock_system()) + slept_ns;
}

static void add_sleep(void *ctx, int64_t ns)
{
    slept_ns += ns;
}

const struct gs_clock sleepless = {
    .monotonic_ns = now_and_slept, .wall_ns = now_and_slept, .sleep = add_sleep};

void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * GS_NS_PER_MS}, NULL);
}

/* Quick ones. */
static struct gs_kube_options options_of(const struct fixture *f)
{
    int64_t patience_ns = f->patience_ns ? f->patience_ns : 2 * GS_NS_PER_S;
    return (struct gs_kube_options){
        .program = "test",
        .names = &f->names,
        .connect_timeout_ns = patience_ns,
        .request_timeout_ns = patience_ns,
        .list_timeout_ns = f->patience_ns ? f->patience_ns : 3 * GS_NS_PER_S,
        .retry_after_max_ns = f->retry_after_max_ns ? f->retry_after_max_ns : 400 * GS_NS_PER_MS,
        .object_max_bytes = 64 << 10,
        .page_limit = 100,
        .clock = f->clock,
        .backoff_min_ns = f->backoff_ns ? f->backoff_ns : 20 * GS_NS_PER_MS,
        .backoff_max_ns = f->backoff_ns ? f->backoff_ns : 200 * GS_NS_PER_MS,
        .stall_timeout_ns = f->stall_ns ? f->stall_ns : 60 * GS_NS_PER_S,
        .qps = f->qps,
        .burst = f->burst,
    };
}

void fixture_start_with(struct fixture *f, const struct fake_rule *rules, size_t count,
                        struct gs_kube_config *config)
{
    struct gs_error err = {0};
    assert_int_equal(gs_names_init(&f->names, "aliyun.com", &err), 0);
    f->api = fake_api_start(rules, count);
    f->body = GS_BUF(64 << 10);
    slept_ns = 0;
    if (!config->server)
        config->server = strdup(fake_api_url(f->api));
    if (!config->source)
        config->source = strdup("test");
    struct gs_kube_options options = options_of(f);
    if (gs_kube_client_new(config, &options, &f->client, &err) < 0)
        fail_msg("%s", err.msg);
    f->kube = gs_kube_client_port(f->client);
}

void fixture_start(struct fixture *f, const struct fake_rule *rules, size_t count)
{
    fixture_start_with(f, rules, count, &(struct gs_kube_config){0});
}

void fixture_refuses(struct gs_kube_config *config, enum gs_code code, const char *why)
{
    struct gs_kube_client *client = NULL;
    struct gs_error err = {0};
    struct fixture f = {0};
    assert_int_equal(gs_names_init(&f.names, "aliyun.com", &err), 0);
    config->source = strdup("test");
    const struct gs_kube_options options = options_of(&f);
    assert_int_equal(gs_kube_client_new(config, &options, &client, &err), -1);
    assert_int_equal(err.code, code);
    assert_non_null(strstr(err.msg, why));
    assert_null(client);
    assert_null(config->server); /* taken */
}

void fixture_stop(struct fixture *f)
{
    gs_kube_client_free(f->client);
    fake_api_stop(f->api);
    gs_buf_release(&f->body);
}

int fixture_send(struct fixture *f, const struct gs_kube_request *request)
{
    int status = 0;
    gs_error_clear(&f->err);
    int result = gs_kube_request(f->client, request, &status, &f->body, &f->err);
    assert_int_equal(result, status ? 0 : -1);
    return status;
}

int fixture_get(struct fixture *f, const char *path)
{
    return fixture_send(f, &(struct gs_kube_request){.method = "GET", .path = path});
}

int fixture_bind(struct fixture *f, int64_t within_ns, bool *ret_answered)
{
    const struct gs_binding binding = {
        .ns = "d",
        .name = "p",
        .uid = "u",
        .node = "n",
        .deadline_ns = within_ns ? gs_clock_now_ns(gs_clock_system()) + within_ns : 0,
        .ret_answered = ret_answered};
    gs_error_clear(&f->err);
    return f->kube.ops->bind(f->kube.ctx, &binding, &f->err);
}

struct gs_kube_stats fixture_stats(const struct fixture *f)
{
    struct gs_kube_stats stats;
    gs_kube_client_stats(f->client, &stats);
    return stats;
}
