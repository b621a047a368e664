/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/index.h"
#include "gpushare/base/log.h"
#include "gpushare/base/splitmix.h"
#include "gpushare/codec/patch.h"
#include "gpushare/codec/rfc3339.h"
#include "gpushare/model/charge.h"

#define VERBS "/gpushare-scheduler/"

static int64_t now_ns(void)
{
    return gs_clock_now_ns(gs_clock_system());
}

/* One pod on its way through a scheduling cycle. */
struct cycle {
    struct sched *sched;
    const struct gs_pod *pod;
    json_t *object;
    struct sched_use asks;
    json_t *feasible; /* node names */
    json_t *reasons;  /* reason → how many nodes gave it */
    struct gs_error err;
};

static struct sched_use asks_of(const struct gs_pod *pod)
{
    struct gs_charge charge;
    gs_pod_charge(pod, &charge);
    return (struct sched_use){
        .cpu_milli = gs_pod_cpu_milli(pod),
        .memory_bytes = gs_pod_memory_bytes(pod),
        .gpu_units = (uint64_t)charge.units * charge.gpu_count,
        .cores_pct = (uint64_t)charge.cores_pct * charge.gpu_count,
    };
}

static void use(struct sched *sched, const char *node, const struct sched_use *asks)
{
    struct sched_use *used = &sched->used[world_find_node(&sched->world, node)];
    used->cpu_milli += asks->cpu_milli;
    used->memory_bytes += asks->memory_bytes;
    used->gpu_units += asks->gpu_units;
    used->cores_pct += asks->cores_pct;
}

/* ---- which nodes: NodeUnschedulable, NodeAffinity, TaintToleration, NodeResourcesFit ---- */

static void add_reason(struct cycle *cycle, const char *reason)
{
    json_int_t count = json_integer_value(json_object_get(cycle->reasons, reason));
    json_object_set_new(cycle->reasons, reason, json_integer(count + 1));
}

/* Every resource that is short is a reason of its own. */
static bool short_of(struct cycle *cycle, const char *resource, uint64_t asks, uint64_t used,
                     uint64_t total)
{
    char text[GS_NAME_BYTES + 16];
    if (!asks || used + asks <= total)
        return false;
    snprintf(text, sizeof(text), "Insufficient %s", resource);
    add_reason(cycle, text);
    return true;
}

static bool node_fits(struct cycle *cycle, size_t at)
{
    const struct gs_node *node = &cycle->sched->world.nodes[at];
    const struct sched_use *used = &cycle->sched->used[at], *asks = &cycle->asks;
    const struct gs_names *names = &cycle->sched->names;
    enum gs_eligible verdict = gs_eligible(&cycle->pod->rules, &node->rules);
    if (!gs_eligible_perhaps(verdict)) {
        add_reason(cycle, gs_eligible_text(verdict));
        return false;
    }
    bool lacks = short_of(cycle, "cpu", (uint64_t)asks->cpu_milli, (uint64_t)used->cpu_milli,
                          (uint64_t)node->cpu_milli);
    lacks |= short_of(cycle, "memory", (uint64_t)asks->memory_bytes, (uint64_t)used->memory_bytes,
                      (uint64_t)node->memory_bytes);
    lacks |=
        short_of(cycle, names->gpu_mem, asks->gpu_units, used->gpu_units, node->allocatable_units);
    lacks |= short_of(cycle, names->gpu_cores, asks->cores_pct, used->cores_pct,
                      node->capacity_cores_pct);
    return !lacks;
}

/* ---- the extender's verbs (pkg/scheduler/extender.go) ---- */

static int ask(struct cycle *cycle, const char *verb, const json_t *args, json_t **ret_answer)
{
    char path[64];
    snprintf(path, sizeof(path), VERBS "%s", verb);
    if (rest_call(cycle->sched->extender, "POST", path, NULL, args, ret_answer, &cycle->err) < 0)
        return gs_error_prefix(&cycle->err, "extender %s", verb);
    const char *error = gs_sim_tree_str(*ret_answer, "Error");
    return error[0] ? gs_fail(&cycle->err, GS_EIO, "extender %s: %.180s", verb, error) : 0;
}

static json_t *extender_args(const struct cycle *cycle)
{
    return json_pack("{s:O,s:n,s:O}", "Pod", cycle->object, "Nodes", "NodeNames", cycle->feasible);
}

static void count_failed(struct cycle *cycle, json_t *failed, const json_t *counted)
{
    const char *node;
    json_t *reason;
    json_object_foreach(failed, node, reason)
    {
        if (!json_object_get(counted, node))
            add_reason(cycle, json_is_string(reason) ? json_string_value(reason) : "");
    }
}

static int ask_filter(struct cycle *cycle)
{
    json_auto_t *args = extender_args(cycle), *answer = NULL;
    if (ask(cycle, "filter", args, &answer) < 0)
        return -1;
    /* A node in both maps counts once, with the words of the unresolvable one. */
    json_t *never = json_object_get(answer, "FailedAndUnresolvableNodes");
    count_failed(cycle, never, NULL);
    count_failed(cycle, json_object_get(answer, "FailedNodes"), never);
    json_t *names = json_object_get(answer, "NodeNames");
    json_decref(cycle->feasible);
    cycle->feasible = json_is_array(names) ? json_incref(names) : json_array();
    return 0;
}

/* node → score */
static json_t *ask_scores(struct cycle *cycle)
{
    json_auto_t *args = extender_args(cycle), *answer = NULL;
    if (ask(cycle, "prioritize", args, &answer) < 0)
        return NULL;
    json_t *scores = json_object(), *entry;
    size_t i;
    json_array_foreach(answer, i, entry)
    {
        json_object_set(scores, gs_sim_tree_str(entry, "Host"), json_object_get(entry, "Score"));
    }
    return scores;
}

/* The node with the best score, 0 where it is not named; of equal ones each with the same chance,
 * as selectHost() has it. NULL with the error set. kube-scheduler asks for scores only when there
 * is a choice. */
static const char *choose(struct cycle *cycle, bool managed)
{
    json_auto_t *scores = NULL;
    if (managed && json_array_size(cycle->feasible) > 1 && !(scores = ask_scores(cycle)))
        return NULL;
    const char *best = NULL;
    json_int_t best_score = 0;
    uint64_t equals = 0;
    json_t *name;
    size_t i;
    json_array_foreach(cycle->feasible, i, name)
    {
        json_int_t score = json_integer_value(json_object_get(scores, json_string_value(name)));
        if (best &&
            (score < best_score ||
             (score == best_score && gs_splitmix_next(&cycle->sched->random) % ++equals != 0)))
            continue;
        if (!best || score > best_score)
            equals = 1;
        best = json_string_value(name);
        best_score = score;
    }
    return best;
}

static int bind_pod(struct cycle *cycle, const char *node, bool managed)
{
    const struct gs_pod *pod = cycle->pod;
    struct gs_kube kube = gs_kube_client_port(cycle->sched->api);
    json_auto_t *answer = NULL;
    json_auto_t *args = json_pack("{s:s,s:s,s:s,s:s}", "PodName", pod->name, "PodNamespace",
                                  pod->ns, "PodUID", pod->uid, "Node", node);
    if (managed)
        return ask(cycle, "bind", args, &answer);
    const struct gs_binding binding = {
        .ns = pod->ns, .name = pod->name, .uid = pod->uid, .node = node};
    return kube.ops->bind(kube.ctx, &binding, &cycle->err);
}

/* ---- what the pod's owner hears: condition PodScheduled and Event ---- */

static void send_event(const struct cycle *cycle, bool warning, const char *reason,
                       const char *message)
{
    const struct gs_pod *pod = cycle->pod;
    struct gs_kube kube = gs_kube_client_port(cycle->sched->api);
    const struct gs_event event = {.kind = "Pod",
                                   .ns = pod->ns,
                                   .name = pod->name,
                                   .uid = pod->uid,
                                   .warning = warning,
                                   .reason = reason,
                                   .message = message,
                                   .component = cycle->sched->set.scheduler_name};
    kube.ops->create_event(kube.ctx, &event, NULL);
}

/* reason "Unschedulable" or "SchedulerError" */
static void report_failed(const struct cycle *cycle, const char *reason, const char *message)
{
    char path[600], now[GS_RFC3339_BYTES];
    const struct gs_clock *clock = gs_clock_system();
    gs_log(GS_LOG_INFO, reason, GS_STR("namespace", cycle->pod->ns),
           GS_STR("pod", cycle->pod->name), GS_STR("message", message));
    send_event(cycle, true, "FailedScheduling", message);
    gs_rfc3339_format(clock->wall_ns(clock->ctx), 0, now);
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s/status", cycle->pod->ns,
             cycle->pod->name);
    json_auto_t *patch =
        json_pack("{s:{s:s},s:{s:[{s:s,s:s,s:s,s:s,s:s}]}}", "metadata", "uid", cycle->pod->uid,
                  "status", "conditions", "type", "PodScheduled", "status", "False", "reason",
                  reason, "message", message, "lastTransitionTime", now);
    rest_call(cycle->sched->api, "PATCH", path, GS_TYPE_STRATEGIC_PATCH, patch, NULL, NULL);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "0/3 nodes are available: 1 Insufficient cpu, 2 ….": FitError.Error(),
 * pkg/scheduler/framework/types.go. */
static void put_reasons(const struct cycle *cycle, struct gs_buf *out)
{
    char **lines = calloc(json_object_size(cycle->reasons) + 1, sizeof(*lines));
    size_t count = 0;
    const char *reason;
    json_t *number;
    gs_buf_printf(out, "0/%zu nodes are available", cycle->sched->world.node_count);
    json_object_foreach(cycle->reasons, reason, number)
    {
        if (lines &&
            asprintf(&lines[count], "%lld %s", (long long)json_integer_value(number), reason) >= 0)
            count++;
    }
    qsort(lines, count, sizeof(*lines), by_text);
    for (size_t i = 0; i < count; i++) {
        gs_buf_printf(out, "%s%s", i ? ", " : ": ", lines[i]);
        free(lines[i]);
    }
    free(lines);
    gs_buf_putc(out, '.');
}

/* ---- the cycle ---- */

enum outcome { BOUND, REFUSED, FAILED };

static enum outcome place(struct cycle *cycle)
{
    struct sched *sched = cycle->sched;
    bool managed = sched->extender && cycle->pod->names_gpu;
    for (size_t i = 0; i < sched->world.node_count; i++) {
        if (node_fits(cycle, i))
            json_array_append_new(cycle->feasible, json_string(sched->world.nodes[i].name));
    }
    if (managed && json_array_size(cycle->feasible) > 0 && ask_filter(cycle) < 0)
        return FAILED;
    if (json_array_size(cycle->feasible) == 0)
        return REFUSED;
    const char *node = choose(cycle, managed);
    if (!node || bind_pod(cycle, node, managed) < 0)
        return FAILED;
    char message[700];
    snprintf(message, sizeof(message), "Successfully assigned %s/%s to %s", cycle->pod->ns,
             cycle->pod->name, node);
    send_event(cycle, false, "Scheduled", message);
    use(sched, node, &cycle->asks);
    return BOUND;
}

static enum outcome schedule_pod(struct sched *sched, size_t at)
{
    const struct gs_pod *pod = &sched->world.pods[at];
    struct gs_buf text = GS_BUF(1 << 20);
    struct cycle cycle = {.sched = sched,
                          .pod = pod,
                          .object = json_array_get(sched->world.pod_objects, at),
                          .asks = asks_of(pod),
                          .feasible = json_array(),
                          .reasons = json_object()};
    enum outcome outcome = place(&cycle);
    if (outcome == REFUSED) {
        put_reasons(&cycle, &text);
        report_failed(&cycle, "Unschedulable", gs_buf_failed(&text) ? "" : text.data);
    } else if (outcome == FAILED) {
        report_failed(&cycle, "SchedulerError", cycle.err.msg);
    }
    gs_buf_release(&text);
    json_decref(cycle.feasible);
    json_decref(cycle.reasons);
    return outcome;
}

/* ---- the queue ---- */

/* Of everything that kube-scheduler looks at when it asks whether a refused pod changed: all but
 * status, version and managed fields (isPodUpdated in eventhandlers.go). */
static json_int_t fingerprint(const json_t *object)
{
    json_auto_t *copy = json_deep_copy(object);
    json_t *meta = gs_sim_tree_object(copy, "metadata");
    json_object_del(copy, "status");
    json_object_del(meta, "resourceVersion");
    json_object_del(meta, "managedFields");
    _cleanup_free_ char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    return text ? (json_int_t)gs_hash_text(text) : 0;
}

static json_int_t number_of(const json_t *tried, const char *key)
{
    return json_integer_value(json_object_get(tried, key));
}

/* One that was refused is tried again when it changed itself, and after a pause when there may be
 * room; one that failed after a pause. */
static bool ready(const struct sched *sched, size_t at, int64_t *again_ns)
{
    const json_t *tried = json_object_get(sched->tried, sched->world.pods[at].uid);
    if (!tried ||
        number_of(tried, "object") != fingerprint(json_array_get(sched->world.pod_objects, at)))
        return true;
    if (number_of(tried, "room") == (json_int_t)sched->room)
        return false;
    int64_t after = number_of(tried, "after");
    if (after > now_ns()) {
        *again_ns = after < *again_ns ? after : *again_ns;
        return false;
    }
    return true;
}

static void try_pod(struct sched *sched, size_t at, int64_t *again_ns)
{
    enum outcome outcome = schedule_pod(sched, at);
    int64_t after = now_ns() + sched->set.backoff_ns;
    sched->bound += outcome == BOUND;
    sched->errors += outcome == FAILED;
    sched->waiting -= outcome == BOUND;
    if (outcome == FAILED && after < *again_ns)
        *again_ns = after;
    json_object_set_new(sched->tried, sched->world.pods[at].uid,
                        json_pack("{s:I,s:I,s:I}", "object",
                                  fingerprint(json_array_get(sched->world.pod_objects, at)), "room",
                                  outcome == FAILED ? (json_int_t)-1 : (json_int_t)sched->room,
                                  "after", (json_int_t)after));
}

/* A pod that is gone, or any node that was written, may make room. */
static int count_uses(struct sched *sched, struct gs_error *err)
{
    json_auto_t *running = json_object();
    const char *uid;
    json_t *value;
    uint64_t hash = sched->world.node_count;
    free(sched->used);
    sched->used = calloc(sched->world.node_count + 1, sizeof(*sched->used));
    if (!sched->used || !running)
        return gs_fail_nomem(err);
    for (size_t i = 0; i < sched->world.node_count; i++) {
        hash = hash * 31 + gs_hash_text(sched->world.nodes[i].resource_version);
    }
    for (size_t i = 0; i < sched->world.pod_count; i++) {
        const struct gs_pod *pod = &sched->world.pods[i];
        const struct sched_use asks = asks_of(pod);
        if (!pod->node_name[0] || gs_pod_terminal(pod))
            continue;
        use(sched, pod->node_name, &asks);
        json_object_set_new(running, pod->uid, json_true());
    }
    sched->room += hash != sched->nodes_hash;
    sched->nodes_hash = hash;
    json_object_foreach(sched->running, uid, value)
    {
        sched->room += !json_object_get(running, uid);
    }
    json_decref(sched->running);
    sched->running = gs_steal(&running);
    return 0;
}

static int by_queue(const void *a, const void *b, void *ctx)
{
    const struct gs_pod *pods = ctx;
    const struct gs_pod *left = &pods[*(const size_t *)a], *right = &pods[*(const size_t *)b];
    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    if (left->created_s != right->created_s)
        return left->created_s < right->created_s ? -1 : 1;
    uint64_t older = gs_pod_revision(left), newer = gs_pod_revision(right);
    return (older > newer) - (older < newer);
}

int sched_pass(struct sched *sched, size_t *ret_tries, int64_t *ret_again_ns, struct gs_error *err)
{
    *ret_tries = 0;
    *ret_again_ns = INT64_MAX;
    if (!sched->tried)
        sched->tried = json_object();
    world_release(&sched->world);
    if (world_read(sched->api, &sched->names, &sched->world, err) < 0 || count_uses(sched, err) < 0)
        return -1;
    _cleanup_free_ size_t *queue = calloc(sched->world.pod_count + 1, sizeof(*queue));
    if (!queue)
        return gs_fail_nomem(err);
    size_t count = 0;
    for (size_t i = 0; i < sched->world.pod_count; i++) {
        const struct gs_pod *pod = &sched->world.pods[i];
        if (!pod->node_name[0] && !gs_pod_terminal(pod) && !pod->deleting && !pod->gated &&
            strcmp(pod->scheduler_name, sched->set.scheduler_name) == 0)
            queue[count++] = i;
    }
    sched->waiting = count;
    qsort_r(queue, count, sizeof(*queue), by_queue, sched->world.pods);
    for (size_t i = 0; i < count; i++) {
        if (!ready(sched, queue[i], ret_again_ns))
            continue;
        try_pod(sched, queue[i], ret_again_ns);
        ++*ret_tries;
    }
    return 0;
}

void sched_release(struct sched *sched)
{
    world_release(&sched->world);
    free(sched->used);
    json_decref(sched->tried);
    json_decref(sched->running);
}
