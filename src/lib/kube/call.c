/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client_private.h"
#include "gpushare/base/backoff.h"
#include "gpushare/codec/status.h"

/* Retries of one call: few and quick, because a user or a scheduler waits. */
enum { THROTTLED_MAX = 4, FAILED_MAX = 3 };
#define RETRY_MIN_NS (50 * GS_NS_PER_MS)
#define RETRY_MAX_NS (2 * GS_NS_PER_S)

/* One call with all its attempts. */
struct call {
    struct gs_kube_client *client;
    struct gs_runner *runner;
    struct gs_exchange exchange;
    uint32_t throttled;
    uint32_t failed;
    bool refused;
};

/* Waits, unless the deadline would pass. */
static bool wait_within(struct call *call, int64_t ns)
{
    if (ns >= call->exchange.deadline_ns - gs_clock_now_ns(call->client->options.clock))
        return false;
    gs_client_wait(call->client, call->runner, ns);
    return !gs_client_stopped(call->client, call->runner);
}

static bool wait_backoff(struct call *call)
{
    return call->failed < FAILED_MAX &&
           wait_within(call, gs_backoff_ns(call->failed++, RETRY_MIN_NS, RETRY_MAX_NS));
}

static bool wait_throttled(struct call *call)
{
    int64_t ns = call->exchange.retry_after_ns;
    int64_t max_ns = call->client->options.retry_after_max_ns;
    if (call->throttled++ >= THROTTLED_MAX)
        return false;
    /* Without Retry-After: one second, which is what API servers send. */
    ns = ns < 0 ? GS_NS_PER_S : ns;
    ns = ns > max_ns ? max_ns : ns;
    return wait_within(call, ns + gs_backoff_ns(0, 1, RETRY_MIN_NS));
}

/* After an answer: whether to retry; waits before it. */
static bool again_after_answer(struct call *call)
{
    bool get = strcmp(call->exchange.request->method, "GET") == 0;
    switch (call->exchange.status) {
    case 401:
        if (call->refused)
            return false;
        call->refused = true;
        return gs_auth_refused(call->client->auth, call->exchange.shown);
    case 429:
        return wait_throttled(call);
    case 500: /* of kubectl proxy: a credential plugin may have failed, which is not to run twice */
        return get && !call->client->config.unix_socket && wait_backoff(call);
    case 502:
    case 503:
    case 504:
        return get && wait_backoff(call);
    default:
        return false;
    }
}

/* Without an answer: retry if nothing was sent, or if the request is idempotent. */
static bool again_after_failure(struct call *call, const struct gs_error *why)
{
    bool get = strcmp(call->exchange.request->method, "GET") == 0;
    return (call->exchange.unsent || (get && why->code == GS_EIO)) && wait_backoff(call);
}

/* A replica whose Lease request waits behind binds would lose its leadership. */
static bool is_lease(const struct call *call)
{
    static const char leases[] = "/apis/coordination.k8s.io/";
    return strncmp(call->exchange.request->path, leases, sizeof(leases) - 1) == 0;
}

/* False: the rate limit would delay it past its deadline. */
static bool wait_for_turn(struct call *call)
{
    struct gs_kube_client *client = call->client;
    int64_t now_ns = gs_clock_now_ns(client->options.clock);
    if (call->runner || is_lease(call))
        return true;
    pthread_mutex_lock(&client->lock);
    int64_t ns = gs_rate_take(&client->rate, now_ns, call->exchange.deadline_ns - now_ns - 1);
    pthread_mutex_unlock(&client->lock);
    return ns == 0 || (ns > 0 && wait_within(call, ns));
}

static int run(struct call *call, struct gs_error *err)
{
    for (bool again = true; again;) {
        struct gs_error why = {0};
        if (gs_client_stopped(call->client, NULL))
            return gs_fail(err, GS_ECANCELED, "stopped");
        if (!wait_for_turn(call))
            return gs_fail(err, GS_EBUSY, "%s: client-side rate limit reached, see --kube-api-qps",
                           call->client->config.server);
        if (gs_exchange_run(call->client, call->runner, &call->exchange, &why) == 0)
            again = again_after_answer(call);
        else if (!again_after_failure(call, &why))
            return gs_fail(err, why.code, "%s", why.msg);
        if (again)
            GS_COUNT(call->client, retries, 1);
    }
    return 0;
}

int gs_call(struct gs_kube_client *client, struct gs_runner *runner,
            const struct gs_kube_request *request, int *ret_status, struct gs_buf *body,
            struct gs_error *err)
{
    int64_t timeout_ns =
        request->timeout_ns > 0 ? request->timeout_ns : client->options.request_timeout_ns;
    int64_t deadline_ns = gs_clock_now_ns(client->options.clock) + timeout_ns;
    if (request->deadline_ns && request->deadline_ns < deadline_ns)
        deadline_ns = request->deadline_ns;
    struct call call = {
        .client = client,
        .runner = runner,
        .exchange = {.request = request, .deadline_ns = deadline_ns, .body = body},
    };
    int result = run(&call, err);
    if (result == 0)
        *ret_status = call.exchange.status;
    return result;
}

int gs_kube_request(struct gs_kube_client *client, const struct gs_kube_request *request,
                    int *ret_status, struct gs_buf *body, struct gs_error *err)
{
    return gs_call(client, NULL, request, ret_status, body, err);
}

static enum gs_code code_of(int status)
{
    switch (status) {
    case 400:
    case 422:
        return GS_EINVAL;
    case 401:
        return GS_EAUTH;
    case 403:
        return GS_EDENIED;
    case 404:
        return GS_ENOENT;
    case 409:
        return GS_ECONFLICT;
    case 410:
        return GS_EGONE;
    case 413:
        return GS_ETOOBIG;
    case 429:
        return GS_EBUSY;
    default:
        return status >= 500 ? GS_EIO : GS_EPROTO;
    }
}

int gs_kube_fail_status(int status, const char *body, size_t len, struct gs_error *err)
{
    struct gs_api_status told;
    if (len > 0 && gs_codec_status((struct gs_slice){body, len}, &told, NULL) == 0 &&
        told.message[0])
        return gs_fail(err, code_of(status), "%s", told.message);
    if (status >= 300 && status < 400)
        return gs_fail(err, GS_EPROTO,
                       "the API server redirects (HTTP %d), and redirects are not followed",
                       status);
    return gs_fail(err, code_of(status), "the API server returned HTTP %d", status);
}
