/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/pods.h"

#include "gpushare/base/num.h"
#include "inspect/common.h"
#include "inspect/limits.h"

bool pods_by_parse(void *to, const char *text)
{
    static const char *const words[] = {"owner", "pod", "namespace", "node", NULL};
    return word_parse(words, to, text);
}

/* ---- what is measured of a pod ---- */

/* Bytes on all of its GPUs; COLUMN_UNKNOWN unless each of them is measured. */
struct measured {
    uint64_t used, peak, unused, recommended, excess, peak_excess;
};

/* A tenth above the peak, in whole GiB, on each of its GPUs; no more than it requested where the
 * peak was below. Not known where a limit kept the peak down. */
static uint64_t recommended(const struct usage_pod *pod)
{
    const uint64_t gib = UINT64_C(1) << 30;
    if (gs_enforced_holds(pod->enforced) && pod->peak_bytes >= pod->limit_bytes)
        return COLUMN_UNKNOWN;
    uint64_t bytes = gs_sat_add_u64(pod->peak_bytes, pod->peak_bytes / 10);
    bytes = bytes > gib ? gs_sat_mul_u64(bytes / gib + (bytes % gib > 0), gib) : gib;
    if (pod->peak_bytes <= pod->given_bytes && bytes > pod->given_bytes)
        bytes = pod->given_bytes;
    return gs_sat_mul_u64(bytes, pod->gpu_count);
}

/* On one GPU; NULL: on all. */
static struct measured measure(const struct usage_pod *pod, const struct view_gpu *only)
{
    const uint64_t unknown = COLUMN_UNKNOWN;
    const struct measured none = {unknown, unknown, unknown, unknown, unknown, unknown};
    struct measured sum = none;
    if (!pod)
        return none;
    GS_EACH_OF (gpu, pod->gpus, pod->gpu_count) {
        if (only && gpu->idx != only->idx)
            continue;
        if (!gpu->known)
            return none;
        const uint64_t most = gpu->peak_bytes;
        column_add(&sum.used, gpu->used_bytes);
        column_add(&sum.peak, most);
        column_add(&sum.unused, pod->given_bytes > most ? pod->given_bytes - most : 0);
        column_add(&sum.excess, limits_over(pod, gpu->used_bytes));
        column_add(&sum.peak_excess, limits_over(pod, most));
    }
    sum.recommended = sum.used == unknown ? unknown : recommended(pod);
    return sum;
}

static const struct usage_pod *find_usage(const struct view *view, const struct gs_claim *claim)
{
    return claim ? usage_pod_find(view->usage, claim->node, claim->uid) : NULL;
}

static bool is_over(const struct view *view, const struct gs_claim *claim)
{
    const uint64_t excess = measure(find_usage(view, claim), NULL).peak_excess;
    return excess && excess != COLUMN_UNKNOWN;
}

/* ---- rows ---- */

/* By owner a pod without one is a row of its own. */
static const char *owner_of(struct sheet *to, enum pods_by by, const struct view *view,
                            const struct gs_claim *claim)
{
    const struct usage_pod *pod = find_usage(view, claim);
    const char *owner = snapshot_owner(view->snapshot, claim->uid);
    if (!owner[0] && pod)
        owner = pod->owner;
    return owner[0] || by != PODS_BY_OWNER ? owner
                                           : gs_arena_printf(&to->texts, "Pod/%s", claim->name);
}

static uint64_t requested(const struct view *view, const struct view_node *node,
                          const struct gs_claim *claim)
{
    return gs_sat_mul_u64(claim_units(claim), (uint64_t)gs_unit_mib(view_unit_of(view, node))
                                                  << 20);
}

/* A pod; without a claim what is of the node itself, without a node of neither. On a GPU, which may
 * be none, in units. */
void pods_row(struct sheet *to, enum pods_by by, const struct view *view,
              const struct view_node *node, const struct gs_claim *claim,
              const struct view_gpu *gpu)
{
    static const struct view_node nowhere;
    static const struct gs_claim nobody;
    const bool on_gpu = by == PODS_ON_GPU, each = by == PODS_BY_POD || on_gpu;
    const bool of_node = by == PODS_BY_NODE, of_owner = by == PODS_BY_OWNER;
    const enum column_when always = on_gpu ? COLUMN_IF_SET : COLUMN_ALWAYS;
    const enum column_when seldom = on_gpu ? COLUMN_DOCUMENT : COLUMN_IF_SET;
    const enum column_when wide = on_gpu ? COLUMN_DOCUMENT : COLUMN_WIDE;
    const struct gs_claim *what = claim ? claim : &nobody;
    const struct view_node *own = claim || !node ? &nowhere : node;
    const struct usage_pod *pod = find_usage(view, claim);
    const struct measured use = measure(on_gpu && !gpu ? NULL : pod, gpu);
    const bool measured = use.used != COLUMN_UNKNOWN;
    char text[LIMITS_TEXT_BYTES];
    const char *why_block = claim ? limits_hold(node, claim, view->usage, text) : NULL;
    sheet_row(to);
    if (!of_node)
        column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, what->ns);
    if (each)
        column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, what->name);
    if (each || of_owner)
        column_text(to, COLUMN_TEXT, "OWNER", "owner", each ? wide : COLUMN_ALWAYS,
                    claim ? owner_of(to, by, view, claim) : NULL);
    if (by == PODS_BY_POD || of_node)
        column_text(to, COLUMN_TEXT, "NODE", "node", COLUMN_ALWAYS, node ? node->node->name : NULL);
    if (!each) {
        column_number(to, COLUMN_NUMBER, "PODS", "podCount", COLUMN_ALWAYS, claim != NULL);
        column_number(to, COLUMN_NUMBER, "UNMEASURED", NULL, COLUMN_IF_SET,
                      claim && view->usage->names_pods ? !measured : COLUMN_UNKNOWN);
        column_number(to, COLUMN_NUMBER, "MEASURED", "measuredPodCount", COLUMN_DOCUMENT, measured);
    }
    if (on_gpu) {
        const int64_t created_s = snapshot_since(view->snapshot, what->uid);
        column_text(to, COLUMN_TEXT, "UID", "uid", COLUMN_DOCUMENT, what->uid);
        column_number(to, COLUMN_NUMBER, "GPU", NULL, COLUMN_ALWAYS,
                      gpu ? gpu->idx : COLUMN_UNKNOWN);
        column_number(to, COLUMN_NUMBER, "ALLOCATED()", "usedGPU", COLUMN_ALWAYS, what->units);
        column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_DOCUMENT,
                      !gpu || what->gpu_count > 1 ? what->gpu_count : COLUMN_UNKNOWN);
        column_number(to, COLUMN_NUMBER, "CREATED", "createdUnix", COLUMN_DOCUMENT,
                      created_s > 0 ? (uint64_t)created_s : COLUMN_UNKNOWN);
        column_number(to, COLUMN_BOOL, "MATCHES", "matches", COLUMN_DOCUMENT,
                      view->filter ? view_means(view, node, claim) : COLUMN_UNKNOWN);
    } else {
        column_number(to, COLUMN_BYTES, "REQUEST(GiB)", "requestedBytes", COLUMN_ALWAYS,
                      claim ? requested(view, node, claim) : 0);
    }
    if (each)
        column_number(to, COLUMN_NUMBER, "COMPUTE", "corePercentage", COLUMN_IF_SET,
                      what->cores_pct ? what->cores_pct : COLUMN_UNKNOWN);
    column_number(to, COLUMN_BYTES, on_gpu ? "USED(GiB)" : "USED", "usedBytes", always, use.used);
    column_number(to, COLUMN_BYTES, "PEAK", "peakBytes", always, use.peak);
    column_number(to, COLUMN_BYTES, "UNUSED", "unusedBytes", on_gpu ? COLUMN_DOCUMENT : always,
                  use.unused);
    if (by == PODS_BY_POD || of_owner)
        column_number(to, COLUMN_EACH, "RECOMMENDED", "recommendedBytes", COLUMN_ALWAYS,
                      use.recommended);
    column_number(to, COLUMN_BYTES, "EXCESS", "excessBytes", seldom, use.excess);
    column_number(to, COLUMN_BYTES, "PEAK-EXCESS", "peakExcessBytes", seldom, use.peak_excess);
    if (each) {
        column_text(to, COLUMN_TEXT, "LIMITED", "enforced", always,
                    pod ? gs_enforced_by(pod->enforced) : NULL);
        column_text(to, COLUMN_PROSE, "WHY-NOT-LIMITED", "enforcedMessage", COLUMN_DOCUMENT,
                    pod && gs_enforced_lacks(pod->enforced) ? pod->reason : NULL);
        column_text(to, COLUMN_PROSE, "WHY-BLOCK", "wouldBlockMessage", wide,
                    why_block ? gs_arena_strdup(&to->texts, why_block) : NULL);
        return;
    }
    if (of_node) {
        column_text(to, COLUMN_TEXT, "LIMITED", "enforced", COLUMN_ALWAYS, limits_enforced(own));
        column_text(to, COLUMN_TEXT, "MODE", "enforceMode", COLUMN_WIDE,
                    own->usage ? own->usage->mode : NULL);
        column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_WIDE, own->gpu_count);
        column_number(to, COLUMN_NUMBER, "LIMITED-GPUS", "limitedGPUCount", COLUMN_WIDE,
                      own->limited_gpus);
    }
    /* of a node with pods that its plugin only counts */
    column_number(to, COLUMN_NUMBER, "WOULD-BLOCK", "wouldBlockPodCount", COLUMN_WIDE,
                  of_node ? own->blocked_pods : why_block != NULL);
    if (of_node)
        column_text(to, COLUMN_PROSE, "WHY-NOT-LIMITED", "enforcedMessage", COLUMN_WIDE,
                    limits_why_not(own));
}

static void write_rows(struct sheet *to, const struct view *view,
                       const struct pods_options *options, const struct output *output)
{
    static const char *const joined[] = {[PODS_BY_OWNER] = "namespace,owner",
                                         [PODS_BY_NAMESPACE] = "namespace",
                                         [PODS_BY_NODE] = "node",
                                         [PODS_BY_POD] = NULL};
    EACH_ROW (node, view) {
        const size_t before = to->count;
        EACH_CLAIM (claim, node) {
            if (view_means(view, node, claim) && (!options->over || is_over(view, claim)))
                pods_row(to, options->by, view, node, claim, NULL);
        }
        if (options->by == PODS_BY_NODE && (!options->over || to->count > before))
            pods_row(to, options->by, view, node, NULL, NULL);
    }
    if (joined[options->by])
        sheet_join(to, joined[options->by], NULL);
    pods_row(to, options->by, view, NULL, NULL, NULL);
    sheet_total(to, true);
    /* what is over, then what wastes most */
    sheet_sort(to, output, "excess,peak-excess,unused,namespace,owner,name,node");
}

void pods_check(const struct pods_options *options, const char *command,
                const struct output *output)
{
    struct sheet sheet = {0};
    pods_row(&sheet, options->by, NULL, NULL, NULL, NULL);
    sheet_check(&sheet, command, output);
}

static void say_missing(const struct view *view, bool any, bool over)
{
    const struct usage *usage = view->usage;
    if (!usage->answered)
        fprintf(stderr, PROGRAM ": what pods use is not known: %s\n",
                usage->why.code != GS_OK ? usage->why.msg
                                         : "no pod of the DaemonSet " USAGE_PLUGIN
                                           " is ready (--system-namespace)");
    else if (!usage->names_pods)
        fputs(PROGRAM ": no device plugin reports pods: start them with --pod-usage=on "
                      "(docs/security.md says what that discloses)\n",
              stderr);
    if (!any)
        fputs(over ? "No measured pod uses, or has used, more than its request.\n"
                   : "No pod has GPU memory there.\n",
              stderr);
}

void pods_table(struct doc *doc, const struct table *table, const struct view *view,
                const struct pods_options *options)
{
    struct sheet sheet = {0};
    write_rows(&sheet, view, options, NULL);
    sheet_table(doc, table, &sheet, 0);
}

int pods_print(const struct view *view, const struct pods_options *options,
               const struct output *output, const struct terminal *terminal)
{
    struct sheet sheet = {0};
    write_rows(&sheet, view, options, output);
    say_missing(view, sheet.count, options->over);
    return sheet_print(stdout, &sheet, output, terminal);
}
