/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "inspect/common.h"

/* Pods of the installation: found by their label, asked through the API server's proxy with the
 * user's own rights (pods/proxy in --system-namespace). */

/* The extender's pods (a list of the API). The caller decrefs; NULL: the codes of lookup_json(). */
json_t *installed_extenders(const struct common *common, struct gs_error *err);

/* What a pod serves there: page is ":PORT/proxy/PATH". */
int installed_get(const struct common *common, const char *pod, const char *page,
                  struct gs_buf *body, struct gs_error *err);

/* The running extender's --policy, for which its ready pods are asked, 2 s each and some 5 s in
 * all; GS_PLACEMENT_DEFAULT where none can be asked. */
enum gs_placement installed_policy(const struct common *common);

#define INSTALLED_EXTENDER(path) ":29998/proxy/" path
