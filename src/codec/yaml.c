/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "yaml_node.h"

static int fail_parser(const yaml_parser_t *parser, const char *name, struct gs_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return gs_fail_nomem(err);
    return gs_fail(err, GS_EINVAL, "%.160s:%zu: not YAML: %s", name, parser->problem_mark.line + 1,
                   parser->problem ? parser->problem : "unreadable");
}

/* Tokens and keys come by here. */
static void wipe_bytes(unsigned char *start, const unsigned char *end)
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
    wipe_bytes(parser->raw_buffer.start, parser->raw_buffer.end);
    wipe_bytes(parser->buffer.start, parser->buffer.end);
    yaml_parser_delete(parser);
}

static int load_next(struct gs_yaml *yaml, yaml_parser_t *parser, const char *name,
                     struct gs_error *err)
{
    yaml_document_t *doc = calloc(1, sizeof(*doc));
    if (!doc)
        return gs_fail_nomem(err);
    if (!yaml_parser_load(parser, doc)) {
        free(doc);
        return fail_parser(parser, name, err);
    }
    *yaml = (struct gs_yaml){.doc = doc, .name = name};
    return 0;
}

/* What changes what a value is, and is lost in libyaml's documents: tags (!!str, !!binary); and,
 * but for whoever merges them, merge keys, which it keeps as keys. */
static int refuse_unread(const char *text, size_t len, const char *name, bool merges,
                         struct gs_error *err)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int result = 0;
    if (parser_begin(&parser, text, len, err) < 0)
        return -1;
    for (bool last = false; result == 0 && !last && yaml_parser_parse(&parser, &event);) {
        last = event.type == YAML_STREAM_END_EVENT || event.type == YAML_NO_EVENT;
        const bool scalar = event.type == YAML_SCALAR_EVENT;
        if ((scalar && event.data.scalar.tag) ||
            (event.type == YAML_SEQUENCE_START_EVENT && event.data.sequence_start.tag) ||
            (event.type == YAML_MAPPING_START_EVENT && event.data.mapping_start.tag))
            result = gs_fail(err, GS_EINVAL, "%.160s:%zu: YAML tags (!) are not supported", name,
                             event.start_mark.line + 1);
        else if (!merges && scalar && event.data.scalar.plain_implicit &&
                 strcmp((const char *)event.data.scalar.value, "<<") == 0)
            result = gs_fail(err, GS_EINVAL,
                             "%.160s:%zu: the merge key \"<<\" is not supported: write out what it "
                             "stands for",
                             name, event.start_mark.line + 1);
        wipe_bytes(scalar ? event.data.scalar.value : NULL,
                   scalar ? event.data.scalar.value + event.data.scalar.length : NULL);
        yaml_event_delete(&event);
    }
    parser_end(&parser);
    return result;
}

int gs_yaml_load(struct gs_yaml *yaml, const char *text, size_t len, const char *name,
                 struct gs_error *err)
{
    yaml_parser_t parser;
    if (refuse_unread(text, len, name, false, err) < 0 || parser_begin(&parser, text, len, err) < 0)
        return -1;
    int result = load_next(yaml, &parser, name, err);
    parser_end(&parser);
    return result;
}

int gs_yaml_each(const char *text, size_t len, const char *name,
                 int (*each)(void *ctx, struct gs_yaml *yaml, struct gs_error *err), void *ctx,
                 struct gs_error *err)
{
    yaml_parser_t parser;
    if (refuse_unread(text, len, name, true, err) < 0 || parser_begin(&parser, text, len, err) < 0)
        return -1;
    int result = 0;
    bool last = false;
    while (result == 0 && !last) {
        struct gs_yaml yaml;
        result = load_next(&yaml, &parser, name, err);
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
    for (yaml_node_t *node = doc->nodes.start; node < doc->nodes.top; node++) {
        if (node->type == YAML_SCALAR_NODE)
            explicit_bzero(node->data.scalar.value, node->data.scalar.length);
    }
    yaml_document_delete(doc);
    free(doc);
}

bool gs_yaml_is_null(const char *plain)
{
    return !plain[0] || strcmp(plain, "~") == 0 || strcmp(plain, "null") == 0 ||
           strcmp(plain, "Null") == 0 || strcmp(plain, "NULL") == 0;
}

/* Absent where it is null. */
static struct gs_yaml_node skip_null(struct gs_yaml_node node)
{
    const yaml_node_t *of = gs_yaml_node_of(node);
    if (of && of->type == YAML_SCALAR_NODE && of->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        gs_yaml_is_null((const char *)of->data.scalar.value))
        node.at = NULL;
    return node;
}

static struct gs_yaml_node node_at(const struct gs_yaml *yaml, int index)
{
    return (struct gs_yaml_node){yaml, yaml_document_get_node(yaml->doc, index)};
}

struct gs_yaml_node gs_yaml_root(const struct gs_yaml *yaml)
{
    return skip_null(node_at(yaml, 1));
}

int gs_yaml_fail(struct gs_yaml_node node, struct gs_error *err, const char *fmt, ...)
{
    char words[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    return gs_fail(err, GS_EINVAL, "%.160s:%zu: %s", node.of->name,
                   gs_yaml_node_of(node)->start_mark.line + 1, words);
}

bool gs_yaml_is_map(struct gs_yaml_node node)
{
    return node.at && gs_yaml_node_of(node)->type == YAML_MAPPING_NODE;
}

bool gs_yaml_is_list(struct gs_yaml_node node)
{
    return node.at && gs_yaml_node_of(node)->type == YAML_SEQUENCE_NODE;
}

bool gs_yaml_pair(struct gs_yaml_node map, size_t i, struct gs_yaml_node *ret_key,
                  struct gs_yaml_node *ret_value)
{
    if (!gs_yaml_is_map(map))
        return false;
    const yaml_node_t *of = gs_yaml_node_of(map);
    const yaml_node_pair_t *pairs = of->data.mapping.pairs.start;
    if (i >= (size_t)(of->data.mapping.pairs.top - pairs))
        return false;
    *ret_key = node_at(map.of, pairs[i].key);
    *ret_value = node_at(map.of, pairs[i].value);
    return true;
}

bool gs_yaml_item(struct gs_yaml_node list, size_t i, struct gs_yaml_node *ret)
{
    if (!gs_yaml_is_list(list))
        return false;
    const yaml_node_t *of = gs_yaml_node_of(list);
    const yaml_node_item_t *items = of->data.sequence.items.start;
    if (i >= (size_t)(of->data.sequence.items.top - items))
        return false;
    *ret = node_at(list.of, items[i]);
    return true;
}

const char *gs_yaml_scalar(struct gs_yaml_node node)
{
    const yaml_node_t *of = gs_yaml_node_of(node);
    const char *text = (const char *)of->data.scalar.value;
    return of->type == YAML_SCALAR_NODE && strlen(text) == of->data.scalar.length ? text : NULL;
}

struct gs_yaml_node gs_yaml_get(struct gs_yaml_node map, const char *key)
{
    struct gs_yaml_node found = {map.of, NULL}, name, value;
    for (size_t i = 0; gs_yaml_pair(map, i, &name, &value); i++) {
        const char *text = gs_yaml_scalar(name);
        if (text && strcmp(text, key) == 0)
            found = value;
    }
    return skip_null(found);
}
