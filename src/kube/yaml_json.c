/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>

#include "gpushare/base/num.h"
#include "yaml_doc.h"

/* An alias makes a node count each time it is reached, so a few lines of YAML could grow without
 * end. */
enum { DEPTH_MAX = 32, VALUES_MAX = 10000 };

struct conversion {
    struct gs_yaml *yaml;
    size_t values;
    struct gs_error *err;
};

static json_t *convert(struct conversion *conversion, const yaml_node_t *node, int depth);

static json_t *convert_scalar(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    size_t len = node->data.scalar.length;
    if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return json_stringn(text, len);
    int64_t number;
    if (len == 0 || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0)
        return json_null();
    if (strcasecmp(text, "true") == 0)
        return json_true();
    if (strcasecmp(text, "false") == 0)
        return json_false();
    if (gs_parse_i64(text, len, &number))
        return json_integer(number);
    /* What is left and starts like a number is a fraction, or no number: JSON's reader knows. */
    if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) {
        json_t *real = json_loadb(text, len, JSON_DECODE_ANY, NULL);
        if (real)
            return real;
    }
    return json_stringn(text, len);
}

static json_t *convert_mapping(struct conversion *conversion, const yaml_node_t *node, int depth)
{
    json_t *object = json_object();
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; object && pair < node->data.mapping.pairs.top; pair++) {
        yaml_document_t *doc = &conversion->yaml->doc;
        const yaml_node_t *key = yaml_document_get_node(doc, pair->key);
        json_t *value = NULL;
        if (key->type == YAML_SCALAR_NODE)
            value = convert(conversion, yaml_document_get_node(doc, pair->value), depth + 1);
        else
            gs_yaml_fail(conversion->yaml, key, conversion->err, "a key must be a string");
        if (!value || json_object_set_new(object, (const char *)key->data.scalar.value, value)) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *convert_sequence(struct conversion *conversion, const yaml_node_t *node, int depth)
{
    json_t *array = json_array();
    const yaml_node_t *item;
    for (size_t i = 0; array && (item = gs_yaml_item(conversion->yaml, node, i)) != NULL; i++) {
        json_t *value = convert(conversion, item, depth + 1);
        if (!value || json_array_append_new(array, value)) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *convert(struct conversion *conversion, const yaml_node_t *node, int depth)
{
    if (depth > DEPTH_MAX || conversion->values++ > VALUES_MAX) {
        gs_yaml_fail(conversion->yaml, node, conversion->err, "nested too deeply or too large");
        return NULL;
    }
    if (node->type == YAML_MAPPING_NODE)
        return convert_mapping(conversion, node, depth);
    if (node->type == YAML_SEQUENCE_NODE)
        return convert_sequence(conversion, node, depth);
    json_t *scalar = convert_scalar(node);
    if (!scalar)
        gs_yaml_fail(conversion->yaml, node, conversion->err, "not a text of UTF-8");
    return scalar;
}

int gs_yaml_to_json(struct gs_yaml *yaml, const yaml_node_t *node, char **ret, struct gs_error *err)
{
    struct conversion conversion = {.yaml = yaml, .err = err};
    json_t *json = convert(&conversion, node, 0);
    if (!json)
        return gs_fail_nomem(err); /* unless a reason was given */
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(json);
    if (!text)
        return gs_fail_nomem(err);
    *ret = text;
    return 0;
}
