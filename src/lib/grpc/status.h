/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"

/*
 * gRPC status codes (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md) and the trailers
 * that carry them, grpc-status and grpc-message
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). Pure, any thread.
 */
enum gs_grpc_status {
    GS_GRPC_OK = 0,
    GS_GRPC_CANCELLED = 1,
    GS_GRPC_UNKNOWN = 2,
    GS_GRPC_INVALID_ARGUMENT = 3,
    GS_GRPC_DEADLINE_EXCEEDED = 4,
    GS_GRPC_NOT_FOUND = 5,
    GS_GRPC_ALREADY_EXISTS = 6,
    GS_GRPC_PERMISSION_DENIED = 7,
    GS_GRPC_RESOURCE_EXHAUSTED = 8,
    GS_GRPC_FAILED_PRECONDITION = 9,
    GS_GRPC_ABORTED = 10,
    GS_GRPC_OUT_OF_RANGE = 11,
    GS_GRPC_UNIMPLEMENTED = 12,
    GS_GRPC_INTERNAL = 13,
    GS_GRPC_UNAVAILABLE = 14,
    GS_GRPC_DATA_LOSS = 15,
    GS_GRPC_UNAUTHENTICATED = 16,
};

/* The text of a grpc-status header: a decimal number. One that is none, or above 16, is
 * GS_GRPC_UNKNOWN, as the specification asks. */
enum gs_grpc_status gs_grpc_status_parse(const char *text, size_t len);

/* The status for an error code, for services that answer with an error. The kubelet reads the text
 * only. */
enum gs_grpc_status gs_grpc_status_from_code(enum gs_code code);

/* Appends text as grpc-message wants it: bytes outside ' '..'~', and '%', become %XX. Bytes that
 * are not UTF-8 become U+FFFD first: the kubelet puts the text into a pod's status, which must be
 * UTF-8. What does not fit under the buffer's ceiling is cut off behind a whole character, which is
 * no failure. */
void gs_grpc_message_encode(struct gs_buf *buf, const char *text, size_t len);
