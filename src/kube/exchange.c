/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "client_private.h"
#include "gpushare/kube/base64.h"

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

/* What to look at, for the failures that a person has to mend. */
static const char *advice_for(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
        return " (check certificate-authority and tls-server-name in the kubeconfig)";
    case CURLE_SSL_CERTPROBLEM:
        return " (check client-certificate and client-key in the kubeconfig)";
    case CURLE_SSL_CACERT_BADFILE:
        return " (certificate-authority is no PEM certificate)";
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return " (is the API server running, and is its address right?)";
    default:
        return "";
    }
}

/* gs_fail() from curl's code, its error buffer (may be "") and the server's name. Returns -1. */
static int fail_curl(struct gs_error *err, CURLcode code, const char *detail, const char *server)
{
    return gs_fail(err, code_of_curl(code), "%s: %.150s%s", server,
                   detail[0] ? detail : curl_easy_strerror(code), advice_for(code));
}

/* The callbacks' view of an exchange in progress. */
struct progress {
    struct gs_kube_client *client;
    struct gs_exchange *exchange;
    CURL *easy;
    int64_t heard_ns;      /* when the last byte arrived */
    uint64_t bytes;        /* of the body */
    bool enough;           /* of it */
    struct gs_error error; /* why a callback ended it */
};

static long status_of(CURL *easy)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *ctx)
{
    struct progress *progress = ctx;
    struct gs_exchange *exchange = progress->exchange;
    size_t len = size * count;
    progress->heard_ns = gs_clock_now_ns(progress->client->options.clock);
    progress->bytes += len;
    if (exchange->lines && status_of(progress->easy) == 200)
        return gs_lines_feed(exchange->lines, bytes, len, exchange->line, exchange->ctx,
                             &progress->error) < 0
                   ? 0
                   : len;
    gs_buf_append(exchange->body, bytes, len);
    progress->enough = exchange->request->first_bytes && status_of(progress->easy) == 200;
    if (!gs_buf_failed(exchange->body))
        return progress->enough ? 0 : len;
    if (gs_buf_failed(exchange->body) == GS_ETOOBIG)
        gs_fail(&progress->error, GS_ETOOBIG, "the answer is larger than %zu bytes",
                exchange->body->max);
    else
        gs_fail_nomem(&progress->error);
    return 0;
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct progress *progress = ctx;
    size_t len = size * count;
    progress->heard_ns = gs_clock_now_ns(progress->client->options.clock);
    bool end_of_head = len == 2 && line[0] == '\r' && status_of(progress->easy) >= 200;
    if (!end_of_head)
        return len;
    progress->exchange->headed = true;
    if (progress->exchange->answered && status_of(progress->easy) == 200)
        progress->exchange->answered(progress->exchange->ctx);
    return len;
}

/* -1 when its time is over: GS_EBUSY while nothing was sent. */
static int check_deadline(const struct gs_kube_client *client, const struct gs_exchange *exchange,
                          struct gs_error *err)
{
    if (!exchange->deadline_ns || gs_clock_now_ns(client->options.clock) < exchange->deadline_ns)
        return 0;
    if (exchange->sent)
        return gs_fail(err, GS_ETIMEOUT, "%s: no answer in time", client->config.server);
    return gs_fail(err, GS_EBUSY, "%s: not reached in time", client->config.server);
}

/* Curl calls it once a second at least. Other than 0 ends the request. */
static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                       curl_off_t up)
{
    struct progress *progress = ctx;
    if (gs_client_canceled(progress->client))
        return gs_fail(&progress->error, GS_ECANCELED, "stopped");
    return check_deadline(progress->client, progress->exchange, &progress->error);
}

/* Right before the request goes out, also when curl sends it again on another connection. Curl's
 * own timeout stands still while the machine sleeps; our clock does not. */
static int on_connected(void *ctx, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct progress *progress = ctx;
    if (check_deadline(progress->client, progress->exchange, &progress->error) < 0)
        return CURL_PREREQFUNC_ABORT;
    progress->exchange->sent = true;
    return CURL_PREREQFUNC_OK;
}

/* The credentials may be seen by this server on this connection. */
static bool may_show_credentials(const struct gs_kube_client *client)
{
    return client->url.tls || (client->url.loopback && !client->config.proxy_url);
}

static void add_header(struct curl_slist **list, bool *ok, const char *name, const char *value)
{
    _cleanup_(gs_buf_release) struct gs_buf line = GS_BUF(128 << 10);
    gs_buf_puts(&line, name);
    gs_buf_puts(&line, ": ");
    gs_buf_puts(&line, value);
    struct curl_slist *longer = gs_buf_failed(&line) ? NULL : curl_slist_append(*list, line.data);
    if (longer)
        *list = longer;
    else
        *ok = false;
    if (line.data)
        explicit_bzero(line.data, line.len);
}

static void add_basic(const struct gs_kube_config *config, struct curl_slist **list, bool *ok)
{
    _cleanup_(gs_buf_wipe) struct gs_buf plain = GS_BUF(64 << 10);
    _cleanup_(gs_buf_wipe) struct gs_buf value = GS_BUF(96 << 10);
    gs_buf_printf(&plain, "%s:%s", config->username, config->password ? config->password : "");
    gs_buf_puts(&value, "Basic ");
    if (plain.data)
        gs_base64_encode(plain.data, plain.len, &value);
    if (gs_buf_failed(&plain) || gs_buf_failed(&value))
        *ok = false;
    else
        add_header(list, ok, "Authorization", value.data);
}

static void add_bearer(const char *token, struct curl_slist **list, bool *ok)
{
    _cleanup_(gs_buf_wipe) struct gs_buf value = GS_BUF(96 << 10);
    gs_buf_puts(&value, "Bearer ");
    gs_buf_puts(&value, token);
    if (gs_buf_failed(&value))
        *ok = false;
    else
        add_header(list, ok, "Authorization", value.data);
}

/* NULL when out of memory. */
static struct curl_slist *build_headers(const struct gs_kube_client *client,
                                        const struct gs_kube_request *request,
                                        const struct gs_creds *creds)
{
    struct curl_slist *list = NULL;
    bool ok = true;
    add_header(&list, &ok, "Accept", request->accept ? request->accept : "application/json");
    /* Without this curl waits for "100 Continue" before it sends a large body. */
    add_header(&list, &ok, "Expect", "");
    if (request->body)
        add_header(&list, &ok, "Content-Type",
                   request->content_type ? request->content_type : "application/json");
    if (client->host_header)
        add_header(&list, &ok, "Host", client->host_header);
    if (creds->token && may_show_credentials(client))
        add_bearer(creds->token, &list, &ok);
    else if (client->config.username && may_show_credentials(client))
        add_basic(&client->config, &list, &ok);
    if (ok)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

static CURLcode set_blob(CURL *easy, CURLoption option, char *data, size_t len)
{
    struct curl_blob blob = {.data = data, .len = len, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, data ? &blob : NULL);
}

/* Certificates are set only when they changed: curl copies them. New ones make curl open a new
 * connection, because it compares them before it uses an old one. */
static int set_creds(struct gs_connection *connection, struct gs_creds *creds, struct gs_error *err)
{
    CURL *easy = connection->easy;
    if (connection->creds == creds)
        return 0;
    if (set_blob(easy, CURLOPT_CAINFO_BLOB, creds->ca, creds->ca_len) != CURLE_OK ||
        set_blob(easy, CURLOPT_SSLCERT_BLOB, creds->cert, creds->cert_len) != CURLE_OK ||
        set_blob(easy, CURLOPT_SSLKEY_BLOB, creds->key, creds->key_len) != CURLE_OK ||
        /* else libcurl's own folder, /etc/ssl/certs, counts beside it */
        (creds->ca && curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) != CURLE_OK))
        return gs_fail_nomem(err);
    if (connection->creds)
        gs_creds_unref(connection->creds);
    atomic_fetch_add_explicit(&creds->refs, 1, memory_order_relaxed);
    connection->creds = creds;
    return 0;
}

/* Path and query go as a request target of their own: of a URL, libcurl 7.88 drops the query when
 * memory is short, and says nothing. Only a proxy that is no tunnel needs the whole URL. */
static int set_url(const struct gs_kube_client *client, CURL *easy,
                   const struct gs_kube_request *request, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf target = GS_BUF(64 << 10);
    bool whole = client->config.proxy_url && !client->url.tls;
    gs_buf_puts(&target, whole ? client->base : client->url.prefix);
    gs_buf_puts(&target, request->path);
    if (request->query && request->query[0])
        gs_buf_printf(&target, "?%s", request->query);
    if (gs_buf_failed(&target) == GS_ETOOBIG)
        return gs_fail(err, GS_EINVAL, "the address is longer than %zu bytes", target.max);
    if (gs_buf_failed(&target))
        return gs_fail_nomem(err);
    const char *url = whole ? target.data : client->base;
    if (curl_easy_setopt(easy, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, whole ? NULL : target.data) != CURLE_OK)
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
        /* the least, when the credentials took all of it: on_connected() says so then */
        timeout_ms = left_ns > 0 ? (long)(left_ns / GS_NS_PER_MS) + 1 : 1;
    }
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    /* The only one of these that takes memory, and without it a PATCH would be a POST. */
    if (curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) != CURLE_OK)
        return gs_fail_nomem(err);
    return set_url(client, easy, request, err);
}

/* Runs the handle on the runner's multi: whatever wake() says is seen at once. */
static CURLcode perform_on(const struct gs_runner *runner, struct progress *progress)
{
    struct gs_exchange *exchange = progress->exchange;
    const struct gs_clock *clock = progress->client->options.clock;
    CURLcode code = CURLE_OK;
    CURLMcode multi_code = curl_multi_add_handle(runner->multi, progress->easy);
    for (bool done = multi_code != CURLM_OK; !done;) {
        int running, left;
        multi_code = curl_multi_perform(runner->multi, &running);
        CURLMsg *message = curl_multi_info_read(runner->multi, &left);
        if (message && message->msg == CURLMSG_DONE) {
            code = message->data.result;
            break;
        }
        int64_t limit_ns = exchange->headed ? exchange->stall_ns : exchange->head_ns;
        int64_t quiet_ns = gs_clock_now_ns(clock) - progress->heard_ns;
        if (gs_runner_stopped(runner)) {
            gs_fail(&progress->error, GS_ECANCELED, "stopped");
        } else if (gs_runner_list_wanted(runner)) {
            gs_fail(&progress->error, GS_EGONE, "it may be behind: the list is read anew");
        } else if (limit_ns > 0 && quiet_ns >= limit_ns) {
            exchange->stalled = true;
            gs_fail(&progress->error, GS_ETIMEOUT, "nothing heard for %lld s",
                    (long long)(quiet_ns / GS_NS_PER_S));
        }
        done = progress->error.code != GS_OK || multi_code != CURLM_OK;
        int64_t wait_ns = limit_ns > 0 ? limit_ns - quiet_ns : GS_NS_PER_S;
        wait_ns = wait_ns < 0 ? 0 : wait_ns > GS_NS_PER_S ? GS_NS_PER_S : wait_ns;
        if (!done)
            curl_multi_poll(runner->multi, NULL, 0, (int)(wait_ns / GS_NS_PER_MS) + 1, NULL);
    }
    curl_multi_remove_handle(runner->multi, progress->easy);
    if (multi_code != CURLM_OK)
        gs_fail(&progress->error, multi_code == CURLM_OUT_OF_MEMORY ? GS_ENOMEM : GS_EIO, "%s",
                curl_multi_strerror(multi_code));
    return code;
}

static int finish(struct gs_kube_client *client, struct gs_connection *connection,
                  struct progress *progress, CURLcode code, struct gs_error *err)
{
    struct gs_exchange *exchange = progress->exchange;
    struct curl_header *header;
    exchange->retry_after_ns = -1;
    exchange->status = (int)status_of(connection->easy);
    GS_COUNT(client, bytes_received, progress->bytes);
    if (progress->error.code != GS_OK || (code != CURLE_OK && !progress->enough)) {
        GS_COUNT(client, failed, 1);
        exchange->status = 0;
        exchange->unsent = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
                           code == CURLE_COULDNT_RESOLVE_PROXY;
        if (progress->error.code == GS_ETOOBIG)
            GS_COUNT(client, oversized, 1);
        if (progress->error.code != GS_OK)
            return gs_fail(err, progress->error.code, "%s", progress->error.msg);
        return fail_curl(err, code, connection->error, client->config.server);
    }
    if (curl_easy_header(connection->easy, "Retry-After", 0, CURLH_HEADER, -1, &header) ==
        CURLHE_OK)
        (void)gs_retry_after_ns(header->value, strlen(header->value), GS_NS_PER_S * 3600,
                                &exchange->retry_after_ns);
    GS_COUNT(client, requests, 1);
    return 0;
}

static int run_on(struct gs_kube_client *client, struct gs_connection *connection,
                  struct gs_runner *runner, struct gs_exchange *exchange, struct gs_error *err)
{
    CURL *easy = connection->easy;
    if (set_creds(connection, exchange->creds, err) < 0 ||
        set_request(client, easy, exchange, err) < 0)
        return -1;
    struct curl_slist *headers = build_headers(client, exchange->request, exchange->creds);
    if (!headers)
        return gs_fail_nomem(err);
    struct progress progress = {.client = client, .exchange = exchange, .easy = easy};
    progress.heard_ns = gs_clock_now_ns(client->options.clock);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &progress);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &progress);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, &progress);
    connection->error[0] = '\0';
    CURLcode code = runner ? perform_on(runner, &progress) : curl_easy_perform(easy);
    int result = finish(client, connection, &progress, code, err);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L); /* forgets the borrowed body */
    for (struct curl_slist *line = headers; line; line = line->next)
        explicit_bzero(line->data, strlen(line->data));
    curl_slist_free_all(headers);
    return result;
}

int gs_exchange_run(struct gs_kube_client *client, struct gs_runner *runner,
                    struct gs_exchange *exchange, struct gs_error *err)
{
    if (exchange->body)
        gs_buf_reset(exchange->body);
    if (exchange->lines)
        gs_lines_reset(exchange->lines);
    exchange->status = 0;
    exchange->retry_after_ns = -1;
    exchange->sent = exchange->unsent = exchange->headed = exchange->stalled = false;
    if (exchange->creds)
        gs_creds_unref(gs_steal(&exchange->creds));
    if (gs_auth_get(client->auth, &exchange->creds, err) < 0)
        return -1;
    struct gs_connection *connection = runner ? runner->connection : gs_connection_take(client);
    if (!connection)
        return gs_fail_nomem(err);
    int result = run_on(client, connection, runner, exchange, err);
    if (!runner)
        gs_connection_put(client, connection);
    return result;
}
