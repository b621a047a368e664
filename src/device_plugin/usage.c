/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/usage.h"

#include <inttypes.h>
#include <string.h>

#include "gpushare/base/metric.h"
#include "gpushare/port/gpu_source.h"

/* Names and owner of a pod are 700 bytes at most. Who makes a pod may name an owner that has none
 * but control characters, each of which is six bytes of JSON: 2.6 KiB a pod. */
enum { TEXT_BYTES_MAX = 768 << 10 };

static const struct {
    const char *name, *help;
} families[USAGE_FAMILIES] = {
    [USAGE_INFO] = {"gpushare_device_plugin_pod_gpu_info",
                    "Constant 1 for each GPU of a pod, at most 256 per node. The label UUID has "
                    "the same value as in DCGM exporter."},
    [USAGE_GIVEN] = {"gpushare_device_plugin_pod_gpu_memory_allocated_bytes",
                     "Memory of a GPU that is allocated to a pod. Requires --pod-usage=on; at most "
                     "256 series per node."},
    [USAGE_USED] = {"gpushare_device_plugin_pod_gpu_memory_used_bytes",
                    "Memory of a GPU that a pod uses, counted by the kernel (dmem) or the driver "
                    "(--pod-usage-from). Requires --pod-usage=on."},
    [USAGE_PEAK] = {"gpushare_device_plugin_pod_gpu_memory_peak_bytes",
                    "Peak memory of a GPU that a pod has used: the kernel's (Linux 7.3 or newer), "
                    "else the largest of samples each ten seconds. Requires --pod-usage=on."},
    [USAGE_HELD] = {"gpushare_device_plugin_pod_enforced",
                    "1 if the kernel limits the pod to its request. Requires --pod-usage=on."},
};

void usage_init(struct usage *usage)
{
    *usage = (struct usage){0};
    for (int i = 0; i < USAGE_TEXTS; i++)
        usage->text[i] = GS_BUF(TEXT_BYTES_MAX);
}

void usage_release(struct usage *usage)
{
    for (int i = 0; i < USAGE_TEXTS; i++)
        gs_buf_release(&usage->text[i]);
}

/* Without --pod-usage=on the others are empty, and are not named either. */
void usage_print(const struct usage *usage, struct gs_buf *out)
{
    for (int i = 0; i < (usage->names_pods ? USAGE_FAMILIES : USAGE_GIVEN); i++) {
        gs_metric_family(out, families[i].name, "gauge", families[i].help);
        usage_append(usage, (enum usage_text)i, out);
    }
}

void usage_append(const struct usage *usage, enum usage_text text, struct gs_buf *out)
{
    if (!gs_buf_failed(&usage->text[text]))
        gs_buf_append(out, usage->text[text].data, usage->text[text].len);
}

/* gpu: its index; negative: of the pod as a whole. label: beside the pod's name. */
static void put_labeled(struct usage *usage, enum usage_text text, const struct gs_placed *pod,
                        const char *label, const char *named, int gpu, uint64_t value)
{
    struct gs_buf *out = &usage->text[text];
    gs_buf_printf(out, "%s{", families[text].name);
    gs_metric_label(out, "namespace", pod->ns);
    gs_buf_putc(out, ',');
    gs_metric_label(out, "pod", pod->name);
    gs_buf_putc(out, ',');
    gs_metric_label(out, label, named);
    if (gpu >= 0)
        gs_buf_printf(out, ",gpu=\"%d\"", gpu);
    gs_buf_printf(out, "} %" PRIu64 "\n", value);
}

static void put_sample(struct usage *usage, enum usage_text text, const struct gs_placed *pod,
                       int gpu, uint64_t value)
{
    put_labeled(usage, text, pod, "owner", pod->owner, gpu, value);
}

/* Of those that are there. */
static void put_info(struct usage *usage, const struct gs_placed *pod)
{
    for (uint32_t i = 0; usage->set && i < usage->set->count; i++) {
        const struct gs_gpu *gpu = &usage->set->gpus[i];
        if (pod->gpus & GS_GPU_BIT(gpu->idx))
            put_labeled(usage, USAGE_INFO, pod, "UUID", gpu->uuid, (int)gpu->idx, 1);
    }
}

static void put_member(struct gs_buf *out, const char *name, const char *value)
{
    gs_buf_printf(out, "\"%s\":", name);
    gs_buf_json_text(out, value);
    gs_buf_putc(out, ',');
}

static void put_gpu(struct usage *usage, const struct gs_placed *pod, const struct pod_use *use,
                    uint32_t gpu)
{
    struct gs_buf *json = &usage->text[USAGE_JSON];
    bool counted = (use->counted & GS_GPU_BIT(gpu)) != 0;
    put_sample(usage, USAGE_GIVEN, pod, (int)gpu, pod->units * usage->unit_bytes);
    gs_buf_printf(json, "{\"id\":%" PRIu32, gpu);
    if (counted) {
        put_sample(usage, USAGE_USED, pod, (int)gpu, use->used_on[gpu]);
        put_sample(usage, USAGE_PEAK, pod, (int)gpu, use->peak_on[gpu]);
        gs_buf_printf(json, ",\"usedBytes\":%" PRIu64 ",\"peakBytes\":%" PRIu64, use->used_on[gpu],
                      use->peak_on[gpu]);
    }
    gs_buf_putc(json, '}');
}

/* What the plugin itself finds on each of the pod's GPUs, where the kernel does not hold it. */
static enum gs_enforced word_of(const struct usage *usage, const struct gs_placed *pod,
                                const struct gs_kept *kept)
{
    enum gs_enforced word = GS_ENFORCED_UNKNOWN;
    if (kept->held)
        return kept->by;
    for (uint32_t i = 0; usage->set && i < usage->set->count; i++) {
        const struct gs_gpu *gpu = &usage->set->gpus[i];
        if (!(pod->gpus & GS_GPU_BIT(gpu->idx)))
            continue;
        if (word != GS_ENFORCED_UNKNOWN && word != gpu->enforced)
            return GS_ENFORCED_NOT_ON;
        word = gpu->enforced;
    }
    bool held = word == GS_ENFORCED_MIG || word == GS_ENFORCED_HOOK ||
                (word == GS_ENFORCED_MPS && !pod->sets_mps);
    return held || word == GS_ENFORCED_INSTANCE || word == GS_ENFORCED_MPS_AWAY ||
                   word == GS_ENFORCED_HOOK_AWAY
               ? word
               : GS_ENFORCED_NOT_ON;
}

static const char *reason_of(const struct usage *usage, const struct gs_placed *pod,
                             const struct gs_kept *kept)
{
    return pod->sets_mps && (pod->gpus & usage->charged_elsewhere)
               ? "the pod sets CUDA_MPS_ variables itself, which MPS obeys"
               : kept->reason;
}

static void name_pod(struct usage *usage, const struct gs_placed *pod, const struct gs_kept *kept,
                     const struct pod_use *use)
{
    struct gs_buf *json = &usage->text[USAGE_JSON];
    const char *before = "";
    uint32_t gpu;
    gs_buf_putc(json, '{');
    put_member(json, "namespace", pod->ns);
    put_member(json, "name", pod->name);
    put_member(json, "uid", pod->uid);
    put_member(json, "owner", pod->owner);
    enum gs_enforced word = word_of(usage, pod, kept);
    put_member(json, "enforced", gs_enforced_by(word));
    put_member(json, "enforcedMessage",
               word == GS_ENFORCED_NOT_ON ? reason_of(usage, pod, kept) : gs_enforced_reason(word));
    gs_buf_printf(json, "\"allocatedBytes\":%" PRIu64 ",", pod->units * usage->unit_bytes);
    if (kept->bytes)
        gs_buf_printf(json, "\"limitBytes\":%" PRIu64 ",", kept->bytes);
    gs_buf_puts(json, "\"gpus\":[");
    GS_FOR_EACH_GPU (gpu, pod->gpus) {
        gs_buf_puts(json, before);
        put_gpu(usage, pod, use, gpu);
        before = ",";
    }
    gs_buf_puts(json, "]},");
    put_sample(usage, USAGE_HELD, pod, -1, kept->held);
}

/* The kernel's word before the driver's. */
static struct pod_use use_of(const struct usage *usage, const struct gs_placed *pod,
                             const struct gs_kept *kept)
{
    struct pod_use use = {.counted = 0};
    uint32_t gpu;
    if (!usage->driver_alone)
        use.counted = kept->counted & pod->gpus & ~usage->charged_elsewhere;
    GS_FOR_EACH_GPU (gpu, use.counted) {
        use.used_on[gpu] = kept->used_on[gpu];
        use.peak_on[gpu] = kept->peak_on[gpu];
    }
    if (usage->driver)
        driver_usage_find(usage->driver, pod->cgroup_uid, pod->gpus & ~use.counted, usage->now_ns,
                          &use);
    return use;
}

/* Of pods that the keeper does not count itself. */
static bool is_over(const struct usage *usage, const struct gs_placed *pod,
                    const struct gs_kept *kept, const struct pod_use *use)
{
    uint64_t share = kept->bytes ? kept->bytes : pod->units * usage->unit_bytes;
    uint32_t gpu;
    bool over = false;
    if (kept->used_bytes > share)
        return false;
    GS_FOR_EACH_GPU (gpu, use->counted) {
        if (use->used_on[gpu] <= share)
            continue;
        over = true;
        if (usage->driver)
            driver_usage_over(usage->driver, pod->cgroup_uid, use->used_on[gpu] - share);
    }
    return over;
}

void usage_add_pod(void *ctx, const struct gs_placed *pod)
{
    struct usage *usage = ctx;
    struct gs_kept kept = {.reason = gs_enforced_reason(GS_ENFORCED_NOT_ON)};
    uint32_t gpu, pairs = usage->pairs + gs_gpu_mask_count(pod->gpus);
    if (usage->keeper)
        gs_keeper_find(usage->keeper, pod->cgroup_uid, &kept);
    const struct pod_use use = use_of(usage, pod, &kept);
    GS_FOR_EACH_GPU (gpu, use.counted)
        usage->used_on[gpu] += use.used_on[gpu];
    usage->counted |= use.counted;
    usage->over += is_over(usage, pod, &kept, &use);
    if (pairs > USAGE_PAIRS_MAX)
        return;
    usage->pairs = pairs;
    put_info(usage, pod);
    if (usage->names_pods)
        name_pod(usage, pod, &kept, &use);
}

gs_gpu_mask usage_charged_elsewhere(const struct gs_gpu_set *set)
{
    gs_gpu_mask gpus = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        enum gs_enforced enforced = set->gpus[i].enforced;
        if (enforced == GS_ENFORCED_MPS || enforced == GS_ENFORCED_MPS_AWAY)
            gpus |= GS_GPU_BIT(set->gpus[i].idx);
    }
    return gpus;
}
