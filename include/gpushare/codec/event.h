/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/buf.h"
#include "gpushare/model/request.h"

/*
 * core/v1 Event, POST /api/v1/namespaces/NAMESPACE/events. Pure.
 */
enum { GS_EVENT_MESSAGE_MAX = 1024 };

/* The namespace it is posted to: the object's, "default" for a node's. */
const char *gs_event_namespace(const struct gs_event *event);

/* Appends the body. Its name is the object's and now_ns in hex, as client-go makes it
 * (tools/record/event.go); now_ns is wall time and both its timestamps. A message longer than
 * GS_EVENT_MESSAGE_MAX bytes is cut at a character's end. */
void gs_codec_event(struct gs_buf *out, const struct gs_event *event, int64_t now_ns);
