/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/usage.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "gpushare/base/utf8.h"
#include "gpushare/codec/scan.h"
#include "inspect/lookup.h"
#include "inspect/terminal.h"

enum { PLUGINS_PER_LIST = 500, NODES_MAX = 20000, KEY_BYTES = 640, TEXT_BYTES_MAX = 256 };

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

/* ---- what one of them says ----
 *
 * Whatever is not of the type that it should be is not known; the page itself is whole. Nothing of
 * it becomes a tree, which can be a thousand times as large. */

static const char *take_text(struct usage *usage, struct gs_scan *scan)
{
    struct gs_scan_text text = {0};
    if (gs_scan_peek(scan) != GS_SCAN_STRING)
        gs_scan_skip(scan);
    else
        gs_scan_string(scan, "a text", &text);
    char *copy = gs_scan_string_dup(&usage->arena, gs_scan_text_head(text, TEXT_BYTES_MAX));
    if (!copy)
        return "";
    gs_utf8_calm(copy);
    return copy;
}

static bool take_number(struct gs_scan *scan, uint64_t *ret)
{
    struct gs_slice digits;
    if (gs_scan_peek(scan) != GS_SCAN_NUMBER) {
        gs_scan_skip(scan);
        return false;
    }
    return gs_scan_number(scan, "a number", &digits) && gs_parse_u64(digits.at, digits.len, ret);
}

/* One entry of a list of GPUs, of a node or of a pod. */
struct gpu_entry {
    uint64_t idx, used_bytes, by_pods_bytes, peak_bytes;
    bool has_idx, has_used, has_by_pods, has_peak;
};

/* false: none that is a GPU. */
static bool take_gpu(struct gs_scan *scan, struct gpu_entry *ret)
{
    struct gs_scan_text key;
    *ret = (struct gpu_entry){0};
    gs_scan_object(scan, "a GPU");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "id"))
            ret->has_idx = take_number(scan, &ret->idx) && ret->idx < GS_GPUS_MAX;
        else if (gs_scan_text_is(key, "usedBytes"))
            ret->has_used = take_number(scan, &ret->used_bytes);
        else if (gs_scan_text_is(key, "usedByPodsBytes"))
            ret->has_by_pods = take_number(scan, &ret->by_pods_bytes);
        else if (gs_scan_text_is(key, "peakBytes"))
            ret->has_peak = take_number(scan, &ret->peak_bytes);
        else
            gs_scan_skip(scan);
    }
    return ret->has_idx;
}

/* Objects of a list, the first max of them; the others are passed over. */
static bool next_object(struct gs_scan *scan, uint32_t *left)
{
    while (gs_scan_element(scan)) {
        if (gs_scan_peek(scan) == GS_SCAN_OBJECT && *left) {
            (*left)--;
            return true;
        }
        gs_scan_skip(scan);
    }
    return false;
}

static void take_pod_gpus(struct usage *usage, struct gs_scan *scan, struct usage_pod *pod)
{
    struct usage_gpu gpus[GS_GPUS_MAX];
    struct gpu_entry entry;
    uint32_t left = GS_GPUS_MAX, count = 0;
    gs_scan_array(scan, "GPUs");
    while (next_object(scan, &left)) {
        if (!take_gpu(scan, &entry))
            continue;
        gpus[count++] = (struct usage_gpu){.idx = (uint32_t)entry.idx,
                                           .known = entry.has_used && entry.has_peak,
                                           .used_bytes = entry.used_bytes,
                                           .peak_bytes = entry.peak_bytes};
    }
    pod->gpus = gs_arena_calloc(&usage->arena, count, sizeof(*gpus));
    if (!pod->gpus)
        return;
    memcpy(pod->gpus, gpus, count * sizeof(*gpus));
    pod->gpu_count = count;
}

static void note_most(struct usage_pod *pod)
{
    for (uint32_t i = 0; i < pod->gpu_count; i++) {
        const struct usage_gpu *gpu = &pod->gpus[i];
        pod->known |= gpu->known;
        if (gpu->known && gpu->used_bytes > pod->used_bytes)
            pod->used_bytes = gpu->used_bytes;
        if (gpu->known && gpu->peak_bytes > pod->peak_bytes)
            pod->peak_bytes = gpu->peak_bytes;
    }
}

static void take_pod(struct usage *usage, struct gs_scan *scan, struct usage_pod *pod)
{
    struct gs_scan_text key;
    const char *enforced = "";
    gs_scan_object(scan, "a pod");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "uid"))
            pod->uid = take_text(usage, scan);
        else if (gs_scan_text_is(key, "namespace"))
            pod->ns = take_text(usage, scan);
        else if (gs_scan_text_is(key, "name"))
            pod->name = take_text(usage, scan);
        else if (gs_scan_text_is(key, "owner"))
            pod->owner = take_text(usage, scan);
        else if (gs_scan_text_is(key, "reason"))
            pod->reason = take_text(usage, scan);
        else if (gs_scan_text_is(key, "enforced"))
            enforced = take_text(usage, scan);
        else if (gs_scan_text_is(key, "givenBytes"))
            take_number(scan, &pod->given_bytes);
        else if (gs_scan_text_is(key, "gpus") && gs_scan_peek(scan) == GS_SCAN_ARRAY)
            take_pod_gpus(usage, scan, pod);
        else
            gs_scan_skip(scan);
    }
    pod->enforced = gs_enforced_parse(enforced, pod->reason);
    if (pod->enforced == GS_ENFORCED_UNKNOWN) /* a word that this version does not know */
        pod->enforced = GS_ENFORCED_OTHER;
    note_most(pod);
}

/* No node can say anything of a pod of another, or take its place. */
static bool put_key(const char *node, const char *uid, char to[KEY_BYTES])
{
    int len = snprintf(to, KEY_BYTES, "%s/%s", node, uid);
    return uid[0] && len > 0 && len < KEY_BYTES;
}

static void read_pod(struct usage *usage, const struct usage_node *node, struct gs_scan *scan)
{
    char text[KEY_BYTES];
    struct usage_pod *pod = gs_arena_alloc(&usage->arena, sizeof(*pod));
    if (!pod) {
        gs_scan_skip(scan);
        return;
    }
    *pod = (struct usage_pod){
        .node = node->name, .uid = "", .ns = "", .name = "", .owner = "", .reason = ""};
    take_pod(usage, scan, pod);
    if (!pod->ns[0] || !pod->name[0] || !put_key(node->name, pod->uid, text) ||
        usage_pod_find(usage, node->name, pod->uid))
        return;
    const char *key = gs_arena_strndup(&usage->arena, text, strlen(text));
    if (key)
        HASH_ADD_KEYPTR(hh, usage->pods, key, strlen(key), pod);
}

static void read_gpus(struct usage_node *node, struct gs_scan *scan)
{
    struct gpu_entry entry;
    uint32_t left = GS_GPUS_MAX;
    gs_scan_array(scan, "GPUs");
    while (next_object(scan, &left)) {
        if (!take_gpu(scan, &entry) || !(entry.has_used || entry.has_by_pods))
            continue;
        node->used_bytes[entry.idx] = entry.has_used ? entry.used_bytes : entry.by_pods_bytes;
        node->known |= GS_GPU_BIT(entry.idx);
    }
}

static void read_pods(struct usage *usage, struct usage_node *node, struct gs_scan *scan)
{
    uint32_t left = USAGE_PODS_MAX;
    node->names_pods = true;
    gs_scan_array(scan, "pods");
    while (next_object(scan, &left))
        read_pod(usage, node, scan);
}

static void read_node(struct usage *usage, struct usage_node *node, struct gs_scan *page)
{
    struct gs_scan_text key;
    gs_scan_object(page, "the page");
    while (gs_scan_key(page, &key)) {
        bool list = gs_scan_peek(page) == GS_SCAN_ARRAY;
        if (list && gs_scan_text_is(key, "pods"))
            read_pods(usage, node, page);
        else if (list && gs_scan_text_is(key, "gpus"))
            read_gpus(node, page);
        else
            gs_scan_skip(page);
    }
    node->answered = true;
    usage->names_pods |= node->names_pods;
    usage->answered++;
}

/* Nothing is taken from a page that is not whole. */
static int check_page(struct gs_slice text, struct gs_error *err)
{
    struct gs_scan scan;
    struct gs_error why = {0};
    gs_scan_init(&scan, text);
    bool object = gs_scan_peek(&scan) == GS_SCAN_OBJECT;
    gs_scan_skip(&scan);
    if (gs_scan_finish(&scan, &why) == 0 && object)
        return 0;
    return gs_fail(err, GS_EPROTO, "the device plugin's answer is no JSON object");
}

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

static int get(const struct job *job, const char *path, const char *query, struct gs_buf *body,
               struct gs_error *err)
{
    const struct source *source = job->query->source;
    const struct gs_kube_request request = {
        .method = "GET", .path = path, .query = query, .timeout_ns = time_left(job)};
    int status;
    if (request.timeout_ns <= 0)
        return gs_fail(err, GS_ETIMEOUT, "not asked in time");
    if (source->ask(source->ctx, &request, &status, body, err) < 0)
        return -1;
    return status == 200
               ? 0
               : gs_kube_fail_status(status, body->data ? body->data : "", body->len, err);
}

static void ask(struct job *job, struct usage_node *node)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(USAGE_ANSWER_BYTES_MAX);
    struct gs_error err = {0};
    struct gs_scan page;
    if (get(job, node->path, NULL, &body, &err) < 0 ||
        check_page((struct gs_slice){body.data, body.len}, &err) < 0) {
        note_failure(job, &err);
        return;
    }
    gs_scan_init(&page, (struct gs_slice){body.data, body.len});
    pthread_mutex_lock(&job->lock);
    read_node(job->usage, node, &page);
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

/* ---- whom to ask ---- */

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
    return 39997;
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

static void put_namespace(const struct job *job, struct gs_buf *path)
{
    gs_buf_puts(path, "/api/v1/namespaces/");
    source_escape(path, job->query->system_ns);
    gs_buf_puts(path, "/pods");
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
    put_namespace(job, &path);
    gs_buf_putc(&path, '/');
    source_escape(&path, lookup_text(pod, "metadata", "name", NULL));
    gs_buf_printf(&path, ":%llu/proxy/usage", (unsigned long long)port_of(pod));
    if (gs_buf_failed(&path))
        return;
    node = gs_arena_alloc(&usage->arena, sizeof(*node));
    if (!node)
        return;
    node->name = gs_arena_strndup(&usage->arena, name, strlen(name));
    node->path = gs_arena_strndup(&usage->arena, path.data, path.len);
    if (!node->name || !node->path)
        return;
    HASH_ADD_KEYPTR(hh, usage->nodes, node->name, strlen(node->name), node);
    usage->asked++;
}

static int list_page(struct job *job, struct gs_buf *more, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(4096), query = GS_BUF(16 << 10);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    put_namespace(job, &path);
    /* from the API server's cache: nothing is read from etcd to find few among many pods */
    gs_buf_printf(&query, "%s&resourceVersion=0&limit=%d", PLUGIN_LABEL, PLUGINS_PER_LIST);
    if (job->query->node) {
        gs_buf_puts(&query, "&fieldSelector=spec.nodeName%3D");
        source_escape(&query, job->query->node);
    }
    if (more->len) {
        gs_buf_puts(&query, "&continue=");
        source_escape(&query, more->data);
    }
    gs_buf_reset(more);
    if (gs_buf_failed(&query) || gs_buf_failed(&path))
        return gs_fail_nomem(err);
    if (get(job, path.data, query.data, &body, err) < 0)
        return -1;
    json_auto_t *list = json_loadb(body.data ? body.data : "", body.len, 0, NULL);
    const json_t *pod;
    size_t i;
    json_array_foreach(json_object_get(list, "items"), i, pod)
    {
        add_node(job, pod);
    }
    gs_buf_puts(more, lookup_text(list, "metadata", "continue", NULL));
    return gs_buf_failed(more) ? gs_fail_nomem(err) : 0;
}

static int list_nodes(struct job *job, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf more = GS_BUF(8 << 10);
    do {
        if (list_page(job, &more, err) < 0)
            return -1;
    } while (more.len);
    return 0;
}

/* Asked once, so that nobody without the right asks thousands: what a node refuses says nothing
 * of the others, since its answer may be anybody's. */
static int check_right(const struct job *job, struct gs_error *err)
{
    const char *ns = job->query->system_ns;
    struct gs_error unasked = {0};
    json_auto_t *review =
        json_pack("{s:s,s:s,s:{s:{s:s,s:s,s:s,s:s}}}", "apiVersion", "authorization.k8s.io/v1",
                  "kind", "SelfSubjectAccessReview", "spec", "resourceAttributes", "verb", "get",
                  "resource", "pods", "subresource", "proxy", "namespace", ns);
    _cleanup_free_ char *text = review ? json_dumps(review, JSON_COMPACT) : NULL;
    if (!text)
        return gs_fail_nomem(err);
    int allowed =
        lookup_allowed(job->query->source, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                       text, time_left(job), &unasked);
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

/* ---- looking up ---- */

const struct usage_node *usage_node_find(const struct usage *usage, const char *name)
{
    struct usage_node *node = NULL;
    if (usage)
        HASH_FIND(hh, usage->nodes, name, strlen(name), node);
    return node && node->answered ? node : NULL;
}

const struct usage_pod *usage_pod_find(const struct usage *usage, const char *node, const char *uid)
{
    struct usage_pod *pod = NULL;
    char key[KEY_BYTES];
    if (usage && put_key(node, uid, key))
        HASH_FIND(hh, usage->pods, key, strlen(key), pod);
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
