/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "api_internal.h"
#include "gpushare/base/clock.h"
#include "gpushare/codec/node.h"
#include "gpushare/codec/pod.h"
#include "gpushare/codec/rfc3339.h"
#include "gpushare/model/charge.h"
#include "tree.h"

/*
 * What `kubectl get` prints: meta/v1 Table, columns as in pkg/printers/internalversion/printers.go.
 * With -o wide, pods and nodes show their GPU memory besides.
 */

struct column {
    const char *name;
    bool wide; /* priority 1: only with -o wide */
};

/* What the cells of a row are made from. */
struct row {
    const struct gs_sim_api *api;
    const struct gs_sim_object *object;
    const json_t *tree;
    struct gs_buf *out;
    bool any;
};

struct table {
    const struct column *columns;
    size_t count;
    void (*cells)(struct row *row);
};

/* ---- cells ---- */

static void cell(struct row *row, const char *text)
{
    if (row->any)
        gs_buf_putc(row->out, ',');
    row->any = true;
    gs_buf_json_string(row->out, text, strlen(text));
}

static void cell_or_none(struct row *row, const char *text)
{
    cell(row, text[0] ? text : "<none>");
}

static void cell_number(struct row *row, uint64_t number)
{
    if (row->any)
        gs_buf_putc(row->out, ',');
    row->any = true;
    gs_buf_printf(row->out, "%llu", (unsigned long long)number);
}

/* k8s.io/apimachinery/pkg/util/duration: HumanDuration */
static void human_age(int64_t seconds, char *ret, size_t size)
{
    long long s = seconds, m = s / 60, h = m / 60, d = h / 24;
    if (s < 0)
        snprintf(ret, size, s < -1 ? "<invalid>" : "0s");
    else if (s < 120)
        snprintf(ret, size, "%llds", s);
    else if (m < 10)
        snprintf(ret, size, s % 60 ? "%lldm%llds" : "%lldm", m, s % 60);
    else if (h < 3)
        snprintf(ret, size, "%lldm", m);
    else if (h < 8)
        snprintf(ret, size, m % 60 ? "%lldh%lldm" : "%lldh", h, m % 60);
    else if (h < 48)
        snprintf(ret, size, "%lldh", h);
    else if (d < 8)
        snprintf(ret, size, h % 24 ? "%lldd%lldh" : "%lldd", d, h % 24);
    else if (d < 365 * 2)
        snprintf(ret, size, "%lldd", d);
    else
        snprintf(ret, size, "%lldy", d / 365);
}

static void cell_age(struct row *row, const char *stamp)
{
    char text[32];
    int64_t then;
    const struct gs_clock *clock = gs_sim_cluster_clock(row->api->cluster);
    if (!gs_rfc3339_parse(gs_slice_of(stamp), &then)) {
        cell(row, "<unknown>");
        return;
    }
    human_age((clock->wall_ns(clock->ctx) - then) / GS_NS_PER_S, text, sizeof(text));
    cell(row, text);
}

static const json_t *member(const struct row *row, const char *key)
{
    return gs_sim_tree_object(row->tree, key);
}

static void cell_created(struct row *row)
{
    cell_age(row, gs_sim_tree_str(member(row, "metadata"), "creationTimestamp"));
}

static void cell_units(struct row *row, uint64_t units)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)units);
    cell(row, units ? text : "<none>");
}

/* ---- pods ---- */

static const struct column pod_columns[] = {
    {"Name", false},     {"Ready", false},         {"Status", false},
    {"Restarts", false}, {"Age", false},           {"IP", true},
    {"Node", true},      {"Nominated Node", true}, {"Readiness Gates", true},
    {"GPU", true},       {"GPU-Mem", true},
};

static const char *pod_status(const struct row *row)
{
    const json_t *status = member(row, "status"), *container;
    const char *text = gs_sim_tree_str(status, "reason");
    size_t i;
    text = text[0] ? text : row->object->phase;
    json_array_foreach(json_object_get(status, "containerStatuses"), i, container)
    {
        const json_t *state = gs_sim_tree_object(container, "state");
        const char *waiting = gs_sim_tree_str(gs_sim_tree_object(state, "waiting"), "reason");
        const char *ended = gs_sim_tree_str(gs_sim_tree_object(state, "terminated"), "reason");
        text = waiting[0] ? waiting : ended[0] ? ended : text;
    }
    return row->object->deleting ? "Terminating" : text;
}

/* Whether it asks for GPU memory is the project's own decoder's business. */
static uint64_t pod_units(const struct row *row)
{
    struct gs_pod pod = {0};
    struct gs_charge charge = {0};
    struct gs_slice text = {row->object->json, row->object->json_len};
    uint64_t units = 0;
    if (gs_codec_pod(row->api->names, text, &pod, NULL) == 0) {
        gs_pod_charge(&pod, &charge);
        units = (uint64_t)charge.units * charge.gpu_count;
    }
    gs_pod_release(&pod);
    return units;
}

static void pod_cells(struct row *row)
{
    const json_t *spec = member(row, "spec"), *status = member(row, "status"), *container;
    const json_t *annotations = gs_sim_tree_object(member(row, "metadata"), "annotations");
    size_t ready = 0, i;
    uint64_t restarts = 0;
    char text[64];
    json_array_foreach(json_object_get(status, "containerStatuses"), i, container)
    {
        ready += json_is_true(json_object_get(container, "ready"));
        restarts += (uint64_t)json_integer_value(json_object_get(container, "restartCount"));
    }
    snprintf(text, sizeof(text), "%zu/%zu", ready,
             json_array_size(json_object_get(spec, "containers")));
    cell(row, row->object->name);
    cell(row, text);
    cell(row, pod_status(row));
    cell_number(row, restarts);
    cell_created(row);
    cell_or_none(row, gs_sim_tree_str(status, "podIP"));
    cell_or_none(row, row->object->node);
    cell_or_none(row, gs_sim_tree_str(status, "nominatedNodeName"));
    cell(row, "<none>"); /* readiness gates */
    cell_or_none(row, gs_sim_tree_str(annotations, row->api->names->idx));
    cell_units(row, pod_units(row));
}

/* ---- nodes ---- */

static const struct column node_columns[] = {
    {"Name", false},          {"Status", false},
    {"Roles", false},         {"Age", false},
    {"Version", false},       {"Internal-IP", true},
    {"External-IP", true},    {"OS-Image", true},
    {"Kernel-Version", true}, {"Container-Runtime", true},
    {"GPUs", true},           {"GPU-Mem", true},
};

static void cell_node_status(struct row *row)
{
    const json_t *condition;
    const char *ready = "Unknown";
    char text[64];
    size_t i;
    json_array_foreach(json_object_get(member(row, "status"), "conditions"), i, condition)
    {
        if (strcmp(gs_sim_tree_str(condition, "type"), "Ready") == 0)
            ready =
                strcmp(gs_sim_tree_str(condition, "status"), "True") == 0 ? "Ready" : "NotReady";
    }
    bool off = json_is_true(json_object_get(member(row, "spec"), "unschedulable"));
    snprintf(text, sizeof(text), "%s%s", ready, off ? ",SchedulingDisabled" : "");
    cell(row, text);
}

static void cell_roles(struct row *row)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    char text[128] = "";
    const char *key;
    json_t *value;
    json_object_foreach(gs_sim_tree_object(member(row, "metadata"), "labels"), key, value)
    {
        size_t len = strlen(text);
        if (strncmp(key, prefix, sizeof(prefix) - 1) == 0)
            snprintf(text + len, sizeof(text) - len, "%s%s", len ? "," : "",
                     key + sizeof(prefix) - 1);
    }
    cell_or_none(row, text);
}

static const char *node_address(const struct row *row, const char *type)
{
    const json_t *address;
    size_t i;
    json_array_foreach(json_object_get(member(row, "status"), "addresses"), i, address)
    {
        if (strcmp(gs_sim_tree_str(address, "type"), type) == 0)
            return gs_sim_tree_str(address, "address");
    }
    return "";
}

static void cells_node_gpus(struct row *row)
{
    struct gs_node node = {0};
    struct gs_slice text = {row->object->json, row->object->json_len};
    uint64_t units = 0, count = 0;
    if (gs_codec_node(row->api->names, text, &node, NULL) == 0) {
        count = node.gpu_count;
        for (uint32_t i = 0; i < node.gpu_count; i++)
            units += node.gpus[i].mem_units;
    }
    gs_node_release(&node);
    cell_units(row, count);
    cell_units(row, units);
}

static void node_cells(struct row *row)
{
    const json_t *info = gs_sim_tree_object(member(row, "status"), "nodeInfo");
    cell(row, row->object->name);
    cell_node_status(row);
    cell_roles(row);
    cell_created(row);
    cell(row, gs_sim_tree_str(info, "kubeletVersion"));
    cell_or_none(row, node_address(row, "InternalIP"));
    cell_or_none(row, node_address(row, "ExternalIP"));
    const char *image = gs_sim_tree_str(info, "osImage");
    const char *kernel = gs_sim_tree_str(info, "kernelVersion");
    const char *runtime = gs_sim_tree_str(info, "containerRuntimeVersion");
    cell(row, image[0] ? image : "<unknown>");
    cell(row, kernel[0] ? kernel : "<unknown>");
    cell(row, runtime[0] ? runtime : "<unknown>");
    cells_node_gpus(row);
}

/* ---- events, leases, namespaces ---- */

static const struct column event_columns[] = {
    {"Last Seen", false}, {"Type", false},    {"Reason", false}, {"Object", false},
    {"Source", true},     {"Message", false}, {"Count", true},   {"Name", true},
};

static void event_cells(struct row *row)
{
    const json_t *about = member(row, "involvedObject");
    char object[400], kind[64];
    snprintf(kind, sizeof(kind), "%s", gs_sim_tree_str(about, "kind"));
    for (char *c = kind; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    snprintf(object, sizeof(object), "%s/%s", kind, gs_sim_tree_str(about, "name"));
    cell_age(row, gs_sim_tree_str(row->tree, "lastTimestamp"));
    cell(row, gs_sim_tree_str(row->tree, "type"));
    cell(row, gs_sim_tree_str(row->tree, "reason"));
    cell(row, object);
    cell(row, gs_sim_tree_str(member(row, "source"), "component"));
    cell(row, gs_sim_tree_str(row->tree, "message"));
    cell_number(row, (uint64_t)json_integer_value(json_object_get(row->tree, "count")));
    cell(row, row->object->name);
}

static const struct column lease_columns[] = {{"Name", false}, {"Holder", false}, {"Age", false}};

static void lease_cells(struct row *row)
{
    cell(row, row->object->name);
    cell(row, gs_sim_tree_str(member(row, "spec"), "holderIdentity"));
    cell_created(row);
}

static const struct column namespace_columns[] = {
    {"Name", false}, {"Status", false}, {"Age", false}};

static void namespace_cells(struct row *row)
{
    cell(row, row->object->name);
    cell(row, gs_sim_tree_str(member(row, "status"), "phase"));
    cell_created(row);
}

/* ---- tables ---- */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct table tables[GS_SIM_KINDS] = {
    [GS_SIM_NODES] = {node_columns, COUNT(node_columns), node_cells},
    [GS_SIM_PODS] = {pod_columns, COUNT(pod_columns), pod_cells},
    [GS_SIM_EVENTS] = {event_columns, COUNT(event_columns), event_cells},
    [GS_SIM_LEASES] = {lease_columns, COUNT(lease_columns), lease_cells},
    [GS_SIM_NAMESPACES] = {namespace_columns, COUNT(namespace_columns), namespace_cells},
};

void gs_sim_table_begin(enum gs_sim_kind kind, uint64_t version, const char *next,
                        uint64_t remaining, struct gs_buf *out)
{
    const struct table *table = &tables[kind];
    gs_buf_printf(out,
                  "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
                  "\"resourceVersion\":\"%llu\"",
                  (unsigned long long)version);
    if (next[0])
        gs_buf_printf(out, ",\"continue\":\"%s\",\"remainingItemCount\":%llu", next,
                      (unsigned long long)remaining);
    gs_buf_puts(out, "},\"columnDefinitions\":[");
    for (size_t i = 0; i < table->count; i++)
        gs_buf_printf(out,
                      "%s{\"name\":\"%s\",\"type\":\"string\",\"format\":\"%s\","
                      "\"description\":\"\",\"priority\":%d}",
                      i ? "," : "", table->columns[i].name, i ? "" : "name",
                      table->columns[i].wide);
    gs_buf_puts(out, "],\"rows\":[");
}

void gs_sim_table_row(const struct gs_sim_api *api, const struct gs_sim_object *object,
                      enum gs_sim_include include, struct gs_buf *out)
{
    json_auto_t *tree = gs_sim_tree_of(object);
    struct row row = {.api = api, .object = object, .tree = tree, .out = out};
    gs_buf_puts(out, "{\"cells\":[");
    if (tree)
        tables[object->kind].cells(&row);
    gs_buf_putc(out, ']');
    if (include == GS_SIM_INCLUDE_OBJECT) {
        gs_buf_puts(out, ",\"object\":");
        gs_sim_object_put(object, out);
    } else if (include == GS_SIM_INCLUDE_METADATA) {
        _cleanup_free_ char *meta = json_dumps(json_object_get(tree, "metadata"), JSON_COMPACT);
        gs_buf_printf(out,
                      ",\"object\":{\"kind\":\"PartialObjectMetadata\","
                      "\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":%s}",
                      meta ? meta : "{}");
    }
    gs_buf_putc(out, '}');
}

void gs_sim_table_end(struct gs_buf *out)
{
    gs_buf_puts(out, "]}");
}
