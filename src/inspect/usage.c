/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/usage.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/utf8.h"
#include "inspect/lookup.h"
#include "inspect/terminal.h"
#include "inspect/usage_page.h"

enum { NODES_MAX = 20000 };

/* Finds few among many pods of the namespace; that a pod has the label proves nothing. */
#define PLUGIN_LABEL "labelSelector=app.kubernetes.io%2Fname%3D" USAGE_PLUGIN

struct job {
    const struct usage_query *query;
    int64_t deadline_ns;
    pthread_mutex_t lock;
    /* guarded by lock once threads run: */
    struct usage *usage;
    struct usage_node *next; /* who is asked next */
};

/* ---- asking ---- */

static void note_failure(struct job *job, const struct gs_error *err)
{
    pthread_mutex_lock(&job->lock);
    if (job->usage->why.code == GS_OK) {
        job->usage->why = *err;
        gs_utf8_calm(job->usage->why.msg); /* the words of others */
    }
    pthread_mutex_unlock(&job->lock);
}

/* What the deadline leaves, and of that at most for one answer. */
static int64_t time_left(const struct job *job)
{
    int64_t left_ns = job->deadline_ns - gs_clock_now_ns(job->query->clock);
    return left_ns < USAGE_NODE_NS ? left_ns : USAGE_NODE_NS;
}

static int get(const struct job *job, const char *path, struct gs_buf *body, struct gs_error *err)
{
    const struct gs_kube_request request = {
        .method = "GET", .path = path, .timeout_ns = time_left(job)};
    if (request.timeout_ns <= 0)
        return gs_fail(err, GS_ETIMEOUT, "not asked in time");
    return source_ask(job->query->source, &request, body, err);
}

static void ask(struct job *job, struct usage_node *node)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(USAGE_ANSWER_BYTES_MAX);
    struct gs_error err = {0};
    int result = get(job, node->path, &body, &err);
    const struct gs_slice page = {body.data, body.len};
    if (result < 0 || usage_page_check(page, &err) < 0) {
        note_failure(job, &err);
        return;
    }
    pthread_mutex_lock(&job->lock);
    usage_page_read(job->usage, node, page);
    pthread_mutex_unlock(&job->lock);
}

static void *work(void *arg)
{
    struct job *job = arg;
    for (;;) {
        pthread_mutex_lock(&job->lock);
        struct usage_node *node = job->next;
        job->next = node ? node->hh.next : NULL;
        pthread_mutex_unlock(&job->lock);
        if (!node)
            return NULL;
        ask(job, node);
    }
}

static void ask_all(struct job *job)
{
    pthread_t threads[USAGE_AT_ONCE];
    uint32_t count = 0, asked = job->usage->asked;
    job->next = job->usage->nodes;
    while (count < USAGE_AT_ONCE && count < asked &&
           pthread_create(&threads[count], NULL, work, job) == 0)
        count++;
    while (count)
        pthread_join(threads[--count], NULL);
}

/* ---- which plugins to ask ---- */

/* The port of that name; the manifests' when none has it. */
static uint64_t port_of(const json_t *pod)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    const json_t *port;
    size_t i;
    json_array_foreach(json_object_get(json_array_get(containers, 0), "ports"), i, port)
    {
        json_int_t number = json_integer_value(json_object_get(port, "containerPort"));
        if (strcmp(lookup_text(port, "name", NULL), "http") == 0 && number > 0 &&
            number <= UINT16_MAX)
            return (uint64_t)number;
    }
    return 29997;
}

static bool is_plugin(const json_t *pod)
{
    size_t i;
    const json_t *owner;
    json_array_foreach(json_object_get(json_object_get(pod, "metadata"), "ownerReferences"), i,
                       owner)
    {
        if (json_is_true(json_object_get(owner, "controller")))
            return strcmp(lookup_text(owner, "apiVersion", NULL), "apps/v1") == 0 &&
                   strcmp(lookup_text(owner, "kind", NULL), "DaemonSet") == 0 &&
                   strcmp(lookup_text(owner, "name", NULL), USAGE_PLUGIN) == 0;
    }
    return false;
}

/* One that is not ready may not answer, and takes the others' time. While it is rolled out a node
 * may have two. */
static void add_node(struct job *job, const json_t *pod)
{
    struct usage *usage = job->usage;
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    const char *name = lookup_text(pod, "spec", "nodeName", NULL);
    struct usage_node *node;
    HASH_FIND(hh, usage->nodes, name, strlen(name), node);
    if (node || usage->asked == NODES_MAX || !name[0] || !is_plugin(pod) || !lookup_is_ready(pod))
        return;
    source_pods(&path, job->query->system_ns, lookup_text(pod, "metadata", "name", NULL));
    gs_buf_printf(&path, ":%llu/proxy/usage", (unsigned long long)port_of(pod));
    if (gs_buf_failed(&path))
        return;
    node = gs_arena_alloc(&usage->arena, sizeof(*node));
    if (!node)
        return;
    node->name = gs_arena_strdup(&usage->arena, name);
    node->path = gs_arena_strndup(&usage->arena, path.data, path.len);
    if (!node->name || !node->path)
        return;
    HASH_ADD_KEYPTR(hh, usage->nodes, node->name, strlen(node->name), node);
    usage->asked++;
}

static int add_listed(void *ctx, struct gs_scan *scan, struct gs_error *err)
{
    json_auto_t *pod = lookup_item(scan, SOURCE_BODY_MAX, err);
    if (pod)
        add_node(ctx, pod);
    return pod || scan->failed ? 0 : -1;
}

static int list_nodes(struct job *job, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), query = GS_BUF(16 << 10);
    source_pods(&path, job->query->system_ns, NULL);
    /* from the API server's cache: nothing is read from etcd to find few among many pods */
    gs_buf_puts(&query, PLUGIN_LABEL "&resourceVersion=0");
    if (job->query->node) {
        gs_buf_puts(&query, "&fieldSelector=spec.nodeName%3D");
        gs_url_escape(&query, job->query->node);
    }
    if (gs_buf_failed(&query) || gs_buf_failed(&path))
        return gs_fail_nomem(err);
    const struct gs_pages pages = {.path = path.data,
                                   .query = query.data,
                                   .clock = job->query->clock,
                                   .deadline_ns = job->deadline_ns,
                                   .page_timeout_ns = USAGE_NODE_NS,
                                   .item = add_listed,
                                   .ctx = job};
    return source_list(job->query->source, pages, err);
}

/* Asked once, so that nobody without the right asks thousands: what a node refuses says nothing
 * of the others, since its answer may be anybody's. */
static int check_right(const struct job *job, struct gs_error *err)
{
    const char *ns = job->query->system_ns;
    struct gs_error unasked = {0};
    const struct lookup_right right = {
        .verb = "get", .group = "", .resource = "pods", .sub = "proxy", .ns = ns};
    int allowed = lookup_allowed(job->query->source, &right, NULL, time_left(job), &unasked);
    if (allowed == 0)
        return gs_fail(err, GS_EDENIED, "this user may not get pods/proxy in namespace %.100s", ns);
    if (unasked.code == GS_EAUTH)
        return gs_fail(err, unasked.code, "%s", unasked.msg);
    return 0; /* also where such a review cannot be asked for */
}

void usage_fetch(const struct usage_query *query, struct usage *ret)
{
    struct job job = {.query = query,
                      .deadline_ns = gs_clock_now_ns(query->clock) + query->timeout_ns,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .usage = ret};
    struct gs_error err = {0};
    *ret = (struct usage){0};
    if (check_right(&job, &err) < 0 || list_nodes(&job, &err) < 0)
        note_failure(&job, &err);
    ask_all(&job);
}

void usage_say_missing(const struct usage *usage)
{
    if (usage->answered < usage->asked)
        fprintf(stderr, PROGRAM ": %" PRIu32 " of %" PRIu32 " device plugins did not answer: %s\n",
                usage->asked - usage->answered, usage->asked, usage->why.msg);
}

void usage_release(struct usage *usage)
{
    HASH_CLEAR(hh, usage->pods);
    HASH_CLEAR(hh, usage->nodes);
    gs_arena_release(&usage->arena);
    *usage = (struct usage){0};
}
