/* SPDX-License-Identifier: Apache-2.0 */
#include "pb.h"

#define GROWTH      32
#define SLACK_BYTES ((size_t)1 << 20)

struct budget {
    struct gs_arena *arena;
    size_t left;
    bool exhausted;
};

static void *budget_alloc(void *data, size_t size)
{
    struct budget *budget = data;
    if (size > budget->left) {
        budget->exhausted = true;
        return NULL;
    }
    budget->left -= size;
    return gs_arena_alloc(budget->arena, size);
}

static void budget_free(void *data, void *mem)
{
    /* The arena frees all at once. */
}

int gs_pb_unpack(struct gs_arena *arena, const ProtobufCMessageDescriptor *type, const void *bytes,
                 size_t len, ProtobufCMessage **ret, struct gs_error *err)
{
    struct budget budget = {.arena = arena};
    if (__builtin_mul_overflow(len, (size_t)GROWTH, &budget.left) ||
        __builtin_add_overflow(budget.left, SLACK_BYTES, &budget.left))
        return gs_fail(err, GS_ETOOBIG, "a %s of %zu bytes is too large", type->short_name, len);
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, len, bytes);
    if (message) {
        *ret = message;
        return 0;
    }
    if (budget.exhausted)
        return gs_fail(err, GS_ETOOBIG, "a %s of %zu bytes has too many parts", type->short_name,
                       len);
    return gs_fail(err, GS_EPROTO, "malformed %s", type->short_name);
}

struct gs_grpc_message *gs_pb_pack(const ProtobufCMessage *message)
{
    uint8_t *body;
    struct gs_grpc_message *packed =
        gs_grpc_message_new(protobuf_c_message_get_packed_size(message), &body);
    if (packed)
        protobuf_c_message_pack(message, body);
    return packed;
}
