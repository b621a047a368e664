/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "gpushare/base/error.h"

/* k8s.io/apimachinery/pkg/util/strategicpatch, with the merge keys of core/v1. Changes target, an
 * object, in which a null of the patch is left: gs_sim_tree_strip_nulls() removes it. patch is
 * borrowed. -1: GS_ENOMEM, GS_EPROTO; target is then to be thrown away. */
int gs_sim_patch_strategic(json_t *target, json_t *patch, struct gs_error *err);
