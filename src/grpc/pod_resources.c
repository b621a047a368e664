/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/grpc/pod_resources.h"

#include <stdlib.h>

#include "client.h"
#include "gpushare/base/cleanup.h"
#include "pb.h"
#include "pod_resources.pb-c.h"

/* ---- decoding ---- */

static bool convert_container(struct gs_arena *arena, const Podresources__ContainerResources *from,
                              struct gs_podres_container *to)
{
    struct gs_podres_devices *devices = gs_arena_calloc(arena, from->n_devices, sizeof(*devices));
    if (!devices)
        return false;
    for (size_t i = 0; i < from->n_devices; i++) {
        const Podresources__ContainerDevices *one = from->devices[i];
        devices[i] = (struct gs_podres_devices){.resource_name = one->resource_name,
                                                .ids = (const char *const *)one->device_ids,
                                                .id_count = one->n_device_ids};
    }
    *to = (struct gs_podres_container){
        .name = from->name, .devices = devices, .device_count = from->n_devices};
    return true;
}

static bool convert_pod(struct gs_arena *arena, const Podresources__PodResources *from,
                        struct gs_podres_pod *to)
{
    struct gs_podres_container *containers =
        gs_arena_calloc(arena, from->n_containers, sizeof(*containers));
    if (!containers)
        return false;
    for (size_t i = 0; i < from->n_containers; i++) {
        if (!convert_container(arena, from->containers[i], &containers[i]))
            return false;
    }
    *to = (struct gs_podres_pod){
        .ns = from->namespace_,
        .name = from->name,
        .containers = containers,
        .container_count = from->n_containers,
    };
    return true;
}

int gs_podres_decode(struct gs_arena *arena, const void *message, size_t len,
                     struct gs_podres_list *ret, struct gs_error *err)
{
    ProtobufCMessage *decoded = NULL;
    if (gs_pb_unpack(arena, &podresources__list_pod_resources_response__descriptor, message, len,
                     &decoded, err) < 0)
        return -1;
    const Podresources__ListPodResourcesResponse *response = (const void *)decoded;
    size_t count = response->n_pod_resources;
    struct gs_podres_pod *pods = gs_arena_calloc(arena, count, sizeof(*pods));
    if (!pods)
        return gs_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (!convert_pod(arena, response->pod_resources[i], &pods[i]))
            return gs_fail_nomem(err);
    }
    *ret = (struct gs_podres_list){.pods = pods, .pod_count = count};
    return 0;
}

/* ---- the call ---- */

struct gs_podres_call {
    struct gs_grpc_unary *unary;
    gs_podres_fn *done;
    void *ctx;
};

static void on_reply(void *ctx, const struct gs_grpc_reply *reply)
{
    struct gs_podres_call *call = ctx;
    struct gs_arena arena = {0};
    struct gs_podres_list list = {0};
    struct gs_error failure = {0};
    int result = 0;
    if (reply->status != GS_GRPC_OK)
        result = gs_fail(&failure, reply->code, "%s (%s)", reply->text,
                         gs_grpc_status_name(reply->status));
    else
        result = gs_podres_decode(&arena, reply->message, reply->len, &list, &failure);
    call->done(call->ctx, result == 0 ? &list : NULL, result == 0 ? NULL : &failure);
    gs_arena_release(&arena);
    free(call);
}

int gs_podres_list_start(struct gs_loop *loop, const char *socket_path, int64_t timeout_ns,
                         gs_podres_fn *done, void *ctx, struct gs_podres_call **ret,
                         struct gs_error *err)
{
    _cleanup_free_ struct gs_podres_call *call = calloc(1, sizeof(*call));
    if (!call)
        return gs_fail_nomem(err);
    call->done = done;
    call->ctx = ctx;
    const struct gs_grpc_unary_options unary = {
        .socket_path = socket_path,
        .method_path = "/v1.PodResourcesLister/List",
        .timeout_ns = timeout_ns,
        .max_reply_bytes = GS_PODRES_MAX_BYTES,
        .done = on_reply,
        .ctx = call,
    };
    if (gs_grpc_unary_start(loop, &unary, NULL, 0, &call->unary, err) < 0)
        return -1;
    struct gs_podres_call *started = gs_steal(&call);
    if (ret)
        *ret = started;
    return 0;
}

void gs_podres_cancel(struct gs_podres_call *call)
{
    gs_grpc_unary_cancel(call->unary);
    free(call);
}
