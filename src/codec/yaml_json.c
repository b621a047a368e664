/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "yaml_node.h"

struct conversion {
    size_t values_left;
    struct gs_error *err;
};

static bool is_among(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(text, *words) == 0)
            return true;
    }
    return false;
}

/* What go-yaml makes of a plain scalar; of numbers only JSON's forms count. */
static json_t *plain_value(const char *text, size_t len)
{
    static const char *const trues[] = {"true", "True", "TRUE", "yes", "Yes",
                                        "YES",  "on",   "On",   "ON",  NULL};
    static const char *const falses[] = {"false", "False", "FALSE", "no",  "No",
                                         "NO",    "off",   "Off",   "OFF", NULL};
    if (gs_yaml_is_null(text))
        return json_null();
    if (is_among(text, trues) || is_among(text, falses))
        return json_boolean(is_among(text, trues));
    if (strchr("-0123456789", text[0])) {
        json_t *number = json_loadb(text, len, JSON_DECODE_ANY, NULL);
        if (json_is_number(number))
            return number;
        json_decref(number);
    }
    return json_stringn(text, len);
}

static json_t *convert_node(struct conversion *conversion, struct gs_yaml_node node, int depth);

static json_t *fail_at(const struct conversion *conversion, struct gs_yaml_node node,
                       const char *why)
{
    gs_yaml_fail(node, conversion->err, "%s", why);
    return NULL;
}

/* What merge keys stand for is there unless the mapping says otherwise; of several the first. */
static json_t *convert_mapping(struct conversion *conversion, struct gs_yaml_node node, int depth)
{
    json_auto_t *object = json_object(), *merged = json_array();
    struct gs_yaml_node key, of;
    for (size_t i = 0; gs_yaml_pair(node, i, &key, &of); i++) {
        const yaml_node_t *name = gs_yaml_node_of(key);
        if (name->type != YAML_SCALAR_NODE)
            return fail_at(conversion, key, "a key must be a string");
        const char *text = (const char *)name->data.scalar.value;
        if (json_object_get(object, text))
            return fail_at(conversion, key, "this key is there twice");
        json_t *value = convert_node(conversion, of, depth - 1);
        if (!value || (strcmp(text, "<<") == 0 ? json_array_append_new(merged, value)
                                               : json_object_set_new(object, text, value)))
            return NULL;
    }
    for (size_t i = 0; i < json_array_size(merged); i++) {
        json_t *from = json_array_get(merged, i);
        if (json_is_array(from) ? json_array_extend(merged, from)
                                : json_object_update_missing(object, from))
            return fail_at(conversion, node, "a merge key needs a mapping");
    }
    return json_incref(object);
}

static json_t *convert_sequence(struct conversion *conversion, struct gs_yaml_node node, int depth)
{
    json_auto_t *list = json_array();
    struct gs_yaml_node item;
    for (size_t i = 0; gs_yaml_item(node, i, &item); i++) {
        json_t *value = convert_node(conversion, item, depth - 1);
        if (!value || json_array_append_new(list, value))
            return NULL;
    }
    return json_incref(list);
}

static json_t *convert_node(struct conversion *conversion, struct gs_yaml_node node, int depth)
{
    const yaml_node_t *of = gs_yaml_node_of(node);
    if (depth < 0 || conversion->values_left == 0) {
        gs_fail(conversion->err, GS_ETOOBIG, "%.160s:%zu: nested too deeply or too large",
                node.of->name, of->start_mark.line + 1);
        return NULL;
    }
    conversion->values_left--;
    if (of->type == YAML_MAPPING_NODE)
        return convert_mapping(conversion, node, depth);
    if (of->type == YAML_SEQUENCE_NODE)
        return convert_sequence(conversion, node, depth);
    const char *text = (const char *)of->data.scalar.value;
    const size_t len = of->data.scalar.length;
    json_t *value = of->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_value(text, len)
                                                                     : json_stringn(text, len);
    return value ? value : fail_at(conversion, node, "not valid UTF-8");
}

json_t *gs_yaml_json(struct gs_yaml_node node, int depth, size_t *values_left, struct gs_error *err)
{
    struct gs_error own = {0};
    struct conversion conversion = {*values_left, &own};
    json_t *json = convert_node(&conversion, node, depth);
    *values_left = conversion.values_left;
    if (!json && own.code)
        gs_fail(err, own.code, "%s", own.msg);
    else if (!json)
        gs_fail_nomem(err);
    return json;
}
