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
/* What does not fit into int64_t nanoseconds becomes INT64_MAX ("no deadline"). */
bool gs_grpc_timeout_parse(const char *text, size_t len, int64_t *ret_ns);
