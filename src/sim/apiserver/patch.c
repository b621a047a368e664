/* SPDX-License-Identifier: Apache-2.0 */
#include "patch.h"

#include <string.h>

#include "tree.h"

/* patchMergeKey of the lists in k8s.io/api/core/v1/types.go that have patchStrategy merge; lists
 * that are not here are replaced. */
static const char *merge_key(const char *list)
{
    static const struct {
        const char *list, *key;
    } keys[] = {
        {"containers", "name"}, {"initContainers", "name"}, {"volumes", "name"},
        {"env", "name"},        {"ports", "containerPort"}, {"conditions", "type"},
        {"addresses", "type"},  {"ownerReferences", "uid"}, {"schedulingGates", "name"},
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

static int merge_list(json_t *target, const char *name, const char *key, json_t *patch,
                      struct gs_error *err)
{
    if (!json_is_array(json_object_get(target, name)) &&
        json_object_set_new(target, name, json_array()) < 0)
        return gs_fail_nomem(err);
    json_t *list = json_object_get(target, name);
    size_t i;
    json_t *element;
    json_array_foreach(patch, i, element)
    {
        if (!json_is_object(element))
            return gs_fail(err, GS_EPROTO, "an element of %s in the patch is not an object", name);
        if (merge_element(list, key, element, err) < 0)
            return -1;
    }
    return 0;
}

static int merge_member(json_t *target, const char *key, json_t *value, struct gs_error *err)
{
    if (key[0] == '$') /* $setElementOrder/… and $patch */
        return 0;
    const char *by = json_is_array(value) ? merge_key(key) : NULL;
    if (by)
        return merge_list(target, key, by, value, err);
    if (!json_is_object(value))
        return json_object_set(target, key, value) < 0 ? gs_fail_nomem(err) : 0;
    if (!gs_sim_tree_object(target, key) && json_object_set_new(target, key, json_object()) < 0)
        return gs_fail_nomem(err);
    return gs_sim_patch_strategic(json_object_get(target, key), value, err);
}

int gs_sim_patch_strategic(json_t *target, json_t *patch, struct gs_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(patch, key, value)
    {
        if (merge_member(target, key, value, err) < 0)
            return -1;
    }
    return 0;
}
