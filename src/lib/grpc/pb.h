/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "gpushare/base/arena.h"
#include "gpushare/base/error.h"
#include "server.h"

/*
 * protobuf-c with our memory: decoded messages live in an arena and die with it (do not call
 * ..._free_unpacked), and may not grow beyond a multiple of their encoding. Text fields are
 * NUL-terminated, cut at a NUL within.
 */

/* Decodes into the arena. GS_EPROTO; GS_ETOOBIG: above 32 bytes per byte plus 1 MiB; GS_ENOMEM. */
int gs_pb_unpack(struct gs_arena *arena, const ProtobufCMessageDescriptor *type, const void *bytes,
                 size_t len, ProtobufCMessage **ret, struct gs_error *err);

/* Encodes; NULL when memory is out. */
struct gs_grpc_message *gs_pb_pack(const ProtobufCMessage *message);
