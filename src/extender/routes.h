/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extender/service/service.h"
#include "gpushare/http/server.h"
#include "gpushare/kube/client.h"

/* The handlers' context. */
struct routes_ctx {
    struct gs_service *service;
    struct gs_kube_client *client;
    struct gs_http_server *_Atomic server; /* the scheduling one; NULL until it is there */
};

/* The scheduling port: verbs, inspect, and all of the health port. */
extern const struct gs_http_route routes_all[];
extern const size_t routes_all_count;

/* The health port: nothing that needs trust. */
extern const struct gs_http_route routes_health[];
extern const size_t routes_health_count;
