/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The grpc-timeout header: one to eight digits and a unit, H M S m u n
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). The kubelet's 30 s arrive as
 * "29999977u". Pure, any thread.
 */
#define GS_GRPC_TIMEOUT_CHARS 10 /* longest text with its NUL */

/* What does not fit into int64_t nanoseconds becomes INT64_MAX ("no deadline"). */
bool gs_grpc_timeout_parse(const char *text, size_t len, int64_t *ret_ns);

/* The finest unit that holds timeout_ns in eight digits, rounded up; below zero counts as zero.
 * Returns the length without the NUL. */
size_t gs_grpc_timeout_format(char out[GS_GRPC_TIMEOUT_CHARS], int64_t timeout_ns);
