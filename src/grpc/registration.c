/* SPDX-License-Identifier: Apache-2.0 */
#include "registration.h"

#include <stdlib.h>

#include "client.h"
#include "device_plugin.pb-c.h"
#include "gpushare/base/cleanup.h"

#define MAX_REPLY_BYTES 4096 /* the answer is Empty */

struct gs_register_call {
    struct gs_grpc_unary *unary;
    gs_register_fn *done;
    void *ctx;
};

static void on_reply(void *ctx, const struct gs_grpc_reply *reply)
{
    struct gs_register_call *call = ctx;
    struct gs_error failure = {0};
    if (reply->status != GS_GRPC_OK)
        gs_fail(&failure, reply->code, "%s (%s)", reply->text, gs_grpc_status_name(reply->status));
    call->done(call->ctx, reply->status == GS_GRPC_OK ? NULL : &failure);
    free(call);
}

int gs_register_start(struct gs_loop *loop, const struct gs_register_request *request,
                      gs_register_fn *done, void *ctx, struct gs_register_call **ret,
                      struct gs_error *err)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    options.pre_start_required = request->pre_start_required;
    V1beta1__RegisterRequest message = V1BETA1__REGISTER_REQUEST__INIT;
    message.version = (char *)"v1beta1";
    message.endpoint = (char *)request->endpoint;
    message.resource_name = (char *)request->resource_name;
    message.options = &options;

    size_t len = v1beta1__register_request__get_packed_size(&message);
    _cleanup_free_ uint8_t *bytes = malloc(len);
    _cleanup_free_ struct gs_register_call *call = calloc(1, sizeof(*call));
    if (!bytes || !call)
        return gs_fail_nomem(err);
    v1beta1__register_request__pack(&message, bytes);
    call->done = done;
    call->ctx = ctx;
    const struct gs_grpc_unary_options unary = {
        .socket_path = request->kubelet_socket,
        .method_path = "/v1beta1.Registration/Register",
        .timeout_ns = request->timeout_ns,
        .max_reply_bytes = MAX_REPLY_BYTES,
        .done = on_reply,
        .ctx = call,
    };
    if (gs_grpc_unary_start(loop, &unary, bytes, len, &call->unary, err) < 0)
        return -1;
    struct gs_register_call *started = gs_steal(&call);
    if (ret)
        *ret = started;
    return 0;
}

void gs_register_cancel(struct gs_register_call *call)
{
    gs_grpc_unary_cancel(call->unary);
    free(call);
}
