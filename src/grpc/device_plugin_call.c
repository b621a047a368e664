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

/* Decodes a request; NULL: it is answered with an error already. */
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
    gs_grpc_call_set_data(call, dp_call);
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
        finish(dp_call, GS_GRPC_INVALID_ARGUMENT, "the request names no container");
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
    if (!dp->ops.pre_start) {
        gs_grpc_call_finish(call, GS_GRPC_UNIMPLEMENTED, "PreStartContainer is not offered");
        return;
    }
    struct gs_dp_call *dp_call =
        receive(call, &v1beta1__pre_start_container_request__descriptor, bytes, len, &message);
    if (!dp_call)
        return;
    const V1beta1__PreStartContainerRequest *request = (const void *)message;
    struct gs_dp_ids *ids = gs_arena_alloc(&dp_call->arena, sizeof(*ids));
    if (!ids) {
        finish(dp_call, GS_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    ids->ids = (const char *const *)request->devices_ids;
    ids->count = request->n_devices_ids;
    dp->ops.pre_start(dp->ctx, dp_call, ids);
}

void gs_dp_call_ended(struct gs_grpc_call *call, void *ctx)
{
    const struct gs_dp *dp = ctx;
    if (dp->ops.ended)
        dp->ops.ended(dp->ctx, gs_grpc_call_data(call));
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

/* An array of `count` pointers to objects of `size` bytes, all in the arena. */
static void *make_objects(struct gs_arena *arena, size_t count, size_t size)
{
    void **array = gs_arena_calloc(arena, count, sizeof(void *));
    char *objects = gs_arena_calloc(arena, count, size);
    if (!array || !objects)
        return NULL;
    for (size_t i = 0; i < count; i++)
        array[i] = objects + i * size;
    return array;
}

static bool fill_envs(struct gs_arena *arena, V1beta1__ContainerAllocateResponse *to,
                      const struct gs_dp_container *from)
{
    to->n_envs = from->env_count;
    to->envs = make_objects(arena, from->env_count, sizeof(**to->envs));
    if (!to->envs)
        return false;
    for (size_t i = 0; i < from->env_count; i++) {
        const struct gs_dp_pair *pair = &from->envs[i];
        v1beta1__container_allocate_response__envs_entry__init(to->envs[i]);
        if (!is_text(pair->key) || !is_text(pair->value))
            return false;
        to->envs[i]->key = (char *)pair->key;
        to->envs[i]->value = (char *)pair->value;
    }
    return true;
}

static bool fill_annotations(struct gs_arena *arena, V1beta1__ContainerAllocateResponse *to,
                             const struct gs_dp_container *from)
{
    to->n_annotations = from->annotation_count;
    to->annotations = make_objects(arena, from->annotation_count, sizeof(**to->annotations));
    if (!to->annotations)
        return false;
    for (size_t i = 0; i < from->annotation_count; i++) {
        const struct gs_dp_pair *pair = &from->annotations[i];
        v1beta1__container_allocate_response__annotations_entry__init(to->annotations[i]);
        if (!is_text(pair->key) || !is_text(pair->value))
            return false;
        to->annotations[i]->key = (char *)pair->key;
        to->annotations[i]->value = (char *)pair->value;
    }
    return true;
}

static bool fill_mounts(struct gs_arena *arena, V1beta1__ContainerAllocateResponse *to,
                        const struct gs_dp_container *from)
{
    to->n_mounts = from->mount_count;
    to->mounts = make_objects(arena, from->mount_count, sizeof(**to->mounts));
    if (!to->mounts)
        return false;
    for (size_t i = 0; i < from->mount_count; i++) {
        const struct gs_dp_path *path = &from->mounts[i];
        v1beta1__mount__init(to->mounts[i]);
        if (!is_text(path->host) || !is_text(path->container))
            return false;
        to->mounts[i]->host_path = (char *)path->host;
        to->mounts[i]->container_path = (char *)path->container;
        to->mounts[i]->read_only = path->read_only;
    }
    return true;
}

static bool fill_devices(struct gs_arena *arena, V1beta1__ContainerAllocateResponse *to,
                         const struct gs_dp_container *from)
{
    static char permissions[] = "rw";
    to->n_devices = from->device_count;
    to->devices = make_objects(arena, from->device_count, sizeof(**to->devices));
    if (!to->devices)
        return false;
    for (size_t i = 0; i < from->device_count; i++) {
        const struct gs_dp_path *path = &from->devices[i];
        v1beta1__device_spec__init(to->devices[i]);
        if (!is_text(path->host) || !is_text(path->container))
            return false;
        to->devices[i]->host_path = (char *)path->host;
        to->devices[i]->container_path = (char *)path->container;
        to->devices[i]->permissions = permissions;
    }
    return true;
}

static bool fill_cdi_devices(struct gs_arena *arena, V1beta1__ContainerAllocateResponse *to,
                             const struct gs_dp_container *from)
{
    to->n_cdi_devices = from->cdi_device_count;
    to->cdi_devices = make_objects(arena, from->cdi_device_count, sizeof(**to->cdi_devices));
    if (!to->cdi_devices)
        return false;
    for (size_t i = 0; i < from->cdi_device_count; i++) {
        v1beta1__cdidevice__init(to->cdi_devices[i]);
        if (!is_text(from->cdi_devices[i]))
            return false;
        to->cdi_devices[i]->name = (char *)from->cdi_devices[i];
    }
    return true;
}

static struct gs_grpc_message *encode_answer(struct gs_arena *arena,
                                             const struct gs_dp_container *containers, size_t count)
{
    V1beta1__AllocateResponse response = V1BETA1__ALLOCATE_RESPONSE__INIT;
    response.n_container_responses = count;
    response.container_responses =
        make_objects(arena, count, sizeof(**response.container_responses));
    if (!response.container_responses)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        V1beta1__ContainerAllocateResponse *to = response.container_responses[i];
        v1beta1__container_allocate_response__init(to);
        if (!fill_envs(arena, to, &containers[i]) || !fill_mounts(arena, to, &containers[i]) ||
            !fill_devices(arena, to, &containers[i]) ||
            !fill_annotations(arena, to, &containers[i]) ||
            !fill_cdi_devices(arena, to, &containers[i]))
            return NULL;
    }
    return gs_pb_pack(&response.base);
}

static void finish_with(struct gs_dp_call *dp_call, struct gs_grpc_message *message)
{
    if (!message) {
        finish(dp_call, GS_GRPC_INTERNAL, "the answer cannot be encoded");
        return;
    }
    gs_grpc_call_send(dp_call->call, message);
    gs_grpc_message_unref(message);
    finish(dp_call, GS_GRPC_OK, NULL);
}

void gs_dp_allocate_reply(struct gs_dp_call *dp_call, const struct gs_dp_container *containers,
                          size_t count)
{
    if (count != dp_call->container_count)
        finish(dp_call, GS_GRPC_INTERNAL, "the answer is for another number of containers");
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

/* A variable of an answer that was given before, as kubelets keep it. */

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
            value = answer->envs[i]->value; /* the last one counts */
    }
    *ret = value;
    return 0;
}
