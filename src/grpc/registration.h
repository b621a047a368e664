/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_GRPC_REGISTRATION_H
#define GPUSHARE_GRPC_REGISTRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/base/error.h"
#include "gpushare/grpc/loop.h"

/*
 * v1beta1.Registration/Register on kubelet.sock: tells the kubelet that a device plugin listens.
 * Asynchronous, because newer kubelets call GetDevicePluginOptions on the plugin before they
 * answer: the loop has to serve meanwhile. Loop thread only.
 *
 * Success means little on older kubelets, which answer before they dial back:
 * gs_dp_streams() tells whether one listens.
 */
struct gs_register_call;

struct gs_register_request {
    const char *kubelet_socket; /* /var/lib/kubelet/device-plugins/kubelet.sock */
    const char *endpoint;       /* file name of our socket in the same folder, no path */
    const char *resource_name;  /* "aliyun.com/gpu-mem" */
    bool pre_start_required;    /* the same as GetDevicePluginOptions says */
    int64_t timeout_ns;
};

/* failure is NULL when the kubelet took it; *borrowed until done() returns*. GS_EIO: no kubelet;
 * GS_ETIMEOUT; other codes: the kubelet refused, in its words. */
typedef void gs_register_fn(void *ctx, const struct gs_error *failure);

/* Everything is *copied*. done() is called once, from the loop, never from within. *ret (may be
 * NULL) is valid until done(). */
int gs_register_start(struct gs_loop *loop, const struct gs_register_request *request,
                      gs_register_fn *done, void *ctx, struct gs_register_call **ret,
                      struct gs_error *err);

/* Gives up and frees; done() is not called. */
void gs_register_cancel(struct gs_register_call *call);

#endif
