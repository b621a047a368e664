/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/grpc/device_plugin.h"
#include "server.h"

/* device_plugin.c: the service and its list of devices. device_plugin_call.c: Allocate and
 * PreStartContainer. */
struct gs_dp {
    struct gs_dp_ops ops;
    void *ctx;
    struct gs_grpc_server *server;
    struct gs_grpc_message *list; /* the encoded ListAndWatchResponse; NULL until one is set */
    struct gs_grpc_call **streams;
    uint32_t stream_count, stream_cap;
};

/* Handlers for struct gs_grpc_method; ctx is the gs_dp. */
void gs_dp_start_allocate(struct gs_grpc_call *call, const void *bytes, size_t len, void *ctx);
void gs_dp_start_pre_start(struct gs_grpc_call *call, const void *bytes, size_t len, void *ctx);
