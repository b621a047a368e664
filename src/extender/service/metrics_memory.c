/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory, in bytes whatever the nodes' units are. */
#include "gpushare/base/metric.h"
#include "gpushare/core/fragmentation.h"
#include "service_internal.h"

/* The original's plugin names no unit. Its CLI guesses one, and so do we: no GPU has 100 TiB, and
 * none has less than 100 MiB. */
enum { GIB_UNITS_MAX = 100 };

static uint64_t unit_bytes(const struct gs_node_view *view)
{
    enum gs_unit unit = view->unit;
    if (unit == GS_UNIT_UNKNOWN)
        unit = view->max_total_units > GIB_UNITS_MAX ? GS_UNIT_MIB : GS_UNIT_GIB;
    return (uint64_t)gs_unit_mib(unit) << 20;
}

struct gpu_family {
    const char *name;
    bool used; /* else their size */
    struct gs_buf *out;
};

static void print_node_gpus(void *ctx, const struct gs_service *service,
                            const struct gs_node_view *view)
{
    const struct gpu_family *family = ctx;
    const char *node = gs_ledger_node_name(service->ledger, view->slot);
    uint64_t bytes = unit_bytes(view);
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        uint64_t value = bytes * (family->used ? gpu->used_units : gpu->total_units);
        gs_buf_printf(family->out, "%s{", family->name);
        gs_metric_label(family->out, "node", node);
        gs_buf_printf(family->out, ",gpu=\"%u\"} %llu\n", gpu->idx, (unsigned long long)value);
    }
}

static void print_gpus(const struct gs_service *service, struct gs_buf *out)
{
    struct gpu_family size = {"gpushare_gpu_memory_bytes", false, out};
    struct gpu_family used = {"gpushare_gpu_memory_allocated_bytes", true, out};
    gs_metric_family(out, size.name, "gauge", "Memory of a GPU.");
    gs_service_each_node(service, print_node_gpus, &size);
    gs_metric_family(out, used.name, "gauge", "Memory of a GPU that is allocated to pods.");
    gs_service_each_node(service, print_node_gpus, &used);
}

/* So many namespaces have series of their own; what further ones have is told together. */
enum { NAMESPACES_MAX = 1000, NAMESPACE_BYTES = 64 };

struct namespace_sum {
    UT_hash_handle hh;
    uint64_t bytes, pods;
    char name[NAMESPACE_BYTES];
};

struct namespaces {
    struct namespace_sum *sums, others;
    struct gs_arena arena;
    uint64_t unit_bytes; /* of the node at hand */
};

static struct namespace_sum *sum_of(struct namespaces *all, const char *name)
{
    struct namespace_sum *sum;
    HASH_FIND_STR(all->sums, name, sum);
    if (sum || strlen(name) >= NAMESPACE_BYTES || HASH_COUNT(all->sums) == NAMESPACES_MAX ||
        !(sum = gs_arena_alloc(&all->arena, sizeof(*sum))))
        return sum ? sum : &all->others;
    snprintf(sum->name, sizeof(sum->name), "%s", name);
    HASH_ADD_STR(all->sums, name, sum);
    return sum->hh.tbl ? sum : &all->others;
}

/* A pod counts once, with what it asked for, also where it is charged on every GPU that may be its.
 */
static bool add_claim(void *ctx, const struct gs_claim *claim)
{
    struct namespaces *all = ctx;
    struct namespace_sum *sum = sum_of(all, claim->ns);
    sum->bytes += (uint64_t)claim->units * claim->gpu_count * all->unit_bytes;
    sum->pods++;
    return true;
}

static void add_claims(void *ctx, const struct gs_service *service, const struct gs_node_view *view)
{
    struct namespaces *all = ctx;
    all->unit_bytes = unit_bytes(view);
    gs_ledger_each_claim(service->ledger, view->slot, add_claim, all);
}

static void print_namespaces(const struct gs_service *service, struct gs_buf *out)
{
    struct namespaces all = {.others.name = "_other"}; /* no namespace has such a name */
    gs_service_each_node(service, add_claims, &all);
    for (int pods = 0; pods < 2; pods++) {
        const char *name =
            pods ? "gpushare_namespace_pods" : "gpushare_namespace_memory_allocated_bytes";
        gs_metric_family(out, name, "gauge",
                         pods ? "Bound pods that request GPU memory, by namespace."
                              : "GPU memory allocated to the pods of a namespace. Namespaces "
                                "beyond 1000 are summed up as _other.");
        for (struct namespace_sum *sum = all.sums; sum; sum = sum->hh.next)
            gs_metric_sample(out, name, "namespace", sum->name, pods ? sum->pods : sum->bytes);
        if (all.others.pods)
            gs_metric_sample(out, name, "namespace", all.others.name,
                             pods ? all.others.pods : all.others.bytes);
    }
    HASH_CLEAR(hh, all.sums);
    gs_arena_release(&all.arena);
}

struct sums {
    uint64_t total, used, free, unusable, largest, stranded; /* bytes */
    uint32_t unhealthy, cordoned;
    bool known;          /* enough pods were seen to tell what is stranded */
    struct gs_buf *each; /* what is stranded on each node goes there; NULL: nowhere */
};

#define NODE_STRANDED "gpushare_node_memory_stranded_bytes"

/* Neither given nor for a new pod. */
static uint64_t unusable_units(const struct gs_node_view *view, uint64_t free_units)
{
    uint64_t left = 0;
    for (uint32_t i = 0; i < view->gpu_count; i++) {
        const struct gs_gpu_state *gpu = &view->gpus[i];
        left += gpu->used_units < gpu->total_units ? gpu->total_units - gpu->used_units : 0;
    }
    return left - free_units;
}

static void add_node(void *ctx, const struct gs_service *service, const struct gs_node_view *view)
{
    struct sums *sums = ctx;
    uint64_t bytes = unit_bytes(view);
    const struct gs_place place = gs_cluster_place(&service->cluster, GS_PLACEMENT_ROLLOUT);
    const struct gs_ask any = {.gpu_count = 1};
    struct gs_fragmentation part = {0};
    if (gs_place_open(&place, &any, view->slot) == GS_OBSTACLE_NONE)
        gs_fragmentation_of_node(service->cluster.policies, view, &part);
    sums->total += view->sum_total_units * bytes;
    sums->used += view->sum_used_units * bytes;
    sums->free += part.free_units * bytes;
    sums->unusable += unusable_units(view, part.free_units) * bytes;
    sums->stranded += part.stranded_units * bytes;
    sums->known = sums->known || part.known;
    if (part.largest_units * bytes > sums->largest)
        sums->largest = part.largest_units * bytes;
    if (sums->each && part.known && view->gpu_count)
        gs_metric_sample(sums->each, NODE_STRANDED, "node",
                         gs_ledger_node_name(service->ledger, view->slot),
                         part.stranded_units * bytes);
    for (uint32_t i = 0; view->inventory && i < view->gpu_count; i++) {
        sums->unhealthy += !view->inventory[i].healthy;
        sums->cordoned += !view->inventory[i].schedulable;
    }
}

/* The cluster's sums: few series whatever the cluster's size. What is stranded takes a simulation
 * of each node, so each node's own series comes of the same pass. */
static void print_sums(const struct gs_service *service, bool of_nodes, struct gs_buf *out)
{
    struct sums sums = {.each = of_nodes ? out : NULL};
    if (of_nodes)
        gs_metric_family(out, NODE_STRANDED, "gauge",
                         "Stranded memory of a node: free, but of no use to more pods of the sizes "
                         "seen. Absent until 16 pods were seen.");
    gs_service_each_node(service, add_node, &sums);
    gs_metric_gauge(out, "gpushare_memory_bytes", "GPU memory of the cluster.", sums.total);
    gs_metric_gauge(out, "gpushare_memory_allocated_bytes",
                    "GPU memory of the cluster that is allocated to pods.", sums.used);
    gs_metric_gauge(
        out, "gpushare_memory_free_bytes",
        "GPU memory that is free for new pods: on healthy, uncordoned GPUs of schedulable nodes.",
        sums.free);
    gs_metric_gauge(out, "gpushare_memory_unusable_bytes",
                    "GPU memory that is neither allocated nor free for new pods. Allocated + free "
                    "+ unusable = total, except on overcommitted GPUs.",
                    sums.unusable);
    gs_metric_gauge(out, "gpushare_memory_largest_free_bytes",
                    "Largest free memory on one GPU. No larger request fits on one GPU.",
                    sums.largest);
    /* 0 would say that all of it is of use, when nobody knows. */
    if (sums.known)
        gs_metric_gauge(out, "gpushare_memory_stranded_bytes",
                        "Stranded memory: free, but of no use to more pods of the sizes seen. "
                        "Absent until 16 pods were seen.",
                        sums.stranded);
    gs_metric_gauge(out, "gpushare_unhealthy_gpus",
                    "GPUs that their device plugin reports as unhealthy.", sums.unhealthy);
    gs_metric_gauge(out, "gpushare_cordoned_gpus", "GPUs that an administrator cordoned.",
                    sums.cordoned);
}

void gs_service_metrics_memory(struct gs_service *service, struct gs_buf *out)
{
    bool of_nodes = !service->config.no_gpu_metrics;
    if (of_nodes)
        print_gpus(service, out);
    print_sums(service, of_nodes, out);
    print_namespaces(service, out);
}
