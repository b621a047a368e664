/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_source.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpushare/codec/manifest.h"

struct memory_source memory_source;

static int hex(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* Percent-decodes len bytes into a buffer that is large enough. */
static void decode(char *to, const char *from, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (from[i] == '%' && i + 2 < len) {
            *to++ = (char)(hex(from[i + 1]) * 16 + hex(from[i + 2]));
            i += 2;
        } else {
            *to++ = from[i];
        }
    }
    *to = 0;
}

/* Values live as long as the request: each call takes the next buffer. */
struct query {
    const char *text;
    char values[8][8192];
    size_t next;
};

static const char *query_value(void *ctx, const char *name)
{
    struct query *query = ctx;
    size_t len = strlen(name);
    for (const char *at = query->text; at && *at; at += strcspn(at, "&"), at += *at == '&') {
        size_t pair = strcspn(at, "&");
        if (strncmp(at, name, len) == 0 && at[len] == '=' && pair < sizeof(query->values[0])) {
            char *value = query->values[query->next++ % 8];
            decode(value, at + len + 1, pair - len - 1);
            return value;
        }
    }
    return NULL;
}

/* The first whose key is "METHOD PATH", or that and a word that the request's body holds. */
static const json_t *find_answer(const struct gs_kube_request *request)
{
    char asked[1024];
    const char *key;
    json_t *answer;
    snprintf(asked, sizeof(asked), "%s %s", request->method, request->path);
    json_object_foreach(memory_source.answers, key, answer)
    {
        size_t len = strlen(asked);
        if (strncmp(key, asked, len) != 0)
            continue;
        if (!key[len] || (key[len] == ' ' && request->body && strstr(request->body, key + len + 1)))
            return answer;
    }
    return NULL;
}

static bool canned(const struct gs_kube_request *request, int *ret_status, struct gs_buf *body)
{
    const json_t *answer = find_answer(request);
    if (!answer)
        return false;
    const json_t *content = json_object_get(answer, "body");
    *ret_status = (int)json_integer_value(json_object_get(answer, "status"));
    char *text = json_is_string(content) ? strdup(json_string_value(content))
                                         : json_dumps(content, JSON_COMPACT);
    gs_buf_puts(body, text ? text : "");
    free(text);
    return true;
}

static int ask_alone(const struct gs_kube_request *request, int *ret_status, struct gs_buf *body,
                     struct gs_error *err)
{
    char path[4096];
    struct query query = {.text = request->query};
    struct gs_sim_reply reply = GS_SIM_REPLY;
    gs_buf_reset(body);
    if (canned(request, ret_status, body))
        return 0;
    decode(path, request->path, strlen(request->path));
    const struct gs_sim_request sim = {.method = request->method,
                                       .path = path,
                                       .query = query_value,
                                       .query_ctx = &query,
                                       .content_type = "application/json",
                                       .body = {request->body, request->body_len}};
    gs_sim_api_handle(&memory_source.api, &sim, &reply);
    *ret_status = reply.status;
    gs_buf_append(body, reply.body.data ? reply.body.data : "", reply.body.len);
    gs_sim_reply_release(&reply);
    return gs_buf_failed(body) ? gs_fail(err, GS_ETOOBIG, "the response is too large") : 0;
}

/* Several threads may ask. */
static int ask(void *ctx, const struct gs_kube_request *request, int *ret_status,
               struct gs_buf *body, struct gs_error *err)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int result = ask_alone(request, ret_status, body, err);
    pthread_mutex_unlock(&lock);
    return result;
}

static void close_memory(void *ctx)
{
    struct memory_source *memory = ctx;
    gs_sim_cluster_freep(&memory->cluster);
}

/* Only the page watches, and it is not tested here. */
static int watch_nothing(void *ctx, const struct gs_watch_spec *spec,
                         const struct gs_watch_sink *sink, const atomic_bool *stop,
                         struct gs_error *err)
{
    while (!atomic_load(stop))
        usleep(1000);
    return 0;
}

static void wake_nobody(void *ctx)
{
}

static const struct gs_kube_ops nobody = {.watch = watch_nothing, .wake = wake_nobody};

int memory_connect(const struct connection *connection, struct source *ret, struct gs_error *err)
{
    struct memory_source *memory = &memory_source;
    if (gs_sim_cluster_new(&(struct gs_sim_options){memory->clock}, &memory->cluster, err) < 0 ||
        gs_manifest_read(memory->cluster_file, gs_sim_load_object, memory->cluster, err) < 0)
        return -1;
    memory->api = (struct gs_sim_api){memory->cluster, memory->token};
    *ret = (struct source){.ctx = memory,
                           .ask = ask,
                           .close = close_memory,
                           .kube = {.ops = &nobody},
                           .server = "memory"};
    snprintf(ret->ns, sizeof(ret->ns), "%s", connection->ns ? connection->ns : "default");
    return 0;
}
