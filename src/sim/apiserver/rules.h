/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "gpushare/base/error.h"

/*
 * What an API server demands of a pod and fills in: the part of pkg/apis/core/validation and
 * pkg/apis/core/v1/defaults.go that scheduling depends on. GS_EINVAL, GS_EPROTO, GS_ENOMEM.
 */

/* A pod that is being created, its metadata aside. keep_status: leave a status as it is given. */
int gs_sim_pod_prepare(json_t *pod, const char *name, bool keep_status, struct gs_error *err);

/* An update of `before` to `after` outside its status: only what ValidatePodUpdate lets pass. */
int gs_sim_pod_check_update(const json_t *before, json_t *after, const char *name,
                            struct gs_error *err);

/* What BindingREST does to the pod: nodeName, annotations, condition PodScheduled. */
int gs_sim_pod_assign(json_t *pod, const json_t *binding, int64_t now_ns, struct gs_error *err);
