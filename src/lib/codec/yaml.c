/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/yaml.h"

#include <jansson.h>
#include <stdint.h>
#include <yaml.h>

#include "gpushare/codec/manifest.h"

/* The maximum number of values in a text: its bytes plus ALIASED_MAX. A value takes at least one
 * byte, so only aliases can exceed that; a short text cannot expand to gigabytes. */
enum { VALUES_MAX = 20000000, ALIASED_MAX = 10000 };

struct reader {
    yaml_parser_t parser;
    const char *name;
    bool typed;
    size_t values_left;
    json_t *anchors; /* anchor to value, of this document */
    struct gs_error err;
};

static json_t *fail_at(struct reader *reader, enum gs_code code, size_t line, const char *words)
{
    gs_fail(&reader->err, code, "%.160s:%zu: %s", reader->name, line + 1, words);
    return NULL;
}

/* Overwrites scalars, which may be tokens and keys. */
static void delete_event(yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT)
        explicit_bzero(event->data.scalar.value, event->data.scalar.length);
    yaml_event_delete(event);
}

static bool next_event(struct reader *reader, yaml_event_t *ret)
{
    const yaml_parser_t *parser = &reader->parser;
    if (yaml_parser_parse(&reader->parser, ret))
        return true;
    if (parser->error == YAML_MEMORY_ERROR)
        gs_fail_nomem(&reader->err);
    else
        gs_fail(&reader->err, GS_EINVAL, "%.160s:%zu: not YAML: %s", reader->name,
                parser->problem_mark.line + 1, parser->problem ? parser->problem : "unreadable");
    return false;
}

/* Plain scalars that go-yaml does not read as strings. */
static const char *const plain_words[] = {
    "",      "~",     "null",  "Null", "NULL",                            /* null */
    "true",  "True",  "TRUE",  "yes",  "Yes",  "YES", "on",  "On",  "ON", /* true */
    "false", "False", "FALSE", "no",   "No",   "NO",  "off", "Off", "OFF",
};
enum { NULLS = 5, TRUES = 9, WORDS = sizeof(plain_words) / sizeof(plain_words[0]) };

/* Only JSON's forms of numbers are numbers. */
static json_t *read_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const size_t len = event->data.scalar.length;
    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    int word = plain ? 0 : WORDS;
    while (word < WORDS && strcmp(text, plain_words[word]) != 0)
        word++;
    if (word < NULLS)
        return json_null();
    if (!reader->typed && strlen(text) != len)
        return fail_at(reader, GS_EINVAL, event->start_mark.line, "a value contains a NUL byte");
    if (!reader->typed || !plain)
        return json_stringn(text, len);
    if (word < WORDS)
        return json_boolean(word < NULLS + TRUES);
    json_t *number =
        strchr("-0123456789", text[0]) ? json_loadb(text, len, JSON_DECODE_ANY, NULL) : NULL;
    if (json_is_number(number))
        return number;
    json_decref(number);
    return json_stringn(text, len);
}

/* Counts the values behind an alias against the limits of number and depth. */
static bool count_again(struct reader *reader, json_t *value, int depth)
{
    const char *key;
    size_t i;
    json_t *part;
    if (depth < 0 || reader->values_left == 0)
        return false;
    reader->values_left--;
    json_object_foreach(value, key, part)
    {
        if (!count_again(reader, part, depth - 1))
            return false;
    }
    json_array_foreach(value, i, part)
    {
        if (!count_again(reader, part, depth - 1))
            return false;
    }
    return true;
}

static json_t *read_alias(struct reader *reader, const yaml_event_t *event, int depth)
{
    json_t *value = json_object_get(reader->anchors, (const char *)event->data.alias.anchor);
    if (!value)
        return fail_at(reader, GS_EINVAL, event->start_mark.line, "not YAML: undefined alias");
    if (!count_again(reader, value, depth))
        return fail_at(reader, GS_ETOOBIG, event->start_mark.line,
                       "nested too deeply or too large");
    return json_incref(value);
}

static json_t *read_value(struct reader *reader, yaml_event_t *event, int depth);

static json_t *read_sequence(struct reader *reader, int depth)
{
    json_auto_t *list = json_array();
    yaml_event_t event;
    while (next_event(reader, &event)) {
        if (event.type == YAML_SEQUENCE_END_EVENT)
            return json_incref(list);
        if (json_array_append_new(list, read_value(reader, &event, depth - 1)))
            break;
    }
    return NULL;
}

/* Reads a key and its value. merged: receives the values of merge keys if typed. */
static bool read_pair(struct reader *reader, const yaml_event_t *event, int depth, json_t *object,
                      json_t *merged)
{
    const size_t line = event->start_mark.line;
    const char *key = (const char *)event->data.scalar.value;
    if (event->type != YAML_SCALAR_EVENT || strlen(key) != event->data.scalar.length)
        return fail_at(reader, GS_EINVAL, line, "a key must be a string");
    const bool merge = strcmp(key, "<<") == 0;
    if (merge && !reader->typed && event->data.scalar.plain_implicit)
        return fail_at(reader, GS_EINVAL, line,
                       "the merge key \"<<\" is not supported: write out what it stands for");
    if (reader->typed && json_object_get(object, key))
        return fail_at(reader, GS_EINVAL, line, "duplicate key");
    yaml_event_t next;
    json_t *value = next_event(reader, &next) ? read_value(reader, &next, depth - 1) : NULL;
    return (merge && reader->typed ? json_array_append_new(merged, value)
                                   : json_object_set_new(object, key, value)) == 0;
}

/* The values of merge keys are used where the mapping has none of its own; of several the first. */
static json_t *read_mapping(struct reader *reader, size_t line, int depth)
{
    json_auto_t *object = json_object(), *merged = json_array();
    yaml_event_t event;
    size_t i;
    json_t *from;
    while (next_event(reader, &event) && event.type != YAML_MAPPING_END_EVENT) {
        const bool good = read_pair(reader, &event, depth, object, merged);
        delete_event(&event);
        if (!good)
            return NULL;
    }
    json_array_foreach(merged, i, from)
    {
        if (json_is_array(from) ? json_array_extend(merged, from)
                                : json_object_update_missing(object, from))
            return fail_at(reader, GS_EINVAL, line, "a merge key needs a mapping");
    }
    return event.type == YAML_MAPPING_END_EVENT ? json_incref(object) : NULL;
}

/* Reads the value that starts with this event, and deletes the event. NULL: failed, or out of
 * memory. */
static json_t *read_value(struct reader *reader, yaml_event_t *event, int depth)
{
    const size_t line = event->start_mark.line;
    /* anchor and tag are the first fields in every such event's data */
    const char *anchor = (const char *)event->data.scalar.anchor;
    json_t *value = NULL;
    if (depth < 0 || reader->values_left == 0)
        fail_at(reader, GS_ETOOBIG, line, "nested too deeply or too large");
    else if (event->type == YAML_ALIAS_EVENT)
        value = read_alias(reader, event, depth);
    else if (event->data.scalar.tag)
        fail_at(reader, GS_EINVAL, line, "YAML tags (!) are not supported");
    else if (event->type == YAML_SCALAR_EVENT)
        value = read_scalar(reader, event);
    else if (event->type == YAML_SEQUENCE_START_EVENT)
        value = read_sequence(reader, depth);
    else
        value = read_mapping(reader, line, depth);
    reader->values_left -= reader->values_left > 0;
    if (anchor && value)
        json_object_set(reader->anchors, anchor, value);
    delete_event(event);
    return value;
}

static void read_documents(struct reader *reader, gs_yaml_take *each, void *ctx)
{
    yaml_event_t event;
    while (!reader->err.code && next_event(reader, &event) && event.type != YAML_STREAM_END_EVENT) {
        if (event.type < YAML_ALIAS_EVENT) { /* begin or end of a document */
            json_object_clear(reader->anchors);
            yaml_event_delete(&event);
            continue;
        }
        const size_t line = event.start_mark.line + 1;
        json_auto_t *root = read_value(reader, &event, GS_MANIFEST_DEPTH_MAX);
        if (root)
            each(ctx, root, line, &reader->err);
        else if (!reader->err.code)
            gs_fail_nomem(&reader->err);
    }
}

int gs_yaml_each(struct gs_slice text, const char *name, bool typed, gs_yaml_take *each, void *ctx,
                 struct gs_error *err)
{
    struct reader reader = {.name = name, .typed = typed, .anchors = json_object()};
    yaml_parser_t *parser = &reader.parser;
    reader.values_left = text.len < VALUES_MAX ? text.len + ALIASED_MAX : VALUES_MAX;
    if (yaml_parser_initialize(parser)) {
        yaml_parser_set_input_string(parser, (const unsigned char *)text.at, text.len);
        read_documents(&reader, each, ctx);
        explicit_bzero(parser->raw_buffer.start,
                       (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
        explicit_bzero(parser->buffer.start, (size_t)(parser->buffer.end - parser->buffer.start));
        yaml_parser_delete(parser);
    } else {
        gs_fail_nomem(&reader.err);
    }
    json_decref(reader.anchors);
    return reader.err.code ? gs_fail(err, reader.err.code, "%s", reader.err.msg) : 0;
}

static void keep_first(void *ctx, json_t *root, size_t line, struct gs_error *err)
{
    json_t **first = ctx;
    if (!*first)
        *first = json_incref(root);
}

json_t *gs_yaml_load(struct gs_slice text, const char *name, struct gs_error *err)
{
    json_t *root = NULL;
    if (gs_yaml_each(text, name, false, keep_first, &root, err) == 0)
        return root ? root : json_null();
    gs_yaml_free(root);
    return NULL;
}

static void wipe_strings(json_t *value)
{
    const char *key;
    size_t i;
    json_t *part;
    if (json_is_string(value))
        explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
    json_object_foreach(value, key, part) wipe_strings(part);
    json_array_foreach(value, i, part) wipe_strings(part);
}

void gs_yaml_free(json_t *value)
{
    wipe_strings(value);
    json_decref(value);
}
