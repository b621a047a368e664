/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "inspect/source.h"

/* Objects of the API as trees, for the few that the model has no struct for. */

/* What was answered; the caller decrefs. U+0000, which an annotation or a variable may have and
 * which no tree takes, becomes U+FFFD, in body too: one pod's author spoils no list. NULL: no JSON.
 */
json_t *lookup_parse(struct gs_buf *body);

/* An item of a list (gs_pages.item), of at most max bytes; the caller decrefs. NULL: GS_EPROTO, or
 * the list itself is broken, which scan->failed says and the list tells. */
json_t *lookup_item(struct gs_scan *scan, size_t max, struct gs_error *err);

/* GET of any path; the caller decrefs. NULL: the codes of port/kube.h, GS_EPROTO for no JSON. */
json_t *lookup_json(const struct source *source, const char *path, const char *query,
                    struct gs_error *err);

struct lookup_right {
    const char *verb, *group, *resource, *sub;
    const char *ns, *name; /* NULL: all of them, in every namespace */
};

/* May the service account "system:serviceaccount:NAMESPACE:NAME" do that, or this user (account
 * NULL)? Asked by a review of authorization.k8s.io: 1 yes, 0 no, -1 cannot be asked. */
int lookup_allowed(const struct source *source, const struct lookup_right *right,
                   const char *account, int64_t timeout_ns, struct gs_error *err);

/* A string member, found by the names on the way ("status", "phase", NULL); "" when absent. */
const char *lookup_text(const json_t *object, ...) __attribute__((sentinel));

/* A pod whose condition Ready is True. */
bool lookup_is_ready(const json_t *pod);
