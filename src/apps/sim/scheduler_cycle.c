/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/log.h"
#include "gpushare/base/splitmix.h"
#include "sim/rest.h"
#include "sim/scheduler.h"

/* One pod's scheduling cycle: filter, prioritize and bind, as kube-scheduler asks an extender. */

#define VERBS "/gpushare-scheduler/"

/* One pod on its way through the cycle. */
struct cycle {
    struct sched *sched;
    struct sched_pod *pod;
    json_t *object;   /* the pod as the API has it now */
    json_t *feasible; /* node names */
    struct sched_reasons reasons;
    bool managed; /* asks for GPU memory: the extender's business */
    struct gs_error err;
};

static int fail_extender(struct cycle *cycle, const char *verb, const char *error)
{
    return gs_fail(&cycle->err, GS_EIO, "extender %s: %.180s", verb, error);
}

/* ---- the extender's verbs (pkg/scheduler/extender.go) ---- */

static json_t *extender_args(const struct cycle *cycle)
{
    json_t *args = json_object();
    json_object_set(args, "Pod", cycle->object);
    json_object_set_new(args, "Nodes", json_null());
    json_object_set(args, "NodeNames", cycle->feasible);
    return args;
}

static void count_failed(struct cycle *cycle, json_t *failed, const json_t *counted)
{
    const char *node;
    json_t *reason;
    json_object_foreach(failed, node, reason)
    {
        if (!json_object_get(counted, node))
            sched_reasons_add(&cycle->reasons,
                              json_is_string(reason) ? json_string_value(reason) : "");
    }
}

static int ask_filter(struct cycle *cycle)
{
    json_auto_t *args = extender_args(cycle), *answer = NULL;
    if (rest_call(cycle->sched->extender, "POST", VERBS "filter", NULL, args, &answer,
                  &cycle->err) < 0)
        return gs_error_prefix(&cycle->err, "extender filter");
    if (rest_text(answer, "Error")[0])
        return fail_extender(cycle, "filter", rest_text(answer, "Error"));
    /* A node in both maps counts once, with the words of the unresolvable one. */
    json_t *never = json_object_get(answer, "FailedAndUnresolvableNodes");
    count_failed(cycle, never, NULL);
    count_failed(cycle, json_object_get(answer, "FailedNodes"), never);
    json_t *names = json_object_get(answer, "NodeNames");
    json_decref(cycle->feasible);
    cycle->feasible = json_is_array(names) ? json_incref(names) : json_array();
    return 0;
}

/* The best score; of equal ones each with the same chance, as selectHost() has it. */
static const char *best_host(struct cycle *cycle, const json_t *priorities)
{
    const char *best = NULL;
    json_int_t best_score = 0;
    uint64_t equals = 0;
    json_t *entry;
    size_t i;
    json_array_foreach((json_t *)priorities, i, entry)
    {
        json_int_t score = json_integer_value(json_object_get(entry, "Score"));
        const char *host = rest_text(entry, "Host");
        if (!best || score > best_score) {
            best = host;
            best_score = score;
            equals = 1;
        } else if (score == best_score && gs_splitmix_next(&cycle->sched->random) % ++equals == 0) {
            best = host;
        }
    }
    return best;
}

/* A copy of the chosen node's name; NULL with the error set. kube-scheduler asks for scores only
 * when there is a choice. */
static char *choose(struct cycle *cycle)
{
    size_t count = json_array_size(cycle->feasible);
    if (count == 1)
        return strdup(json_string_value(json_array_get(cycle->feasible, 0)));
    if (!cycle->managed) {
        size_t at = (size_t)(gs_splitmix_next(&cycle->sched->random) % count);
        return strdup(json_string_value(json_array_get(cycle->feasible, at)));
    }
    json_auto_t *args = extender_args(cycle), *answer = NULL;
    if (rest_call(cycle->sched->extender, "POST", VERBS "prioritize", NULL, args, &answer,
                  &cycle->err) < 0) {
        gs_error_prefix(&cycle->err, "extender prioritize");
        return NULL;
    }
    const char *best = best_host(cycle, answer);
    if (!best)
        fail_extender(cycle, "prioritize", "no scores");
    return best ? strdup(best) : NULL;
}

static int bind_by_extender(struct cycle *cycle, const char *node)
{
    const struct sched_pod *pod = cycle->pod;
    json_auto_t *answer = NULL;
    json_auto_t *args = json_pack("{s:s,s:s,s:s,s:s}", "PodName", pod->name, "PodNamespace",
                                  pod->ns, "PodUID", pod->uid, "Node", node);
    if (rest_call(cycle->sched->extender, "POST", VERBS "bind", NULL, args, &answer, &cycle->err) <
        0)
        return gs_error_prefix(&cycle->err, "extender bind");
    return rest_text(answer, "Error")[0] ? fail_extender(cycle, "bind", rest_text(answer, "Error"))
                                         : 0;
}

static int bind_by_api(struct cycle *cycle, const char *node)
{
    struct gs_kube kube = gs_kube_client_port(cycle->sched->api);
    const struct gs_binding binding = {
        .ns = cycle->pod->ns, .name = cycle->pod->name, .uid = cycle->pod->uid, .node = node};
    return kube.ops->bind(kube.ctx, &binding, &cycle->err);
}

/* ---- the cycle ---- */

static bool names_gpu(const struct sched *sched, const json_t *amounts)
{
    return json_object_get(amounts, sched->names.gpu_mem) ||
           json_object_get(amounts, sched->names.gpu_cores);
}

static bool asks_for_gpu(const struct sched *sched, const json_t *pod)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const json_t *spec = rest_member(pod, "spec", NULL);
    for (size_t which = 0; which < 2; which++) {
        json_t *container;
        size_t i;
        json_array_foreach(json_object_get(spec, lists[which]), i, container)
        {
            const json_t *requests = rest_member(container, "resources", "requests", NULL);
            const json_t *limits = rest_member(container, "resources", "limits", NULL);
            if (names_gpu(sched, requests) || names_gpu(sched, limits))
                return true;
        }
    }
    return false;
}

/* Of everything that kube-scheduler looks at when it asks whether a refused pod changed: all but
 * status, version and managed fields (isPodUpdated in eventhandlers.go). */
static uint64_t fingerprint(const json_t *object)
{
    json_auto_t *copy = json_deep_copy(object);
    json_t *meta = rest_member(copy, "metadata", NULL);
    json_object_del(copy, "status");
    json_object_del(meta, "resourceVersion");
    json_object_del(meta, "managedFields");
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t hash = text ? gs_hash_text(text) : 0;
    free(text);
    return hash;
}

/* false: nothing to schedule any more. */
static bool read_pod(struct cycle *cycle)
{
    char path[600];
    const struct sched_pod *pod = cycle->pod;
    snprintf(path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", pod->ns, pod->name);
    if (rest_call(cycle->sched->api, "GET", path, NULL, NULL, &cycle->object, &cycle->err) < 0) {
        if (cycle->err.code == GS_ENOENT)
            sched_forget(cycle->sched, pod);
        else
            sched_back_off(cycle->sched, pod);
        return false;
    }
    const json_t *meta = rest_member(cycle->object, "metadata", NULL);
    const json_t *spec = rest_member(cycle->object, "spec", NULL);
    const char *node = rest_text(spec, "nodeName");
    if (strcmp(rest_text(meta, "uid"), pod->uid) != 0) {
        sched_forget(cycle->sched, pod);
        return false;
    }
    if (node[0]) {
        sched_assume(cycle->sched, pod, node);
        return false;
    }
    if (strcmp(rest_text(spec, "schedulerName"), cycle->sched->set.scheduler_name) != 0 ||
        json_array_size(json_object_get(spec, "schedulingGates")) > 0) {
        sched_park(cycle->sched, pod, fingerprint(cycle->object));
        return false;
    }
    return true;
}

static void give_up(struct cycle *cycle)
{
    _cleanup_free_ char *words = sched_reasons_text(&cycle->reasons, cycle->sched->node_count);
    cycle->sched->refused++;
    gs_log(GS_LOG_INFO, "unschedulable", GS_STR("namespace", cycle->pod->ns),
           GS_STR("pod", cycle->pod->name), GS_STR("why", words));
    sched_report_failed(cycle->sched, cycle->pod, cycle->object, "Unschedulable",
                        words ? words : "");
    sched_park(cycle->sched, cycle->pod, fingerprint(cycle->object));
}

static void try_later(struct cycle *cycle)
{
    cycle->sched->errors++;
    gs_log(GS_LOG_WARN, "cannot schedule now", GS_STR("namespace", cycle->pod->ns),
           GS_STR("pod", cycle->pod->name), GS_STR("why", cycle->err.msg));
    sched_report_failed(cycle->sched, cycle->pod, cycle->object, "SchedulerError", cycle->err.msg);
    sched_back_off(cycle->sched, cycle->pod);
}

static int place(struct cycle *cycle)
{
    cycle->feasible = sched_feasible(cycle->sched, cycle->object, cycle->pod, &cycle->reasons);
    cycle->managed = cycle->sched->extender && asks_for_gpu(cycle->sched, cycle->object);
    if (cycle->managed && json_array_size(cycle->feasible) > 0 && ask_filter(cycle) < 0)
        return -1;
    if (json_array_size(cycle->feasible) == 0) {
        give_up(cycle);
        return 0;
    }
    _cleanup_free_ char *node = choose(cycle);
    if (!node)
        return cycle->err.code ? -1 : gs_fail_nomem(&cycle->err);
    if ((cycle->managed ? bind_by_extender(cycle, node) : bind_by_api(cycle, node)) < 0)
        return -1;
    cycle->sched->bound++;
    sched_assume(cycle->sched, cycle->pod, node);
    gs_log(GS_LOG_INFO, "bound", GS_STR("namespace", cycle->pod->ns),
           GS_STR("pod", cycle->pod->name), GS_STR("node", node));
    sched_report_bound(cycle->sched, cycle->pod, node);
    return 0;
}

void sched_cycle(struct sched *sched, struct sched_pod *pod)
{
    struct cycle cycle = {.sched = sched, .pod = pod};
    if (sched_nodes_refresh(sched, &cycle.err) < 0) {
        sched_back_off(sched, pod);
        return;
    }
    if (read_pod(&cycle)) {
        if (!pod->touched) {
            if (place(&cycle) < 0)
                try_later(&cycle);
        } else if (fingerprint(cycle.object) != pod->fingerprint) {
            sched_unpark(sched, pod);
        }
    }
    json_decref(cycle.object);
    json_decref(cycle.feasible);
    json_decref(cycle.reasons.counts);
}
