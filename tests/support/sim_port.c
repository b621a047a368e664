/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/event.h"
#include "gpushare/codec/lease.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/patch.h"
#include "gpushare/codec/pod.h"
#include "sim_port_internal.h"

int gs_sim_port_fail(const struct gs_error *cause, struct gs_error *err)
{
    enum gs_code code = cause->code;
    if (code == GS_EEXIST)
        code = GS_ECONFLICT;
    else if (code == GS_EPROTO || code == GS_ETOOBIG)
        code = GS_EINVAL;
    else if (code == GS_EINTERNAL)
        code = GS_EIO;
    return gs_fail(err, code, "%s", cause->msg);
}

static int64_t now_ns(const struct gs_sim_port *port)
{
    const struct gs_clock *clock = gs_sim_cluster_clock(port->cluster);
    return clock->wall_ns(clock->ctx);
}

static struct gs_slice text_of(const struct gs_sim_object *object)
{
    return (struct gs_slice){object->json, object->json_len};
}

/* ---- writes: the bodies that the curl client would send ---- */

static int body_ready(const struct gs_buf *body, struct gs_slice *ret, struct gs_error *err)
{
    if (gs_buf_failed(body))
        return gs_fail(err, (enum gs_code)gs_buf_failed(body), "a request's body cannot be made");
    *ret = (struct gs_slice){body->data, body->len};
    return 0;
}

static int port_bind(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(GS_SIM_OBJECT_BYTES_MAX);
    struct gs_error own = {0};
    struct gs_slice text;
    gs_codec_binding(&body, binding);
    if (body_ready(&body, &text, &own) < 0 ||
        gs_sim_bind(port->cluster, binding->ns, binding->name, text, &own) < 0)
        return gs_sim_port_fail(&own, err);
    return 0;
}

static int patch_meta(struct gs_sim_port *port, enum gs_sim_kind kind,
                      const struct gs_meta_patch *patch, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(GS_SIM_OBJECT_BYTES_MAX);
    struct gs_error own = {0};
    struct gs_slice text;
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *object = NULL;
    gs_codec_meta_patch(&body, patch);
    if (body_ready(&body, &text, &own) < 0 ||
        gs_sim_patch(port->cluster, kind, patch->nominated_node ? GS_SIM_STATUS : GS_SIM_MAIN,
                     GS_SIM_PATCH_MERGE, kind == GS_SIM_PODS ? patch->ns : "", patch->name, text,
                     &object, &own) < 0)
        return gs_sim_port_fail(&own, err);
    return 0;
}

static int port_patch_pod(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    return patch_meta(ctx, GS_SIM_PODS, patch, err);
}

static int port_patch_node(void *ctx, const struct gs_meta_patch *patch, struct gs_error *err)
{
    return patch_meta(ctx, GS_SIM_NODES, patch, err);
}

static int port_patch_node_status(void *ctx, const struct gs_node_status_patch *patch,
                                  struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(GS_SIM_OBJECT_BYTES_MAX);
    struct gs_error own = {0};
    struct gs_slice text;
    gs_codec_node_status_patch(&body, patch, now_ns(port));
    if (body_ready(&body, &text, &own) < 0 ||
        gs_sim_patch(port->cluster, GS_SIM_NODES, GS_SIM_STATUS, GS_SIM_PATCH_STRATEGIC, "",
                     patch->node, text, NULL, &own) < 0)
        return gs_sim_port_fail(&own, err);
    return 0;
}

static int port_create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(GS_SIM_OBJECT_BYTES_MAX);
    struct gs_error own = {0};
    struct gs_slice text;
    gs_codec_event(&body, event, now_ns(port));
    if (body_ready(&body, &text, &own) < 0 ||
        gs_sim_create(port->cluster, GS_SIM_EVENTS, gs_event_namespace(event), text, NULL, &own) <
            0)
        return gs_sim_port_fail(&own, err);
    return 0;
}

/* ---- leases ---- */

static int port_get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *object = NULL;
    struct gs_error own = {0};
    if (gs_sim_get(port->cluster, GS_SIM_LEASES, lease->ns, lease->name, &object, &own) < 0)
        return gs_sim_port_fail(&own, err);
    return gs_codec_lease_decode(text_of(object), lease, err);
}

static int port_put_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(GS_SIM_OBJECT_BYTES_MAX);
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *object = NULL;
    struct gs_error own = {0};
    struct gs_slice text;
    gs_codec_lease_encode(&body, lease);
    int rc = body_ready(&body, &text, &own);
    if (rc == 0 && lease->resource_version[0])
        rc = gs_sim_update(port->cluster, GS_SIM_LEASES, GS_SIM_MAIN, lease->ns, lease->name, text,
                           &object, &own);
    else if (rc == 0)
        rc = gs_sim_create(port->cluster, GS_SIM_LEASES, lease->ns, text, &object, &own);
    if (rc < 0)
        return gs_sim_port_fail(&own, err);
    snprintf(lease->resource_version, sizeof(lease->resource_version), "%llu",
             (unsigned long long)object->version);
    return 0;
}

/* ---- reads ---- */

static int port_get_pod(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                        struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *object = NULL;
    struct gs_error own = {0};
    if (gs_sim_get(port->cluster, GS_SIM_PODS, ns, name, &object, &own) < 0)
        return gs_sim_port_fail(&own, err);
    return gs_codec_pod(port->names, text_of(object), ret, err);
}

static int port_get_node(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    _cleanup_(gs_sim_object_unrefp) struct gs_sim_object *object = NULL;
    struct gs_error own = {0};
    if (gs_sim_get(port->cluster, GS_SIM_NODES, "", name, &object, &own) < 0)
        return gs_sim_port_fail(&own, err);
    return gs_codec_node(port->names, text_of(object), ret, err);
}

/* Objects that cannot be decoded are passed over, as by the curl client. */
static int port_list_pods(void *ctx, const char *node, int64_t timeout_ns,
                          int (*each)(void *each_ctx, const struct gs_pod *pod), void *each_ctx,
                          struct gs_error *err)
{
    struct gs_sim_port *port = ctx;
    char field[GS_SIM_FIELD_BYTES];
    struct gs_sim_query query;
    struct gs_sim_list list;
    struct gs_error own = {0};
    struct gs_pod pod = {0};
    if (gs_sim_port_query(GS_SIM_PODS, node, field, &query, err) < 0)
        return -1;
    if (gs_sim_list(port->cluster, &query, 0, NULL, &list, &own) < 0)
        return gs_sim_port_fail(&own, err);
    bool memory = true;
    for (size_t i = 0; memory && i < list.count; i++) {
        struct gs_error why = {0};
        memory = gs_codec_pod(port->names, text_of(list.items[i]), &pod, &why) == 0
                     ? each(each_ctx, &pod) == 0
                     : why.code != GS_ENOMEM;
    }
    gs_pod_release(&pod);
    gs_sim_list_release(&list);
    return memory ? 0 : gs_fail_nomem(err);
}

/* ---- the port ---- */

static void port_wake(void *ctx)
{
    struct gs_sim_port *port = ctx;
    gs_sim_cluster_wake(port->cluster);
}

static const struct gs_kube_ops ops = {
    .bind = port_bind,
    .get_pod = port_get_pod,
    .get_node = port_get_node,
    .list_pods = port_list_pods,
    .patch_pod = port_patch_pod,
    .patch_node = port_patch_node,
    .patch_node_status = port_patch_node_status,
    .create_event = port_create_event,
    .watch = gs_sim_port_watch,
    .wake = port_wake,
    .get_lease = port_get_lease,
    .put_lease = port_put_lease,
};

int gs_sim_port_new(struct gs_sim_cluster *cluster, const struct gs_names *names,
                    struct gs_sim_port **ret_port, struct gs_error *err)
{
    struct gs_sim_port *port = malloc(sizeof(*port));
    if (!port)
        return gs_fail_nomem(err);
    *port = (struct gs_sim_port){.cluster = cluster, .names = names};
    *ret_port = port;
    return 0;
}

void gs_sim_port_free(struct gs_sim_port *port)
{
    free(port);
}

struct gs_kube gs_sim_port_kube(struct gs_sim_port *port)
{
    return (struct gs_kube){.ops = &ops, .ctx = port};
}
