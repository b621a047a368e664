/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "gpushare/sim/cluster.h"
#include "tree.h"

/*
 * From a tree to the text of a version: checks metadata as
 * k8s.io/apimachinery/pkg/api/validation/objectmeta.go does and puts its members in an order in
 * which the resourceVersion stands before everything that a user may nest.
 */

enum {
    NAME_MAX_BYTES = 253,         /* IsDNS1123Subdomain */
    LABEL_VALUE_MAX = 63,         /* IsValidLabelValue, and the part after a key's '/' */
    ANNOTATIONS_MAX = 256 * 1024, /* TotalAnnotationSizeLimitB */
};

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits at both ends, `inner` allowed too in between. */
static bool word_ok(const char *text, size_t len, const char *inner)
{
    if (len == 0 || !alnum(text[0]) || !alnum(text[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!alnum(text[i]) && !strchr(inner, text[i]))
            return false;
    }
    return true;
}

static bool dns_name_ok(const char *name, size_t len)
{
    if (len > NAME_MAX_BYTES || !word_ok(name, len, "-."))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (name[i] >= 'A' && name[i] <= 'Z')
            return false;
    }
    return true;
}

/* [PREFIX/]NAME: IsQualifiedName */
static bool qualified_key_ok(const char *key)
{
    const char *slash = strchr(key, '/');
    const char *name = slash ? slash + 1 : key;
    if (slash && !dns_name_ok(key, (size_t)(slash - key)))
        return false;
    return strlen(name) <= LABEL_VALUE_MAX && word_ok(name, strlen(name), "-_.");
}

static int check_name(enum gs_sim_kind kind, const char *name, struct gs_error *err)
{
    if (name[0] == 0)
        return gs_sim_fail_invalid(kind, name, "metadata.name",
                                   "Required value: name or generateName is required", err);
    if (!dns_name_ok(name, strlen(name)))
        return gs_sim_fail_invalid(kind, name, "metadata.name",
                                   "Invalid value: a lowercase RFC 1123 subdomain is required",
                                   err);
    return 0;
}

/* A map of strings; null values are dropped. */
static int check_strings(enum gs_sim_kind kind, const char *name, const char *member, json_t *map,
                         struct gs_error *err)
{
    const char *key;
    void *next;
    json_t *value;
    size_t total = 0;
    bool labels = strcmp(member, "labels") == 0;
    json_object_foreach_safe(map, next, key, value)
    {
        if (json_is_null(value)) {
            json_object_del(map, key);
            continue;
        }
        if (!json_is_string(value))
            return gs_fail(err, GS_EPROTO, "metadata.%s: a value is no string", member);
        size_t len = json_string_length(value);
        total += strlen(key) + len;
        if (!qualified_key_ok(key))
            return gs_sim_fail_invalid(kind, name,
                                       labels ? "metadata.labels" : "metadata.annotations",
                                       "Invalid value: a key is no qualified name", err);
        if (labels && len > 0 &&
            (len > LABEL_VALUE_MAX || !word_ok(json_string_value(value), len, "-_.")))
            return gs_sim_fail_invalid(kind, name, "metadata.labels",
                                       "Invalid value: a value is no valid label value", err);
    }
    if (!labels && total > ANNOTATIONS_MAX)
        return gs_sim_fail_invalid(kind, name, "metadata.annotations",
                                   "Too long: must have at most 262144 bytes", err);
    return 0;
}

/* Members that draft_make() writes itself or that nobody reads. */
static bool own_member(const char *key)
{
    static const char *const own[] = {"name",
                                      "namespace",
                                      "uid",
                                      "selfLink",
                                      "resourceVersion",
                                      "managedFields",
                                      "generation",
                                      "creationTimestamp",
                                      "deletionTimestamp",
                                      "clusterName",
                                      "deletionGracePeriodSeconds"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(own[i], key) == 0)
            return true;
    }
    return false;
}

/* Copies the user's members of metadata; empty maps and nulls are as good as absent. */
static int copy_members(enum gs_sim_kind kind, const char *name, const json_t *from, json_t *to,
                        struct gs_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)from, key, value)
    {
        if (own_member(key) || json_is_null(value))
            continue;
        bool map = strcmp(key, "labels") == 0 || strcmp(key, "annotations") == 0;
        if (map && !json_is_object(value))
            return gs_fail(err, GS_EPROTO, "metadata.%s is no object", key);
        if (map && check_strings(kind, name, key, value, err) < 0)
            return -1;
        if (map && json_object_size(value) == 0)
            continue;
        if (strcmp(key, "finalizers") == 0 && json_array_size(value) == 0)
            continue;
        if (json_object_set(to, key, value) < 0)
            return gs_fail_nomem(err);
    }
    return 0;
}

static json_t *ordered_metadata(enum gs_sim_kind kind, const json_t *from,
                                const struct gs_sim_identity *id, struct gs_error *err)
{
    json_auto_t *meta = json_object();
    int failed = json_object_set_new(meta, "name", json_string(id->name));
    if (id->ns[0])
        failed |= json_object_set_new(meta, "namespace", json_string(id->ns));
    failed |= json_object_set_new(meta, "uid", json_string(id->uid));
    failed |= json_object_set_new(meta, "resourceVersion", json_string(""));
    failed |= json_object_set_new(meta, "creationTimestamp", json_string(id->created));
    if (id->deleted) {
        failed |= json_object_set_new(meta, "deletionTimestamp", json_string(id->deleted));
        failed |= json_object_set_new(meta, "deletionGracePeriodSeconds", json_integer(0));
    }
    if (failed) {
        gs_fail_nomem(err);
        return NULL;
    }
    if (from && copy_members(kind, id->name, from, meta, err) < 0)
        return NULL;
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
        return gs_fail(err, GS_EPROTO, "metadata is no object");
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
