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

/* One object in, one object out: everything of the port but lists and watches. */

enum { PATH_BYTES_MAX = 4096, REQUEST_BYTES_MAX = 2 << 20 };

#define LEASES "/apis/coordination.k8s.io/v1"

/* A name that is empty or dots would make the path another one. */
static bool is_name(const char *name)
{
    return name && name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* "ROOT/namespaces/NS/KIND/NAME/SUB"; ns NULL: not namespaced; name NULL: the collection;
 * sub NULL: none. */
static int build_path(struct gs_buf *path, const char *root, const char *ns, const char *kind,
                      const char *name, const char *sub, struct gs_error *err)
{
    if ((ns && !is_name(ns)) || (name && !is_name(name)))
        return gs_fail(err, GS_EINVAL, "an object without a name or namespace");
    gs_buf_puts(path, root);
    if (ns) {
        gs_buf_puts(path, "/namespaces/");
        gs_url_escape(path, ns);
    }
    gs_buf_printf(path, "/%s", kind);
    if (name) {
        gs_buf_putc(path, '/');
        gs_url_escape(path, name);
    }
    if (sub)
        gs_buf_printf(path, "/%s", sub);
    if (gs_buf_failed(path) == GS_ETOOBIG)
        return gs_fail(err, GS_EINVAL, "an object's name is too long");
    return gs_buf_failed(path) ? gs_fail_nomem(err) : 0;
}

/* Sends it, again where that is right, until then (0: the client's time); an answer that is no 2xx
 * is a failure. *ret_body: the answer. */
static int send_until(struct gs_kube_client *client, int64_t deadline_ns, const char *method,
                      const struct gs_buf *path, const char *type, const struct gs_buf *body,
                      struct gs_buf *ret_body, struct gs_error *err)
{
    if (body && gs_buf_failed(body) == GS_ETOOBIG)
        return gs_fail(err, GS_EINVAL, "the request is larger than %zu bytes", body->max);
    if (body && gs_buf_failed(body))
        return gs_fail_nomem(err);
    struct gs_kube_request request = {
        .method = method,
        .path = path->data,
        .content_type = type,
        .body = body ? body->data : NULL,
        .body_len = body ? body->len : 0,
        .deadline_ns = deadline_ns,
    };
    int status;
    if (gs_call(client, NULL, &request, &status, ret_body, err) < 0)
        return -1;
    if (status >= 200 && status < 300)
        return 0;
    return gs_kube_fail_status(status, ret_body->data ? ret_body->data : "", ret_body->len, err);
}

static int send_request(struct gs_kube_client *client, const char *method,
                        const struct gs_buf *path, const char *type, const struct gs_buf *body,
                        struct gs_buf *ret_body, struct gs_error *err)
{
    return send_until(client, 0, method, path, type, body, ret_body, err);
}

static struct gs_slice slice_of(const struct gs_buf *buf)
{
    return (struct gs_slice){buf->data ? buf->data : "", buf->len};
}

/* An API server's own answer that it failed; that of a proxy before it has no Status. After 504,
 * its own time being over, what it began may still be carried out. */
static bool is_own_failure(const struct gs_buf *answer)
{
    struct gs_api_status told;
    return gs_codec_status(slice_of(answer), &told, NULL) == 0 && told.code >= 500 &&
           told.code != 504;
}

static int op_bind(void *ctx, const struct gs_binding *binding, struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(PATH_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(REQUEST_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    if (!is_name(binding->name) ||
        build_path(&path, "/api/v1", binding->ns, "pods", binding->name, "binding", err) < 0)
        return gs_fail(err, GS_EINVAL, "a binding without a pod");
    gs_codec_binding(&body, binding);
    int result =
        send_until(client, binding->deadline_ns, "POST", &path, GS_TYPE_JSON, &body, &answer, err);
    if (result < 0 && binding->ret_answered)
        *binding->ret_answered = is_own_failure(&answer);
    return result;
}

/* *ret_answer: the object's JSON. */
static int get(struct gs_kube_client *client, const char *root, const char *ns, const char *kind,
               const char *name, struct gs_buf *ret_answer, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(PATH_BYTES_MAX);
    if (build_path(&path, root, ns, kind, name ? name : "", NULL, err) < 0)
        return -1;
    return send_request(client, "GET", &path, NULL, NULL, ret_answer, err);
}

static int op_get_pod(void *ctx, const char *ns, const char *name, struct gs_pod *ret,
                      struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    if (get(client, "/api/v1", ns ? ns : "", "pods", name, &answer, err) < 0)
        return -1;
    return gs_codec_pod(client->options.names, slice_of(&answer), ret, err);
}

static int op_get_node(void *ctx, const char *name, struct gs_node *ret, struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    if (get(client, "/api/v1", NULL, "nodes", name, &answer, err) < 0)
        return -1;
    return gs_codec_node(client->options.names, slice_of(&answer), ret, err);
}

/* An API server takes another UID for an attempt to change it, and says 422 "metadata.uid: … field
 * is immutable" (apimachinery: ValidateObjectMetaAccessorUpdate): to us it is a precondition. */
static int patch_meta(struct gs_kube_client *client, const char *ns, const char *kind,
                      const struct gs_meta_patch *meta, struct gs_error *err)
{
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(REQUEST_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(PATH_BYTES_MAX);
    struct gs_error why = {0};
    const char *sub = meta->nominated_node ? "status" : NULL;
    if (build_path(&path, "/api/v1", ns, kind, meta->name ? meta->name : "", sub, err) < 0)
        return -1;
    gs_codec_meta_patch(&body, meta);
    if (send_until(client, meta->deadline_ns, "PATCH", &path, GS_TYPE_MERGE_PATCH, &body, &answer,
                   &why) == 0)
        return 0;
    bool other = why.code == GS_EINVAL && meta->uid && meta->uid[0] && answer.data &&
                 strstr(answer.data, "metadata.uid") != NULL;
    return gs_fail(err, other ? GS_ECONFLICT : why.code, "%s", why.msg);
}

static int op_patch_pod(void *ctx, const struct gs_meta_patch *meta, struct gs_error *err)
{
    return patch_meta(ctx, meta->ns ? meta->ns : "", "pods", meta, err);
}

static int op_patch_node(void *ctx, const struct gs_meta_patch *meta, struct gs_error *err)
{
    return patch_meta(ctx, NULL, "nodes", meta, err);
}

static int64_t wall_ns(const struct gs_kube_client *client)
{
    return client->options.clock->wall_ns(client->options.clock->ctx);
}

static int op_patch_node_status(void *ctx, const struct gs_node_status_patch *status,
                                struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(REQUEST_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(PATH_BYTES_MAX);
    if (build_path(&path, "/api/v1", NULL, "nodes", status->node ? status->node : "", "status",
                   err) < 0)
        return -1;
    gs_codec_node_status_patch(&body, status, wall_ns(client));
    return send_request(client, "PATCH", &path, GS_TYPE_STRATEGIC_PATCH, &body, &answer, err);
}

static int op_create_event(void *ctx, const struct gs_event *event, struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(PATH_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(REQUEST_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    struct gs_error why = {0};
    if (build_path(&path, "/api/v1", gs_event_namespace(event), "events", NULL, NULL, err) < 0)
        return -1;
    gs_codec_event(&body, event, wall_ns(client));
    if (send_request(client, "POST", &path, GS_TYPE_JSON, &body, &answer, &why) == 0)
        return 0;
    /* Its name holds the nanosecond: one that is there already is this one, sent twice. */
    return why.code == GS_ECONFLICT ? 0 : gs_fail(err, why.code, "%s", why.msg);
}

static int op_get_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    if (get(client, LEASES, lease->ns ? lease->ns : "", "leases", lease->name, &answer, err) < 0)
        return -1;
    return gs_codec_lease_decode(slice_of(&answer), lease, err);
}

static int op_put_lease(void *ctx, struct gs_lease *lease, struct gs_error *err)
{
    struct gs_kube_client *client = ctx;
    bool create = lease->resource_version[0] == '\0';
    _cleanup_(gs_buf_release) struct gs_buf path = GS_BUF(PATH_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf body = GS_BUF(REQUEST_BYTES_MAX);
    _cleanup_(gs_buf_release) struct gs_buf answer = GS_BUF(client->options.body_max_bytes);
    if (!is_name(lease->name) || build_path(&path, LEASES, lease->ns ? lease->ns : "", "leases",
                                            create ? NULL : lease->name, NULL, err) < 0)
        return gs_fail(err, GS_EINVAL, "a lease without a name or namespace");
    gs_codec_lease_encode(&body, lease);
    if (send_request(client, create ? "POST" : "PUT", &path, GS_TYPE_JSON, &body, &answer, err) < 0)
        return -1;
    return gs_codec_lease_decode(slice_of(&answer), lease, err);
}

struct gs_kube gs_kube_client_port(struct gs_kube_client *client)
{
    static const struct gs_kube_ops ops = {
        .bind = op_bind,
        .get_pod = op_get_pod,
        .get_node = op_get_node,
        .list_pods = gs_op_list_pods,
        .list_nodes = gs_op_list_nodes,
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
