/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/buf.h"
#include "gpushare/model/request.h"

/* Request bodies for an API server. Pure; each appends, the caller checks the buffer once. */

#define GS_TYPE_JSON            "application/json"
#define GS_TYPE_MERGE_PATCH     "application/merge-patch+json"
#define GS_TYPE_STRATEGIC_PATCH "application/strategic-merge-patch+json"

/* core/v1 Binding, POST .../pods/NAME/binding as GS_TYPE_JSON. */
void gs_codec_binding(struct gs_buf *out, const struct gs_binding *binding);

/* {"metadata":{"uid":…,"resourceVersion":…,"labels":{…},"annotations":{…}}}, as
 * GS_TYPE_MERGE_PATCH. uid and resourceVersion, when given, are preconditions: API servers answer
 * 409 when the object has others. */
void gs_codec_meta_patch(struct gs_buf *out, const struct gs_meta_patch *patch);

/* {"status":{"capacity":{…},"allocatable":{…}}}, PATCH nodes/NAME/status as
 * GS_TYPE_STRATEGIC_PATCH: a plain merge patch would replace the kubelet's conditions. */
void gs_codec_node_status_patch(struct gs_buf *out, const struct gs_node_status_patch *patch);
