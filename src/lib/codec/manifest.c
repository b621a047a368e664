/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/manifest.h"

#include <jansson.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/file.h"
#include "gpushare/codec/yaml.h"

struct reader {
    const char *name;
    gs_manifest_take *each;
    void *ctx;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int hand_out(struct reader *reader, const json_t *object, size_t line, struct gs_error *err)
{
    const char *kind = text_of(object, "kind");
    const json_t *items = json_object_get(object, "items");
    const size_t len = strlen(kind), stem = len >= 4 ? len - 4 : 0;
    if (json_is_array(items) && strcmp(kind + stem, "List") == 0) {
        size_t i;
        json_t *item;
        json_array_foreach(items, i, item)
        {
            if (stem && json_is_object(item) && !json_object_get(item, "kind")) /* of a PodList */
                json_object_set_new(item, "kind", json_stringn(kind, stem));
            if (hand_out(reader, item, line, err) < 0)
                return -1;
        }
        return 0;
    }
    _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
    if (!text)
        return gs_fail_nomem(err);
    if (reader->each(reader->ctx, text_of(object, "apiVersion"), kind, gs_slice_of(text), err) < 0)
        return gs_error_prefix(err, "%.120s:%zu", reader->name, line);
    return 0;
}

static void read_document(void *ctx, json_t *root, size_t line, struct gs_error *err)
{
    struct reader *reader = ctx;
    if (json_is_object(root))
        hand_out(reader, root, line, err);
    else if (!json_is_null(root))
        gs_fail(err, GS_EINVAL, "%.120s:%zu: not an object", reader->name, line);
}

int gs_manifest_parse(struct gs_slice text, const char *name, gs_manifest_take *each, void *ctx,
                      struct gs_error *err)
{
    struct reader reader = {name, each, ctx};
    if (text.len > GS_MANIFEST_BYTES_MAX)
        return gs_fail(err, GS_ETOOBIG, "%.120s: larger than %d bytes", name,
                       GS_MANIFEST_BYTES_MAX);
    /* libyaml refuses tabs that JSON allows, and is slower. */
    json_auto_t *object = json_loadb(text.at, text.len, 0, NULL);
    return json_is_object(object) ? hand_out(&reader, object, 1, err)
                                  : gs_yaml_each(text, name, true, read_document, &reader, err);
}

int gs_manifest_read(const char *path, gs_manifest_take *each, void *ctx, struct gs_error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t len;
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    if ((standard ? gs_file_read_fd(STDIN_FILENO, name, GS_MANIFEST_BYTES_MAX, &text, &len, err)
                  : gs_file_read(path, GS_MANIFEST_BYTES_MAX, &text, &len, err)) < 0)
        return -1;
    return gs_manifest_parse((struct gs_slice){text, len}, name, each, ctx, err);
}
