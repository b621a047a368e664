/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/grpc/loop.h"

/*
 * Keeps a device plugin known to the kubelet: listens, registers, and does both again whenever
 * kubelet.sock is re-created or our own socket vanishes (a starting kubelet deletes it), at once
 * and then with growing pauses (50 ms to 10 s) until it works. Loop thread only.
 *
 * It also registers again when a registration was accepted but no ListAndWatch stream is open for
 * ten seconds: old kubelets answer OK before they dial back, and only log it when that fails.
 */
struct gs_kubelet_link;

enum gs_kubelet_link_event {
    GS_KUBELET_LINK_REGISTERED, /* the kubelet accepted; failure is NULL */
    GS_KUBELET_LINK_LOST,       /* kubelet.sock is gone; failure is NULL */
    GS_KUBELET_LINK_FAILED,     /* an attempt failed, failure says how; it will be repeated */
};

typedef void gs_kubelet_link_fn(void *ctx, enum gs_kubelet_link_event event,
                                const struct gs_error *failure);

struct gs_kubelet_link_options {
    const char *dir;           /* /var/lib/kubelet/device-plugins; kubelet.sock is in it */
    const char *endpoint;      /* "aliyungpushare.sock", made in it */
    const char *resource_name; /* "aliyun.com/gpu-mem" */
    gs_kubelet_link_fn *event; /* called from the loop; must not free the link */
    void *ctx;
};

/* Listens at once, so that a second copy of the plugin learns here that it is one (GS_EEXIST); the
 * rest happens on the loop, a missing kubelet included. dp is *borrowed until
 * gs_kubelet_link_free()*, which comes before gs_dp_free(); options are *copied*, their
 * texts *borrowed* as long. */
int gs_kubelet_link_new(struct gs_loop *loop, struct gs_dp *dp,
                        const struct gs_kubelet_link_options *options, struct gs_kubelet_link **ret,
                        struct gs_error *err);
void gs_kubelet_link_free(struct gs_kubelet_link *link);
