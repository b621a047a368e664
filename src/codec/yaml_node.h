/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_YAML_NODE_H
#define GPUSHARE_CODEC_YAML_NODE_H

#include <jansson.h>
#include <yaml.h>

#include "gpushare/codec/yaml.h"

/* Private to yaml.c, yaml_json.c and manifest.c: a node is libyaml's. */

static inline const yaml_node_t *gs_yaml_node_of(struct gs_yaml_node node)
{
    return node.at;
}

/* Of a scalar without quotes. */
bool gs_yaml_is_null(const char *plain);

/* A node as JSON; NULL with GS_EINVAL, GS_ETOOBIG or GS_ENOMEM. An alias makes a node count each
 * time it is reached, so a few lines of YAML could grow without end: depth and *values_left are
 * what it may take. */
json_t *gs_yaml_json(struct gs_yaml_node node, int depth, size_t *values_left,
                     struct gs_error *err);

#endif
