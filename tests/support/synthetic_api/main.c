/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `gpushare-sim serve` with a large cluster to begin with, the same for the same numbers, for tests
 * and benchmarks:
 *
 *   synthetic-api nodes=5000,gpus=8,mem=80,pods=100000,other=400000 [OPTION of serve]...
 *
 * The program is made of the product's own files; the linker sends the call that makes a cluster
 * (--wrap) through this one. Half a million objects in seconds: texts are written in the store's
 * own form, not parsed. Their size and content are those of small real ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/buf.h"
#include "gpushare/base/cleanup.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/codec/rfc3339.h"
#include "gpushare/model/names.h"
#include "sim/apiserver/store.h"
#include "sim/commands.h"

enum { NAMESPACES = 50, POD_UNITS_MAX = 4 };

/* ---- the numbers ---- */

struct workload {
    uint32_t nodes;   /* node-00000 … */
    uint32_t gpus;    /* per node, 1 to 64 */
    uint32_t mem;     /* units (GiB) per GPU */
    uint32_t pods;    /* Running, bound, with GPU memory: spread evenly, never over a GPU's size */
    uint32_t pod_mem; /* units per pod; 0: as large as fits, at most 4 */
    uint32_t pending; /* GPU pods that wait for a scheduler, of pod_mem units */
    uint32_t other;   /* Running pods without GPU memory */
};

static struct workload workload = {.gpus = 8, .mem = 80};

/* NULL, or what is wrong with "name=number,…". */
static const char *parse(char *text)
{
    static const struct {
        const char *name;
        uint32_t *to;
    } rows[] = {{"nodes", &workload.nodes},     {"gpus", &workload.gpus},
                {"mem", &workload.mem},         {"pods", &workload.pods},
                {"pod_mem", &workload.pod_mem}, {"pending", &workload.pending},
                {"other", &workload.other}};
    struct workload *w = &workload;
    char *item, name[16];
    uint32_t number;
    while ((item = strsep(&text, ","))) {
        size_t i = 0;
        if (sscanf(item, "%15[a-z_]=%" SCNu32, name, &number) != 2)
            return "a cluster is NAME=NUMBER,...";
        while (i < sizeof(rows) / sizeof(rows[0]) && strcmp(rows[i].name, name) != 0)
            i++;
        if (i == sizeof(rows) / sizeof(rows[0]))
            return "no such number of a cluster";
        *rows[i].to = number;
    }
    const uint64_t all = (uint64_t)w->nodes * w->gpus;
    if (w->gpus < 1 || w->gpus > GS_GPUS_MAX || (all == 0 && (w->pods || w->other)))
        return "gpus must be 1 to 64, and pods need nodes";
    const uint64_t per_gpu = all ? (w->pods + all - 1) / all : 0;
    if (w->pod_mem == 0) {
        const uint64_t room = per_gpu ? w->mem / per_gpu : POD_UNITS_MAX;
        w->pod_mem = room < 1 ? 1 : room > POD_UNITS_MAX ? POD_UNITS_MAX : (uint32_t)room;
    }
    return per_gpu * w->pod_mem > w->mem ? "the pods do not fit" : NULL;
}

/* ---- the texts ---- */

struct maker {
    struct gs_sim_cluster *cluster;
    const struct gs_names *names;
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
    for (uint32_t i = 0; i < workload.gpus; i++) {
        gpus[i] = (struct gs_gpu){.idx = i,
                                  .mem_units = workload.mem,
                                  .mem_mib = workload.mem * 1024,
                                  .numa = (int16_t)(i >= workload.gpus / 2),
                                  .healthy = true,
                                  .schedulable = true};
        snprintf(gpus[i].uuid, sizeof(gpus[i].uuid), "GPU-%08x-0000-4000-8000-%012x", node, i);
        snprintf(gpus[i].model, sizeof(gpus[i].model), "NVIDIA Simulated %u GiB", workload.mem);
    }
    /* as our device plugin does, so that what tenants write on pods moves nothing here either */
    const struct gs_inventory inventory = {
        .unit = GS_UNIT_GIB, .gpus = gpus, .gpu_count = workload.gpus, .tells_moved = true};
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
                  key, maker->names->gpu_mem, (uint64_t)workload.mem * workload.gpus,
                  maker->names->gpu_count, workload.gpus, maker->names->gpu_cores,
                  workload.gpus * GS_CORES_PCT);
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
                  names->idx, place->gpu, names->dev, workload.mem, names->pod, place->units,
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
    const struct workload *w = &workload;
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

static int load(struct gs_sim_cluster *cluster, struct gs_error *err)
{
    struct gs_names names;
    struct maker maker = {
        .cluster = cluster, .names = &names, .text = GS_BUF(GS_SIM_OBJECT_BYTES_MAX), .err = err};
    const struct gs_clock *clock = cluster->clock;
    gs_rfc3339_format(clock->wall_ns(clock->ctx), 0, maker.now);
    int rc = gs_names_init(&names, "aliyun.com", err);
    for (uint32_t i = 0; rc == 0 && i < workload.nodes; i++)
        rc = make_node(&maker, i);
    if (rc == 0)
        rc = make_pods(&maker);
    gs_buf_release(&maker.text);
    return rc;
}

/* Nobody watches yet: a watch from a version of before finds its own too old. */
static void forget_log(struct gs_sim_cluster *cluster)
{
    cluster->version++;
    for (size_t kind = 0; kind < GS_SIM_KINDS; kind++)
        gs_sim_log_clear(&cluster->tables[kind].log, cluster->version);
}

typedef int cluster_new(const struct gs_sim_options *options, struct gs_sim_cluster **ret,
                        struct gs_error *err);
cluster_new __real_gs_sim_cluster_new, __wrap_gs_sim_cluster_new;

int __wrap_gs_sim_cluster_new(const struct gs_sim_options *options, struct gs_sim_cluster **ret,
                              struct gs_error *err)
{
    struct gs_sim_list list;
    if (__real_gs_sim_cluster_new(options, ret, err) < 0 || load(*ret, err) < 0)
        return -1;
    /* What was made is no history to a watch, and the first list shall not wait for sorting. */
    forget_log(*ret);
    if (gs_sim_list(*ret, &(struct gs_sim_query){.kind = GS_SIM_PODS}, 0, NULL, &list, err) < 0)
        return -1;
    gs_sim_list_release(&list);
    return 0;
}

int main(int argc, char **argv)
{
    const char *wrong = argc < 2 ? "which cluster?" : parse(argv[1]);
    if (wrong) {
        fprintf(stderr, "synthetic-api: %s\n", wrong);
        return 2;
    }
    argv[1] = argv[0];
    return cmd_serve(argc - 1, argv + 1);
}
