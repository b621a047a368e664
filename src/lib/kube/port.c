/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "client_private.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/event.h"
#include "gpushare/codec/lease.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/patch.h"
#include "gpushare/codec/pod.h"
#include "gpushare/codec/status.h"
#include "gpushare/codec/watch.h"

/* The port's calls for single objects; lists and watches are elsewhere. */

enum { PATH_BYTES_MAX = 4096, REQUEST_BYTES_MAX = 2 << 20 };

/* The API path of each kind. */
struct kind {
    const char *root, *plural;
    bool namespaced;
};

static const struct kind pods = {"/api/v1", "pods", true};
static const struct kind nodes = {"/api/v1", "nodes", false};
static const struct kind events = {"/api/v1", "events", true};
static const struct kind leases = {"/apis/coordination.k8s.io/v1", "leases", true};

/* An empty name, or one of dots, would change the path. */
static bool is_name(const char *name)
{
    return name && name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* A request for an object, and its answer. */
struct object_call {
    struct gs_kube_client *client;
    struct gs_buf path, body, answer;
};

static struct object_call make_call(struct gs_kube_client *client)
{
    return (struct object_call){
        .client = client,
        .path = GS_BUF(PATH_BYTES_MAX),
        .body = GS_BUF(REQUEST_BYTES_MAX),
        .answer = GS_BUF(client->options.object_max_bytes),
    };
}

static void release_call(struct object_call *call)
{
    gs_buf_release(&call->path);
    gs_buf_release(&call->body);
    gs_buf_release(&call->answer);
}

/* "ROOT/namespaces/NS/PLURAL" */
static int build_collection(struct object_call *call, const struct kind *kind, const char *ns,
                            struct gs_error *err)
{
    gs_buf_puts(&call->path, kind->root);
    if (kind->namespaced) {
        if (!is_name(ns))
            return gs_fail(err, GS_EINVAL, "the object has no namespace");
        gs_buf_puts(&call->path, "/namespaces/");
        gs_url_escape(&call->path, ns);
    }
    gs_buf_printf(&call->path, "/%s", kind->plural);
    return 0;
}

/* The same, and "/NAME/SUB"; sub NULL: none. */
static int build_path(struct object_call *call, const struct kind *kind, const char *ns,
                      const char *name, const char *sub, struct gs_error *err)
{
    if (!is_name(name))
        return gs_fail(err, GS_EINVAL, "the object has no name");
    if (build_collection(call, kind, ns, err) < 0)
        return -1;
    gs_buf_putc(&call->path, '/');
    gs_url_escape(&call->path, name);
    if (sub)
        gs_buf_printf(&call->path, "/%s", sub);
    return 0;
}

/* Sends it with retries, until the deadline (0: the client's). An answer other than 2xx is a
 * failure. */
static int send_call(struct object_call *call, const char *method, const char *type,
                     int64_t deadline_ns, struct gs_error *err)
{
    const struct gs_buf *body = &call->body, *answer = &call->answer;
    const int failed =
        gs_buf_failed(&call->path) ? gs_buf_failed(&call->path) : gs_buf_failed(body);
    if (failed == GS_ETOOBIG)
        return gs_fail(err, GS_EINVAL, "the request is too large");
    if (failed)
        return gs_fail_nomem(err);
    const struct gs_kube_request request = {
        .method = method,
        .path = call->path.data,
        .content_type = type,
        .body = body->data,
        .body_len = body->len,
        .deadline_ns = deadline_ns,
    };
    int status;
    if (gs_call(call->client, NULL, &request, &status, &call->answer, err) < 0)
        return -1;
    if (status >= 200 && status < 300)
        return 0;
    return gs_kube_fail_status(status, answer->data ? answer->data : "", answer->len, err);
}

static struct gs_slice slice_of(const struct gs_buf *buf)
{
    return (struct gs_slice){buf->data ? buf->data : "", buf->len};
}

/* Whether the API server itself reports failure; a proxy's answer has no Status. After 504, a
 * timeout, the request may still be executed. */
static bool is_own_failure(const struct gs_buf *answer)
{
    struct gs_api_status status;
    return gs_codec_status(slice_of(answer), &status, NULL) == 0 && status.code >= 500 &&
           status.code != 504;
}

static int op_bind(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    if (build_path(&call, &pods, binding->ns, binding->name, "binding", err) < 0)
        return -1;
    gs_codec_binding(&call.body, binding);
    int result = send_call(&call, "POST", GS_TYPE_JSON, binding->deadline_ns, err);
    if (result < 0 && binding->ret_answered)
        *binding->ret_answered = is_own_failure(&call.answer);
    return result;
}

static int get_object(struct object_call *call, const struct kind *kind, const char *ns,
                      const char *name, struct gs_error *err)
{
    if (build_path(call, kind, ns, name, NULL, err) < 0)
        return -1;
    return send_call(call, "GET", NULL, 0, err);
}

static int op_get_pod(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                      struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    if (get_object(&call, &pods, ns, name, err) < 0)
        return -1;
    return gs_codec_pod(call.client->options.names, slice_of(&call.answer), ret, err);
}

static int op_get_node(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    if (get_object(&call, &nodes, NULL, name, err) < 0)
        return -1;
    return gs_codec_node(call.client->options.names, slice_of(&call.answer), ret, err);
}

/* A UID in a patch is a precondition. If it differs, API servers answer 422 "metadata.uid: … field
 * is immutable" (apimachinery: ValidateObjectMetaAccessorUpdate). */
static int patch_meta(void *ctx, const struct kind *kind, const struct gs_meta_patch *meta,
                      struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    struct gs_error why = {0};
    const char *sub = meta->nominated_node ? "status" : NULL;
    if (build_path(&call, kind, meta->ns, meta->name, sub, err) < 0)
        return -1;
    gs_codec_meta_patch(&call.body, meta);
    if (send_call(&call, "PATCH", GS_TYPE_MERGE_PATCH, meta->deadline_ns, &why) == 0)
        return 0;
    bool other = why.code == GS_EINVAL && meta->uid && meta->uid[0] && call.answer.data &&
                 strstr(call.answer.data, "metadata.uid") != NULL;
    return gs_fail(err, other ? GS_ECONFLICT : why.code, "%s", why.msg);
}

static int op_patch_pod(void *ctx, const struct gs_meta_patch *meta, struct gs_error *err)
{
    return patch_meta(ctx, &pods, meta, err);
}

static int op_patch_node(void *ctx, const struct gs_meta_patch *meta, struct gs_error *err)
{
    return patch_meta(ctx, &nodes, meta, err);
}

static int op_patch_node_status(void *ctx, const struct gs_node_status_patch *status,
                                struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    if (build_path(&call, &nodes, NULL, status->node, "status", err) < 0)
        return -1;
    gs_codec_node_status_patch(&call.body, status);
    return send_call(&call, "PATCH", GS_TYPE_STRATEGIC_PATCH, 0, err);
}

static int op_create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    const struct gs_clock *clock = call.client->options.clock;
    struct gs_error why = {0};
    if (build_collection(&call, &events, gs_event_namespace(event), err) < 0)
        return -1;
    gs_codec_event(&call.body, event, clock->wall_ns(clock->ctx));
    if (send_call(&call, "POST", GS_TYPE_JSON, 0, &why) == 0)
        return 0;
    /* An Event's name contains the nanosecond, so an existing one is this Event, sent twice. */
    return why.code == GS_ECONFLICT ? 0 : gs_fail(err, why.code, "%s", why.msg);
}

static int op_get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    if (get_object(&call, &leases, lease->ns, lease->name, err) < 0)
        return -1;
    return gs_codec_lease_decode(slice_of(&call.answer), lease, err);
}

static int op_put_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    _cleanup_(release_call) struct object_call call = make_call(ctx);
    const bool create = lease->resource_version[0] == '\0';
    if (!is_name(lease->name))
        return gs_fail(err, GS_EINVAL, "the Lease has no name");
    if ((create ? build_collection(&call, &leases, lease->ns, err)
                : build_path(&call, &leases, lease->ns, lease->name, NULL, err)) < 0)
        return -1;
    gs_codec_lease_encode(&call.body, lease);
    if (send_call(&call, create ? "POST" : "PUT", GS_TYPE_JSON, 0, err) < 0)
        return -1;
    return gs_codec_lease_decode(slice_of(&call.answer), lease, err);
}

struct gs_kube gs_kube_client_port(struct gs_kube_client *client)
{
    static const struct gs_kube_ops ops = {
        .bind = op_bind,
        .get_pod = op_get_pod,
        .get_node = op_get_node,
        .list_pods = gs_op_list_pods,
        .patch_pod = op_patch_pod,
        .patch_node = op_patch_node,
        .patch_node_status = op_patch_node_status,
        .create_event = op_create_event,
        .watch = gs_op_watch,
        .wake = gs_op_wake,
        .get_lease = op_get_lease,
        .put_lease = op_put_lease,
    };
    return (struct gs_kube){.ops = &ops, .ctx = client};
}
