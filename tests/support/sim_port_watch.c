/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <time.h>

#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "sim_port_internal.h"

/*
 * gs_kube_ops.watch on the cluster's log: list, then changes; lists again when the log moved on or
 * the receiver could not take an object, and only resumes when the watch was cut.
 */
struct watcher {
    struct gs_sim_cluster *cluster;
    const struct gs_names *names;
    const struct gs_watch_spec *spec;
    const struct gs_watch_sink *sink;
    const atomic_bool *stop;
    struct gs_sim_query query;
    uint64_t version; /* where to resume; 0: list first */
    struct gs_pod pod;
    struct gs_node node;
};

enum { PAUSE_STEPS = 10 };

static bool stopped(const struct watcher *w)
{
    return atomic_load(w->stop);
}

static bool list_wanted(const struct watcher *w)
{
    return w->spec->list_wanted && atomic_load(w->spec->list_wanted);
}

/* Before listing again after a failure: 100 ms, less when stopped. */
static void pause_a_little(const struct watcher *w)
{
    for (int i = 0; i < PAUSE_STEPS && !stopped(w); i++)
        nanosleep(&(struct timespec){.tv_nsec = 100 * GS_NS_PER_MS / PAUSE_STEPS}, NULL);
}

static int deliver_pod(struct watcher *w, struct gs_slice text, bool gone, struct gs_error *err)
{
    struct gs_error own = {0};
    if (gs_codec_pod(w->names, text, &w->pod, &own) < 0)
        return own.code == GS_ENOMEM ? gs_fail_nomem(err) : 0;
    if (!gone && w->spec->skip_other_pods && !gs_pod_wants_gpu(&w->pod))
        return 0;
    int rc = gone ? w->sink->pod_gone(w->sink->ctx, &w->pod) : w->sink->pod(w->sink->ctx, &w->pod);
    return rc < 0 ? gs_fail(err, GS_ENOMEM, "the receiver could not take a pod") : 0;
}

static int deliver_node(struct watcher *w, struct gs_slice text, bool gone, struct gs_error *err)
{
    struct gs_error own = {0};
    if (gs_codec_node(w->names, text, &w->node, &own) < 0)
        return own.code == GS_ENOMEM ? gs_fail_nomem(err) : 0;
    int rc =
        gone ? w->sink->node_gone(w->sink->ctx, &w->node) : w->sink->node(w->sink->ctx, &w->node);
    return rc < 0 ? gs_fail(err, GS_ENOMEM, "the receiver could not take a node") : 0;
}

/* Objects that cannot be decoded are passed over, as by the curl client. */
static int deliver(struct watcher *w, const struct gs_sim_object *object, bool gone,
                   struct gs_error *err)
{
    struct gs_slice text = {object->json, object->json_len};
    return w->spec->kind == GS_KIND_POD ? deliver_pod(w, text, gone, err)
                                        : deliver_node(w, text, gone, err);
}

static int deliver_list(struct watcher *w, struct gs_error *err)
{
    struct gs_sim_list list;
    if (w->spec->list_wanted)
        atomic_store(w->spec->list_wanted, false);
    if (gs_sim_list(w->cluster, &w->query, 0, NULL, &list, err) < 0)
        return -1;
    int rc = w->sink->list_begin(w->sink->ctx, w->spec->kind);
    for (size_t i = 0; rc == 0 && i < list.count && !stopped(w); i++)
        rc = deliver(w, list.items[i], false, err);
    if (rc == 0 && !stopped(w))
        rc = w->sink->list_end(w->sink->ctx, w->spec->kind);
    w->version = list.version;
    gs_sim_list_release(&list);
    return rc < 0 ? gs_fail(err, GS_ENOMEM, "the receiver could not take the list") : 0;
}

/* Until stopped or told to list (0) or over (-1, *err says why). */
static int follow(struct watcher *w, struct gs_error *err)
{
    _cleanup_(gs_sim_watch_freep) struct gs_sim_watch *watch = NULL;
    if (gs_sim_watch_open(w->cluster, &w->query, w->version, &watch, err) < 0)
        return -1;
    w->sink->live(w->sink->ctx, w->spec->kind, true, "");
    while (!stopped(w) && !list_wanted(w)) {
        struct gs_sim_event event;
        int rc = gs_sim_watch_next(watch, 3600 * GS_NS_PER_S, &event, err);
        if (rc > 0) {
            rc = deliver(w, event.object, event.change == GS_SIM_DELETED, err);
            gs_sim_object_unref(event.object);
        }
        if (rc < 0)
            return -1;
        w->version = gs_sim_watch_version(watch);
    }
    return 0;
}

static void run(struct watcher *w)
{
    while (!stopped(w)) {
        struct gs_error err = {0};
        int rc = w->version == 0 || list_wanted(w) ? deliver_list(w, &err) : 0;
        if (rc == 0 && !stopped(w))
            rc = follow(w, &err);
        if (rc == 0)
            continue;
        w->sink->live(w->sink->ctx, w->spec->kind, false, err.msg);
        if (err.code != GS_EIO)
            w->version = 0;
        if (err.code != GS_EIO && err.code != GS_EGONE)
            pause_a_little(w);
    }
}

int gs_sim_port_query(enum gs_sim_kind kind, const char *node, char field[GS_SIM_FIELD_BYTES],
                      struct gs_sim_query *ret, struct gs_error *err)
{
    *ret = (struct gs_sim_query){.kind = kind};
    if (!node)
        return 0;
    int len = snprintf(field, GS_SIM_FIELD_BYTES, "%s=%s",
                       kind == GS_SIM_PODS ? "spec.nodeName" : "metadata.name", node);
    if (len >= GS_SIM_FIELD_BYTES)
        return gs_fail(err, GS_EINVAL, "a node's name is too long");
    ret->field_selector = field;
    return 0;
}

int gs_sim_port_watch(void *ctx, const struct gs_watch_spec *spec, const struct gs_watch_sink *sink,
                      const atomic_bool *stop, struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    struct watcher w = {
        .cluster = port->cluster, .names = port->names, .spec = spec, .sink = sink, .stop = stop};
    char field[GS_SIM_FIELD_BYTES];
    enum gs_sim_kind kind = spec->kind == GS_KIND_POD ? GS_SIM_PODS : GS_SIM_NODES;
    if (gs_sim_port_query(kind, spec->node, field, &w.query, err) < 0)
        return -1;
    run(&w);
    gs_pod_release(&w.pod);
    gs_node_release(&w.node);
    return 0;
}
