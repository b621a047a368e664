/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cluster.h"
#include "tree.h"

/*
 * From a tree to the text of a version: checks metadata as
 * k8s.io/apimachinery/pkg/api/validation/objectmeta.go does and puts its members in an order in
 * which the resourceVersion stands before everything that a user may nest.
 */

enum {
    NAME_MAX_BYTES = 253,         /* IsDNS1123Subdomain */
    ANNOTATIONS_MAX = 256 * 1024, /* TotalAnnotationSizeLimitB */
};

static int check_name(enum gs_sim_kind kind, const char *name, struct gs_error *err)
{
    if (name[0] == 0)
        return gs_sim_fail_invalid(kind, name, "metadata.name", "Required value: name is required",
                                   err);
    size_t len = strlen(name);
    if (len > NAME_MAX_BYTES || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != len ||
        strchr("-.", name[0]) || strchr("-.", name[len - 1]))
        return gs_sim_fail_invalid(kind, name, "metadata.name",
                                   "Invalid value: a lowercase RFC 1123 subdomain is required",
                                   err);
    return 0;
}

/* Labels and annotations: maps of strings. */
static int check_strings(enum gs_sim_kind kind, const char *name, const char *member,
                         const json_t *map, struct gs_error *err)
{
    const char *key;
    json_t *value;
    size_t total = 0;
    if (!json_is_object(map))
        return gs_fail(err, GS_EPROTO, "metadata.%s is not an object", member);
    json_object_foreach((json_t *)map, key, value)
    {
        if (!json_is_string(value))
            return gs_fail(err, GS_EPROTO, "metadata.%s: a value is not a string", member);
        total += strlen(key) + json_string_length(value);
    }
    if (strcmp(member, "annotations") == 0 && total > ANNOTATIONS_MAX)
        return gs_sim_fail_invalid(kind, name, "metadata.annotations",
                                   "Too long: must have at most 262144 bytes", err);
    return 0;
}

static bool is_any(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* What is ours first, then the user's members; empty maps are as good as absent. */
static json_t *ordered_metadata(enum gs_sim_kind kind, const json_t *from,
                                const struct gs_sim_identity *id, struct gs_error *err)
{
    const char *key;
    json_t *value;
    json_auto_t *meta =
        json_pack("{s:s,s:s*,s:s,s:s,s:s,s:s*}", "name", id->name, "namespace",
                  id->ns[0] ? id->ns : NULL, "uid", id->uid, "resourceVersion", "",
                  "creationTimestamp", id->created, "deletionTimestamp", id->deleted);
    if (!meta) {
        gs_fail_nomem(err);
        return NULL;
    }
    json_object_foreach((json_t *)from, key, value)
    {
        bool map = is_any(key, "labels", "annotations", "");
        if (json_object_get(meta, key) ||
            is_any(key, "namespace", "deletionTimestamp", "managedFields"))
            continue;
        if (map && check_strings(kind, id->name, key, value, err) < 0)
            return NULL;
        if ((!map || json_object_size(value) > 0) && json_object_set(meta, key, value) < 0) {
            gs_fail_nomem(err);
            return NULL;
        }
    }
    return gs_steal(&meta);
}

/* The whole object with metadata first and without kind and apiVersion. */
static json_t *ordered_object(json_t *root, json_t *meta, struct gs_error *err)
{
    const char *key;
    json_t *value;
    json_auto_t *object = json_object();
    int failed = json_object_set(object, "metadata", meta);
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "metadata") != 0 && strcmp(key, "kind") != 0 &&
            strcmp(key, "apiVersion") != 0)
            failed |= json_object_set(object, key, value);
    }
    if (failed) {
        gs_fail_nomem(err);
        return NULL;
    }
    return gs_steal(&object);
}

int gs_sim_draft_make(enum gs_sim_kind kind, json_t *root, const struct gs_sim_identity *id,
                      struct gs_sim_draft *ret, struct gs_error *err)
{
    static const char marker[] = "\"resourceVersion\":\"";
    json_t *given = json_object_get(root, "metadata");
    if (given && !json_is_object(given) && !json_is_null(given))
        return gs_fail(err, GS_EPROTO, "metadata is not an object");
    if (check_name(kind, id->name, err) < 0)
        return -1;
    json_auto_t *meta = ordered_metadata(kind, gs_sim_tree_object(root, "metadata"), id, err);
    if (!meta)
        return -1;
    json_auto_t *object = ordered_object(root, meta, err);
    if (!object)
        return -1;
    _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
    if (!text || json_object_set(root, "metadata", meta) < 0)
        return gs_fail_nomem(err);
    size_t len = strlen(text);
    if (len > GS_SIM_OBJECT_BYTES_MAX)
        return gs_fail(err, GS_ETOOBIG, "the object is larger than %d bytes",
                       GS_SIM_OBJECT_BYTES_MAX);
    const char *at = strstr(text, marker);
    const json_t *own = json_object_get(root, "metadata");
    *ret = (struct gs_sim_draft){
        .kind = kind,
        .len = len,
        .version_at = (size_t)(at - text) + sizeof(marker) - 1,
        .ns = gs_sim_tree_str(own, "namespace"),
        .name = gs_sim_tree_str(own, "name"),
        .uid = gs_sim_tree_str(own, "uid"),
        .node = kind == GS_SIM_PODS ? gs_sim_tree_str(gs_sim_tree_object(root, "spec"), "nodeName")
                                    : "",
        .phase =
            kind == GS_SIM_PODS ? gs_sim_tree_str(gs_sim_tree_object(root, "status"), "phase") : "",
        .deleting = id->deleted != NULL,
    };
    ret->text = gs_steal(&text);
    return 0;
}
