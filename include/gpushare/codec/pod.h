/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/names.h"
#include "gpushare/model/pod.h"

/*
 * core/v1 Pod, JSON → struct gs_pod, as API servers and kube-scheduler send it
 * (k8s.io/api/core/v1/types.go). Pure: any thread, no state.
 *
 * Resets *pod (a zeroed one is fine), then fills it; its strings go into pod->arena and do not
 * borrow from json. Fields that are absent or null give empty values, fields not known are passed
 * over. What users write never fails the decode:
 *   - annotations and the label gpu-count: a value that cannot be used becomes the *_BROKEN word
 *     of its enum, or 0 (assume_time_ns). Both gpu-count label and annotation, different: BROKEN;
 *   - more than GS_POD_CONTAINERS_MAX containers, or init containers: what the others request is
 *     added to the last one, so that a pod that is bound is charged no less than its peak;
 *   - a container that requests more GPU memory than 2^31 - 1 units sets gpu_units_overflow and
 *     counts 2^31 - 1.
 * Parts that this project does not read are skipped bracket by bracket: json comes from an API
 * server, or was checked when it was cut out of a request.
 * GS_EPROTO: no JSON, or a field this project reads has the wrong type or no valid value (the
 * message names it: "resources of a container is not an object"); GPU memory that is negative or no
 * whole number is one of these, because API servers refuse such pods. GS_ENOMEM. *pod is empty (as
 * after gs_pod_reset) on failure.
 */
enum { GS_POD_CONTAINERS_MAX = 2048 };

int gs_codec_pod(const struct gs_names *names, struct gs_slice json, struct gs_pod *pod,
                 struct gs_error *err);

/* The same for the next value of *from, such as an item of a list: that value is taken off *from in
 * one pass, also on failure, after which from->failed says whether the text itself is at fault. */
int gs_codec_pod_take(const struct gs_names *names, struct gs_scan *from, struct gs_pod *pod,
                      struct gs_error *err);
