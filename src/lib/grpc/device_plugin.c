/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/grpc/device_plugin.h"
#include "gpushare/base/array.h"

#include <stdlib.h>
#include <string.h>

#include "device_plugin.pb-c.h"
#include "device_plugin_internal.h"
#include "pb.h"

#define MAX_ID_BYTES 63 /* fields in api.proto, message Device */

/* ---- the list ---- */

/* A response of one device in protobuf-c's form. The parts point to each other: not to be moved. */
struct one_device {
    V1beta1__Device device;
    V1beta1__Device *devices[1];
    V1beta1__ListAndWatchResponse response;
};

static const ProtobufCMessage *fill(struct one_device *one, const char *id)
{
    static char healthy[] = "Healthy";
    v1beta1__device__init(&one->device);
    one->device.id = (char *)id;
    one->device.health = healthy;
    one->devices[0] = &one->device;
    v1beta1__list_and_watch_response__init(&one->response);
    one->response.n_devices = 1;
    one->response.devices = one->devices;
    return &one->response.base;
}

/* Encodings that follow each other are one message with both lists
 * (https://protobuf.dev/programming-guides/encoding/#last-one-wins): so the whole list is encoded
 * device by device, without a tree of 65,000 objects. */
size_t gs_dp_list_bytes(const char *const *ids, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        struct one_device one;
        bytes += protobuf_c_message_get_packed_size(fill(&one, ids[i]));
    }
    return bytes;
}

static struct gs_grpc_message *encode_list(const char *const *ids, size_t count, size_t bytes)
{
    uint8_t *out;
    struct gs_grpc_message *list = gs_grpc_message_new(bytes, &out);
    for (size_t i = 0; list && i < count; i++) {
        struct one_device one;
        out += protobuf_c_message_pack(fill(&one, ids[i]), out);
    }
    return list;
}

static int check_ids(const char *const *ids, size_t count, struct gs_error *err)
{
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(ids[i]);
        if (len == 0 || len > MAX_ID_BYTES)
            return gs_fail(err, GS_EINVAL, "device ID \"%.80s\" must have 1 to %d bytes", ids[i],
                           MAX_ID_BYTES);
    }
    return 0;
}

int gs_dp_set_devices(struct gs_dp *dp, const char *const *ids, size_t count, struct gs_error *err)
{
    if (check_ids(ids, count, err) < 0)
        return -1;
    size_t bytes = gs_dp_list_bytes(ids, count);
    if (bytes > GS_DP_LIST_MAX_BYTES)
        return gs_fail(err, GS_ETOOBIG,
                       "a list of %zu devices has %zu bytes, and the kubelet accepts %zu", count,
                       bytes, GS_DP_LIST_MAX_BYTES);
    struct gs_grpc_message *list = encode_list(ids, count, bytes);
    if (!list)
        return gs_fail_nomem(err);
    if (dp->list && gs_grpc_message_equal(dp->list, list)) {
        gs_grpc_message_unref(list);
        return 0;
    }
    gs_grpc_message_unrefp(&dp->list);
    dp->list = list;
    for (size_t i = 0; i < dp->stream_count; i++)
        gs_grpc_call_send(dp->streams[i], list);
    return 0;
}

/* ---- ListAndWatch ---- */

static bool add_stream(struct gs_dp *dp, struct gs_grpc_call *call)
{
    if (!gs_array_reach(&dp->streams, &dp->stream_cap, dp->stream_count, sizeof(void *)))
        return false;
    dp->streams[dp->stream_count++] = call;
    return true;
}

static void start_list(struct gs_grpc_call *call, const void *bytes, size_t len, void *ctx)
{
    struct gs_dp *dp = ctx;
    if (!add_stream(dp, call)) {
        gs_grpc_call_finish(call, GS_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    gs_grpc_call_send(call, dp->list);
}

static void list_ended(struct gs_grpc_call *call, void *ctx)
{
    struct gs_dp *dp = ctx;
    for (size_t i = 0; i < dp->stream_count; i++) {
        if (dp->streams[i] == call)
            dp->streams[i] = dp->streams[--dp->stream_count];
    }
    gs_grpc_call_finish(call, GS_GRPC_CANCELLED, NULL);
}

size_t gs_dp_streams(const struct gs_dp *dp)
{
    return dp->stream_count;
}

/* ---- GetDevicePluginOptions ---- */

static void start_options(struct gs_grpc_call *call, const void *bytes, size_t len, void *ctx)
{
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    options.pre_start_required = true;
    gs_grpc_call_reply(call, gs_pb_pack(&options.base));
}

/* ---- life ---- */

static const struct gs_grpc_method methods[] = {
    {"/v1beta1.DevicePlugin/GetDevicePluginOptions", start_options, NULL},
    {"/v1beta1.DevicePlugin/ListAndWatch", start_list, list_ended},
    {"/v1beta1.DevicePlugin/Allocate", gs_dp_start_allocate, NULL},
    {"/v1beta1.DevicePlugin/PreStartContainer", gs_dp_start_pre_start, NULL},
};

int gs_dp_new(struct gs_loop *loop, const struct gs_dp_ops *ops, void *ctx, struct gs_dp **ret,
              struct gs_error *err)
{
    struct gs_dp *dp = calloc(1, sizeof(*dp));
    if (!dp)
        return gs_fail_nomem(err);
    dp->ops = *ops;
    dp->ctx = ctx;
    if (gs_grpc_server_new(loop, methods, sizeof(methods) / sizeof(methods[0]), dp, &dp->server,
                           err) < 0) {
        free(dp);
        return -1;
    }
    *ret = dp;
    return 0;
}

int gs_dp_listen(struct gs_dp *dp, const char *path, struct gs_error *err)
{
    return gs_grpc_server_listen(dp->server, path, err);
}

int gs_dp_adopt(struct gs_dp *dp, int fd, struct gs_error *err)
{
    return gs_grpc_server_adopt(dp->server, fd, err);
}

void gs_dp_free(struct gs_dp *dp)
{
    gs_grpc_server_free(dp->server);
    gs_grpc_message_unrefp(&dp->list);
    free(dp->streams);
    free(dp);
}
