/* SPDX-License-Identifier: Apache-2.0 */
#include "patch.h"

#include <string.h>

#include "tree.h"

int gs_sim_patch_merge(json_t *target, json_t *patch, struct gs_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(patch, key, value)
    {
        int rc = 0;
        if (json_is_null(value)) {
            json_object_del(target, key);
        } else if (!json_is_object(value)) {
            rc = json_object_set(target, key, value);
        } else {
            if (!gs_sim_tree_object(target, key))
                rc = json_object_set_new(target, key, json_object());
            if (rc == 0 && gs_sim_patch_merge(json_object_get(target, key), value, err) < 0)
                return -1;
        }
        if (rc < 0)
            return gs_fail_nomem(err);
    }
    return 0;
}

/* patchMergeKey of the lists in k8s.io/api/core/v1/types.go that have patchStrategy merge; lists
 * that are not here are replaced. */
static const char *merge_key(const char *list)
{
    static const struct {
        const char *list, *key;
    } keys[] = {
        {"containers", "name"},
        {"initContainers", "name"},
        {"ephemeralContainers", "name"},
        {"volumes", "name"},
        {"env", "name"},
        {"imagePullSecrets", "name"},
        {"ports", "containerPort"},
        {"volumeMounts", "mountPath"},
        {"volumeDevices", "devicePath"},
        {"hostAliases", "ip"},
        {"topologySpreadConstraints", "topologyKey"},
        {"conditions", "type"},
        {"addresses", "type"},
        {"ownerReferences", "uid"},
        {"podIPs", "ip"},
        {"schedulingGates", "name"},
        {"resourceClaims", "name"},
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(keys[i].list, list) == 0)
            return keys[i].key;
    }
    return NULL;
}

/* The index of the element whose key has this value, or the list's length. */
static size_t find_element(const json_t *list, const char *key, const json_t *value)
{
    size_t i;
    json_t *element;
    json_array_foreach((json_t *)list, i, element)
    {
        if (json_equal(json_object_get(element, key), value))
            break;
    }
    return i;
}

/* One element of a patch's list into the target's list. */
static int merge_element(json_t *list, const char *key, json_t *element, struct gs_error *err)
{
    const json_t *value = json_object_get(element, key);
    const char *order = gs_sim_tree_str(element, "$patch");
    if (strcmp(order, "replace") == 0)
        return 0;
    if (!value)
        return gs_fail(err, GS_EPROTO, "a list element of the patch lacks its merge key %s", key);
    size_t at = find_element(list, key, value);
    if (strcmp(order, "delete") == 0) {
        json_array_remove(list, at);
        return 0;
    }
    if (at == json_array_size(list) && json_array_append_new(list, json_object()) < 0)
        return gs_fail_nomem(err);
    return gs_sim_patch_strategic(json_array_get(list, at), element, err);
}

/* {"$patch":"replace"} as an element: the rest of the list is the new list. */
static bool replaces(const json_t *list)
{
    size_t i;
    json_t *element;
    json_array_foreach((json_t *)list, i, element)
    {
        if (strcmp(gs_sim_tree_str(element, "$patch"), "replace") == 0)
            return true;
    }
    return false;
}

static int merge_list(json_t *target, const char *name, const char *key, json_t *patch,
                      struct gs_error *err)
{
    if (replaces(patch) || !json_is_array(json_object_get(target, name))) {
        if (json_object_set_new(target, name, json_array()) < 0)
            return gs_fail_nomem(err);
    }
    json_t *list = json_object_get(target, name);
    size_t i;
    json_t *element;
    json_array_foreach(patch, i, element)
    {
        if (!json_is_object(element))
            return gs_fail(err, GS_EPROTO, "an element of %s in the patch is no object", name);
        if (merge_element(list, key, element, err) < 0)
            return -1;
    }
    return 0;
}

/* "$deleteFromPrimitiveList/NAME": [values] */
static void delete_values(json_t *target, const char *name, const json_t *values)
{
    json_t *list = json_object_get(target, name), *value;
    size_t i;
    json_array_foreach((json_t *)values, i, value)
    {
        for (size_t at = json_array_size(list); at-- > 0;) {
            if (json_equal(json_array_get(list, at), value))
                json_array_remove(list, at);
        }
    }
}

/* finalizers merge as a set; every other list of plain values is replaced. */
static int merge_values(json_t *target, const char *name, json_t *values, struct gs_error *err)
{
    json_t *list = json_object_get(target, name), *value;
    if (strcmp(name, "finalizers") != 0 || !json_is_array(list))
        return json_object_set(target, name, values) < 0 ? gs_fail_nomem(err) : 0;
    size_t i;
    json_array_foreach(values, i, value)
    {
        size_t at = 0;
        while (at < json_array_size(list) && !json_equal(json_array_get(list, at), value))
            at++;
        if (at == json_array_size(list) && json_array_append(list, value) < 0)
            return gs_fail_nomem(err);
    }
    return 0;
}

static void retain_keys(json_t *target, const json_t *keep)
{
    const char *key;
    void *next;
    json_t *value, *word;
    size_t i;
    json_object_foreach_safe(target, next, key, value)
    {
        bool kept = false;
        json_array_foreach((json_t *)keep, i, word)
        {
            kept |= json_is_string(word) && strcmp(json_string_value(word), key) == 0;
        }
        if (!kept)
            json_object_del(target, key);
    }
}

static int merge_member(json_t *target, const char *key, json_t *value, struct gs_error *err)
{
    static const char drop[] = "$deleteFromPrimitiveList/";
    if (strncmp(key, drop, sizeof(drop) - 1) == 0) {
        delete_values(target, key + sizeof(drop) - 1, value);
        return 0;
    }
    if (key[0] == '$') /* $setElementOrder/…, $patch and $retainKeys, done before */
        return 0;
    if (json_is_null(value)) {
        json_object_del(target, key);
        return 0;
    }
    if (json_is_array(value)) {
        const char *by = merge_key(key);
        return by ? merge_list(target, key, by, value, err) : merge_values(target, key, value, err);
    }
    if (!json_is_object(value))
        return json_object_set(target, key, value) < 0 ? gs_fail_nomem(err) : 0;
    const char *order = gs_sim_tree_str(value, "$patch");
    if (strcmp(order, "delete") == 0) {
        json_object_del(target, key);
        return 0;
    }
    if (strcmp(order, "replace") == 0 || !gs_sim_tree_object(target, key)) {
        if (json_object_set_new(target, key, json_object()) < 0)
            return gs_fail_nomem(err);
    }
    return gs_sim_patch_strategic(json_object_get(target, key), value, err);
}

int gs_sim_patch_strategic(json_t *target, json_t *patch, struct gs_error *err)
{
    const char *key;
    json_t *value;
    const json_t *keep = json_object_get(patch, "$retainKeys");
    if (keep)
        retain_keys(target, keep);
    json_object_foreach(patch, key, value)
    {
        if (merge_member(target, key, value, err) < 0)
            return -1;
    }
    return 0;
}
