/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest extender there can be: filter echoes the node names, prioritize says nothing, bind
 * forwards the binding to the API server. What kube-scheduler reaches with it is the ceiling for
 * every extender, and tests/bench/e2e_rate measures ours against it. It decides nothing, counts
 * nothing, and trusts its caller.
 *
 *   noop_extender PORT https://API-SERVER TOKEN CA-FILE
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BODY_MAX_BYTES = 16 << 20,
    KEPT_MAX = 64,
};

/* kept: idle connections to the API server, guarded by lock. */
struct api {
    const char *server;
    const char *ca_file;
    struct curl_slist *headers;
    pthread_mutex_t lock;
    CURL *kept[KEPT_MAX];
    size_t kept_count;
};

struct body {
    char *bytes;
    size_t used;
    size_t room;
};

static int body_append(struct body *body, const char *bytes, size_t count)
{
    if (count > BODY_MAX_BYTES - body->used)
        return -1;
    if (body->room - body->used < count + 1) {
        size_t room = 2 * body->room + count + 4096;
        char *grown = realloc(body->bytes, room);

        if (!grown)
            return -1;
        body->bytes = grown;
        body->room = room;
    }
    memcpy(body->bytes + body->used, bytes, count);
    body->used += count;
    body->bytes[body->used] = '\0';
    return 0;
}

/* The text of the array behind the last "NodeNames": kube-scheduler writes that member last. */
static void find_names(const struct body *body, const char **ret_names, int *ret_length)
{
    static const char key[] = "\"NodeNames\":";
    const char *at = body->bytes;
    const char *last = NULL;
    const char *end;

    while ((at = strstr(at, key))) {
        at += sizeof(key) - 1;
        last = at;
    }
    end = last && *last == '[' ? strchr(last, ']') : NULL;
    *ret_names = end ? last : "[]";
    *ret_length = end ? (int)(end - last) + 1 : 2;
}

static char *filter(const struct body *body)
{
    const char *names;
    int length;
    char *answer = NULL;

    find_names(body, &names, &length);
    if (asprintf(&answer, "{\"NodeNames\":%.*s,\"FailedNodes\":{},\"Error\":\"\"}", length, names) <
        0)
        return NULL;
    return answer;
}

static size_t discard(char *bytes, size_t size, size_t count, void *context)
{
    return size * count;
}

static CURL *take_curl(struct api *api)
{
    CURL *curl = NULL;

    pthread_mutex_lock(&api->lock);
    if (api->kept_count > 0)
        curl = api->kept[--api->kept_count];
    pthread_mutex_unlock(&api->lock);
    if (curl)
        return curl;
    curl = curl_easy_init();
    if (!curl)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, api->headers);
    curl_easy_setopt(curl, CURLOPT_CAINFO, api->ca_file);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    return curl;
}

static void give_back_curl(struct api *api, CURL *curl)
{
    pthread_mutex_lock(&api->lock);
    if (api->kept_count < KEPT_MAX) {
        api->kept[api->kept_count++] = curl;
        curl = NULL;
    }
    pthread_mutex_unlock(&api->lock);
    curl_easy_cleanup(curl);
}

/* Returns the HTTP status, 0 when there was none. */
static long post_binding(struct api *api, const char *name, const char *namespace, const char *node)
{
    CURL *curl = take_curl(api);
    char url[1024];
    char binding[1024];
    long status = 0;

    if (!curl)
        return 0;
    snprintf(url, sizeof(url), "%s/api/v1/namespaces/%s/pods/%s/binding", api->server, namespace,
             name);
    snprintf(binding, sizeof(binding),
             "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"%s\"},"
             "\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}",
             name, node);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, binding);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    give_back_curl(api, curl);
    return status;
}

static char *bind_pod(struct api *api, const struct body *body)
{
    json_t *args = json_loads(body->bytes, 0, NULL);
    const char *name;
    const char *namespace;
    const char *uid;
    const char *node;
    char *answer = NULL;
    long status = 0;

    if (args && !json_unpack(args, "{s:s,s:s,s:s,s:s}", "PodName", &name, "PodNamespace",
                             &namespace, "PodUID", &uid, "Node", &node))
        status = post_binding(api, name, namespace, node);
    json_decref(args);
    if (status == 201)
        return strdup("{\"Error\":\"\"}");
    if (asprintf(&answer, "{\"Error\":\"the API server answered %ld\"}", status) < 0)
        return NULL;
    return answer;
}

static char *answer_for(struct api *api, const char *url, const struct body *body)
{
    const char *verb = strrchr(url, '/');

    if (!body->bytes)
        return strdup("{}");
    if (verb && strcmp(verb, "/filter") == 0)
        return filter(body);
    if (verb && strcmp(verb, "/bind") == 0)
        return bind_pod(api, body);
    if (verb && strcmp(verb, "/prioritize") == 0)
        return strdup("[]");
    return strdup("{}");
}

static enum MHD_Result send_answer(struct MHD_Connection *conn, char *answer)
{
    struct MHD_Response *response;
    enum MHD_Result queued;

    if (!answer)
        return MHD_NO;
    response = MHD_create_response_from_buffer(strlen(answer), answer, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(answer);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", "application/json");
    queued = MHD_queue_response(conn, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *conn, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **request)
{
    struct body *body = *request;

    if (!body) {
        *request = calloc(1, sizeof(*body));
        return *request ? MHD_YES : MHD_NO;
    }
    if (*upload_size > 0) {
        if (body_append(body, upload, *upload_size))
            return MHD_NO;
        *upload_size = 0;
        return MHD_YES;
    }
    return send_answer(conn, answer_for(context, url, body));
}

static void on_completed(void *context, struct MHD_Connection *conn, void **request,
                         enum MHD_RequestTerminationCode why)
{
    struct body *body = *request;

    if (body)
        free(body->bytes);
    free(body);
    *request = NULL;
}

static struct curl_slist *make_headers(const char *token)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    char line[4096];

    snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
    return curl_slist_append(headers, line);
}

/* A thread per connection, so that no filter waits behind a binding. Loopback only. */
static struct MHD_Daemon *listen_on(const char *port, struct api *api)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };

    return MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0,
                            NULL, NULL, on_request, api, MHD_OPTION_SOCK_ADDR, &address,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
}

/* Called before any thread starts: they inherit the mask, and sigwait() alone sees the signals. */
static void block_signals(sigset_t *ret_ending)
{
    sigemptyset(ret_ending);
    sigaddset(ret_ending, SIGTERM);
    sigaddset(ret_ending, SIGINT);
    pthread_sigmask(SIG_BLOCK, ret_ending, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    struct api api = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct MHD_Daemon *daemon;
    sigset_t ending;
    int number;

    if (argc != 5) {
        fprintf(stderr, "usage: noop_extender PORT https://API-SERVER TOKEN CA-FILE\n");
        return 2;
    }
    block_signals(&ending);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    api.server = argv[2];
    api.headers = make_headers(argv[3]);
    api.ca_file = argv[4];
    daemon = listen_on(argv[1], &api);
    if (!daemon) {
        fprintf(stderr, "noop_extender: cannot listen on port %s\n", argv[1]);
        return 1;
    }
    sigwait(&ending, &number);
    MHD_stop_daemon(daemon);
    while (api.kept_count > 0)
        curl_easy_cleanup(api.kept[--api.kept_count]);
    curl_slist_free_all(api.headers);
    curl_global_cleanup();
    return 0;
}
