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

static struct measured measure(const struct usage_pod *pod)
{
    const uint64_t unknown = COLUMN_UNKNOWN;
    const struct measured none = {unknown, unknown, unknown, unknown, unknown, unknown};
    struct measured sum = none;
    if (!pod || !pod->gpu_count)
        return none;
    GS_EACH_OF (gpu, pod->gpus, pod->gpu_count) {
        if (!gpu->known)
            return none;
        column_add(&sum.used, gpu->used_bytes);
        column_add(&sum.peak, gpu->peak_bytes);
        column_add(&sum.excess, limits_over(pod, gpu->used_bytes));
        column_add(&sum.peak_excess, limits_over(pod, gpu->peak_bytes));
    }
    sum.unused = usage_never_used(pod);
    sum.recommended = recommended(pod);
    return sum;
}

static const struct usage_pod *find_usage(const struct view *view, const struct gs_claim *claim)
{
    return claim ? usage_pod_find(view->usage, claim->node, claim->uid) : NULL;
}

static bool is_over(const struct view *view, const struct gs_claim *claim)
{
    const uint64_t excess = measure(find_usage(view, claim)).peak_excess;
    return excess && excess != COLUMN_UNKNOWN;
}

/* ---- rows ---- */

/* By owner a pod without one is a row of its own. */
static const char *owner_of(struct sheet *to, enum pods_by by, const struct view *view,
                            const struct gs_claim *claim)
{
    const struct usage_pod *pod = find_usage(view, claim);
    const char *owner = claim ? snapshot_owner(view->snapshot, claim->uid) : "";
    if (!owner[0] && pod)
        owner = pod->owner;
    return owner[0] || !claim || by != PODS_BY_OWNER
               ? owner
               : gs_arena_printf(&to->texts, "Pod/%s", claim->name);
}

static uint64_t requested(const struct view *view, const struct view_node *node,
                          const struct gs_claim *claim)
{
    return gs_sat_mul_u64(claim_units(claim), (uint64_t)gs_unit_mib(view_unit_of(view, node))
                                                  << 20);
}

/* A pod; without a claim what is of the node itself, without a node of neither. */
static void write_row(struct sheet *to, enum pods_by by, const struct view *view,
                      const struct view_node *node, const struct gs_claim *claim)
{
    const bool each = by == PODS_BY_POD, of_node = by == PODS_BY_NODE;
    const struct view_node *own = claim ? NULL : node;
    const struct usage_pod *pod = find_usage(view, claim);
    const struct measured use = measure(pod);
    const bool measured = use.used != COLUMN_UNKNOWN;
    char text[LIMITS_TEXT_BYTES];
    const char *why_block = claim ? limits_hold(node, claim, view->usage, text) : NULL;
    sheet_row(to);
    if (!of_node)
        column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS,
                    claim ? claim->ns : NULL);
    if (each)
        column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, claim ? claim->name : NULL);
    if (each || by == PODS_BY_OWNER)
        column_text(to, COLUMN_TEXT, "OWNER", "owner", each ? COLUMN_WIDE : COLUMN_ALWAYS,
                    owner_of(to, by, view, claim));
    if (each || of_node)
        column_text(to, COLUMN_TEXT, "NODE", "node", COLUMN_ALWAYS, node ? node->node->name : NULL);
    if (!each) {
        column_number(to, COLUMN_NUMBER, "PODS", "podCount", COLUMN_ALWAYS, claim != NULL);
        column_number(to, COLUMN_NUMBER, "UNMEASURED", NULL, COLUMN_IF_SET,
                      claim && view->usage->names_pods ? !measured : COLUMN_UNKNOWN);
        column_number(to, COLUMN_NUMBER, "MEASURED", "measuredPodCount", COLUMN_DOCUMENT, measured);
    }
    column_number(to, COLUMN_BYTES, "REQUEST(GiB)", "requestedBytes", COLUMN_ALWAYS,
                  claim ? requested(view, node, claim) : 0);
    if (each)
        column_number(to, COLUMN_NUMBER, "COMPUTE", "corePercentage", COLUMN_IF_SET,
                      claim && claim->cores_pct ? claim->cores_pct : COLUMN_UNKNOWN);
    column_number(to, COLUMN_BYTES, "USED", "usedBytes", COLUMN_ALWAYS, use.used);
    column_number(to, COLUMN_BYTES, "PEAK", "peakBytes", COLUMN_ALWAYS, use.peak);
    column_number(to, COLUMN_BYTES, "UNUSED", "unusedBytes", COLUMN_ALWAYS, use.unused);
    if (each || by == PODS_BY_OWNER)
        column_number(to, COLUMN_EACH, "RECOMMENDED", "recommendedBytes", COLUMN_ALWAYS,
                      use.recommended);
    column_number(to, COLUMN_BYTES, "EXCESS", "excessBytes", COLUMN_IF_SET, use.excess);
    column_number(to, COLUMN_BYTES, "PEAK-EXCESS", "peakExcessBytes", COLUMN_IF_SET,
                  use.peak_excess);
    if (each)
        column_text(to, COLUMN_TEXT, "LIMITED", "enforced", COLUMN_ALWAYS,
                    pod ? gs_enforced_by(pod->enforced) : NULL);
    if (of_node) {
        column_text(to, COLUMN_TEXT, "LIMITED", "enforced", COLUMN_ALWAYS,
                    own ? limits_enforced(own) : NULL);
        column_text(to, COLUMN_TEXT, "MODE", "enforceMode", COLUMN_WIDE,
                    own && own->usage ? own->usage->mode : NULL);
        column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_WIDE, own ? own->gpu_count : 0);
        column_number(to, COLUMN_NUMBER, "LIMITED-GPUS", "limitedGPUCount", COLUMN_WIDE,
                      own ? own->limited_gpus : 0);
        /* with pods that its plugin only counts */
        column_number(to, COLUMN_NUMBER, "WOULD-BLOCK", "wouldBlockPodCount", COLUMN_WIDE,
                      own ? own->blocked_pods : 0);
        column_text(to, COLUMN_PROSE, "WHY-NOT-LIMITED", "enforcedMessage", COLUMN_WIDE,
                    own ? limits_why_not(own) : NULL);
    } else if (each) {
        column_text(to, COLUMN_PROSE, "WHY-BLOCK", "wouldBlockMessage", COLUMN_WIDE,
                    why_block ? gs_arena_strdup(&to->texts, why_block) : NULL);
    } else {
        column_number(to, COLUMN_NUMBER, "WOULD-BLOCK", "wouldBlockPodCount", COLUMN_WIDE,
                      why_block != NULL);
    }
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
                write_row(to, options->by, view, node, claim);
        }
        if (options->by == PODS_BY_NODE && (!options->over || to->count > before))
            write_row(to, options->by, view, node, NULL);
    }
    if (joined[options->by])
        sheet_join(to, joined[options->by], NULL);
    write_row(to, options->by, view, NULL, NULL);
    sheet_total(to, true);
    /* what is over, then what wastes most */
    sheet_sort(to, output, "excess,peak-excess,unused,namespace,owner,name,node");
}

void pods_check(const struct pods_options *options, const char *command,
                const struct output *output)
{
    struct sheet sheet = {0};
    write_row(&sheet, options->by, NULL, NULL, NULL);
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
