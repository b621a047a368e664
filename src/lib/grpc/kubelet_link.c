/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/grpc/kubelet_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "device_plugin.pb-c.h"
#include "gpushare/base/backoff.h"
#include "path_watch.h"
#include "pb.h"

#define FIRST_PAUSE_NS (50 * GS_NS_PER_MS)
#define LAST_PAUSE_NS  (10 * GS_NS_PER_S)
#define CHECK_NS       (10 * GS_NS_PER_S)
/* Newer kubelets connect to the plugin for up to ten seconds before they answer. */
#define REGISTER_TIMEOUT_NS (15 * GS_NS_PER_S)

enum { REPLY_BYTES_MAX = 4096 /* it is Empty */ };

struct gs_kubelet_link {
    struct gs_loop *loop;
    struct gs_dp *dp;
    struct gs_kubelet_link_options options;
    char *own_path;
    char *kubelet_path;
    struct gs_path_watch *own_watch;
    struct gs_path_watch *kubelet_watch;
    struct gs_grpc_unary *registering;
    struct gs_loop_timer attempt; /* the next attempt, or the next look at the streams */
    uint32_t failures;            /* in a row */
    bool registered;
};

static void tell(struct gs_kubelet_link *link, enum gs_kubelet_link_event event,
                 const struct gs_error *failure)
{
    link->options.event(link->options.ctx, event, failure);
}

static void attempt_in(struct gs_kubelet_link *link, int64_t pause_ns)
{
    gs_loop_timer_arm_in(link->loop, &link->attempt, pause_ns);
}

static void failed(struct gs_kubelet_link *link, const struct gs_error *failure)
{
    link->registered = false;
    attempt_in(link, gs_pause_ns(link->failures++, FIRST_PAUSE_NS, LAST_PAUSE_NS));
    tell(link, GS_KUBELET_LINK_FAILED, failure);
}

static void on_registered(void *ctx, const struct gs_grpc_reply *reply)
{
    struct gs_kubelet_link *link = ctx;
    struct gs_error failure = {0};
    link->registering = NULL;
    if (reply->status != GS_GRPC_OK) {
        gs_fail(&failure, GS_EIO, "%s (gRPC status %d)", reply->text, reply->status);
        failed(link, &failure);
        return;
    }
    link->registered = true;
    attempt_in(link, CHECK_NS);
    tell(link, GS_KUBELET_LINK_REGISTERED, NULL);
}

/* v1beta1.Registration/Register. Older kubelets answer before they connect to the plugin, so
 * success is not enough: gs_dp_streams() says whether a kubelet listens. */
static int try_once(struct gs_kubelet_link *link, struct gs_error *err)
{
    if (gs_dp_listen(link->dp, link->own_path, err) < 0)
        return -1;
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    options.pre_start_required = true;
    V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
    request.version = (char *)"v1beta1";
    request.endpoint = (char *)link->options.endpoint;
    request.resource_name = (char *)link->options.resource_name;
    request.options = &options;
    const struct gs_grpc_unary_options call = {
        .socket_path = link->kubelet_path,
        .method_path = "/v1beta1.Registration/Register",
        .timeout_ns = REGISTER_TIMEOUT_NS,
        .max_reply_bytes = REPLY_BYTES_MAX,
        .done = on_registered,
        .ctx = link,
    };
    return gs_grpc_unary_start(link->loop, &call, gs_pb_pack(&request.base), &link->registering,
                               err);
}

static void on_attempt(void *ctx)
{
    struct gs_kubelet_link *link = ctx;
    struct gs_error err = {0};
    if (link->registering)
        return;
    if (link->registered && gs_dp_streams(link->dp) > 0) {
        link->failures = 0;
        attempt_in(link, CHECK_NS);
        return;
    }
    if (try_once(link, &err) < 0)
        failed(link, &err);
}

/* Cancels a registration in progress, which is outdated. */
static void start_over(struct gs_kubelet_link *link)
{
    if (link->registering)
        gs_grpc_unary_cancel(link->registering);
    link->registering = NULL;
    link->registered = false;
    link->failures = 0;
    attempt_in(link, 0);
}

static void on_kubelet_socket(void *ctx, enum gs_path_event event)
{
    struct gs_kubelet_link *link = ctx;
    if (event == GS_PATH_CREATED) {
        start_over(link);
        return;
    }
    link->registered = false;
    tell(link, GS_KUBELET_LINK_LOST, NULL);
}

/* A starting kubelet, or an administrator, has removed our socket. Ignore CREATED: we create it. */
static void on_own_socket(void *ctx, enum gs_path_event event)
{
    if (event == GS_PATH_REMOVED)
        start_over(ctx);
}

static int build_paths(struct gs_kubelet_link *link, struct gs_error *err)
{
    const struct gs_kubelet_link_options *options = &link->options;
    if (strchr(options->endpoint, '/'))
        return gs_fail(err, GS_EINVAL, "the socket's name \"%s\" must not be a path",
                       options->endpoint);
    if (asprintf(&link->own_path, "%s/%s", options->dir, options->endpoint) < 0)
        link->own_path = NULL;
    if (asprintf(&link->kubelet_path, "%s/kubelet.sock", options->dir) < 0)
        link->kubelet_path = NULL;
    return link->own_path && link->kubelet_path ? 0 : gs_fail_nomem(err);
}

static int start(struct gs_kubelet_link *link, struct gs_error *err)
{
    if (gs_dp_listen(link->dp, link->own_path, err) < 0)
        return -1;
    if (gs_path_watch_new(link->loop, link->own_path, on_own_socket, link, &link->own_watch, err) <
        0)
        return -1;
    if (gs_path_watch_new(link->loop, link->kubelet_path, on_kubelet_socket, link,
                          &link->kubelet_watch, err) < 0)
        return -1;
    /* Runs only if kubelet.sock does not exist yet: otherwise its watch fires first. */
    attempt_in(link, FIRST_PAUSE_NS);
    return 0;
}

int gs_kubelet_link_new(struct gs_loop *loop, struct gs_dp *dp,
                        const struct gs_kubelet_link_options *options, struct gs_kubelet_link **ret,
                        struct gs_error *err)
{
    struct gs_kubelet_link *link = calloc(1, sizeof(*link));
    if (!link)
        return gs_fail_nomem(err);
    link->loop = loop;
    link->dp = dp;
    link->options = *options;
    link->attempt = (struct gs_loop_timer){.fn = on_attempt, .ctx = link};
    if (build_paths(link, err) < 0 || start(link, err) < 0) {
        gs_kubelet_link_free(link);
        return -1;
    }
    *ret = link;
    return 0;
}

void gs_kubelet_link_free(struct gs_kubelet_link *link)
{
    gs_loop_timer_disarm(link->loop, &link->attempt);
    if (link->registering)
        gs_grpc_unary_cancel(link->registering);
    if (link->own_watch)
        gs_path_watch_free(link->own_watch);
    if (link->kubelet_watch)
        gs_path_watch_free(link->kubelet_watch);
    free(link->own_path);
    free(link->kubelet_path);
    free(link);
}
