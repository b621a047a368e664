/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "device_plugin.pb-c.h"
#include "device_plugin_internal.h"
#include "gpushare/base/arena.h"
#include "gpushare/base/utf8.h"
#include "gpushare/grpc/device_plugin.h"
#include "pb.h"

/* Allocate and PreStartContainer: requests decoded, answers encoded. */

struct gs_dp_call {
    struct gs_grpc_call *call;
    struct gs_arena arena;  /* the decoded request, and the answer while it is encoded */
    size_t container_count; /* of an Allocate */
    struct gs_dp_ids ids;   /* of a PreStartContainer */
};

static void release(struct gs_dp_call *dp_call)
{
    gs_arena_release(&dp_call->arena);
    free(dp_call);
}

static void finish(struct gs_dp_call *dp_call, enum gs_grpc_status status, const char *text)
{
    gs_grpc_call_finish(dp_call->call, status, text);
    release(dp_call);
}

/* ---- requests ---- */

/* Decodes a request. NULL: it was answered with an error. */
static struct gs_dp_call *receive(struct gs_grpc_call *call, const ProtobufCMessageDescriptor *type,
                                  const void *bytes, size_t len, ProtobufCMessage **ret)
{
    struct gs_error err = {0};
    struct gs_dp_call *dp_call = calloc(1, sizeof(*dp_call));
    if (!dp_call) {
        gs_grpc_call_finish(call, GS_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return NULL;
    }
    dp_call->call = call;
    if (gs_pb_unpack(&dp_call->arena, type, bytes, len, ret, &err) < 0) {
        gs_dp_call_fail(dp_call, &err);
        return NULL;
    }
    return dp_call;
}

void gs_dp_start_allocate(struct gs_grpc_call *call, const void *bytes, size_t len, void *ctx)
{
    struct gs_dp *dp = ctx;
    ProtobufCMessage *message = NULL;
    struct gs_dp_call *dp_call =
        receive(call, &v1beta1__allocate_request__descriptor, bytes, len, &message);
    if (!dp_call)
        return;
    const V1beta1__AllocateRequest *request = (const void *)message;
    size_t count = request->n_container_requests;
    if (count == 0) {
        finish(dp_call, GS_GRPC_INVALID_ARGUMENT, "the request has no container");
        return;
    }
    struct gs_dp_ids *wanted = gs_arena_calloc(&dp_call->arena, count, sizeof(*wanted));
    if (!wanted) {
        finish(dp_call, GS_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const V1beta1__ContainerAllocateRequest *container = request->container_requests[i];
        wanted[i].ids = (const char *const *)container->devices_ids;
        wanted[i].count = container->n_devices_ids;
    }
    dp_call->container_count = count;
    dp->ops.allocate(dp->ctx, dp_call, wanted, count);
}

void gs_dp_start_pre_start(struct gs_grpc_call *call, const void *bytes, size_t len, void *ctx)
{
    struct gs_dp *dp = ctx;
    ProtobufCMessage *message = NULL;
    struct gs_dp_call *dp_call =
        receive(call, &v1beta1__pre_start_container_request__descriptor, bytes, len, &message);
    if (!dp_call)
        return;
    const V1beta1__PreStartContainerRequest *request = (const void *)message;
    dp_call->ids.ids = (const char *const *)request->devices_ids;
    dp_call->ids.count = request->n_devices_ids;
    dp->ops.pre_start(dp->ctx, dp_call, &dp_call->ids);
}

/* ---- answers ---- */

static bool is_text(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        size_t width = gs_utf8_width(text + i, len - i);
        if (width == 0)
            return false;
        i += width;
    }
    return true;
}

/* An array of `count` pointers to initialized messages, all in the arena. */
static void *make_messages(struct gs_arena *arena, const ProtobufCMessageDescriptor *type,
                           size_t count)
{
    ProtobufCMessage **array = gs_arena_calloc(arena, count, sizeof(void *));
    char *objects = gs_arena_calloc(arena, count, type->sizeof_message);
    if (!array || !objects)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        array[i] = (void *)(objects + i * type->sizeof_message);
        protobuf_c_message_init(type, array[i]);
    }
    return array;
}

/* One list of the answer. Its items begin with one or two texts, which become two fields. */
struct list {
    const ProtobufCMessageDescriptor *type;
    const void *items;
    size_t count, item_size;
    size_t texts, fields[2]; /* where in the message */
};

/* The messages. NULL: out of memory, or a text is invalid. */
static void *fill_list(struct gs_arena *arena, const struct list *list)
{
    ProtobufCMessage **messages = make_messages(arena, list->type, list->count);
    for (size_t i = 0; messages && i < list->count; i++) {
        const char *const *item = (const void *)((const char *)list->items + i * list->item_size);
        for (size_t text = 0; text < list->texts; text++) {
            if (!is_text(item[text]))
                return NULL;
            memcpy((char *)messages[i] + list->fields[text], &item[text], sizeof(item[text]));
        }
    }
    return messages;
}

#define LIST(type_, T, from, n, text_count, first, second)                                         \
    (struct list)                                                                                  \
    {                                                                                              \
        &type_, (from), (n), sizeof(*(from)), (text_count),                                        \
        {                                                                                          \
            offsetof(T, first), offsetof(T, second)                                                \
        }                                                                                          \
    }

static bool fill_container(struct gs_arena *arena, V1beta1__ContainerAllocateResponse *to,
                           const struct gs_dp_container *from)
{
    static char permissions[] = "rw";
    const struct list envs = LIST(v1beta1__container_allocate_response__envs_entry__descriptor,
                                  V1beta1__ContainerAllocateResponse__EnvsEntry, from->envs,
                                  from->env_count, 2, key, value);
    const struct list annotations =
        LIST(v1beta1__container_allocate_response__annotations_entry__descriptor,
             V1beta1__ContainerAllocateResponse__AnnotationsEntry, from->annotations,
             from->annotation_count, 2, key, value);
    const struct list mounts = LIST(v1beta1__mount__descriptor, V1beta1__Mount, from->mounts,
                                    from->mount_count, 2, host_path, container_path);
    const struct list devices =
        LIST(v1beta1__device_spec__descriptor, V1beta1__DeviceSpec, from->devices,
             from->device_count, 2, host_path, container_path);
    const struct list cdi_devices = LIST(v1beta1__cdidevice__descriptor, V1beta1__CDIDevice,
                                         from->cdi_devices, from->cdi_device_count, 1, name, name);
    to->n_envs = envs.count;
    to->n_annotations = annotations.count;
    to->n_mounts = mounts.count;
    to->n_devices = devices.count;
    to->n_cdi_devices = cdi_devices.count;
    if (!(to->envs = fill_list(arena, &envs)) ||
        !(to->annotations = fill_list(arena, &annotations)) ||
        !(to->mounts = fill_list(arena, &mounts)) || !(to->devices = fill_list(arena, &devices)) ||
        !(to->cdi_devices = fill_list(arena, &cdi_devices)))
        return false;
    for (size_t i = 0; i < to->n_mounts; i++)
        to->mounts[i]->read_only = from->mounts[i].read_only;
    for (size_t i = 0; i < to->n_devices; i++)
        to->devices[i]->permissions = permissions;
    return true;
}

static struct gs_grpc_message *encode_answer(struct gs_arena *arena,
                                             const struct gs_dp_container *containers, size_t count)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    response.n_container_responses = count;
    response.container_responses =
        make_messages(arena, &v1beta1__container_allocate_response__descriptor, count);
    if (!response.container_responses)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!fill_container(arena, response.container_responses[i], &containers[i]))
            return NULL;
    }
    return gs_pb_pack(&response.base);
}

static void finish_with(struct gs_dp_call *dp_call, struct gs_grpc_message *message)
{
    gs_grpc_call_reply(dp_call->call, message);
    release(dp_call);
}

void gs_dp_allocate_reply(struct gs_dp_call *dp_call, const struct gs_dp_container *containers,
                          size_t count)
{
    if (count != dp_call->container_count)
        finish(dp_call, GS_GRPC_INTERNAL,
               "the answer has another number of containers than the request");
    else
        finish_with(dp_call, encode_answer(&dp_call->arena, containers, count));
}

void gs_dp_pre_start_reply(struct gs_dp_call *dp_call)
{
    const V1beta1__Empty empty = V1BETA1__EMPTY__INIT; /* PreStartContainerResponse has no fields */
    finish_with(dp_call, gs_pb_pack(&empty.base));
}

void gs_dp_call_fail(struct gs_dp_call *dp_call, const struct gs_error *why)
{
    finish(dp_call, gs_grpc_status_from_code(why->code), why->msg);
}

/* An environment variable of an earlier answer, as the kubelet's checkpoint has it. */

int gs_dp_answer_env(struct gs_arena *arena, const void *bytes, size_t len, const char *name,
                     const char **ret, struct gs_error *err)
{
    ProtobufCMessage *message = NULL;
    if (gs_pb_unpack(arena, &v1beta1__container_allocate_response__descriptor, bytes, len, &message,
                     err) < 0)
        return -1;
    const V1beta1__ContainerAllocateResponse *answer = (const void *)message;
    const char *value = NULL;
    for (size_t i = 0; i < answer->n_envs; i++) {
        if (strcmp(answer->envs[i]->key, name) == 0)
            value = answer->envs[i]->value; /* if the key is there twice, the last one counts */
    }
    *ret = value;
    return 0;
}
