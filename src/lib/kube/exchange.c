/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "client_private.h"

enum { TOKEN_BYTES_MAX = 128 << 10 };

static enum gs_code code_of_curl(CURLcode code)
{
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return GS_ENOMEM;
    case CURLE_OPERATION_TIMEDOUT:
        return GS_ETIMEOUT;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return GS_EPROTO;
    default:
        return GS_EIO;
    }
}

/* Hints for failures that an operator has to fix. */
static const char *advice_for(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return " (check certificate-authority and tls-server-name in the kubeconfig)";
    case CURLE_SSL_CERTPROBLEM:
        return " (check client-certificate and client-key in the kubeconfig)";
    case CURLE_SSL_CACERT_BADFILE:
        return " (certificate-authority is not a PEM certificate)";
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return " (is the API server running, and is its address right?)";
    default:
        return "";
    }
}

static long status_of(CURL *easy)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct gs_exchange *exchange = ctx;
    size_t len = size * count;
    exchange->heard_ns = gs_clock_now_ns(exchange->client->options.clock);
    exchange->bytes += len;
    if (exchange->lines && status_of(exchange->easy) == 200)
        return gs_lines_feed(exchange->lines, bytes, len, exchange->line, exchange->ctx,
                             &exchange->error) < 0
                   ? 0
                   : len;
    gs_buf_append(exchange->body, bytes, len);
    exchange->enough = exchange->request->first_bytes && status_of(exchange->easy) == 200;
    if (!gs_buf_failed(exchange->body))
        return exchange->enough ? 0 : len;
    if (gs_buf_failed(exchange->body) == GS_ETOOBIG)
        gs_fail(&exchange->error, GS_ETOOBIG, "the response is larger than %zu bytes",
                exchange->body->max);
    else
        gs_fail_nomem(&exchange->error);
    return 0;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct gs_exchange *exchange = ctx;
    size_t len = size * count;
    exchange->heard_ns = gs_clock_now_ns(exchange->client->options.clock);
    bool end_of_head = len == 2 && line[0] == '\r' && status_of(exchange->easy) >= 200;
    if (!end_of_head)
        return len;
    exchange->headed = true;
    if (exchange->answered && status_of(exchange->easy) == 200)
        exchange->answered(exchange->ctx);
    return len;
}

/* -1: the deadline has passed; GS_EBUSY if nothing was sent. */
static int check_deadline(struct gs_exchange *exchange)
{
    const struct gs_kube_client *client = exchange->client;
    if (!exchange->deadline_ns || gs_clock_now_ns(client->options.clock) < exchange->deadline_ns)
        return 0;
    return gs_fail(&exchange->error, exchange->sent ? GS_ETIMEOUT : GS_EBUSY, "%s: %s in time",
                   client->config.server, exchange->sent ? "no response" : "cannot connect");
}

/* Curl calls it once a second at least. Other than 0 ends the request. */
static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                       curl_off_t up)
{
    struct gs_exchange *exchange = ctx;
    if (gs_client_stopped(exchange->client, NULL))
        return gs_fail(&exchange->error, GS_ECANCELED, "stopped");
    return check_deadline(exchange);
}

/* Right before the request goes out, also when curl sends it again on another connection. Curl's
 * own timeout stands still while the machine sleeps; our clock does not. */
static int on_connected(void *ctx, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct gs_exchange *exchange = ctx;
    if (check_deadline(exchange) < 0)
        return CURL_PREREQFUNC_ABORT;
    exchange->sent = true;
    return CURL_PREREQFUNC_OK;
}

/* Whether credentials may be sent on this connection. */
static bool may_show_credentials(const struct gs_kube_client *client)
{
    return client->url.tls || client->url.loopback;
}

static void add_header(struct curl_slist **list, bool *ok, const char *name, const char *value)
{
    _cleanup_(gs_buf_wipe) struct gs_buf line = GS_BUF(TOKEN_BYTES_MAX + 64);
    gs_buf_printf(&line, "%s%s", name, value);
    struct curl_slist *longer = gs_buf_failed(&line) ? NULL : curl_slist_append(*list, line.data);
    if (longer)
        *list = longer;
    else
        *ok = false;
}

/* NULL when out of memory. */
static struct curl_slist *build_headers(const struct gs_kube_client *client,
                                        const struct gs_kube_request *request, const char *token)
{
    struct curl_slist *list = NULL;
    bool ok = true;
    add_header(&list, &ok, "Accept: application/json", "");
    /* Without this curl waits for "100 Continue" before it sends a large body. */
    add_header(&list, &ok, "Expect:", "");
    if (request->body)
        add_header(&list, &ok, "Content-Type: ",
                   request->content_type ? request->content_type : "application/json");
    if (client->host_header)
        add_header(&list, &ok, "Host: ", client->host_header);
    if (token && may_show_credentials(client))
        add_header(&list, &ok, "Authorization: Bearer ", token);
    if (ok)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

/* Path and query are set as the request target: from a URL, libcurl 7.88 silently drops the query
 * when memory is short. */
static int set_url(const struct gs_kube_client *client, CURL *easy,
                   const struct gs_kube_request *request, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf target = GS_BUF(64 << 10);
    gs_buf_puts(&target, client->url.prefix);
    gs_buf_puts(&target, request->path);
    if (request->query && request->query[0])
        gs_buf_printf(&target, "?%s", request->query);
    if (gs_buf_failed(&target) == GS_ETOOBIG)
        return gs_fail(err, GS_EINVAL, "the address is longer than %zu bytes", target.max);
    if (gs_buf_failed(&target))
        return gs_fail_nomem(err);
    if (curl_easy_setopt(easy, CURLOPT_URL, client->base) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, target.data) != CURLE_OK)
        return gs_fail_nomem(err);
    return 0;
}

static int set_request(const struct gs_kube_client *client, CURL *easy,
                       const struct gs_exchange *exchange, struct gs_error *err)
{
    const struct gs_kube_request *request = exchange->request;
    bool get = strcmp(request->method, "GET") == 0;
    if (request->body || (!get && strcmp(request->method, "DELETE") != 0)) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body ? request->body : "");
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    long timeout_ms = 0;
    if (exchange->deadline_ns) {
        int64_t left_ns = exchange->deadline_ns - gs_clock_now_ns(client->options.clock);
        /* at least 1 ms; if no time is left, on_connected() fails */
        timeout_ms = left_ns > 0 ? (long)(left_ns / GS_NS_PER_MS) + 1 : 1;
    }
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    /* The only option here that allocates; without it a PATCH would be sent as a POST. */
    if (curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) != CURLE_OK)
        return gs_fail_nomem(err);
    return set_url(client, easy, request, err);
}

/* Runs the handle on the runner's multi handle, which wake() can wake. */
static CURLcode perform_on(const struct gs_runner *runner, struct gs_exchange *exchange)
{
    const struct gs_clock *clock = exchange->client->options.clock;
    CURLcode code = CURLE_OK;
    CURLMcode multi_code = curl_multi_add_handle(runner->multi, exchange->easy);
    for (bool done = multi_code != CURLM_OK; !done;) {
        int running, left;
        multi_code = curl_multi_perform(runner->multi, &running);
        CURLMsg *message = curl_multi_info_read(runner->multi, &left);
        if (message && message->msg == CURLMSG_DONE) {
            code = message->data.result;
            break;
        }
        int64_t limit_ns = exchange->headed ? exchange->stall_ns : exchange->head_ns;
        int64_t quiet_ns = gs_clock_now_ns(clock) - exchange->heard_ns;
        if (gs_runner_stopped(runner)) {
            gs_fail(&exchange->error, GS_ECANCELED, "stopped");
        } else if (gs_runner_list_wanted(runner)) {
            gs_fail(&exchange->error, GS_ECANCELED, "a list is wanted");
        } else if (limit_ns > 0 && quiet_ns >= limit_ns) {
            gs_fail(&exchange->error, GS_ETIMEOUT, "nothing received for %lld s",
                    (long long)(quiet_ns / GS_NS_PER_S));
        }
        done = exchange->error.code != GS_OK || multi_code != CURLM_OK;
        int64_t wait_ns = limit_ns > 0 ? limit_ns - quiet_ns : GS_NS_PER_S;
        wait_ns = wait_ns < 0 ? 0 : wait_ns > GS_NS_PER_S ? GS_NS_PER_S : wait_ns;
        if (!done)
            curl_multi_poll(runner->multi, NULL, 0, (int)(wait_ns / GS_NS_PER_MS) + 1, NULL);
    }
    curl_multi_remove_handle(runner->multi, exchange->easy);
    if (multi_code != CURLM_OK)
        gs_fail(&exchange->error, multi_code == CURLM_OUT_OF_MEMORY ? GS_ENOMEM : GS_EIO, "%s",
                curl_multi_strerror(multi_code));
    return code;
}

static int finish(struct gs_connection *connection, struct gs_exchange *exchange, CURLcode code,
                  struct gs_error *err)
{
    struct gs_kube_client *client = exchange->client;
    struct curl_header *header;
    curl_off_t retry_after_s = 0;
    exchange->status = (int)status_of(connection->easy);
    GS_COUNT(client, bytes_received, exchange->bytes);
    if (exchange->error.code != GS_OK || (code != CURLE_OK && !exchange->enough)) {
        GS_COUNT(client, failed, 1);
        exchange->status = 0;
        exchange->unsent = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
        if (exchange->error.code == GS_ETOOBIG)
            GS_COUNT(client, oversized, 1);
        if (exchange->error.code != GS_OK)
            return gs_fail(err, exchange->error.code, "%s", exchange->error.msg);
        return gs_fail(err, code_of_curl(code), "%s: %.150s%s", client->config.server,
                       connection->error[0] ? connection->error : curl_easy_strerror(code),
                       advice_for(code));
    }
    if (curl_easy_header(connection->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) ==
        CURLHE_OK) {
        curl_easy_getinfo(connection->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
        if (retry_after_s > 0 || strcmp(header->value, "0") == 0) /* else it says nothing */
            exchange->retry_after_ns = (retry_after_s < 3600 ? retry_after_s : 3600) * GS_NS_PER_S;
    }
    GS_COUNT(client, requests, 1);
    GS_COUNT(client, unauthorized, exchange->status == 401);
    GS_COUNT(client, throttled, exchange->status == 429);
    return 0;
}

static int run_on(struct gs_connection *connection, struct gs_runner *runner,
                  struct gs_exchange *exchange, struct gs_error *err)
{
    const struct gs_kube_client *client = exchange->client;
    CURL *easy = connection->easy;
    _cleanup_(gs_buf_wipe) struct gs_buf token = GS_BUF(TOKEN_BYTES_MAX);
    if (gs_auth_show(client->auth, easy, &connection->shown, &token, err) < 0 ||
        set_request(client, easy, exchange, err) < 0)
        return -1;
    struct curl_slist *headers = build_headers(client, exchange->request, token.data);
    if (!headers)
        return gs_fail_nomem(err);
    exchange->easy = easy;
    exchange->shown = connection->shown;
    exchange->heard_ns = gs_clock_now_ns(client->options.clock);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, exchange);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
    connection->error[0] = '\0';
    CURLcode code = runner ? perform_on(runner, exchange) : curl_easy_perform(easy);
    int result = finish(connection, exchange, code, err);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L); /* resets the pointer to the borrowed body */
    for (struct curl_slist *line = headers; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(headers);
    return result;
}

int gs_exchange_run(struct gs_kube_client *client, struct gs_runner *runner,
                    struct gs_exchange *exchange, struct gs_error *err)
{
    gs_buf_reset(exchange->body);
    if (exchange->lines)
        gs_lines_reset(exchange->lines);
    exchange->client = client;
    exchange->status = 0;
    exchange->retry_after_ns = -1;
    exchange->sent = exchange->unsent = exchange->headed = false;
    exchange->bytes = 0;
    exchange->enough = false;
    gs_error_clear(&exchange->error);
    struct gs_connection *connection = runner ? runner->connection : gs_connection_take(client);
    if (!connection)
        return gs_fail_nomem(err);
    int result = run_on(connection, runner, exchange, err);
    if (!runner)
        gs_connection_put(client, connection);
    return result;
}
