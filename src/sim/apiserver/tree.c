/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

const char *gs_sim_tree_str(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

json_t *gs_sim_tree_object(const json_t *object, const char *key)
{
    json_t *member = json_object_get(object, key);
    return json_is_object(member) ? member : NULL;
}

json_t *gs_sim_tree_need(json_t *object, const char *key)
{
    json_t *member = json_object_get(object, key);
    if (json_is_object(member))
        return member;
    if (member && !json_is_null(member))
        return NULL;
    if (json_object_set_new(object, key, json_object()) < 0)
        return NULL;
    return json_object_get(object, key);
}

int gs_sim_tree_parse(struct gs_slice body, json_t **ret, struct gs_error *err)
{
    if (body.len > GS_SIM_OBJECT_BYTES_MAX)
        return gs_fail(err, GS_ETOOBIG, "the object is larger than %d bytes",
                       GS_SIM_OBJECT_BYTES_MAX);
    json_error_t why;
    json_t *tree = json_loadb(body.at ? body.at : "", body.len, 0, &why);
    if (!tree) {
        if (json_error_code(&why) == json_error_out_of_memory)
            return gs_fail_nomem(err);
        return gs_fail(err, GS_EPROTO, "the body is not a JSON object: %s", why.text);
    }
    if (!json_is_object(tree)) {
        json_decref(tree);
        return gs_fail(err, GS_EPROTO, "the body is not a JSON object");
    }
    *ret = tree;
    return 0;
}

json_t *gs_sim_tree_of(const struct gs_sim_object *object)
{
    return json_loadb(object->json, object->json_len, 0, NULL);
}

void gs_sim_tree_strip_nulls(json_t *tree)
{
    const char *key;
    void *next;
    json_t *member;
    size_t i;
    if (json_is_array(tree)) {
        json_array_foreach(tree, i, member) gs_sim_tree_strip_nulls(member);
        return;
    }
    json_object_foreach_safe(tree, next, key, member)
    {
        if (json_is_null(member))
            json_object_del(tree, key);
        else
            gs_sim_tree_strip_nulls(member);
    }
}

struct gs_sim_object *gs_sim_object_of_draft(const struct gs_sim_draft *draft, uint64_t version)
{
    char digits[24];
    size_t digits_len =
        (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)version);
    const char *fields[] = {draft->ns, draft->name, draft->uid, draft->node, draft->phase};
    size_t lens[5], total = draft->len + digits_len + 1;
    for (size_t i = 0; i < 5; i++) {
        lens[i] = strlen(fields[i]) + 1;
        total += lens[i];
    }
    struct gs_sim_object *object = malloc(sizeof(*object) + total);
    if (!object)
        return NULL;
    char *at = (char *)(object + 1);
    *object = (struct gs_sim_object){
        .refs = 1,
        .kind = (uint8_t)draft->kind,
        .deleting = draft->deleting,
        .version_len = (uint16_t)digits_len,
        .version_at = (uint32_t)draft->version_at,
        .json_len = (uint32_t)(draft->len + digits_len),
        .version = version,
        .json = at,
    };
    memcpy(at, draft->text, draft->version_at);
    memcpy(at + draft->version_at, digits, digits_len);
    memcpy(at + draft->version_at + digits_len, draft->text + draft->version_at,
           draft->len - draft->version_at);
    at[object->json_len] = 0;
    at += object->json_len + 1;
    const char **targets[] = {&object->ns, &object->name, &object->uid, &object->node,
                              &object->phase};
    for (size_t i = 0; i < 5; i++) {
        memcpy(at, fields[i], lens[i]);
        *targets[i] = at;
        at += lens[i];
    }
    return object;
}

struct gs_sim_object *gs_sim_object_renumber(const struct gs_sim_object *object, uint64_t version)
{
    size_t len = object->json_len - object->version_len;
    _cleanup_free_ char *text = malloc(len + 1);
    if (!text)
        return NULL;
    size_t after = (size_t)object->version_at + object->version_len;
    memcpy(text, object->json, object->version_at);
    memcpy(text + object->version_at, object->json + after, object->json_len - after);
    struct gs_sim_draft draft = {
        .kind = (enum gs_sim_kind)object->kind,
        .text = text,
        .len = len,
        .version_at = object->version_at,
        .ns = object->ns,
        .name = object->name,
        .uid = object->uid,
        .node = object->node,
        .phase = object->phase,
        .deleting = object->deleting,
    };
    return gs_sim_object_of_draft(&draft, version);
}

bool gs_sim_draft_unchanged(const struct gs_sim_draft *draft, const struct gs_sim_object *object)
{
    size_t after = (size_t)object->version_at + object->version_len;
    return draft->len == (size_t)object->json_len - object->version_len &&
           draft->version_at == object->version_at &&
           memcmp(draft->text, object->json, draft->version_at) == 0 &&
           memcmp(draft->text + draft->version_at, object->json + after,
                  draft->len - draft->version_at) == 0;
}

void gs_sim_draft_release(struct gs_sim_draft *draft)
{
    free(draft->text);
    *draft = (struct gs_sim_draft){0};
}

int gs_sim_fail_not_found(enum gs_sim_kind kind, const char *name, struct gs_error *err)
{
    return gs_fail(err, GS_ENOENT, "%s \"%s\" not found", gs_sim_resource(kind)->group_resource,
                   name);
}

int gs_sim_fail_exists(enum gs_sim_kind kind, const char *name, struct gs_error *err)
{
    return gs_fail(err, GS_EEXIST, "%s \"%s\" already exists",
                   gs_sim_resource(kind)->group_resource, name);
}

int gs_sim_fail_conflict(enum gs_sim_kind kind, const char *name, const char *why,
                         struct gs_error *err)
{
    return gs_fail(err, GS_ECONFLICT, "Operation cannot be fulfilled on %s \"%s\": %s",
                   gs_sim_resource(kind)->group_resource, name, why);
}

int gs_sim_fail_invalid(enum gs_sim_kind kind, const char *name, const char *path, const char *why,
                        struct gs_error *err)
{
    return gs_fail(err, GS_EINVAL, "%s \"%s\" is invalid: %s: %s", gs_sim_resource(kind)->kind,
                   name, path, why);
}
