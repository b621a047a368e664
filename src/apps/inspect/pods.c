/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/pods.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "gpushare/base/num.h"
#include "inspect/common.h"
#include "inspect/limits.h"

/* Pods that one row is about; bytes are sums over all of their GPUs. */
struct row {
    const char *ns, *owner, *name, *node, *uid;
    const char *limited, *mode;      /* what limits memory; the plugin's --enforce */
    const char *why_not, *why_block; /* why nothing limits; why `required` would block it */
    uint64_t pods, measured;         /* measured: on all their GPUs */
    uint64_t partly;                 /* measured, where that is some of them */
    uint64_t requested;
    uint64_t used, peak, unused, excess, peak_excess; /* of the measured ones */
    uint64_t recommended;                             /* for each of them */
    uint64_t cores_pct;
    uint64_t gpus, limited_gpus, would_block;
};

#define AT(member) offsetof(struct row, member)
#define POD        (1u << PODS_BY_POD)
#define OWNER      (1u << PODS_BY_OWNER)
#define SPACE      (1u << PODS_BY_NAMESPACE)
#define NODE       (1u << PODS_BY_NODE)
#define SUMS       (OWNER | SPACE | NODE)
#define ALL        (POD | SUMS)

static const struct column columns[] = {
    {"NAMESPACE", "namespace", COLUMN_TEXT, AT(ns), POD | OWNER | SPACE},
    {"POD", "name", COLUMN_TEXT, AT(name), POD},
    {"OWNER", "owner", COLUMN_TEXT, AT(owner), OWNER},
    {"OWNER", "owner", COLUMN_TEXT, AT(owner), POD, COLUMN_WIDE},
    {"NODE", "node", COLUMN_TEXT, AT(node), POD | NODE},
    {"PODS", "podCount", COLUMN_NUMBER, AT(pods), SUMS},
    {"MEASURED", NULL, COLUMN_NUMBER, AT(partly), SUMS, COLUMN_IF_SET},
    {"MEASURED", "measuredPodCount", COLUMN_NUMBER, AT(measured), SUMS, COLUMN_DOCUMENT},
    {"REQUEST(GiB)", "requestedBytes", COLUMN_BYTES, AT(requested), ALL},
    {"COMPUTE", "corePercentage", COLUMN_NUMBER, AT(cores_pct), POD, COLUMN_IF_SET},
    {"USED", "usedBytes", COLUMN_BYTES, AT(used), ALL},
    {"PEAK", "peakBytes", COLUMN_BYTES, AT(peak), ALL},
    {"UNUSED", "unusedBytes", COLUMN_BYTES, AT(unused), ALL},
    {"RECOMMENDED", "recommendedBytes", COLUMN_BYTES, AT(recommended), POD | OWNER},
    {"EXCESS", "excessBytes", COLUMN_BYTES, AT(excess), ALL, COLUMN_IF_SET},
    {"PEAK-EXCESS", "peakExcessBytes", COLUMN_BYTES, AT(peak_excess), ALL, COLUMN_IF_SET},
    {"LIMITED", "enforced", COLUMN_TEXT, AT(limited), POD | NODE},
    {"MODE", "enforceMode", COLUMN_TEXT, AT(mode), NODE, COLUMN_WIDE},
    {"GPUS", "gpuCount", COLUMN_NUMBER, AT(gpus), NODE, COLUMN_WIDE},
    {"LIMITED-GPUS", "limitedGPUCount", COLUMN_NUMBER, AT(limited_gpus), NODE, COLUMN_WIDE},
    {"WOULD-BLOCK", "wouldBlockPodCount", COLUMN_NUMBER, AT(would_block), SUMS, COLUMN_WIDE},
    {"WHY-BLOCK", "wouldBlockMessage", COLUMN_PROSE, AT(why_block), POD, COLUMN_WIDE},
    {"WHY-NOT-LIMITED", "enforcedMessage", COLUMN_PROSE, AT(why_not), NODE, COLUMN_WIDE},
};

/* Which rows stand first, unless --sort says otherwise: what is over, then what wastes most. */
static const char usual_order[] = "excess,peak-excess,unused,namespace,owner,name,node";

bool pods_by_parse(void *to, const char *text)
{
    static const char *const words[] = {"owner", "pod", "namespace", "node", NULL};
    return word_parse(words, to, text);
}

static struct rows rows_of(const struct pods_options *options)
{
    struct rows rows = ROWS_OF(columns, struct row);
    rows.in = 1u << options->by;
    return rows;
}

void pods_check(const struct pods_options *options, const char *command,
                const struct output *output)
{
    const struct rows rows = rows_of(options);
    rows_check(&rows, command, output);
}

/* ---- rows ---- */

/* A plugin may report any number: sums end at the largest one, which is shown as not known. */
static void add(uint64_t *sum, uint64_t more)
{
    *sum = gs_sat_add_u64(*sum, more);
}

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

static void measure(struct row *row, const struct usage_pod *pod)
{
    for (uint32_t i = 0; pod && i < pod->gpu_count; i++) {
        if (!pod->gpus[i].known)
            return;
    }
    if (!pod || !pod->gpu_count)
        return;
    row->measured = 1;
    row->unused = usage_never_used(pod);
    row->recommended = recommended(pod);
    GS_EACH_OF (gpu, pod->gpus, pod->gpu_count) {
        add(&row->used, gpu->used_bytes);
        add(&row->peak, gpu->peak_bytes);
        add(&row->excess, limits_over(pod, gpu->used_bytes));
        add(&row->peak_excess, limits_over(pod, gpu->peak_bytes));
    }
}

static struct row row_of_pod(const struct view *view, const struct view_node *node,
                             const struct gs_claim *claim, char why[LIMITS_TEXT_BYTES])
{
    const struct usage_pod *pod = usage_pod_find(view->usage, claim->node, claim->uid);
    const char *owner = snapshot_owner(view->snapshot, claim->uid);
    struct row row = {.ns = claim->ns,
                      .owner = !owner[0] && pod ? pod->owner : owner,
                      .name = claim->name,
                      .node = claim->node,
                      .uid = claim->uid,
                      .pods = 1,
                      .cores_pct = claim->cores_pct ? claim->cores_pct : COLUMN_UNKNOWN,
                      .limited = pod ? gs_enforced_by(pod->enforced) : NULL,
                      .why_block = limits_hold(node, claim, view->usage, why)};
    row.requested =
        gs_sat_mul_u64(claim_units(claim), (uint64_t)gs_unit_mib(view_unit_of(view, node)) << 20);
    row.would_block = row.why_block != NULL;
    measure(&row, pod);
    return row;
}

static void add_row(struct row *sum, const struct row *row)
{
    sum->pods += row->pods;
    sum->measured += row->measured;
    sum->gpus += row->gpus;
    sum->limited_gpus += row->limited_gpus;
    sum->would_block += row->would_block;
    add(&sum->requested, row->requested);
    add(&sum->used, row->used);
    add(&sum->peak, row->peak);
    add(&sum->unused, row->unused);
    add(&sum->excess, row->excess);
    add(&sum->peak_excess, row->peak_excess);
    if (row->recommended > sum->recommended)
        sum->recommended = row->recommended;
}

static int order_names(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->ns, y->ns);
    if (order == 0)
        order = strcmp(x->owner, y->owner);
    return order ? order : strcmp(x->uid, y->uid);
}

/* A pod without an owner is a row of its own. */
static bool is_one(enum pods_by by, const struct row *row, const struct row *other)
{
    return by == PODS_BY_NODE ||
           (strcmp(row->ns, other->ns) == 0 &&
            (by == PODS_BY_NAMESPACE ||
             (by == PODS_BY_OWNER && row->owner[0] && strcmp(row->owner, other->owner) == 0)));
}

static size_t join(struct row *rows, size_t count, enum pods_by by)
{
    size_t kept = 0;
    qsort(rows, count, sizeof(*rows), order_names);
    for (size_t i = 0; i < count; i++) {
        const struct row row = rows[i];
        if (kept && is_one(by, &rows[kept - 1], &row))
            add_row(&rows[kept - 1], &row);
        else
            rows[kept++] = row;
    }
    return kept;
}

static struct row row_of_node(const struct view_node *node)
{
    return (struct row){.ns = "",
                        .owner = "",
                        .uid = "",
                        .node = node->node->name,
                        .limited = limits_enforced(node),
                        .mode = node->usage ? node->usage->mode : NULL,
                        .why_not = limits_why_not(node),
                        .gpus = node->gpu_count,
                        .limited_gpus = node->limited_gpus,
                        .would_block = node->blocked_pods};
}

struct found {
    struct rows rows;
    struct row total;
    char (*texts)[LIMITS_TEXT_BYTES]; /* why a pod would be blocked, then what a row is called */
};

static int find(const struct view *view, const struct pods_options *options, struct found *found)
{
    const size_t most = view->sum.pods + view->node_count + 1;
    struct row *all = calloc(most, sizeof(*all));
    found->rows = rows_of(options);
    found->rows.all = all;
    found->rows.total = &found->total;
    found->texts = calloc(most, sizeof(*found->texts));
    size_t count = 0, texts = 0;
    if (!all || !found->texts)
        return -1;
    EACH_ROW (node, view) {
        const size_t first = count;
        if (options->by == PODS_BY_NODE)
            all[count++] = row_of_node(node);
        EACH_CLAIM (claim, node) {
            if (!view_means(view, node, claim))
                continue;
            struct row row = row_of_pod(view, node, claim, found->texts[texts++]);
            if (options->by ==
                PODS_BY_NODE) /* of the node, with pods that its plugin only counts */
                row.would_block = 0;
            if (!options->over || row.peak_excess)
                all[count++] = row;
        }
        if (options->by == PODS_BY_NODE)
            count = first + join(&all[first], count - first, options->by);
        if (options->over && count > first && !all[first].pods)
            count = first;
    }
    if (options->by != PODS_BY_NODE)
        count = join(all, count, options->by);
    found->rows.count = count;
    return 0;
}

static void finish(struct row *row, enum pods_by by, char owner[LIMITS_TEXT_BYTES])
{
    if (by == PODS_BY_OWNER && row->owner && !row->owner[0]) {
        snprintf(owner, LIMITS_TEXT_BYTES, "Pod/%s", row->name);
        row->owner = owner;
    }
    row->partly = row->measured < row->pods && row->measured ? row->measured : COLUMN_UNKNOWN;
    if (!row->measured)
        row->used = row->peak = row->unused = row->recommended = row->excess = row->peak_excess =
            COLUMN_UNKNOWN;
}

static void say_missing(const struct view *view, const struct found *found, bool over)
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
    if (!found->rows.count)
        fputs(over ? "No measured pod uses, or has used, more than its request.\n"
                   : "No pod has GPU memory there.\n",
              stderr);
}

static int find_sorted(const struct view *view, const struct pods_options *options,
                       const struct output *output, struct found *found)
{
    int result = find(view, options, found);
    struct row *all = found->rows.all;
    for (size_t i = 0; i < found->rows.count; i++) {
        add_row(&found->total, &all[i]);
        finish(&all[i], options->by, found->texts[i]);
    }
    finish(&found->total, options->by, NULL);
    found->total.recommended = found->total.cores_pct = COLUMN_UNKNOWN;
    if (result == 0)
        rows_sort(&found->rows, output, usual_order);
    return result;
}

static void release(struct found *found)
{
    free(found->rows.all);
    free(found->texts);
}

void pods_table(struct doc *doc, const struct table *table, const struct view *view,
                const struct pods_options *options)
{
    struct found found = {0};
    doc->failed |= find_sorted(view, options, NULL, &found) < 0;
    rows_table(doc, table, &found.rows, found.rows.count);
    release(&found);
}

int pods_print(const struct view *view, const struct pods_options *options,
               const struct output *output, const struct terminal *terminal)
{
    struct found found = {0};
    int result = find_sorted(view, options, output, &found);
    if (result == 0) {
        say_missing(view, &found, options->over);
        result = rows_print(&found.rows, output, terminal);
    }
    release(&found);
    return result;
}
