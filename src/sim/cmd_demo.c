/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "gpushare/base/log.h"
#include "gpushare/codec/annotation.h"
#include "gpushare/model/charge.h"
#include "sim/commands.h"
#include "sim/world.h"

/*
 * gpushare-sim demo: draws every GPU with what lies on it and says why the rest waits, then checks
 * the picture against what the pods' authors expected and against the extender's own account. It is
 * worked out from each pod's spec and recorded GPUs, without the extender's ledger.
 */

enum { BAR_MAX = 40 };

struct demo {
    const char *api, *extender, *domain;
    struct gs_names names;
    struct world world;
    uint64_t (*used)[GS_GPUS_MAX]; /* by node and GPU index */
    json_t *inspect;               /* the extender's answer; NULL: not asked */
    size_t wrong;
};

static void read_settings(struct demo *set, int argc, char **argv)
{
    const struct gs_option table[] = {
        OPT_STRING("api", &set->api, "URL", "URL of the API server (default " DEFAULT_API ")"),
        OPT_STRING("extender", &set->extender, "URL",
                   "also compare with GET /gpushare-scheduler/inspect of this extender"),
        OPT_STRING("domain", &set->domain, "DOMAIN",
                   "domain of the GPU resources (default aliyun.com)"),
    };
    const struct gs_command command = {
        .name = "gpushare-sim demo",
        .doc = "Prints which pod is bound to which GPU, and why the others are pending. Fails if "
               "this differs from the pods' annotations demo.gpushare/expect (\"bound\" or "
               "\"pending\") and demo.gpushare/expect-reason, or if a GPU is overcommitted.",
        .options = table,
        .option_count = sizeof(table) / sizeof(table[0]),
    };
    gs_options_parse(&command, argc, argv);
}

/* ---- the pods ---- */

static char letter_of(size_t pod)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return letters[pod % (sizeof(letters) - 1)];
}

static struct gs_charge charge_of(const struct gs_pod *pod)
{
    struct gs_charge charge;
    gs_pod_charge(pod, &charge);
    return charge;
}

static bool is_on(const struct gs_pod *pod, const struct gs_node *node, uint32_t idx)
{
    return !gs_pod_terminal(pod) && strcmp(pod->node_name, node->name) == 0 &&
           (gs_pod_recorded(pod) & GS_GPU_BIT(idx));
}

static const char *annotation(const struct demo *demo, size_t pod, const char *key)
{
    const json_t *object = json_array_get(demo->world.pod_objects, pod);
    return gs_sim_tree_str(
        gs_sim_tree_object(gs_sim_tree_object(object, "metadata"), "annotations"), key);
}

static const char *message_of(const struct demo *demo, size_t pod)
{
    return gs_sim_tree_str(
        rest_condition(json_array_get(demo->world.pod_objects, pod), "PodScheduled"), "message");
}

/* "8", "30 on each of 2 GPUs" */
static void describe(const struct gs_pod *pod, char ret[40])
{
    const struct gs_charge charge = charge_of(pod);
    if (!charge.units)
        snprintf(ret, 40, "%s", gs_pod_wants_gpu(pod) ? "invalid request" : "no GPU memory");
    else if (charge.gpu_count > 1)
        snprintf(ret, 40, "%u on each of %u GPUs", charge.units, charge.gpu_count);
    else
        snprintf(ret, 40, "%u", charge.units);
}

/* ---- the picture ---- */

/* One letter per unit, or per few units of a large GPU, a dot for what is free; then the pods. */
static void print_gpu(const struct demo *demo, const struct gs_node *node, const struct gs_gpu *gpu)
{
    uint32_t step = gpu->mem_units ? (gpu->mem_units + BAR_MAX - 1) / BAR_MAX : 1, drawn = 0;
    const char *between = "] ";
    for (size_t i = 0; i < demo->world.pod_count; i++) {
        const struct gs_pod *pod = &demo->world.pods[i];
        uint32_t letters = (charge_of(pod).units + step - 1) / step;
        for (uint32_t k = 0; is_on(pod, node, gpu->idx) && k < letters; k++, drawn++)
            putchar(letter_of(i));
    }
    for (; drawn < gpu->mem_units / step; drawn++)
        putchar('.');
    for (size_t i = 0; i < demo->world.pod_count; i++) {
        const struct gs_pod *pod = &demo->world.pods[i];
        if (!is_on(pod, node, gpu->idx))
            continue;
        printf("%s%c=%s %u", between, letter_of(i), pod->name, charge_of(pod).units);
        between = ", ";
    }
    puts(between[0] == ']' ? "] " : "");
}

static void print_nodes(const struct demo *demo)
{
    for (size_t n = 0; n < demo->world.node_count; n++) {
        const struct gs_node *node = &demo->world.nodes[n];
        uint64_t used = 0, total = 0;
        for (uint32_t i = 0; i < node->gpu_count; i++) {
            used += demo->used[n][node->gpus[i].idx];
            total += node->gpus[i].mem_units;
        }
        const char *unit = gs_unit_name(node->unit);
        printf("\n%s: %llu of %llu %s in use\n", node->name, (unsigned long long)used,
               (unsigned long long)total, unit[0] ? unit : "units");
        for (uint32_t i = 0; i < node->gpu_count; i++) {
            printf("  GPU %u %3llu/%-3u [", node->gpus[i].idx,
                   (unsigned long long)demo->used[n][node->gpus[i].idx], node->gpus[i].mem_units);
            print_gpu(demo, node, &node->gpus[i]);
        }
    }
}

static void print_pods(const struct demo *demo, bool bound)
{
    char asks[40];
    for (size_t i = 0; i < demo->world.pod_count; i++) {
        const struct gs_pod *pod = &demo->world.pods[i];
        if (gs_pod_terminal(pod) || bound != (pod->node_name[0] != '\0'))
            continue;
        describe(pod, asks);
        const char *message = message_of(demo, i);
        if (bound)
            printf("%-18s %-26s %-10s %s\n", pod->name, asks, pod->node_name,
                   annotation(demo, i, demo->names.idx));
        else
            printf("  %s (%s)\n    %s\n", pod->name, asks,
                   message[0] ? message : "no scheduler evaluated it");
    }
}

/* ---- the checks ---- */

static void complain(struct demo *demo, const char *who, const char *what, const char *detail)
{
    fprintf(stderr, "error: %s: %s%s%s\n", who, what, detail[0] ? ": " : "", detail);
    demo->wrong++;
}

/* Counts and checks; *ret_bound: pods. */
static void take_pods(struct demo *demo, size_t *ret_bound, size_t *ret_waiting)
{
    for (size_t i = 0; i < demo->world.pod_count; i++) {
        const struct gs_pod *pod = &demo->world.pods[i];
        const struct gs_charge charge = charge_of(pod);
        const gs_gpu_mask gpus = gs_pod_recorded(pod);
        const char *expect = annotation(demo, i, "demo.gpushare/expect");
        const char *reason = annotation(demo, i, "demo.gpushare/expect-reason");
        size_t node = world_find_node(&demo->world, pod->node_name);
        bool bound = node < demo->world.node_count;
        if (gs_pod_terminal(pod))
            continue;
        ++*(bound ? ret_bound : ret_waiting);
        if (expect[0] && (strcmp(expect, "bound") == 0) != bound)
            complain(demo, pod->name, "expected to be", expect);
        if (reason[0] && !strstr(message_of(demo, i), reason))
            complain(demo, pod->name, "is pending for another reason than", reason);
        if (bound && charge.units && gs_gpu_mask_count(gpus) != charge.gpu_count)
            complain(demo, pod->name, "has the wrong number of GPUs", "");
        for (uint32_t idx = 0; bound && idx < GS_GPUS_MAX; idx++)
            demo->used[node][idx] += gpus & GS_GPU_BIT(idx) ? charge.units : 0;
    }
}

/* The original's inspect: nodes[].devs[].{id,usedGPU}. */
static uint64_t inspected(const struct demo *demo, const char *node, uint32_t idx)
{
    json_t *entry, *dev;
    size_t i, k;
    json_array_foreach(json_object_get(demo->inspect, "nodes"), i, entry)
    {
        json_array_foreach(json_object_get(entry, "devs"), k, dev)
        {
            if (strcmp(gs_sim_tree_str(entry, "name"), node) == 0 &&
                json_integer_value(json_object_get(dev, "id")) == (json_int_t)idx)
                return (uint64_t)json_integer_value(json_object_get(dev, "usedGPU"));
        }
    }
    return 0;
}

static void check_gpus(struct demo *demo)
{
    for (size_t n = 0; n < demo->world.node_count; n++) {
        const struct gs_node *node = &demo->world.nodes[n];
        uint32_t at = 0;
        for (uint32_t idx = 0; idx < GS_GPUS_MAX; idx++) {
            bool there = at < node->gpu_count && node->gpus[at].idx == idx;
            uint64_t used = demo->used[n][idx], size = there ? node->gpus[at].mem_units : 0;
            at += there;
            if (used > size)
                complain(demo, node->name, "a GPU is overcommitted", "");
            if (demo->inspect && there && inspected(demo, node->name, idx) != used)
                complain(demo, node->name, "the extender's inspect reports another value", "");
        }
    }
}

/* ---- everything ---- */

static int read_all(struct demo *demo, struct gs_error *err)
{
    struct gs_kube_client *api = NULL, *extender = NULL;
    int rc = gs_names_init(&demo->names, demo->domain, err);
    if (rc == 0)
        rc = rest_connect(demo->api, &demo->names, &api, err);
    if (rc == 0)
        rc = world_read(api, &demo->names, &demo->world, err);
    if (rc == 0 && demo->extender)
        rc = rest_connect(demo->extender, &demo->names, &extender, err);
    if (rc == 0 && extender)
        rc = rest_call(extender, "GET", "/gpushare-scheduler/inspect", NULL, NULL, &demo->inspect,
                       err);
    gs_kube_client_free(api);
    gs_kube_client_free(extender);
    if (rc == 0 && !(demo->used = calloc(demo->world.node_count + 1, sizeof(*demo->used))))
        rc = gs_fail_nomem(err);
    return rc;
}

int cmd_demo(int argc, char **argv)
{
    struct demo demo = {.api = DEFAULT_API, .domain = "aliyun.com"};
    struct gs_error err = {0};
    size_t bound = 0, waiting = 0;
    read_settings(&demo, argc, argv);
    int rc = read_all(&demo, &err);
    if (rc == 0) {
        take_pods(&demo, &bound, &waiting);
        check_gpus(&demo);
        print_nodes(&demo);
        printf("\n%-18s %-26s %-10s %s\n", "POD", "REQUEST", "NODE", "GPU");
        print_pods(&demo, true);
        puts("\npending pods, with reasons:");
        print_pods(&demo, false);
        printf("\n%zu pods bound, %zu pending", bound, waiting);
        if (demo.wrong > 0)
            printf("; %zu errors\n", demo.wrong);
        else
            printf("; no GPU is overcommitted%s\n",
                   demo.inspect ? ", and the extender's inspect agrees with the API" : "");
    } else {
        gs_log(GS_LOG_ERROR, "demo failed", GS_STR("error", err.msg));
    }
    world_release(&demo.world);
    free(demo.used);
    json_decref(demo.inspect);
    return rc == 0 && demo.wrong == 0 ? 0 : 1;
}
