/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/grpc/kubelet_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/backoff.h"
#include "path_watch.h"
#include "registration.h"

#define FIRST_PAUSE_NS (50 * GS_NS_PER_MS)
#define LAST_PAUSE_NS  (10 * GS_NS_PER_S)
#define CHECK_NS       (10 * GS_NS_PER_S)
/* Newer kubelets dial back for up to ten seconds before they answer. */
#define REGISTER_TIMEOUT_NS (15 * GS_NS_PER_S)

struct gs_kubelet_link {
    struct gs_loop *loop;
    struct gs_dp *dp;
    gs_kubelet_link_fn *event;
    void *ctx;
    char *own_path;
    char *kubelet_path;
    char *endpoint;
    char *resource_name;
    struct gs_path_watch *own_watch;
    struct gs_path_watch *kubelet_watch;
    struct gs_register_call *registering;
    struct gs_loop_timer attempt; /* the next attempt, or the next look at the streams */
    uint32_t failures;            /* in a row */
    bool registered;
};

static void tell(struct gs_kubelet_link *link, enum gs_kubelet_link_event event,
                 const struct gs_error *failure)
{
    if (link->event)
        link->event(link->ctx, event, failure);
}

static void attempt_in(struct gs_kubelet_link *link, int64_t pause_ns)
{
    gs_loop_timer_arm(link->loop, &link->attempt, gs_loop_now_ns(link->loop) + pause_ns);
}

static void failed(struct gs_kubelet_link *link, const struct gs_error *failure)
{
    link->registered = false;
    attempt_in(link, gs_pause_ns(link->failures++, FIRST_PAUSE_NS, LAST_PAUSE_NS));
    tell(link, GS_KUBELET_LINK_FAILED, failure);
}

static void on_registered(void *ctx, const struct gs_error *failure)
{
    struct gs_kubelet_link *link = ctx;
    link->registering = NULL;
    if (failure) {
        failed(link, failure);
        return;
    }
    link->registered = true;
    attempt_in(link, CHECK_NS);
    tell(link, GS_KUBELET_LINK_REGISTERED, NULL);
}

static int try_once(struct gs_kubelet_link *link, struct gs_error *err)
{
    if (gs_dp_listen(link->dp, link->own_path, err) < 0)
        return -1;
    const struct gs_register_request request = {
        .kubelet_socket = link->kubelet_path,
        .endpoint = link->endpoint,
        .resource_name = link->resource_name,
        .pre_start_required = gs_dp_pre_start_required(link->dp),
        .timeout_ns = REGISTER_TIMEOUT_NS,
    };
    return gs_register_start(link->loop, &request, on_registered, link, &link->registering, err);
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

/* What is under way was meant for the old state of things. */
static void start_over(struct gs_kubelet_link *link)
{
    if (link->registering)
        gs_register_cancel(link->registering);
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

/* Only a starting kubelet, or an administrator, removes our socket. CREATED is our own doing. */
static void on_own_socket(void *ctx, enum gs_path_event event)
{
    if (event == GS_PATH_REMOVED)
        start_over(ctx);
}

static int fill(struct gs_kubelet_link *link, const struct gs_kubelet_link_options *options,
                struct gs_error *err)
{
    if (strchr(options->endpoint, '/'))
        return gs_fail(err, GS_EINVAL, "the socket's name \"%s\" must not be a path",
                       options->endpoint);
    if (asprintf(&link->own_path, "%s/%s", options->dir, options->endpoint) < 0)
        link->own_path = NULL;
    if (asprintf(&link->kubelet_path, "%s/kubelet.sock", options->dir) < 0)
        link->kubelet_path = NULL;
    link->endpoint = strdup(options->endpoint);
    link->resource_name = strdup(options->resource_name);
    if (!link->own_path || !link->kubelet_path || !link->endpoint || !link->resource_name)
        return gs_fail_nomem(err);
    return 0;
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
    /* Only when there is no kubelet.sock yet: if there is, its watch says so first. */
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
    link->event = options->event;
    link->ctx = options->ctx;
    link->failures = 0;
    link->attempt = (struct gs_loop_timer){.fn = on_attempt, .ctx = link};
    if (fill(link, options, err) < 0 || start(link, err) < 0) {
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
        gs_register_cancel(link->registering);
    if (link->own_watch)
        gs_path_watch_free(link->own_watch);
    if (link->kubelet_watch)
        gs_path_watch_free(link->kubelet_watch);
    free(link->own_path);
    free(link->kubelet_path);
    free(link->endpoint);
    free(link->resource_name);
    free(link);
}
