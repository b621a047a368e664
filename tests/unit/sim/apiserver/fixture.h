/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rows.h"

#include <jansson.h>

#include "sim/apiserver/cluster.h"

/* A cluster per test, in *state, and short words for what tests do with it. */

static inline int open_cluster(void **state)
{
    struct gs_sim_cluster *cluster;
    if (gs_sim_cluster_new(&(struct gs_sim_options){.log_max = 128}, &cluster, NULL) < 0)
        return -1;
    *state = cluster;
    return 0;
}

static inline int close_cluster(void **state)
{
    gs_sim_cluster_free(*state);
    return 0;
}

#define test_with_cluster(f) cmocka_unit_test_setup_teardown(f, open_cluster, close_cluster)

/* A minimal pod's JSON in a static buffer; extra goes into metadata (",\"labels\":…" or ""). */
static inline struct gs_slice pod_text(const char *name, const char *extra)
{
    static char text[2048];
    int len = snprintf(text, sizeof(text),
                       "{\"metadata\":{\"name\":\"%s\"%s},\"spec\":{\"containers\":[{\"name\":"
                       "\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":8}}}]}}",
                       name, extra);
    return (struct gs_slice){text, (size_t)len};
}

/* Creates it in "default"; the version it got. */
static inline uint64_t add_pod(struct gs_sim_cluster *cluster, const char *name, const char *extra)
{
    struct gs_sim_object *object;
    struct gs_error err = {0};
    if (gs_sim_create(cluster, GS_SIM_PODS, "default", pod_text(name, extra), &object, &err) < 0)
        fail_msg("%s: %s", name, err.msg);
    uint64_t version = object->version;
    gs_sim_object_unref(object);
    return version;
}

/* The object as a tree, decref it; NULL when it is not there. */
static inline json_t *tree_of(struct gs_sim_cluster *cluster, enum gs_sim_kind kind, const char *ns,
                              const char *name)
{
    struct gs_sim_object *object;
    if (gs_sim_get(cluster, kind, ns, name, &object, NULL) < 0)
        return NULL;
    json_t *tree = json_loadb(object->json, object->json_len, 0, NULL);
    assert_non_null(tree);
    assert_int_equal(object->json[object->json_len], 0);
    gs_sim_object_unref(object);
    return tree;
}

/* "metadata.annotations.x": a string, "" when there is none. Keys with dots end the path: the last
 * part may hold any. */
static inline const char *text_at(const json_t *tree, const char *parent, const char *child,
                                  const char *key)
{
    const json_t *at = json_object_get(tree, parent);
    if (child)
        at = json_object_get(at, child);
    const char *text = json_string_value(json_object_get(at, key));
    return text ? text : "";
}

static inline int bind_pod(struct gs_sim_cluster *cluster, const char *name, const char *body,
                           struct gs_error *err)
{
    return gs_sim_bind(cluster, "default", name, gs_slice_of(body), err);
}
