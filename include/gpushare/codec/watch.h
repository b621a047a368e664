/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/codec/list.h"
#include "gpushare/codec/status.h"

/*
 * One line of a watch: {"type":"ADDED","object":{…}} (apimachinery/pkg/apis/meta/v1/watch.go).
 * Pure.
 */
enum gs_watch_type {
    GS_WATCH_ADDED,
    GS_WATCH_MODIFIED,
    GS_WATCH_DELETED,
    GS_WATCH_BOOKMARK,
    GS_WATCH_ERROR,
};

struct gs_watch_event {
    enum gs_watch_type type;
    struct gs_slice object;      /* *borrowed* from the line */
    struct gs_api_status status; /* of an ERROR, else zeroed; 410 means: list again */
};

/* GS_EPROTO: no JSON, a type that is none of these, no object. *ret is untouched on failure. */
int gs_codec_watch_event(struct gs_slice line, struct gs_watch_event *ret, struct gs_error *err);

/* metadata.resourceVersion of any object, also of a bookmark's. GS_EPROTO: not an object, or none
 * in it. GS_ETOOBIG. ret is untouched on failure. */
int gs_codec_object_rv(struct gs_slice object, char ret[GS_RV_BYTES], struct gs_error *err);
