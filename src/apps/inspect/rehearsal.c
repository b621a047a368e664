/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/rehearsal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "gpushare/sim/port.h"
#include "inspect/lookup.h"

#define REPLICA_NAMESPACE "what-if"

struct rehearsal {
    const struct gs_names *names;
    struct gs_sim_cluster *cluster;
    struct gs_sim_port *port;
    struct gs_service *service;
    json_t *nodes; /* names that took the last replica's filter; memory only gets less */
    uint32_t made;
};

int rehearsal_new(const struct gs_names *names, enum gs_placement policy, struct rehearsal **ret,
                  struct gs_error *err)
{
    struct rehearsal *made = calloc(1, sizeof(*made));
    if (!made)
        return gs_fail_nomem(err);
    made->names = names;
    made->nodes = json_array();
    if (gs_sim_cluster_new(&(struct gs_sim_options){0}, &made->cluster, err) < 0 ||
        gs_sim_port_new(made->cluster, names, &made->port, err) < 0) {
        rehearsal_free(made);
        return -1;
    }
    const struct gs_service_config config = {
        .names = names,
        .clock = gs_sim_cluster_clock(made->cluster),
        .kube = gs_sim_port_kube(made->port),
        .policy = policy,
        .quantise = GS_QUANTISE_ONE_HOT,
    };
    made->service = gs_service_new(&config, err);
    if (!made->service || !made->nodes) {
        rehearsal_free(made);
        return gs_fail_nomem(err);
    }
    *ret = made;
    return 0;
}

void rehearsal_free(struct rehearsal *rehearsal)
{
    if (!rehearsal)
        return;
    json_decref(rehearsal->nodes);
    gs_service_freep(&rehearsal->service);
    gs_sim_port_freep(&rehearsal->port);
    gs_sim_cluster_freep(&rehearsal->cluster);
    free(rehearsal);
}

struct gs_watch_sink rehearsal_sink(struct rehearsal *rehearsal)
{
    return gs_service_sink(rehearsal->service);
}

int rehearsal_node(struct rehearsal *rehearsal, const char *name, struct gs_error *err)
{
    return json_array_append_new(rehearsal->nodes, json_string(name)) < 0 ? gs_fail_nomem(err) : 0;
}

/* ---- the pod ---- */

static json_t *pod_tree(const struct rehearsal *rehearsal, const struct rehearsal_ask *ask)
{
    const struct gs_names *names = rehearsal->names;
    char name[32], count[16];
    snprintf(name, sizeof(name), "replica-%" PRIu32, rehearsal->made);
    snprintf(count, sizeof(count), "%" PRIu32, ask->gpu_count);
    json_int_t units = (json_int_t)ask->units * ask->gpu_count;
    json_t *tree =
        json_pack("{s:{s:s,s:s,s:{s:s},s:{}},s:{s:[{s:s,s:{s:{s:I}}}]}}", "metadata", "name", name,
                  "namespace", REPLICA_NAMESPACE, "labels", names->gpu_count, count, "annotations",
                  "spec", "containers", "name", "c", "resources", "limits", names->gpu_mem, units);
    if (tree && ask->model)
        json_object_set_new(json_object_get(json_object_get(tree, "metadata"), "annotations"),
                            names->model, json_string(ask->model));
    return tree;
}

/* Creates the next replica; the API's form of it, or NULL. */
static json_t *create_pod(struct rehearsal *rehearsal, const struct rehearsal_ask *ask,
                          struct gs_error *err)
{
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *object = NULL;
    json_auto_t *tree = pod_tree(rehearsal, ask);
    _cleanup_free_ char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
    if (!text) {
        gs_fail_nomem(err);
        return NULL;
    }
    rehearsal->made++;
    if (gs_sim_create(rehearsal->cluster, GS_SIM_PODS, REPLICA_NAMESPACE, gs_slice_of(text),
                      &object, err) < 0)
        return NULL;
    json_t *made = json_loadb(object->json, object->json_len, 0, NULL);
    if (!made)
        gs_fail_nomem(err);
    return made;
}

/* ---- the cycle ---- */

typedef int verb_fn(struct gs_service *service, const char *body, size_t len, struct gs_buf *answer,
                    struct gs_error *err);

/* The decoded answer; NULL when there is none, or an Error in it. */
static json_t *ask_service(struct rehearsal *rehearsal, verb_fn *verb, const json_t *args,
                           struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(SOURCE_BODY_MAX);
    _cleanup_free_ char *body = args ? json_dumps(args, JSON_COMPACT) : NULL;
    if (!body) {
        gs_fail_nomem(err);
        return NULL;
    }
    if (verb(rehearsal->service, body, strlen(body), &answer, err) < 0)
        return NULL;
    json_t *tree = json_loadb(answer.data, answer.len, 0, NULL);
    const char *error = lookup_text(tree, "Error", NULL);
    if (tree && !error[0])
        return tree;
    json_decref(tree);
    gs_fail(err, GS_EINTERNAL, "%.200s", error[0] ? error : "the service's answer is no JSON");
    return NULL;
}

static json_t *filter_args(const struct rehearsal *rehearsal, json_t *pod)
{
    return json_pack("{s:O,s:n,s:O}", "Pod", pod, "Nodes", "NodeNames", rehearsal->nodes);
}

static int filter(struct rehearsal *rehearsal, json_t *pod, struct gs_error *err)
{
    json_auto_t *args = filter_args(rehearsal, pod);
    json_auto_t *answer = ask_service(rehearsal, gs_service_filter, args, err);
    if (!answer)
        return -1;
    json_t *left = json_object_get(answer, "NodeNames");
    json_decref(rehearsal->nodes);
    rehearsal->nodes = json_is_array(left) ? json_incref(left) : json_array();
    return 0;
}

/* The best node, the first of equals: borrowed from *answer. */
static const char *best(const json_t *answer)
{
    const char *host = NULL;
    json_int_t score = -1;
    size_t i;
    json_t *entry;
    json_array_foreach(answer, i, entry)
    {
        json_int_t own = json_integer_value(json_object_get(entry, "Score"));
        if (own > score) {
            score = own;
            host = lookup_text(entry, "Host", NULL);
        }
    }
    return host;
}

static int bind_best(struct rehearsal *rehearsal, json_t *pod, struct gs_error *err)
{
    const json_t *meta = json_object_get(pod, "metadata");
    json_auto_t *args = filter_args(rehearsal, pod);
    json_auto_t *scores = ask_service(rehearsal, gs_service_prioritize, args, err);
    const char *node = scores ? best(scores) : NULL;
    if (!node)
        return gs_fail(err, GS_EINTERNAL, "prioritize gave no scores");
    json_auto_t *binding =
        json_pack("{s:s,s:s,s:s,s:s}", "PodName", lookup_text(meta, "name", NULL), "PodNamespace",
                  REPLICA_NAMESPACE, "PodUID", lookup_text(meta, "uid", NULL), "Node", node);
    json_auto_t *answer = ask_service(rehearsal, gs_service_bind, binding, err);
    return answer ? 0 : -1;
}

int rehearsal_place(struct rehearsal *rehearsal, const struct rehearsal_ask *ask,
                    struct gs_pod *pod, struct gs_error *err)
{
    const struct gs_kube kube = gs_sim_port_kube(rehearsal->port);
    if (rehearsal->made == 0)
        gs_service_tick(rehearsal->service); /* fgd and rollout take in what they learnt */
    json_auto_t *tree = create_pod(rehearsal, ask, err);
    if (!tree || filter(rehearsal, tree, err) < 0)
        return -1;
    if (json_array_size(rehearsal->nodes) == 0)
        return 0;
    if (bind_best(rehearsal, tree, err) < 0)
        return -1;
    gs_pod_reset(pod);
    const char *name = lookup_text(tree, "metadata", "name", NULL);
    return kube.ops->get_pod(kube.ctx, REPLICA_NAMESPACE, name, pod, err) < 0 ? -1 : 1;
}
