/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/sim/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "gpushare/base/buf.h"
#include "tree.h"

/* Values in one file, and how many more than its bytes they may be: a value that is written out
 * takes a byte at least, so that only aliases reach that, and a few bytes never become gigabytes.
 */
enum { VALUES_MAX = 20000000, ALIASED_MAX = 10000 };

struct reader {
    const char *name;
    gs_sim_take *each;
    void *ctx;
    yaml_document_t *doc;
    size_t values, values_max;
    bool any; /* kinds that the cluster does not know are handed out, too */
    struct gs_error *err;
};

static int fail_at(struct reader *reader, const yaml_mark_t *mark, const char *why)
{
    return gs_fail(reader->err, GS_EPROTO, "%.120s:%zu: %s", reader->name, mark->line + 1, why);
}

/* ---- YAML to JSON ---- */

static bool among(const char *text, const char *const *words)
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
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", "yes", "Yes",
                                        "YES",  "on",   "On",   "ON",  NULL};
    static const char *const falses[] = {"false", "False", "FALSE", "no",  "No",
                                         "NO",    "off",   "Off",   "OFF", NULL};
    if (among(text, nulls))
        return json_null();
    if (among(text, trues) || among(text, falses))
        return json_boolean(among(text, trues));
    if (strchr("-0123456789", text[0])) {
        json_t *number = json_loadb(text, len, JSON_DECODE_ANY, NULL);
        if (json_is_number(number))
            return number;
        json_decref(number);
    }
    return json_stringn(text, len);
}

static json_t *convert(struct reader *reader, int index, int depth);

static json_t *convert_mapping(struct reader *reader, const yaml_node_t *node, int depth)
{
    json_auto_t *object = json_object();
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(reader->doc, pair->key);
        if (!key || key->type != YAML_SCALAR_NODE) {
            fail_at(reader, &node->start_mark, "a key is no scalar");
            return NULL;
        }
        json_t *value = convert(reader, pair->value, depth + 1);
        if (!value || json_object_set_new(object, (const char *)key->data.scalar.value, value)) {
            fail_at(reader, &key->start_mark, "a key or value cannot be taken");
            return NULL;
        }
    }
    return gs_steal(&object);
}

static json_t *convert_sequence(struct reader *reader, const yaml_node_t *node, int depth)
{
    json_auto_t *list = json_array();
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        json_t *value = convert(reader, *item, depth + 1);
        if (!value || json_array_append_new(list, value)) {
            fail_at(reader, &node->start_mark, "an element cannot be taken");
            return NULL;
        }
    }
    return gs_steal(&list);
}

static json_t *convert(struct reader *reader, int index, int depth)
{
    const yaml_node_t *node = yaml_document_get_node(reader->doc, index);
    if (!node)
        return NULL;
    if (depth > GS_SIM_MANIFEST_DEPTH_MAX || ++reader->values > reader->values_max) {
        gs_fail(reader->err, GS_ETOOBIG, "%.120s:%zu: too deep or too many values", reader->name,
                node->start_mark.line + 1);
        return NULL;
    }
    if (node->type == YAML_MAPPING_NODE)
        return convert_mapping(reader, node, depth);
    if (node->type == YAML_SEQUENCE_NODE)
        return convert_sequence(reader, node, depth);
    const char *text = (const char *)node->data.scalar.value;
    size_t len = node->data.scalar.length;
    json_t *value = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_value(text, len)
                                                                       : json_stringn(text, len);
    if (!value)
        fail_at(reader, &node->start_mark, "a scalar is no valid text");
    return value;
}

/* ---- objects ---- */

static int hand_out(struct reader *reader, const json_t *object, size_t line)
{
    const char *version = gs_sim_tree_str(object, "apiVersion");
    const char *type = gs_sim_tree_str(object, "kind");
    if (strcmp(type, "List") == 0) {
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(object, "items"), i, item)
        {
            if (hand_out(reader, item, line) < 0)
                return -1;
        }
        return 0;
    }
    enum gs_sim_kind kind = gs_sim_kind_of_type(version, type);
    if (kind == GS_SIM_KINDS && !reader->any)
        return gs_fail(reader->err, GS_EINVAL,
                       "%.120s:%zu: the cluster knows no kind \"%.40s\" of \"%.40s\"", reader->name,
                       line, type, version);
    _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
    if (!text)
        return gs_fail_nomem(reader->err);
    if (reader->each(reader->ctx, kind, gs_slice_of(text), reader->err) < 0)
        return gs_error_prefix(reader->err, "%.120s:%zu", reader->name, line);
    return 0;
}

static int read_document(struct reader *reader)
{
    const yaml_node_t *root = yaml_document_get_root_node(reader->doc);
    if (!root)
        return 0;
    json_auto_t *object = convert(reader, 1, 0);
    if (!object)
        return gs_fail_nomem(reader->err); /* unless a better reason is there */
    if (json_is_null(object))
        return 0;
    if (!json_is_object(object))
        return fail_at(reader, &root->start_mark, "not an object");
    return hand_out(reader, object, root->start_mark.line + 1);
}

static int read_yaml(struct reader *reader, yaml_parser_t *parser)
{
    for (;;) {
        yaml_document_t doc;
        if (!yaml_parser_load(parser, &doc))
            return fail_at(reader, &parser->problem_mark,
                           parser->problem ? parser->problem : "no YAML");
        bool last = !yaml_document_get_root_node(&doc);
        reader->doc = &doc;
        int rc = last ? 0 : read_document(reader);
        yaml_document_delete(&doc);
        if (rc < 0 || last)
            return rc;
    }
}

static int parse(struct gs_slice text, const char *name, bool any, gs_sim_take *each, void *ctx,
                 struct gs_error *err)
{
    struct gs_error own = {0};
    struct reader reader = {.name = name, .each = each, .ctx = ctx, .any = any, .err = &own};
    if (text.len > GS_SIM_MANIFEST_BYTES_MAX)
        return gs_fail(err, GS_ETOOBIG, "%.120s: larger than %d bytes", name,
                       GS_SIM_MANIFEST_BYTES_MAX);
    reader.values_max = text.len < VALUES_MAX ? text.len + ALIASED_MAX : VALUES_MAX;
    /* libyaml refuses tabs that JSON allows, and is slower. */
    json_auto_t *object = json_loadb(text.at, text.len, 0, NULL);
    int rc;
    if (json_is_object(object)) {
        rc = hand_out(&reader, object, 1);
    } else {
        yaml_parser_t parser;
        if (!yaml_parser_initialize(&parser))
            return gs_fail_nomem(err);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text.at, text.len);
        rc = read_yaml(&reader, &parser);
        yaml_parser_delete(&parser);
    }
    return rc < 0 ? gs_fail(err, own.code, "%s", own.msg) : 0;
}

int gs_sim_manifest_parse(struct gs_slice text, const char *name, gs_sim_take *each, void *ctx,
                          struct gs_error *err)
{
    return parse(text, name, false, each, ctx, err);
}

static int read_all(int fd, const char *path, struct gs_buf *text, struct gs_error *err)
{
    for (;;) {
        char *room = gs_buf_reserve(text, 64 * 1024);
        if (!room)
            return gs_fail(err, (enum gs_code)gs_buf_failed(text), "%.120s: too large", path);
        ssize_t got = read(fd, room, 64 * 1024);
        if (got < 0 && errno != EINTR)
            return gs_fail_errno(err, GS_EIO, errno, "%.120s", path);
        if (got == 0)
            return 0;
        if (got > 0)
            gs_buf_advance(text, (size_t)got);
    }
}

static int read_file(const char *path, bool any, gs_sim_take *each, void *ctx, struct gs_error *err)
{
    bool standard = strcmp(path, "-") == 0;
    _cleanup_close_ int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gs_fail_errno(err, errno == ENOENT ? GS_ENOENT : GS_EIO, errno, "%.120s", path);
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(GS_SIM_MANIFEST_BYTES_MAX);
    if (read_all(fd, path, &text, err) < 0)
        return -1;
    return parse((struct gs_slice){text.data ? text.data : "", text.len},
                 standard ? "standard input" : path, any, each, ctx, err);
}

int gs_sim_manifest_read(const char *path, gs_sim_take *each, void *ctx, struct gs_error *err)
{
    return read_file(path, false, each, ctx, err);
}

int gs_sim_manifest_read_any(const char *path, gs_sim_take *each, void *ctx, struct gs_error *err)
{
    return read_file(path, true, each, ctx, err);
}

int gs_sim_manifest_read_listed(const char *option, const char *paths, gs_sim_take *each, void *ctx,
                                struct gs_error *err)
{
    for (const char *at = paths; at && *at;) {
        char path[1024];
        size_t len = strcspn(at, ",");
        if (len >= sizeof(path))
            return gs_fail(err, GS_EINVAL, "%s: a file name is too long", option);
        memcpy(path, at, len);
        path[len] = 0;
        if (len > 0 && gs_sim_manifest_read(path, each, ctx, err) < 0)
            return -1;
        at += len + (at[len] == ',');
    }
    return 0;
}
