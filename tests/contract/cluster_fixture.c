/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_fixture.h"
#include "sim_upset.h"

#include <stdio.h>
#include <string.h>

#include "gpushare/base/buf.h"

static int say(const struct gs_error *err, int result)
{
    if (result < 0)
        fprintf(stderr, "fixture: %s\n", err->msg);
    return result;
}

static int load(struct cluster_fixture *fixture, enum gs_sim_kind kind, const char *json)
{
    struct gs_error err = {0};
    return say(&err, gs_sim_load(fixture->cluster, kind, gs_slice_of(json), NULL, &err));
}

static int create_node_json(void *ctx, const char *json)
{
    return load(ctx, GS_SIM_NODES, json);
}

static int create_pod_json(void *ctx, const char *json)
{
    return load(ctx, GS_SIM_PODS, json);
}

static int delete_object(struct cluster_fixture *fixture, enum gs_sim_kind kind, const char *ns,
                         const char *name)
{
    struct gs_error err = {0};
    return say(&err, gs_sim_delete(fixture->cluster, kind, ns, name, GS_SLICE(""), NULL, &err));
}

static int delete_node(void *ctx, const char *name)
{
    return delete_object(ctx, GS_SIM_NODES, "", name);
}

static int delete_pod(void *ctx, const char *ns, const char *name)
{
    return delete_object(ctx, GS_SIM_PODS, ns, name);
}

static int set_phase(void *ctx, const char *ns, const char *name, const char *phase)
{
    struct cluster_fixture *fixture = ctx;
    struct gs_error err = {0};
    char patch[128];
    snprintf(patch, sizeof(patch), "{\"status\":{\"phase\":\"%s\"}}", phase);
    return say(&err, gs_sim_patch(fixture->cluster, GS_SIM_PODS, GS_SIM_STATUS, GS_SIM_PATCH_MERGE,
                                  ns, name, gs_slice_of(patch), NULL, &err));
}

static char *object_json(struct cluster_fixture *fixture, enum gs_sim_kind kind, const char *ns,
                         const char *name)
{
    struct gs_sim_object *object;
    if (gs_sim_get(fixture->cluster, kind, ns, name, &object, NULL) < 0)
        return NULL;
    char *text = strndup(object->json, object->json_len);
    gs_sim_object_unref(object);
    return text;
}

static char *pod_json(void *ctx, const char *ns, const char *name)
{
    return object_json(ctx, GS_SIM_PODS, ns, name);
}

static char *node_json(void *ctx, const char *name)
{
    return object_json(ctx, GS_SIM_NODES, "", name);
}

static char *events_json(void *ctx, const char *ns)
{
    struct cluster_fixture *fixture = ctx;
    struct gs_sim_query query = {.kind = GS_SIM_EVENTS, .ns = ns};
    struct gs_sim_list list;
    struct gs_buf text = GS_BUF(16 << 20);
    if (gs_sim_list(fixture->cluster, &query, 0, NULL, &list, NULL) < 0)
        return NULL;
    gs_buf_puts(&text, "{\"kind\":\"EventList\",\"items\":[");
    for (size_t i = 0; i < list.count; i++) {
        gs_buf_puts(&text, i > 0 ? "," : "");
        gs_buf_append(&text, list.items[i]->json, list.items[i]->json_len);
    }
    gs_buf_puts(&text, "]}");
    gs_sim_list_release(&list);
    return gs_buf_steal(&text);
}

static int compact(void *ctx)
{
    struct cluster_fixture *fixture = ctx;
    gs_sim_cluster_compact(fixture->cluster);
    return 0;
}

static int cut_watches(void *ctx)
{
    struct cluster_fixture *fixture = ctx;
    gs_sim_cluster_cut_watches(fixture->cluster);
    return 0;
}

int cluster_fixture_open(struct cluster_fixture *fixture, struct gs_kube_fixture *ret)
{
    struct gs_error err = {0};
    if (gs_names_init(&fixture->names, "aliyun.com", &err) < 0 ||
        gs_sim_cluster_new(&(struct gs_sim_options){0}, &fixture->cluster, &err) < 0)
        return say(&err, -1);
    *ret = (struct gs_kube_fixture){
        .backend = ret->backend,
        .ctx = fixture,
        .names = &fixture->names,
        .create_node_json = create_node_json,
        .create_pod_json = create_pod_json,
        .delete_node = delete_node,
        .delete_pod = delete_pod,
        .set_phase = set_phase,
        .pod_json = pod_json,
        .node_json = node_json,
        .events_json = events_json,
        .compact = compact,
        .cut_watches = cut_watches,
    };
    return 0;
}

void cluster_fixture_close(struct cluster_fixture *fixture)
{
    gs_sim_cluster_free(fixture->cluster);
}
