/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"

static int fail_parser(const yaml_parser_t *parser, const char *name, struct gs_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return gs_fail_nomem(err);
    return gs_fail(err, GS_EINVAL, "%s:%zu: not YAML: %s", name, parser->problem_mark.line + 1,
                   parser->problem ? parser->problem : "unreadable");
}

/* Tokens and keys come by here. */
static void wipe(unsigned char *start, const unsigned char *end)
{
    if (start)
        explicit_bzero(start, (size_t)(end - start));
}

int gs_yaml_load(struct gs_yaml *yaml, const char *text, size_t len, const char *name,
                 const char *dir, struct gs_error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return gs_fail_nomem(err);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    struct gs_yaml loaded = {.name = strdup(name), .dir = strdup(dir)};
    int result = -1;
    if (!loaded.name || !loaded.dir)
        gs_fail_nomem(err);
    else if (!yaml_parser_load(&parser, &loaded.doc))
        fail_parser(&parser, name, err);
    else
        result = 0;
    wipe(parser.raw_buffer.start, parser.raw_buffer.end);
    wipe(parser.buffer.start, parser.buffer.end);
    yaml_parser_delete(&parser);
    if (result < 0) {
        free(loaded.name);
        free(loaded.dir);
        return -1;
    }
    *yaml = loaded;
    return 0;
}

void gs_yaml_release(struct gs_yaml *yaml)
{
    for (yaml_node_t *node = yaml->doc.nodes.start; node && node < yaml->doc.nodes.top; node++) {
        if (node->type == YAML_SCALAR_NODE)
            explicit_bzero(node->data.scalar.value, node->data.scalar.length);
    }
    yaml_document_delete(&yaml->doc);
    free(yaml->name);
    free(yaml->dir);
    *yaml = (struct gs_yaml){0};
}

static bool is_null(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *text = (const char *)node->data.scalar.value;
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

const yaml_node_t *gs_yaml_root(struct gs_yaml *yaml)
{
    const yaml_node_t *root = yaml_document_get_root_node(&yaml->doc);
    return root && !is_null(root) ? root : NULL;
}

int gs_yaml_fail(const struct gs_yaml *yaml, const yaml_node_t *node, struct gs_error *err,
                 const char *fmt, ...)
{
    char words[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return gs_fail(err, GS_EINVAL, "%s:%zu: %s", yaml->name, node->start_mark.line + 1, words);
}

int gs_yaml_get(struct gs_yaml *yaml, const yaml_node_t *map, const char *key,
                const yaml_node_t **ret, struct gs_error *err)
{
    const yaml_node_t *found = NULL;
    if (map && map->type != YAML_MAPPING_NODE)
        return gs_yaml_fail(yaml, map, err, "must be a mapping");
    if (map) {
        const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
        for (; pair < map->data.mapping.pairs.top; pair++) {
            const yaml_node_t *name = yaml_document_get_node(&yaml->doc, pair->key);
            if (name && name->type == YAML_SCALAR_NODE &&
                strcmp((const char *)name->data.scalar.value, key) == 0)
                found = yaml_document_get_node(&yaml->doc, pair->value);
        }
    }
    *ret = found && !is_null(found) ? found : NULL;
    return 0;
}

int gs_yaml_string(struct gs_yaml *yaml, const yaml_node_t *map, const char *key, char **ret,
                   struct gs_error *err)
{
    const yaml_node_t *node;
    if (gs_yaml_get(yaml, map, key, &node, err) < 0)
        return -1;
    if (!node) {
        *ret = NULL;
        return 0;
    }
    if (node->type != YAML_SCALAR_NODE)
        return gs_yaml_fail(yaml, node, err, "%s must be a string", key);
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return gs_yaml_fail(yaml, node, err, "%s contains a NUL byte", key);
    char *copy = strdup(text);
    if (!copy)
        return gs_fail_nomem(err);
    *ret = copy;
    return 0;
}

int gs_yaml_bool(struct gs_yaml *yaml, const yaml_node_t *map, const char *key, bool *ret,
                 struct gs_error *err)
{
    const yaml_node_t *node;
    if (gs_yaml_get(yaml, map, key, &node, err) < 0)
        return -1;
    bool value = false;
    if (node &&
        (node->type != YAML_SCALAR_NODE ||
         !gs_parse_bool((const char *)node->data.scalar.value, node->data.scalar.length, &value)))
        return gs_yaml_fail(yaml, node, err, "%s must be true or false", key);
    *ret = value;
    return 0;
}

const yaml_node_t *gs_yaml_item(struct gs_yaml *yaml, const yaml_node_t *seq, size_t i)
{
    if (!seq)
        return NULL;
    const yaml_node_item_t *items = seq->data.sequence.items.start;
    if (i >= (size_t)(seq->data.sequence.items.top - items))
        return NULL;
    return yaml_document_get_node(&yaml->doc, items[i]);
}

int gs_yaml_sequence(struct gs_yaml *yaml, const yaml_node_t *map, const char *key,
                     const yaml_node_t **ret, struct gs_error *err)
{
    const yaml_node_t *node;
    if (gs_yaml_get(yaml, map, key, &node, err) < 0)
        return -1;
    if (node && node->type != YAML_SEQUENCE_NODE)
        return gs_yaml_fail(yaml, node, err, "%s must be a list", key);
    *ret = node;
    return 0;
}

char *gs_yaml_path(const struct gs_yaml *yaml, const char *path)
{
    char *joined = NULL;
    if (path[0] == '/')
        return strdup(path);
    return asprintf(&joined, "%s/%s", yaml->dir, path) < 0 ? NULL : joined;
}
