/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/usage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/utf8.h"
#include "inspect/lookup.h"

/* One page of the API's list; a page of a plugin. */
enum { PLUGINS_PER_LIST = 500, PLUGINS_MAX = 20000, ANSWER_BYTES_MAX = 4 << 20 };

#define PLUGIN_LABEL "labelSelector=app.kubernetes.io%2Fname%3Dgpushare-device-plugin"

struct target {
    const char *node;
    const char *path;
};

struct job {
    const struct source *source;
    int64_t deadline_ns;
    struct target *targets;
    atomic_uint next;
    atomic_bool stop; /* it is not allowed: nobody will answer */
    pthread_mutex_t lock;
    struct usage *usage; /* guarded by lock once threads run */
};

/* ---- what one of them says ---- */

static const char *keep_text(struct usage *usage, const json_t *object, const char *name)
{
    const char *text = lookup_text(object, name, NULL);
    char *copy = gs_arena_strndup(&usage->arena, text, strlen(text));
    if (!copy)
        return "";
    gs_utf8_calm(copy);
    return copy;
}

static bool read_bytes(const json_t *object, const char *name, uint64_t *ret)
{
    const json_t *number = json_object_get(object, name);
    if (!json_is_integer(number) || json_integer_value(number) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(number);
    return true;
}

static bool read_index(const json_t *object, uint32_t *ret)
{
    uint64_t idx;
    if (!read_bytes(object, "id", &idx) || idx >= GS_GPUS_MAX)
        return false;
    *ret = (uint32_t)idx;
    return true;
}

static void read_pod_gpu(struct usage_pod *pod, const json_t *entry)
{
    struct usage_gpu gpu = {0};
    if (pod->gpu_count == GS_GPUS_MAX || !read_index(entry, &gpu.idx))
        return;
    gpu.known = read_bytes(entry, "usedBytes", &gpu.used_bytes) &&
                read_bytes(entry, "peakBytes", &gpu.peak_bytes);
    pod->gpus[pod->gpu_count++] = gpu;
    if (!gpu.known)
        return;
    pod->known = true;
    if (gpu.used_bytes > pod->used_bytes)
        pod->used_bytes = gpu.used_bytes;
    if (gpu.peak_bytes > pod->peak_bytes)
        pod->peak_bytes = gpu.peak_bytes;
}

static void read_pod(struct usage *usage, const struct usage_node *node, const json_t *entry)
{
    const json_t *gpus = json_object_get(entry, "gpus"), *gpu;
    size_t i, count = json_array_size(gpus);
    struct usage_pod *pod = gs_arena_alloc(&usage->arena, sizeof(*pod));
    if (!pod || count > GS_GPUS_MAX)
        return;
    pod->gpus = gs_arena_calloc(&usage->arena, count, sizeof(*pod->gpus));
    pod->uid = keep_text(usage, entry, "uid");
    if (!pod->gpus || !pod->uid[0] || usage_pod_find(usage, pod->uid))
        return;
    pod->node = node->name;
    pod->ns = keep_text(usage, entry, "namespace");
    pod->name = keep_text(usage, entry, "name");
    pod->owner = keep_text(usage, entry, "owner");
    pod->reason = keep_text(usage, entry, "reason");
    pod->enforced = gs_enforced_parse(lookup_text(entry, "enforced", NULL), pod->reason);
    if (pod->enforced == GS_ENFORCED_UNKNOWN) /* a word that this version does not know */
        pod->enforced = GS_ENFORCED_OTHER;
    read_bytes(entry, "givenBytes", &pod->given_bytes);
    json_array_foreach(gpus, i, gpu)
    {
        read_pod_gpu(pod, gpu);
    }
    HASH_ADD_KEYPTR(hh, usage->pods, pod->uid, strlen(pod->uid), pod);
}

static void read_node(struct usage *usage, const char *name, const json_t *page)
{
    const json_t *pods = json_object_get(page, "pods"), *entry;
    struct usage_node *node = gs_arena_alloc(&usage->arena, sizeof(*node));
    size_t i;
    uint32_t idx;
    if (!node || usage_node_find(usage, name))
        return;
    node->name = name;
    node->names_pods = json_is_array(pods);
    json_array_foreach(json_object_get(page, "gpus"), i, entry)
    {
        if (read_index(entry, &idx) &&
            (read_bytes(entry, "usedBytes", &node->used_bytes[idx]) ||
             read_bytes(entry, "usedByPodsBytes", &node->used_bytes[idx])))
            node->known |= GS_GPU_BIT(idx);
    }
    HASH_ADD_KEYPTR(hh, usage->nodes, node->name, strlen(node->name), node);
    json_array_foreach(pods, i, entry)
    {
        read_pod(usage, node, entry);
    }
    usage->names_pods |= node->names_pods;
    usage->answered++;
}

/* ---- asking ---- */

static void note_failure(struct job *job, const struct gs_error *err)
{
    pthread_mutex_lock(&job->lock);
    if (job->usage->why.code == GS_OK)
        job->usage->why = *err;
    pthread_mutex_unlock(&job->lock);
    if (err->code == GS_EAUTH || err->code == GS_EDENIED)
        job->stop = true;
}

/* What the deadline leaves. */
static int get(struct job *job, const char *path, const char *query, struct gs_buf *body,
               struct gs_error *err)
{
    const struct gs_kube_request request = {.method = "GET",
                                            .path = path,
                                            .query = query,
                                            .timeout_ns = job->deadline_ns -
                                                          gs_clock_now_ns(gs_clock_system())};
    int status;
    if (request.timeout_ns <= 0)
        return gs_fail(err, GS_ETIMEOUT, "not asked within %d s", USAGE_TIME_S);
    if (job->source->ask(job->source->ctx, &request, &status, body, err) < 0)
        return -1;
    return status == 200
               ? 0
               : gs_kube_fail_status(status, body->data ? body->data : "", body->len, err);
}

static void ask(struct job *job, const struct target *target)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(ANSWER_BYTES_MAX);
    struct gs_error err = {0};
    if (get(job, target->path, NULL, &body, &err) < 0) {
        note_failure(job, &err);
        return;
    }
    json_auto_t *page = json_loadb(body.data ? body.data : "", body.len, 0, NULL);
    if (!page) {
        gs_fail(&err, GS_EPROTO, "the device plugin's answer is no JSON");
        note_failure(job, &err);
        return;
    }
    pthread_mutex_lock(&job->lock);
    read_node(job->usage, target->node, page);
    pthread_mutex_unlock(&job->lock);
}

static void *work(void *arg)
{
    struct job *job = arg;
    for (;;) {
        uint32_t at = job->next++;
        if (at >= job->usage->asked || job->stop)
            return NULL;
        ask(job, &job->targets[at]);
    }
}

static void ask_all(struct job *job)
{
    pthread_t threads[USAGE_AT_ONCE];
    uint32_t count = 0;
    while (count < USAGE_AT_ONCE && count < job->usage->asked &&
           pthread_create(&threads[count], NULL, work, job) == 0)
        count++;
    while (count)
        pthread_join(threads[--count], NULL);
}

/* ---- whom to ask ---- */

/* The port of that name; the manifests' when none has it. */
static uint64_t port_of(const json_t *pod)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    const json_t *port;
    size_t i;
    uint64_t number;
    json_array_foreach(json_object_get(json_array_get(containers, 0), "ports"), i, port)
    {
        if (strcmp(lookup_text(port, "name", NULL), "http") == 0 &&
            read_bytes(port, "containerPort", &number) && number <= UINT16_MAX)
            return number;
    }
    return 39997;
}

/* One that is not ready may not answer, and takes the others' time. */
static void add_target(struct job *job, const json_t *pod)
{
    struct usage *usage = job->usage;
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096);
    const char *node = lookup_text(pod, "spec", "nodeName", NULL);
    if (usage->asked == PLUGINS_MAX || !node[0] || !lookup_is_ready(pod))
        return;
    gs_buf_puts(&path, "/api/v1/namespaces/");
    source_escape(&path, lookup_text(pod, "metadata", "namespace", NULL));
    gs_buf_puts(&path, "/pods/");
    source_escape(&path, lookup_text(pod, "metadata", "name", NULL));
    gs_buf_printf(&path, ":%llu/proxy/usage", (unsigned long long)port_of(pod));
    if (gs_buf_failed(&path))
        return;
    struct target *target = &job->targets[usage->asked];
    target->node = gs_arena_strndup(&usage->arena, node, strlen(node));
    target->path = gs_arena_strndup(&usage->arena, path.data, path.len);
    usage->asked += target->node && target->path;
}

static int list_page(struct job *job, const char *node, struct gs_buf *more, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf query = GS_BUF(16 << 10);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    /* from the API server's cache: nothing is read from etcd to find few among many pods */
    gs_buf_printf(&query, "%s&resourceVersion=0&limit=%d", PLUGIN_LABEL, PLUGINS_PER_LIST);
    if (node) {
        gs_buf_puts(&query, "&fieldSelector=spec.nodeName%3D");
        source_escape(&query, node);
    }
    if (more->len) {
        gs_buf_puts(&query, "&continue=");
        source_escape(&query, more->data);
    }
    gs_buf_reset(more);
    if (gs_buf_failed(&query))
        return gs_fail_nomem(err);
    if (get(job, "/api/v1/pods", query.data, &body, err) < 0)
        return -1;
    json_auto_t *list = json_loadb(body.data ? body.data : "", body.len, 0, NULL);
    const json_t *pod;
    size_t i;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        add_target(job, pod);
    }
    gs_buf_puts(more, lookup_text(list, "metadata", "continue", NULL));
    return gs_buf_failed(more) ? gs_fail_nomem(err) : 0;
}

static void list_targets(struct job *job, const char *node)
{
    _cleanup_(gs_buf_release) struct gs_buf more = GS_BUF(8 << 10);
    struct gs_error err = {0};
    do {
        if (list_page(job, node, &more, &err) < 0) {
            note_failure(job, &err);
            return;
        }
    } while (more.len);
}

void usage_fetch(const struct source *source, const char *node, struct usage *ret)
{
    struct job job = {.source = source,
                      .deadline_ns =
                          gs_clock_now_ns(gs_clock_system()) + USAGE_TIME_S * GS_NS_PER_S,
                      .lock = PTHREAD_MUTEX_INITIALIZER,
                      .usage = ret};
    *ret = (struct usage){0};
    job.targets = calloc(PLUGINS_MAX, sizeof(*job.targets));
    if (!job.targets)
        return;
    list_targets(&job, node);
    ask_all(&job);
    free(job.targets);
}

void usage_release(struct usage *usage)
{
    HASH_CLEAR(hh, usage->pods);
    HASH_CLEAR(hh, usage->nodes);
    gs_arena_release(&usage->arena);
    *usage = (struct usage){0};
}

/* ---- looking up ---- */

const struct usage_node *usage_node_find(const struct usage *usage, const char *name)
{
    struct usage_node *node = NULL;
    if (usage)
        HASH_FIND(hh, usage->nodes, name, strlen(name), node);
    return node;
}

const struct usage_pod *usage_pod_find(const struct usage *usage, const char *uid)
{
    struct usage_pod *pod = NULL;
    if (usage)
        HASH_FIND(hh, usage->pods, uid, strlen(uid), pod);
    return pod;
}

const struct usage_gpu *usage_gpu_find(const struct usage_pod *pod, uint32_t idx)
{
    for (uint32_t i = 0; pod && i < pod->gpu_count; i++) {
        if (pod->gpus[i].idx == idx)
            return &pod->gpus[i];
    }
    return NULL;
}

void usage_text(uint64_t bytes, enum gs_unit unit, char to[USAGE_TEXT_BYTES])
{
    double mib = (double)bytes / (1 << 20);
    uint32_t unit_mib = gs_unit_mib(unit);
    snprintf(to, USAGE_TEXT_BYTES, "%.1f", mib / (unit_mib ? unit_mib : 1024));
}
