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

uint64_t pods_unused(const struct usage_pod *pod)
{
    return measure(pod, NULL).unused;
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

/* What a row is of. */
struct subject {
    enum pods_by by;
    bool on_gpu, each; /* each: of one pod */
    const struct view *view;
    const struct view_node *node;
    const struct gs_claim *claim; /* NULL: none */
    const struct view_gpu *gpu;
};

static const struct gs_claim nobody;

static void put_names(struct sheet *to, const struct subject *of)
{
    const struct gs_claim *claim = of->claim ? of->claim : &nobody;
    const bool by_owner = of->by == PODS_BY_OWNER;
    if (of->by != PODS_BY_NODE)
        column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, claim->ns);
    if (of->each)
        column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, claim->name);
    if (of->each || by_owner)
        column_text(to, COLUMN_TEXT, "OWNER", "owner",
                    by_owner     ? COLUMN_ALWAYS
                    : of->on_gpu ? COLUMN_DOCUMENT
                                 : COLUMN_WIDE,
                    of->claim ? owner_of(to, of->by, of->view, claim) : NULL);
    if (of->by == PODS_BY_POD || of->by == PODS_BY_NODE)
        column_text(to, COLUMN_TEXT, "NODE", "node", COLUMN_ALWAYS,
                    of->node ? of->node->node->name : NULL);
}

static void put_counts(struct sheet *to, const struct subject *of, bool measured)
{
    const bool counted = of->claim && of->view->usage->names_pods;
    column_number(to, COLUMN_NUMBER, "PODS", "podCount", COLUMN_ALWAYS, of->claim != NULL);
    column_number(to, COLUMN_NUMBER, "UNMEASURED", NULL, COLUMN_IF_SET,
                  counted ? !measured : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "MEASURED", "measuredPodCount", COLUMN_DOCUMENT, measured);
}

static void put_allocation(struct sheet *to, const struct subject *of)
{
    const struct gs_claim *claim = of->claim ? of->claim : &nobody;
    const struct view_gpu *gpu = of->gpu;
    const int64_t created_s = snapshot_since(of->view->snapshot, claim->uid);
    column_text(to, COLUMN_TEXT, "UID", "uid", COLUMN_DOCUMENT, claim->uid);
    column_number(to, COLUMN_NUMBER, "GPU", NULL, COLUMN_ALWAYS, gpu ? gpu->idx : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "ALLOCATED()", "usedGPU", COLUMN_ALWAYS, claim->units);
    column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_DOCUMENT,
                  !gpu || claim->gpu_count > 1 ? claim->gpu_count : COLUMN_UNKNOWN);
    column_number(to, COLUMN_NUMBER, "CREATED", "createdUnix", COLUMN_DOCUMENT,
                  created_s > 0 ? (uint64_t)created_s : COLUMN_UNKNOWN);
    column_number(to, COLUMN_BOOL, "MATCHES", "matches", COLUMN_DOCUMENT,
                  of->view->filter ? view_means(of->view, of->node, of->claim) : COLUMN_UNKNOWN);
}

static void put_use(struct sheet *to, const struct subject *of, const struct measured *use)
{
    const enum column_when always = of->on_gpu ? COLUMN_IF_SET : COLUMN_ALWAYS;
    const enum column_when seldom = of->on_gpu ? COLUMN_DOCUMENT : COLUMN_IF_SET;
    column_number(to, COLUMN_BYTES, of->on_gpu ? "USED(GiB)" : "USED", "usedBytes", always,
                  use->used);
    column_number(to, COLUMN_BYTES, "PEAK", "peakBytes", always, use->peak);
    column_number(to, COLUMN_BYTES, "UNUSED", "unusedBytes",
                  of->on_gpu ? COLUMN_DOCUMENT : COLUMN_ALWAYS, use->unused);
    if (of->by == PODS_BY_POD || of->by == PODS_BY_OWNER)
        column_number(to, COLUMN_EACH, "RECOMMENDED", "recommendedBytes", COLUMN_ALWAYS,
                      use->recommended);
    column_number(to, COLUMN_BYTES, "EXCESS", "excessBytes", seldom, use->excess);
    column_number(to, COLUMN_BYTES, "PEAK-EXCESS", "peakExcessBytes", seldom, use->peak_excess);
}

static void put_limit(struct sheet *to, const struct subject *of, const struct usage_pod *pod,
                      const char *why_block)
{
    column_text(to, COLUMN_TEXT, "LIMITED", "enforced", of->on_gpu ? COLUMN_IF_SET : COLUMN_ALWAYS,
                pod ? gs_enforced_by(pod->enforced) : NULL);
    column_text(to, COLUMN_PROSE, "WHY-NOT-LIMITED", "enforcedMessage", COLUMN_DOCUMENT,
                pod && gs_enforced_lacks(pod->enforced) ? pod->reason : NULL);
    column_text(to, COLUMN_PROSE, "WHY-BLOCK", "wouldBlockMessage",
                of->on_gpu ? COLUMN_DOCUMENT : COLUMN_WIDE,
                why_block ? gs_arena_strdup(&to->texts, why_block) : NULL);
}

/* The pods of a node that its plugin only counts, and what is of the node itself. */
static void put_limits(struct sheet *to, const struct subject *of, bool blocked)
{
    static const struct view_node nowhere;
    const bool of_node = of->by == PODS_BY_NODE;
    const struct view_node *own = of->claim || !of->node ? &nowhere : of->node;
    if (of_node) {
        column_text(to, COLUMN_TEXT, "LIMITED", "enforced", COLUMN_ALWAYS, limits_enforced(own));
        column_text(to, COLUMN_TEXT, "MODE", "enforceMode", COLUMN_WIDE,
                    own->usage ? own->usage->mode : NULL);
        column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_WIDE, own->gpu_count);
        column_number(to, COLUMN_NUMBER, "LIMITED-GPUS", "limitedGPUCount", COLUMN_WIDE,
                      own->limited_gpus);
    }
    column_number(to, COLUMN_NUMBER, "WOULD-BLOCK", "wouldBlockPodCount", COLUMN_WIDE,
                  of_node ? own->blocked_pods : blocked);
    if (of_node)
        column_text(to, COLUMN_PROSE, "WHY-NOT-LIMITED", "enforcedMessage", COLUMN_WIDE,
                    limits_why_not(own));
}

/* A pod; without a claim what is of the node itself, without a node of neither. On a GPU, which may
 * be none, in units. */
void pods_row(struct sheet *to, enum pods_by by, const struct view *view,
              const struct view_node *node, const struct gs_claim *claim,
              const struct view_gpu *gpu)
{
    const bool on_gpu = by == PODS_ON_GPU;
    const struct subject of = {by, on_gpu, by == PODS_BY_POD || on_gpu, view, node, claim, gpu};
    const struct usage_pod *pod = find_usage(view, claim);
    const struct measured use = measure(on_gpu && !gpu ? NULL : pod, gpu);
    char text[LIMITS_TEXT_BYTES];
    const char *why_block = claim ? limits_hold(node, claim, view->usage, text) : NULL;
    sheet_row(to);
    put_names(to, &of);
    if (!of.each)
        put_counts(to, &of, use.used != COLUMN_UNKNOWN);
    if (on_gpu)
        put_allocation(to, &of);
    else
        column_number(to, COLUMN_BYTES, "REQUEST(GiB)", "requestedBytes", COLUMN_ALWAYS,
                      claim ? requested(view, node, claim) : 0);
    if (of.each)
        column_number(to, COLUMN_NUMBER, "COMPUTE", "corePercentage", COLUMN_IF_SET,
                      claim && claim->cores_pct ? claim->cores_pct : COLUMN_UNKNOWN);
    put_use(to, &of, &use);
    if (of.each)
        put_limit(to, &of, pod, why_block);
    else
        put_limits(to, &of, why_block != NULL);
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
