/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "gpushare/base/error.h"

/* Both change target, an object; patch is borrowed. -1: GS_ENOMEM, GS_EPROTO; target is then in
 * between and to be thrown away. */

/* RFC 7386. */
int gs_sim_patch_merge(json_t *target, json_t *patch, struct gs_error *err);

/* k8s.io/apimachinery/pkg/util/strategicpatch, with the merge keys of core/v1. */
int gs_sim_patch_strategic(json_t *target, json_t *patch, struct gs_error *err);
