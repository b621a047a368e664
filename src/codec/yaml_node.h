/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CODEC_YAML_NODE_H
#define GPUSHARE_CODEC_YAML_NODE_H

#include <jansson.h>
#include <yaml.h>

#include "gpushare/codec/yaml.h"

/* Private to yaml.c, yaml_json.c and manifest.c: a node is libyaml's. */

static inline const yaml_node_t *gs_yaml_node_of(const struct gs_yaml_node *node)
{
    return (const yaml_node_t *)node;
}

/* NULL: the document has no such node. */
static inline const struct gs_yaml_node *gs_yaml_at(const struct gs_yaml *yaml, int index)
{
    return (const struct gs_yaml_node *)yaml_document_get_node(yaml->doc, index);
}

/* A node as JSON; NULL with GS_EINVAL, GS_ETOOBIG or GS_ENOMEM. An alias makes a node count each
 * time it is reached, so a few lines of YAML could grow without end: depth and *values_left are
 * what it may take. */
json_t *gs_yaml_json(const struct gs_yaml *yaml, const struct gs_yaml_node *node, int depth,
                     size_t *values_left, struct gs_error *err);

#endif
