/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "yaml_node.h"

static int fail_parser(const yaml_parser_t *parser, const char *name, struct gs_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return gs_fail_nomem(err);
    return gs_fail(err, GS_EINVAL, "%.160s:%zu: not YAML: %s", name, parser->problem_mark.line + 1,
                   parser->problem ? parser->problem : "unreadable");
}

/* Tokens and keys come by here. */
static void wipe(unsigned char *start, const unsigned char *end)
{
    if (start)
        explicit_bzero(start, (size_t)(end - start));
}

static int parser_begin(yaml_parser_t *parser, const char *text, size_t len, struct gs_error *err)
{
    if (!yaml_parser_initialize(parser))
        return gs_fail_nomem(err);
    yaml_parser_set_input_string(parser, (const unsigned char *)text, len);
    return 0;
}

static void parser_end(yaml_parser_t *parser)
{
    wipe(parser->raw_buffer.start, parser->raw_buffer.end);
    wipe(parser->buffer.start, parser->buffer.end);
    yaml_parser_delete(parser);
}

static int load_next(struct gs_yaml *yaml, yaml_parser_t *parser, const char *name, const char *dir,
                     struct gs_error *err)
{
    struct gs_yaml loaded = {.doc = calloc(1, sizeof(yaml_document_t)),
                             .name = strdup(name),
                             .dir = dir ? strdup(dir) : NULL};
    if (!loaded.doc || !loaded.name || (dir && !loaded.dir))
        gs_fail_nomem(err);
    else if (!yaml_parser_load(parser, loaded.doc))
        fail_parser(parser, name, err);
    else {
        *yaml = loaded;
        return 0;
    }
    free(loaded.doc);
    free(loaded.name);
    free(loaded.dir);
    return -1;
}

int gs_yaml_load(struct gs_yaml *yaml, const char *text, size_t len, const char *name,
                 const char *dir, struct gs_error *err)
{
    yaml_parser_t parser;
    if (parser_begin(&parser, text, len, err) < 0)
        return -1;
    int result = load_next(yaml, &parser, name, dir, err);
    parser_end(&parser);
    return result;
}

int gs_yaml_each(const char *text, size_t len, const char *name,
                 int (*each)(void *ctx, struct gs_yaml *yaml, struct gs_error *err), void *ctx,
                 struct gs_error *err)
{
    yaml_parser_t parser;
    if (parser_begin(&parser, text, len, err) < 0)
        return -1;
    int result = 0;
    bool last = false;
    while (result == 0 && !last) {
        struct gs_yaml yaml;
        result = load_next(&yaml, &parser, name, NULL, err);
        if (result < 0)
            break;
        last = !yaml_document_get_root_node(yaml.doc);
        if (!last)
            result = each(ctx, &yaml, err);
        gs_yaml_release(&yaml);
    }
    parser_end(&parser);
    return result;
}

void gs_yaml_release(struct gs_yaml *yaml)
{
    yaml_document_t *doc = yaml->doc;
    for (yaml_node_t *node = doc ? doc->nodes.start : NULL; node && node < doc->nodes.top; node++) {
        if (node->type == YAML_SCALAR_NODE)
            explicit_bzero(node->data.scalar.value, node->data.scalar.length);
    }
    if (doc)
        yaml_document_delete(doc);
    free(doc);
    free(yaml->name);
    free(yaml->dir);
    *yaml = (struct gs_yaml){0};
}

static bool is_null(const struct gs_yaml_node *node)
{
    const yaml_node_t *of = gs_yaml_node_of(node);
    if (of->type != YAML_SCALAR_NODE || of->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    const char *text = (const char *)of->data.scalar.value;
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

const struct gs_yaml_node *gs_yaml_root(const struct gs_yaml *yaml)
{
    const struct gs_yaml_node *root = gs_yaml_at(yaml, 1);
    return root && !is_null(root) ? root : NULL;
}

int gs_yaml_fail(const struct gs_yaml *yaml, const struct gs_yaml_node *node, struct gs_error *err,
                 const char *fmt, ...)
{
    char words[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return gs_fail(err, GS_EINVAL, "%.160s:%zu: %s", yaml->name,
                   gs_yaml_node_of(node)->start_mark.line + 1, words);
}

bool gs_yaml_is_map(const struct gs_yaml_node *node)
{
    return node && gs_yaml_node_of(node)->type == YAML_MAPPING_NODE;
}

bool gs_yaml_is_list(const struct gs_yaml_node *node)
{
    return node && gs_yaml_node_of(node)->type == YAML_SEQUENCE_NODE;
}

bool gs_yaml_pair(const struct gs_yaml *yaml, const struct gs_yaml_node *map, size_t i,
                  const struct gs_yaml_node **ret_key, const struct gs_yaml_node **ret_value)
{
    if (!gs_yaml_is_map(map))
        return false;
    const yaml_node_t *of = gs_yaml_node_of(map);
    const yaml_node_pair_t *pairs = of->data.mapping.pairs.start;
    if (i >= (size_t)(of->data.mapping.pairs.top - pairs))
        return false;
    *ret_key = gs_yaml_at(yaml, pairs[i].key);
    *ret_value = gs_yaml_at(yaml, pairs[i].value);
    return true;
}

const struct gs_yaml_node *gs_yaml_member(const struct gs_yaml *yaml,
                                          const struct gs_yaml_node *map, const char *key)
{
    const struct gs_yaml_node *found = NULL, *name, *value;
    for (size_t i = 0; gs_yaml_pair(yaml, map, i, &name, &value); i++) {
        const yaml_node_t *of = gs_yaml_node_of(name);
        if (of->type == YAML_SCALAR_NODE && strcmp((const char *)of->data.scalar.value, key) == 0)
            found = value;
    }
    return found && !is_null(found) ? found : NULL;
}

int gs_yaml_get(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                const struct gs_yaml_node **ret, struct gs_error *err)
{
    if (map && !gs_yaml_is_map(map))
        return gs_yaml_fail(yaml, map, err, "must be a mapping");
    *ret = gs_yaml_member(yaml, map, key);
    return 0;
}

const char *gs_yaml_scalar(const struct gs_yaml_node *node)
{
    const yaml_node_t *of = gs_yaml_node_of(node);
    const char *text = (const char *)of->data.scalar.value;
    return of->type == YAML_SCALAR_NODE && strlen(text) == of->data.scalar.length ? text : NULL;
}

const char *gs_yaml_text(const struct gs_yaml *yaml, const struct gs_yaml_node *map,
                         const char *key)
{
    const struct gs_yaml_node *node = gs_yaml_member(yaml, map, key);
    const char *text = node ? gs_yaml_scalar(node) : NULL;
    return text ? text : "";
}

int gs_yaml_string(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                   char **ret, struct gs_error *err)
{
    const struct gs_yaml_node *node;
    if (gs_yaml_get(yaml, map, key, &node, err) < 0)
        return -1;
    if (!node) {
        *ret = NULL;
        return 0;
    }
    if (gs_yaml_node_of(node)->type != YAML_SCALAR_NODE)
        return gs_yaml_fail(yaml, node, err, "%s must be a string", key);
    const char *text = gs_yaml_scalar(node);
    if (!text)
        return gs_yaml_fail(yaml, node, err, "%s contains a NUL byte", key);
    char *copy = strdup(text);
    if (!copy)
        return gs_fail_nomem(err);
    *ret = copy;
    return 0;
}

int gs_yaml_bool(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                 bool *ret, struct gs_error *err)
{
    const struct gs_yaml_node *node;
    if (gs_yaml_get(yaml, map, key, &node, err) < 0)
        return -1;
    bool value = false;
    const char *text = node ? gs_yaml_scalar(node) : NULL;
    if (node && (!text || !gs_parse_bool(text, strlen(text), &value)))
        return gs_yaml_fail(yaml, node, err, "%s must be true or false", key);
    *ret = value;
    return 0;
}

const struct gs_yaml_node *gs_yaml_item(const struct gs_yaml *yaml, const struct gs_yaml_node *list,
                                        size_t i)
{
    if (!gs_yaml_is_list(list))
        return NULL;
    const yaml_node_t *of = gs_yaml_node_of(list);
    const yaml_node_item_t *items = of->data.sequence.items.start;
    if (i >= (size_t)(of->data.sequence.items.top - items))
        return NULL;
    return gs_yaml_at(yaml, items[i]);
}

int gs_yaml_sequence(const struct gs_yaml *yaml, const struct gs_yaml_node *map, const char *key,
                     const struct gs_yaml_node **ret, struct gs_error *err)
{
    const struct gs_yaml_node *node;
    if (gs_yaml_get(yaml, map, key, &node, err) < 0)
        return -1;
    if (node && !gs_yaml_is_list(node))
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
