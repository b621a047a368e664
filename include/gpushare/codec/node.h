/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"
#include "gpushare/model/names.h"
#include "gpushare/model/node.h"

/*
 * core/v1 Node, JSON → struct gs_node (k8s.io/api/core/v1/types.go). Pure: any thread, no state.
 *
 * Resets *node (a zeroed one is fine), then fills it; nothing borrows from json. The GPUs come
 *   - from the inventory annotation when it is valid (codec/inventory.h), whatever the capacity
 *     says: a node whose plugin is gone loses its gpu-mem capacity, and its GPUs are still there,
 *     with what runs on them. Whether new pods may go there is for the reader of capacity_units
 *     and allocatable_units to say;
 *   - else from capacity / count (gs_node_divide_capacity), with inventory_error saying why the
 *     annotation is ignored, when there is one.
 * The cordon annotation (names.cordon: a comma list of GPU indices or UUIDs, spaces around them
 * allowed, words that name no GPU of the node without effect) sets schedulable to false.
 * The moved annotation (codec/moved.h) fills moved[]; moved_error says why it is ignored.
 * Parts that are not read are skipped, as in a pod (codec/pod.h).
 * GS_EPROTO: no JSON, or a field this project reads has the wrong type or no valid value.
 * GS_ENOMEM. *node is empty (as after gs_node_reset) on failure.
 */
int gs_codec_node(const struct gs_names *names, struct gs_slice json, struct gs_node *node,
                  struct gs_error *err);

/* The same for the next value of *from: see gs_codec_pod_take(). */
int gs_codec_node_take(const struct gs_names *names, struct gs_scan *from, struct gs_node *node,
                       struct gs_error *err);
