/* SPDX-License-Identifier: Apache-2.0 */
#include "workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "gpushare/base/buf.h"
#include "gpushare/base/num.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/rfc3339.h"
#include "sim/apiserver/store.h"

/*
 * Half a million objects in seconds: texts are written in the store's own form, not parsed. Their
 * size and content are those of small real ones.
 */

enum { NAMESPACES = 50, POD_UNITS_MAX = 4 };

/* ---- the numbers ---- */

static uint32_t *find_number(struct gs_sim_workload *w, struct gs_slice key)
{
    const struct {
        const char *name;
        uint32_t *to;
    } rows[] = {{"nodes", &w->nodes}, {"gpus", &w->gpus},       {"mem", &w->mem},
                {"pods", &w->pods},   {"pod_mem", &w->pod_mem}, {"pending", &w->pending},
                {"other", &w->other}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (gs_slice_eq(key, gs_slice_of(rows[i].name)))
            return rows[i].to;
    }
    return NULL;
}

int gs_sim_workload_parse(struct gs_slice text, struct gs_sim_workload *ret, struct gs_error *err)
{
    struct gs_sim_workload w = {.gpus = 8, .mem = 80};
    struct gs_slice key, value;
    while (gs_sim_next_item(&text, &key, &value)) {
        uint32_t *to = find_number(&w, key);
        if (!to || !gs_parse_u32(value.at, value.len, to))
            return gs_fail(err, GS_EINVAL, "\"%.*s\" is no number of a cluster", (int)key.len,
                           key.at);
    }
    const uint64_t all = (uint64_t)w.nodes * w.gpus;
    if (w.gpus < 1 || w.gpus > GS_GPUS_MAX || (all == 0 && (w.pods || w.other)))
        return gs_fail(err, GS_EINVAL, "gpus must be 1 to %d, and pods need nodes", GS_GPUS_MAX);
    const uint64_t per_gpu = all ? (w.pods + all - 1) / all : 0;
    if (w.pod_mem == 0) {
        const uint64_t room = per_gpu ? w.mem / per_gpu : POD_UNITS_MAX;
        w.pod_mem = room < 1 ? 1 : room > POD_UNITS_MAX ? POD_UNITS_MAX : (uint32_t)room;
    }
    if (per_gpu * w.pod_mem > w.mem)
        return gs_fail(err, GS_EINVAL, "the pods do not fit");
    *ret = w;
    return 0;
}

/* ---- the texts ---- */

struct maker {
    struct gs_sim_cluster *cluster;
    const struct gs_names *names;
    const struct gs_sim_workload *w;
    char now[GS_RFC3339_BYTES];
    struct gs_buf text;
    struct gs_error *err;
};

static int put(struct maker *maker, struct gs_sim_draft *draft)
{
    if (gs_buf_failed(&maker->text))
        return gs_fail_nomem(maker->err);
    draft->text = maker->text.data;
    draft->len = maker->text.len;
    int rc = gs_sim_store_put(maker->cluster, NULL, draft, NULL, maker->err);
    if (rc == 1)
        return gs_sim_fail_exists(draft->kind, draft->name, maker->err);
    return rc;
}

/* Up to the digits of the version. */
static void begin(struct maker *maker, struct gs_sim_draft *draft)
{
    gs_buf_reset(&maker->text);
    gs_buf_printf(&maker->text, "{\"metadata\":{\"name\":\"%s\",", draft->name);
    if (draft->ns[0])
        gs_buf_printf(&maker->text, "\"namespace\":\"%s\",", draft->ns);
    gs_buf_printf(&maker->text, "\"uid\":\"%s\",\"resourceVersion\":\"", draft->uid);
    draft->version_at = maker->text.len;
    gs_buf_printf(&maker->text, "\",\"creationTimestamp\":\"%s\"", maker->now);
}

static void put_inventory(struct maker *maker, uint32_t node)
{
    struct gs_gpu gpus[GS_GPUS_MAX];
    _cleanup_(gs_buf_release) struct gs_buf text = GS_BUF(1 << 20);
    for (uint32_t i = 0; i < maker->w->gpus; i++) {
        gpus[i] = (struct gs_gpu){.idx = i,
                                  .mem_units = maker->w->mem,
                                  .mem_mib = maker->w->mem * 1024,
                                  .numa = (int16_t)(i >= maker->w->gpus / 2),
                                  .healthy = true,
                                  .schedulable = true};
        snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "GPU-%08x-0000-4000-8000-%012x", node, i);
        snprintf(gpus[i].model, sizeof(gpus[i].model), "NVIDIA Simulated %u GiB", maker->w->mem);
    }
    /* as our device plugin does, so that what tenants write on pods moves nothing here either */
    const struct gs_inventory inventory = {
        .unit = GS_UNIT_GIB, .gpus = gpus, .gpu_count = maker->w->gpus, .tells_moved = true};
    gs_codec_inventory_encode(&text, &inventory);
    gs_buf_printf(&maker->text, "\"%s\":", maker->names->inventory);
    gs_buf_json_string(&maker->text, text.data ? text.data : "", text.len);
}

static void put_node_resources(struct maker *maker, const char *key)
{
    gs_buf_printf(&maker->text,
                  "\"%s\":{\"%s\":\"%" PRIu64 "\",\"%s\":\"%u\",\"%s\":\"%u\",\"cpu\":\"128\","
                  "\"ephemeral-storage\":\"1843Gi\",\"hugepages-1Gi\":\"0\","
                  "\"hugepages-2Mi\":\"0\",\"memory\":\"1056Gi\",\"pods\":\"250\"}",
                  key, maker->names->gpu_mem, (uint64_t)maker->w->mem * maker->w->gpus,
                  maker->names->gpu_count, maker->w->gpus, maker->names->gpu_cores,
                  maker->w->gpus * GS_CORES_PCT);
}

static int make_node(struct maker *maker, uint32_t i)
{
    char name[32], uid[37];
    snprintf(name, sizeof(name), "node-%05u", i);
    gs_sim_store_uid(maker->cluster, uid);
    struct gs_sim_draft draft = {
        .kind = GS_SIM_NODES, .ns = "", .name = name, .uid = uid, .node = "", .phase = ""};
    begin(maker, &draft);
    gs_buf_printf(&maker->text,
                  ",\"labels\":{\"" GS_NODE_LABEL "\":\"true\",\"kubernetes.io/arch\":\"amd64\","
                  "\"kubernetes.io/hostname\":\"%s\",\"kubernetes.io/os\":\"linux\","
                  "\"topology.kubernetes.io/zone\":\"zone-%u\"},\"annotations\":{",
                  name, i % 3);
    put_inventory(maker, i);
    gs_buf_puts(&maker->text,
                ",\"volumes.kubernetes.io/controller-managed-attach-detach\":\"true\"}},"
                "\"spec\":{},\"status\":{");
    put_node_resources(maker, "capacity");
    gs_buf_putc(&maker->text, ',');
    put_node_resources(maker, "allocatable");
    gs_buf_printf(&maker->text,
                  ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
                  "\"lastHeartbeatTime\":\"%s\",\"lastTransitionTime\":\"%s\","
                  "\"reason\":\"KubeletReady\",\"message\":\"kubelet is posting ready status\"}],"
                  "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.%u.%u.%u\"},"
                  "{\"type\":\"Hostname\",\"address\":\"%s\"}],"
                  "\"nodeInfo\":{\"architecture\":\"amd64\",\"kubeletVersion\":\"v1.32.0\","
                  "\"operatingSystem\":\"linux\",\"osImage\":\"Debian GNU/Linux 12\","
                  "\"kernelVersion\":\"6.1.0\",\"containerRuntimeVersion\":\"containerd://1.6.20\""
                  "}}}",
                  maker->now, maker->now, i >> 16 & 255, i >> 8 & 255, i & 255, name);
    return put(maker, &draft);
}

/* Which pod this is and where it runs; node NULL: nowhere yet. */
struct pod_place {
    const char *stem;
    uint32_t number;
    const char *node;
    uint32_t units; /* 0: asks for no GPU memory */
    uint32_t gpu;
};

static void put_assignment(struct maker *maker, const struct pod_place *place)
{
    const struct gs_names *names = maker->names;
    gs_buf_printf(&maker->text,
                  ",\"annotations\":{\"%s\":\"%u\",\"%s\":\"%u\",\"%s\":\"%u\","
                  "\"%s\":\"true\",\"%s\":\"1767225600000000000\"}",
                  names->idx, place->gpu, names->dev, maker->w->mem, names->pod, place->units,
                  names->assigned, names->assume_time);
}

static void put_pod_spec(struct maker *maker, const struct pod_place *place)
{
    gs_buf_puts(&maker->text,
                "},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
                "\"registry.example.org/team/service:v1.2.3\",\"command\":[\"/bin/serve\"],"
                "\"env\":[{\"name\":\"MODE\",\"value\":\"production\"},"
                "{\"name\":\"POD_IP\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
                "\"fieldPath\":\"status.podIP\"}}}],\"resources\":{");
    const char *lists[] = {"limits", "requests"};
    for (size_t i = 0; i < 2; i++) {
        gs_buf_printf(&maker->text, "%s\"%s\":{", i ? "," : "", lists[i]);
        if (place->units)
            gs_buf_printf(&maker->text, "\"%s\":\"%u\",", maker->names->gpu_mem, place->units);
        gs_buf_puts(&maker->text, "\"cpu\":\"500m\",\"memory\":\"1Gi\"}");
    }
    gs_buf_puts(&maker->text, "},\"imagePullPolicy\":\"IfNotPresent\"}],\"restartPolicy\":"
                              "\"Always\",\"terminationGracePeriodSeconds\":30,");
    if (place->node)
        gs_buf_printf(&maker->text, "\"nodeName\":\"%s\",", place->node);
    gs_buf_puts(&maker->text, "\"schedulerName\":\"default-scheduler\",\"tolerations\":["
                              "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\","
                              "\"effect\":\"NoExecute\",\"tolerationSeconds\":300}]},");
}

static void put_pod_status(struct maker *maker, const struct pod_place *place)
{
    if (!place->node) {
        gs_buf_puts(&maker->text, "\"status\":{\"phase\":\"Pending\"}}");
        return;
    }
    gs_buf_printf(&maker->text,
                  "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                  "\"status\":\"True\",\"lastTransitionTime\":\"%s\"},{\"type\":\"PodScheduled\","
                  "\"status\":\"True\",\"lastTransitionTime\":\"%s\"}],\"podIP\":\"10.8.%u.%u\","
                  "\"startTime\":\"%s\",\"containerStatuses\":[{\"name\":\"main\",\"ready\":true,"
                  "\"restartCount\":0,\"state\":{\"running\":{\"startedAt\":\"%s\"}}}]}}",
                  maker->now, maker->now, place->number >> 8 & 255, place->number & 255, maker->now,
                  maker->now);
}

static int make_pod(struct maker *maker, const struct pod_place *place)
{
    char ns[32], name[64], uid[37];
    snprintf(ns, sizeof(ns), "team-%02u", place->number % NAMESPACES);
    snprintf(name, sizeof(name), "%s-%06u", place->stem, place->number);
    gs_sim_store_uid(maker->cluster, uid);
    struct gs_sim_draft draft = {
        .kind = GS_SIM_PODS,
        .ns = ns,
        .name = name,
        .uid = uid,
        .node = place->node ? place->node : "",
        .phase = place->node ? "Running" : "Pending",
    };
    begin(maker, &draft);
    gs_buf_printf(&maker->text, ",\"labels\":{\"app\":\"%s-%u\",\"tier\":\"backend\"}", place->stem,
                  place->number % 100);
    if (place->node && place->units)
        put_assignment(maker, place);
    put_pod_spec(maker, place);
    put_pod_status(maker, place);
    return put(maker, &draft);
}

/* ---- all of it ---- */

/* One after the other over the nodes, on each one after the other over its GPUs; in the order of a
 * list, which then needs no sorting. */
static int make_pods(struct maker *maker)
{
    const struct gs_sim_workload *w = maker->w;
    const struct {
        const char *name;
        uint32_t count, units;
        bool bound;
    } rows[] = {{"gpu", w->pods, w->pod_mem, true},
                {"wait", w->pending, w->pod_mem, false},
                {"web", w->other, 0, true}};
    char node[32];
    for (uint32_t ns = 0; ns < NAMESPACES; ns++) {
        for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
            for (uint32_t i = ns; i < rows[row].count; i += NAMESPACES) {
                uint32_t gpu = rows[row].units && rows[row].bound ? i / w->nodes % w->gpus : 0;
                if (rows[row].bound)
                    snprintf(node, sizeof(node), "node-%05u", i % w->nodes);
                const struct pod_place place = {rows[row].name, i, rows[row].bound ? node : NULL,
                                                rows[row].units, gpu};
                if (make_pod(maker, &place) < 0)
                    return -1;
            }
        }
    }
    return 0;
}

int gs_sim_workload_load(struct gs_sim_cluster *cluster, const struct gs_names *names,
                         const struct gs_sim_workload *workload, struct gs_error *err)
{
    struct maker maker = {.cluster = cluster,
                          .names = names,
                          .w = workload,
                          .text = GS_BUF(GS_SIM_OBJECT_BYTES_MAX),
                          .err = err};
    const struct gs_clock *clock = cluster->clock;
    gs_rfc3339_format(clock->wall_ns(clock->ctx), 0, maker.now);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < workload->nodes; i++)
        rc = make_node(&maker, i);
    if (rc == 0)
        rc = make_pods(&maker);
    gs_buf_release(&maker.text);
    return rc;
}
