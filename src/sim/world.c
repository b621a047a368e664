/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"

/* *ret_items: decref. */
static int list(struct gs_kube_client *api, const char *path, json_t **ret_items,
                struct gs_error *err)
{
    json_auto_t *answer = NULL;
    if (rest_call(api, "GET", path, NULL, NULL, &answer, err) < 0)
        return -1;
    *ret_items = json_incref(json_object_get(answer, "items"));
    return json_is_array(*ret_items) ? 0 : gs_fail(err, GS_EPROTO, "%s is not a list", path);
}

int world_read(struct gs_kube_client *api, const struct gs_names *names, struct world *ret,
               struct gs_error *err)
{
    json_auto_t *nodes = NULL;
    json_t *object;
    size_t i;
    *ret = (struct world){0};
    if (list(api, "/api/v1/nodes", &nodes, err) < 0 ||
        list(api, "/api/v1/pods", &ret->pod_objects, err) < 0)
        return -1;
    ret->nodes = calloc(json_array_size(nodes) + 1, sizeof(*ret->nodes));
    ret->pods = calloc(json_array_size(ret->pod_objects) + 1, sizeof(*ret->pods));
    if (!ret->nodes || !ret->pods)
        return gs_fail_nomem(err);
    json_array_foreach(nodes, i, object)
    {
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
        if (!text ||
            gs_codec_node(names, gs_slice_of(text), &ret->nodes[ret->node_count++], err) < 0)
            return text ? -1 : gs_fail_nomem(err);
    }
    json_array_foreach(ret->pod_objects, i, object)
    {
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
        if (!text || gs_codec_pod(names, gs_slice_of(text), &ret->pods[ret->pod_count++], err) < 0)
            return text ? -1 : gs_fail_nomem(err);
    }
    return 0;
}

void world_release(struct world *world)
{
    for (size_t i = 0; i < world->node_count; i++)
        gs_node_release(&world->nodes[i]);
    for (size_t i = 0; i < world->pod_count; i++)
        gs_pod_release(&world->pods[i]);
    free(world->nodes);
    free(world->pods);
    json_decref(world->pod_objects);
    *world = (struct world){0};
}

/* An API server lists by name. */
static int by_name(const void *name, const void *node)
{
    return strcmp(name, ((const struct gs_node *)node)->name);
}

size_t world_find_node(const struct world *world, const char *name)
{
    const struct gs_node *node =
        bsearch(name, world->nodes, world->node_count, sizeof(*world->nodes), by_name);
    return node ? (size_t)(node - world->nodes) : world->node_count;
}
