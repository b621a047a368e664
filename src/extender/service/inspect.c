/* SPDX-License-Identifier: Apache-2.0 */
/* The original's inspect JSON (contract, section 3), with a few keys more. */
#include "gpushare/codec/annotation.h"
#include "service_internal.h"

static void write_member(struct gs_buf *out, const char *key, const char *text)
{
    gs_buf_puts(out, key);
    gs_buf_json_text(out, text);
}

struct dev_pods {
    struct gs_buf *out;
    uint8_t idx;
    bool first;
};

static bool print_pod(void *ctx, const struct gs_claim *claim)
{
    struct dev_pods *dev = ctx;
    if (!(claim->charged & GS_GPU_BIT(dev->idx)))
        return true;
    write_member(dev->out, dev->first ? "{\"name\":" : ",{\"name\":", claim->name);
    dev->first = false;
    write_member(dev->out, ",\"namespace\":", claim->ns);
    write_member(dev->out, ",\"uid\":", claim->uid);
    if (claim->cores_pct)
        gs_buf_printf(dev->out, ",\"corePercentage\":%u", claim->cores_pct);
    gs_buf_printf(dev->out, ",\"usedGPU\":%u,\"binding\":%s,\"gpuIndexValid\":%s}", claim->units,
                  claim->state == GS_CLAIM_RESERVED ? "true" : "false",
                  claim->unplaced ? "false" : "true");
    return true;
}

static void print_dev(const struct gs_ledger *ledger, const struct gs_node_view *view, uint32_t i,
                      struct gs_buf *out)
{
    const struct gs_gpu_state *gpu = &view->gpus[i];
    const char *model = view->inventory[i].model;
    gs_buf_printf(out, "%s{\"id\":%u,\"totalGPU\":%u,\"usedGPU\":%llu,\"usable\":%s,\"model\":",
                  i ? "," : "", gpu->idx, gpu->total_units, (unsigned long long)gpu->used_units,
                  gpu->usable ? "true" : "false");
    gs_buf_json_text(out, model);
    if (gpu->used_cores_pct)
        gs_buf_printf(out, ",\"usedCorePercentage\":%u", gpu->used_cores_pct);
    gs_buf_puts(out, ",\"pods\":[");
    struct dev_pods dev = {out, gpu->idx, true};
    gs_ledger_each_claim(ledger, view->slot, print_pod, &dev);
    gs_buf_puts(out, "]}");
}

struct reservations {
    const struct gs_service *service;
    struct gs_buf *out;
    const char *node;
    const char *before; /* the next */
};

static bool print_reservation(void *ctx, const struct gs_hold *hold)
{
    struct reservations *list = ctx;
    struct gs_buf *out = list->out;
    char gpus[GS_IDX_TEXT_BYTES];
    int64_t left_ns;
    const char *group = gs_gang_reservations_group(list->service, hold->ask.uid, &left_ns);
    if (!group)
        return true;
    gs_buf_puts(out, list->before);
    list->before = ",";
    write_member(out, "{\"uid\":", hold->ask.uid);
    write_member(out, ",\"node\":", list->node);
    write_member(out, ",\"group\":", group);
    gs_buf_printf(out, ",\"gpus\":[%s],\"requestedGPU\":%u,\"millisecondsLeft\":%lld}",
                  gs_codec_idx_format(hold->gpus, gpus), hold->ask.units,
                  (long long)(left_ns > 0 ? left_ns / GS_NS_PER_MS : 0));
    return true;
}

static void print_node(const struct gs_service *service, const struct gs_node_view *view,
                       struct gs_buf *out)
{
    const struct gs_ledger *ledger = service->ledger;
    const char *name = gs_ledger_node_name(ledger, view->slot);
    struct reservations list = {service, out, name, ",\"reservations\":["};
    write_member(out, "{\"name\":", name);
    gs_buf_printf(out, ",\"totalGPU\":%llu,\"usedGPU\":%llu,\"unit\":\"%s\",\"devs\":[",
                  (unsigned long long)view->sum_total_units,
                  (unsigned long long)view->sum_used_units, gs_unit_name(view->unit));
    for (uint32_t i = 0; i < view->gpu_count; i++)
        print_dev(ledger, view, i, out);
    gs_buf_puts(out, "]");
    gs_ledger_each_hold(ledger, view->slot, print_reservation, &list);
    gs_buf_puts(out, list.before[1] ? "}" : "]}");
}

struct page {
    struct gs_buf *out;
    const char *node; /* this one alone; NULL: all with GPUs */
    bool any;
};

static void print_next(void *ctx, const struct gs_service *service, const struct gs_node_view *view)
{
    struct page *page = ctx;
    const char *name = gs_ledger_node_name(service->ledger, view->slot);
    if (page->node ? strcmp(name, page->node) != 0 : !view->gpu_count)
        return;
    gs_buf_puts(page->out, page->any ? "," : "");
    page->any = true;
    print_node(service, view, page->out);
}

int gs_service_inspect(struct gs_service *service, const char *node, struct gs_buf *answer,
                       struct gs_error *err)
{
    struct page page = {answer, node, false};
    const char *refuses = gs_service_refuses(service); /* first: it may be loaded any moment */
    if (!gs_service_loaded(service))
        return gs_fail(err, GS_ENOTREADY, "%s", refuses);
    gs_buf_puts(answer, "{\"nodes\":[");
    gs_service_each_node(service, print_next, &page);
    if (node && !page.any)
        return gs_fail(err, GS_ENOENT, "node %.200s is not known", node);
    gs_buf_puts(answer, "]}\n");
    return gs_service_answered(answer, err);
}

static void print_reservations(void *ctx, const struct gs_service *service,
                               const struct gs_node_view *view)
{
    struct reservations *list = ctx;
    list->node = gs_ledger_node_name(service->ledger, view->slot);
    gs_ledger_each_hold(service->ledger, view->slot, print_reservation, list);
}

int gs_service_reservations(struct gs_service *service, struct gs_buf *answer, struct gs_error *err)
{
    struct reservations list = {.service = service, .out = answer, .before = ""};
    gs_buf_puts(answer, "{\"reservations\":[");
    gs_service_each_node(service, print_reservations, &list);
    gs_buf_printf(answer, "],\"policy\":\"%s\"}\n", gs_placement_name(service->config.policy));
    return gs_service_answered(answer, err);
}
