/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/buf.h"
#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/request.h"

/* coordination.k8s.io/v1 Lease (k8s.io/api/coordination/v1/types.go). Pure. */

/* The body for POST (resource_version "") or PUT (with it, as precondition). Times that are 0 and
 * an empty holder are left out. */
void gs_codec_lease_encode(struct gs_buf *out, const struct gs_lease *lease);

/*
 * Fills holder, resource_version, duration_s, transitions and the two times; ns and name stay as
 * they are. Absent: "" and 0. GS_EPROTO: no JSON, a field of the wrong type, an invalid time.
 * GS_ETOOBIG: holder or resourceVersion beyond their arrays. *lease is untouched on failure.
 */
int gs_codec_lease_decode(struct gs_slice json, struct gs_lease *lease, struct gs_error *err);
