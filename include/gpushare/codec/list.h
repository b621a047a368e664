/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/error.h"
#include "gpushare/codec/scan.h"

/*
 * A list answer (PodList, NodeList, …): {"metadata":{"resourceVersion":…,"continue":…,
 * "remainingItemCount":…},"items":[…]} (apimachinery/pkg/apis/meta/v1 ListMeta). Pure.
 */
enum { GS_RV_BYTES = 128, GS_CONTINUE_BYTES = 4096, GS_OBJECT_NAME_BYTES = 320 };

struct gs_list_meta {
    char resource_version[GS_RV_BYTES];     /* "" when absent */
    char continue_token[GS_CONTINUE_BYTES]; /* not yet percent-encoded; "": the last page */
};

/*
 * Calls each for every item, in order, while the text is being scanned: it is not known yet whether
 * the rest is well-formed. The receiver takes exactly that item off *scan, with
 * gs_codec_pod_take() or gs_scan_raw() for example. A return other than 0 ends it with -1 and
 * GS_ECANCELED, unless the receiver filled the same *err before.
 * items absent or null: an empty list. GS_EPROTO; GS_ETOOBIG: resourceVersion or continue beyond
 * their sizes. *ret is untouched on failure.
 */
int gs_codec_list_items(struct gs_slice json, int (*each)(void *ctx, struct gs_scan *scan),
                        void *ctx, struct gs_list_meta *ret, struct gs_error *err);

/* What stands before the items. True when metadata with a resourceVersion was, as API servers do,
 * and could be read: then *ret is filled, and the next page can be requested while this one is
 * read. first_name (NULL: not wanted) is "NAMESPACE/NAME" of the first item, also where the text is
 * cut off behind it; what is not found is "". */
bool gs_codec_list_head(struct gs_slice json, struct gs_list_meta *ret,
                        char first_name[GS_OBJECT_NAME_BYTES]);
