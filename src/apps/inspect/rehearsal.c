/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/rehearsal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "gpushare/codec/scan.h"
#include "gpushare/sim/port.h"
#include "inspect/lookup.h"

#define REPLICA_NAMESPACE "what-if"

enum { NAME_BYTES = 256 };

struct rehearsal {
    const struct gs_names *names;
    struct gs_sim_cluster *cluster;
    struct gs_sim_port *port;
    struct gs_service *service;
    /* JSON array of the names that passed the last replica's filter, as the service wrote it;
     * memory only gets less */
    struct gs_buf nodes;
    struct gs_buf all; /* every node that may be used, as names with commas */
    uint32_t made;
};

int rehearsal_new(const struct gs_names *names, enum gs_placement policy, struct rehearsal **ret,
                  struct gs_error *err)
{
    struct rehearsal *made = calloc(1, sizeof(*made));
    if (!made)
        return gs_fail_nomem(err);
    made->names = names;
    made->nodes = GS_BUF(SOURCE_BODY_MAX);
    made->all = GS_BUF(SOURCE_BODY_MAX);
    /* Pods of the cluster that is looked at may be gpushare-sim's: the replicas get UIDs of their
     * own. */
    const struct gs_sim_options options = {.seed = 0x776861742d6966}; /* "what-if" */
    if (gs_sim_cluster_new(&options, &made->cluster, err) < 0 ||
        gs_sim_port_new(made->cluster, names, &made->port, err) < 0) {
        rehearsal_free(made);
        return -1;
    }
    const struct gs_service_config config = {
        .names = names,
        .clock = gs_sim_cluster_clock(made->cluster),
        .kube = gs_sim_port_kube(made->port),
        .policy = policy,
        .quantise = GS_QUANTISE_COARSE,
    };
    made->service = gs_service_new(&config, err);
    if (!made->service) {
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
    gs_buf_release(&rehearsal->nodes);
    gs_buf_release(&rehearsal->all);
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
    struct gs_buf *all = &rehearsal->all;
    if (all->len)
        gs_buf_putc(all, ',');
    gs_buf_json_string(all, name, strlen(name));
    return gs_buf_failed(all) ? gs_fail_nomem(err) : 0;
}

int rehearsal_begin(struct rehearsal *rehearsal, struct gs_error *err)
{
    struct gs_buf *nodes = &rehearsal->nodes;
    gs_service_tick(rehearsal->service); /* fgd and rollout take in what they learnt */
    gs_buf_reset(nodes);
    gs_buf_putc(nodes, '[');
    if (rehearsal->all.len)
        gs_buf_append(nodes, rehearsal->all.data, rehearsal->all.len);
    gs_buf_putc(nodes, ']');
    return gs_buf_failed(nodes) ? gs_fail_nomem(err) : 0;
}

/* ---- the pod ---- */

static bool annotate(json_t *annotations, const char *name, const char *text)
{
    return !text || !text[0] || json_object_set_new(annotations, name, json_string(text)) == 0;
}

static bool put_cores(const json_t *tree, const char *name, uint32_t cores_pct)
{
    const json_t *containers = json_object_get(json_object_get(tree, "spec"), "containers");
    const json_t *resources = json_object_get(json_array_get(containers, 0), "resources");
    return json_object_set_new(json_object_get(resources, "limits"), name,
                               json_integer(cores_pct)) == 0;
}

static json_t *pod_tree(const struct rehearsal *rehearsal, const struct rehearsal_ask *ask)
{
    const struct gs_names *names = rehearsal->names;
    char name[32], count[16], cpu[32];
    snprintf(name, sizeof(name), "replica-%" PRIu32, rehearsal->made);
    snprintf(count, sizeof(count), "%" PRIu32, ask->gpu_count);
    snprintf(cpu, sizeof(cpu), "%" PRId64 "m", ask->cpu_milli);
    json_int_t units = (json_int_t)ask->units * ask->gpu_count;
    json_t *tree =
        json_pack("{s:{s:s,s:s,s:{s:s},s:{}},s:{s:[{s:s,s:{s:{s:I},s:{s:s}}}]}}", "metadata",
                  "name", name, "namespace", REPLICA_NAMESPACE, "labels", names->gpu_count, count,
                  "annotations", "spec", "containers", "name", "c", "resources", "limits",
                  names->gpu_mem, units, "requests", "cpu", cpu);
    json_t *annotations = json_object_get(json_object_get(tree, "metadata"), "annotations");
    if (ask->cores_pct && !put_cores(tree, names->gpu_cores, ask->cores_pct)) {
        json_decref(tree);
        return NULL;
    }
    if (tree && annotate(annotations, names->model, ask->model) &&
        annotate(annotations, names->model_deny, ask->model_deny) &&
        annotate(annotations, names->uuid, ask->uuid) &&
        annotate(annotations, names->uuid_deny, ask->uuid_deny))
        return tree;
    json_decref(tree);
    return NULL;
}

static int create_pod(struct rehearsal *rehearsal, const struct rehearsal_ask *ask,
                      struct gs_sim_object **ret, struct gs_error *err)
{
    json_auto_t *tree = pod_tree(rehearsal, ask);
    _cleanup_free_ char *text = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
    if (!text)
        return gs_fail_nomem(err);
    rehearsal->made++;
    return gs_sim_create(rehearsal->cluster, GS_SIM_PODS, REPLICA_NAMESPACE, gs_slice_of(text), ret,
                         err);
}

/* ---- the cycle ---- */

typedef int verb_fn(struct gs_service *service, const char *body, size_t len, struct gs_buf *answer,
                    struct gs_error *err);

/* The answer of filter or prioritize about the nodes that are left. */
static int ask_nodes(struct rehearsal *rehearsal, verb_fn *verb, const char *pod,
                     struct gs_buf *answer, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(SOURCE_BODY_MAX);
    gs_buf_printf(&body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":", pod);
    gs_buf_append(&body, rehearsal->nodes.data, rehearsal->nodes.len);
    gs_buf_putc(&body, '}');
    if (gs_buf_failed(&body))
        return gs_fail_nomem(err);
    return verb(rehearsal->service, body.data, body.len, answer, err);
}

/* Takes an answer's Error as ours; 0 when there is none. */
static int check_error(struct gs_scan_text error, struct gs_error *err)
{
    char words[200] = "the service refused";
    if (!error.at || !error.len)
        return 0;
    gs_scan_text_copy(error, words, sizeof(words));
    return gs_fail(err, GS_EINTERNAL, "%s", words);
}

/* Leaves the nodes that pass; *ret_any: there are some. */
static int filter(struct rehearsal *rehearsal, const char *pod, bool *ret_any, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(SOURCE_BODY_MAX);
    struct gs_scan_text key, error = {0};
    struct gs_slice names = GS_SLICE("[]");
    struct gs_scan scan;
    if (ask_nodes(rehearsal, gs_service_filter, pod, &answer, err) < 0)
        return -1;
    gs_scan_init(&scan, (struct gs_slice){answer.data, answer.len});
    gs_scan_object(&scan, "the filter's answer");
    while (gs_scan_key(&scan, &key)) {
        if (gs_scan_text_is(key, "NodeNames") && !gs_scan_null(&scan))
            gs_scan_raw(&scan, &names);
        else if (gs_scan_text_is(key, "Error"))
            gs_scan_string(&scan, "Error", &error);
        else if (!gs_scan_text_is(key, "NodeNames"))
            gs_scan_skip(&scan);
    }
    if (gs_scan_finish(&scan, err) < 0 || check_error(error, err) < 0)
        return -1;
    gs_buf_reset(&rehearsal->nodes);
    gs_buf_append(&rehearsal->nodes, names.at, names.len);
    *ret_any = names.len > 2;
    return gs_buf_failed(&rehearsal->nodes) ? gs_fail_nomem(err) : 0;
}

static void read_score(struct gs_scan *scan, struct gs_scan_text *host, int64_t *score)
{
    struct gs_scan_text key;
    gs_scan_object(scan, "a score");
    while (gs_scan_key(scan, &key)) {
        if (gs_scan_text_is(key, "Host"))
            gs_scan_string(scan, "Host", host);
        else if (gs_scan_text_is(key, "Score"))
            gs_scan_i64(scan, "Score", score);
        else
            gs_scan_skip(scan);
    }
}

/* The node of the highest score, the first of equals. */
static int best_node(struct rehearsal *rehearsal, const char *pod, char ret[NAME_BYTES],
                     struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(SOURCE_BODY_MAX);
    struct gs_scan_text best = {0};
    int64_t best_score = -1;
    struct gs_scan scan;
    if (ask_nodes(rehearsal, gs_service_prioritize, pod, &answer, err) < 0)
        return -1;
    gs_scan_init(&scan, (struct gs_slice){answer.data, answer.len});
    gs_scan_array(&scan, "the scores");
    while (gs_scan_element(&scan)) {
        struct gs_scan_text host = {0};
        int64_t score = -1;
        read_score(&scan, &host, &score);
        if (score > best_score) {
            best_score = score;
            best = host;
        }
    }
    if (gs_scan_finish(&scan, err) < 0)
        return -1;
    if (!best.at || !gs_scan_text_copy(best, ret, NAME_BYTES))
        return gs_fail(err, GS_EINTERNAL, "prioritize named no node");
    return 0;
}

static int bind_to(struct rehearsal *rehearsal, const struct gs_sim_object *pod, const char *node,
                   struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(1 << 16);
    json_auto_t *args = json_pack("{s:s,s:s,s:s,s:s}", "PodName", pod->name, "PodNamespace",
                                  pod->ns, "PodUID", pod->uid, "Node", node);
    _cleanup_free_ char *body = args ? json_dumps(args, JSON_COMPACT) : NULL;
    if (!body)
        return gs_fail_nomem(err);
    if (gs_service_bind(rehearsal->service, body, strlen(body), &answer, err) < 0)
        return -1;
    json_auto_t *tree = json_loadb(answer.data, answer.len, 0, NULL);
    const char *error = lookup_text(tree, "Error", NULL);
    return error[0] ? gs_fail(err, GS_EINTERNAL, "%.200s", error) : 0;
}

int rehearsal_place(struct rehearsal *rehearsal, const struct rehearsal_ask *ask,
                    struct gs_pod *pod, struct gs_error *err)
{
    const struct gs_kube kube = gs_sim_port_kube(rehearsal->port);
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *made = NULL;
    char node[NAME_BYTES];
    bool any;
    if (create_pod(rehearsal, ask, &made, err) < 0 || filter(rehearsal, made->json, &any, err) < 0)
        return -1;
    if (!any)
        return 0;
    if (best_node(rehearsal, made->json, node, err) < 0 || bind_to(rehearsal, made, node, err) < 0)
        return -1;
    gs_pod_reset(pod);
    return kube.ops->get_pod(kube.ctx, made->ns, made->name, pod, err) < 0 ? -1 : 1;
}
