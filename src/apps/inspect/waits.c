/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/amount.h"

/* ---- which pods ---- */

#define COMPARE(a, b)                                                                              \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

/* Equal: the verdict about one is that about the other. Replicas of a Deployment are, and so are
 * most pods of a cluster. A pod with a hold is alone: its own does not stand in its way. */
static int order_asks(const void *left, const void *right)
{
    const struct wait *x = left, *y = right;
    COMPARE(x->rules, y->rules);
    int order = verdict_order(&x->ask, &y->ask);
    if (order)
        return order;
    if (x->waiting->pod.nominated_node[0] || y->waiting->pod.nominated_node[0])
        return strcmp(x->ask.uid, y->ask.uid);
    return 0;
}

static int order_since(const void *left, const void *right)
{
    const struct gs_pod *a = &((const struct wait *)left)->waiting->pod;
    const struct gs_pod *b = &((const struct wait *)right)->waiting->pod;
    COMPARE(a->created_s, b->created_s);
    int order = strcmp(a->ns, b->ns);
    return order ? order : strverscmp(a->name, b->name);
}

/* ---- why ---- */

static void judge(const struct snapshot *snapshot, struct wait *wait)
{
    struct verdict verdict;
    verdict_of(snapshot, &wait->ask, &verdict);
    wait->fits = verdict.other[GS_OBSTACLE_NONE].nodes;
    wait->group = *verdict_nearest(&verdict, &wait->obstacle, &wait->reason);
    wait->never = gs_reason_unresolvable(wait->reason);
}

static void judge_all(const struct snapshot *snapshot, struct waits *waits)
{
    for (size_t i = 0; i < waits->count; i++) {
        struct wait *wait = &waits->all[i];
        const struct wait *before = wait - 1;
        if (i && order_asks(wait, before) == 0) {
            struct wait same = *before;
            same.waiting = wait->waiting;
            same.ask = wait->ask;
            *wait = same;
        } else {
            judge(snapshot, wait);
            wait->broken = wait->ask.broken && wait->ask.broken != GS_REASON_GPU_TOO_SMALL;
            if (wait->broken)
                wait->group = (struct verdict_group){.nodes = wait->group.nodes};
        }
    }
}

void waits_count(const struct snapshot *snapshot, const char *ns, const char *unit,
                 struct waits *ret)
{
    ret->unit = unit;
    for (const struct snap_waiting *pod = snapshot->waiting; pod; pod = pod->hh.next) {
        if (ns && strcmp(pod->pod.ns, ns) != 0)
            continue;
        if (ret->all) {
            struct wait *wait = &ret->all[ret->count];
            wait->waiting = pod;
            gs_ask_of_pod(&wait->ask, &pod->pod);
            wait->rules = gs_pod_rules_hash(&pod->pod.rules);
        }
        ret->count++;
        if (!pod->pod.gpu_units_overflow)
            ret->units += (uint64_t)pod->charge.units * pod->charge.gpu_count;
    }
}

int waits_find(const struct snapshot *snapshot, const char *ns, struct waits *ret,
               struct gs_error *err)
{
    *ret = (struct waits){.scheduler = snapshot_scheduler(snapshot),
                          .all = calloc(HASH_COUNT(snapshot->waiting) + 1, sizeof(*ret->all))};
    if (!ret->all)
        return gs_fail_nomem(err);
    waits_count(snapshot, ns, verdict_unit(snapshot), ret);
    qsort(ret->all, ret->count, sizeof(*ret->all), order_asks);
    judge_all(snapshot, ret);
    GS_EACH_OF (wait, ret->all, ret->count) {
        wait->other_scheduler = snapshot_is_elsewhere(snapshot, &wait->waiting->pod);
        ret->never += wait->never;
    }
    qsort(ret->all, ret->count, sizeof(*ret->all), order_since);
    return 0;
}

void waits_release(struct waits *waits)
{
    free(waits->all);
    *waits = (struct waits){0};
}

/* ---- some of them, and groups ---- */

int waits_narrow(const struct waits *waits, bool (*means)(const void *ctx, const struct wait *wait),
                 const void *ctx, struct waits *ret)
{
    *ret = (struct waits){.unit = waits->unit, .scheduler = waits->scheduler};
    ret->all = calloc(waits->count + 1, sizeof(*ret->all));
    for (size_t i = 0; ret->all && i < waits->count; i++) {
        const struct wait *wait = &waits->all[i];
        if (!means(ctx, wait))
            continue;
        ret->all[ret->count++] = *wait;
        ret->units += (uint64_t)wait->waiting->charge.units * wait->waiting->charge.gpu_count;
        ret->never += wait->never;
    }
    return ret->all ? 0 : -1;
}

static int order_alike(const struct wait *x, const struct wait *y)
{
    const struct gs_pod *a = &x->waiting->pod, *b = &y->waiting->pod;
    int order = strcmp(a->ns, b->ns);
    if (order == 0)
        order = strcmp(a->owner[0] ? a->owner : a->name, b->owner[0] ? b->owner : b->name);
    if (order == 0)
        order = verdict_order(&x->ask, &y->ask);
    if (order)
        return order;
    COMPARE(x->obstacle, y->obstacle);
    COMPARE(x->reason, y->reason);
    COMPARE(x->fits, y->fits);
    COMPARE(x->other_scheduler, y->other_scheduler);
    COMPARE(a->gated, b->gated);
    COMPARE(x->group.nearest, y->group.nearest);
    COMPARE(x->group.nearest_gpu, y->group.nearest_gpu);
    return x->obstacle == GS_OBSTACLE_NONE ? strcmp(a->said, b->said) : 0;
}

static int order_members(const void *left, const void *right)
{
    const struct wait *x = *(const struct wait *const *)left;
    const struct wait *y = *(const struct wait *const *)right;
    int order = order_alike(x, y);
    return order ? order : order_since(x, y);
}

static int order_groups(const void *left, const void *right)
{
    return order_since(((const struct wait_group *)left)->pods[0],
                       ((const struct wait_group *)right)->pods[0]);
}

int waits_group(const struct waits *waits, struct wait_groups *ret)
{
    *ret = (struct wait_groups){.all = calloc(waits->count + 1, sizeof(*ret->all)),
                                .pods = calloc(waits->count + 1, sizeof(const struct wait *))};
    if (!ret->all || !ret->pods)
        return -1;
    for (size_t i = 0; i < waits->count; i++)
        ret->pods[i] = &waits->all[i];
    qsort(ret->pods, waits->count, sizeof(const struct wait *), order_members);
    for (size_t i = 0; i < waits->count; i++) {
        const struct gs_charge *charge = &ret->pods[i]->waiting->charge;
        if (!i || order_alike(ret->pods[i - 1], ret->pods[i]) != 0)
            ret->all[ret->count++].pods = &ret->pods[i];
        struct wait_group *group = &ret->all[ret->count - 1];
        group->count++;
        group->units += (uint64_t)charge->units * charge->gpu_count;
    }
    qsort(ret->all, ret->count, sizeof(*ret->all), order_groups);
    return 0;
}

void wait_groups_release(struct wait_groups *groups)
{
    free(groups->all);
    free(groups->pods);
    *groups = (struct wait_groups){0};
}

/* ---- in words: for a table, a document, a page ---- */

static void put_reason(const struct waits *waits, const struct wait *wait, char to[WAIT_TEXT_BYTES])
{
    const char *scheduler = snapshot_scheduler_of(&wait->waiting->pod);
    char taint[VERDICT_TAINT_BYTES];
    const char *own = verdict_own(&wait->waiting->pod);
    if (own)
        snprintf(to, WAIT_TEXT_BYTES, "%s", own);
    else if (wait->other_scheduler && wait->obstacle == GS_OBSTACLE_NONE)
        snprintf(to, WAIT_TEXT_BYTES,
                 "its schedulerName is %.200s; pods with GPU memory are scheduled by %.200s",
                 scheduler, waits->scheduler);
    else if (wait->obstacle == GS_OBSTACLE_NONE && wait->waiting->pod.said[0])
        snprintf(to, WAIT_TEXT_BYTES,
                 "%" PRIu32 " %s enough GPU memory and CPU; kube-scheduler reports: %s", wait->fits,
                 wait->fits == 1 ? "node has" : "nodes have", wait->waiting->pod.said);
    else if (wait->obstacle == GS_OBSTACLE_NONE)
        snprintf(to, WAIT_TEXT_BYTES,
                 "%" PRIu32 " %s enough GPU memory and CPU; check taints, affinity, quota, and "
                 "whether scheduler %.200s is running",
                 wait->fits, wait->fits == 1 ? "node has" : "nodes have", scheduler);
    else
        snprintf(to, WAIT_TEXT_BYTES, "%s%s%s",
                 wait->never && !wait->broken ? "fits on no GPU of this cluster: " : "",
                 verdict_text(wait->obstacle, wait->reason), verdict_taint(&wait->group, taint));
}

void waits_asks(const struct gs_pod *pod, char to[WAIT_SHORT_BYTES])
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, pod);
    if (pod->gpu_units_overflow)
        snprintf(to, WAIT_SHORT_BYTES, "too many");
    else if (ask.broken && !pod->node_name[0])
        snprintf(to, WAIT_SHORT_BYTES, "%" PRIu32 " total", gs_pod_total_units(pod));
    else if (ask.gpu_count > 1)
        snprintf(to, WAIT_SHORT_BYTES, "%" PRIu32 " x%" PRIu32, ask.units, ask.gpu_count);
    else if (ask.cores_pct)
        snprintf(to, WAIT_SHORT_BYTES, "%" PRIu32 ", %" PRIu32 "%%", ask.units, ask.cores_pct);
    else
        snprintf(to, WAIT_SHORT_BYTES, "%" PRIu32, ask.units);
}

void waits_since(int64_t from_s, int64_t now_s, char to[WAIT_SHORT_BYTES])
{
    static const struct {
        int64_t below_s, of_s;
        char letter;
    } steps[] = {{120, 1, 's'}, {3 * 3600, 60, 'm'}, {48 * 3600, 3600, 'h'}, {0, 86400, 'd'}};
    int64_t age_s = now_s > from_s ? now_s - from_s : 0;
    size_t i = 0;
    while (steps[i].below_s && age_s >= steps[i].below_s)
        i++;
    if (from_s)
        snprintf(to, WAIT_SHORT_BYTES, "%" PRId64 "%c", age_s / steps[i].of_s, steps[i].letter);
    else
        snprintf(to, WAIT_SHORT_BYTES, "-");
}

void waits_row(const struct waits *waits, const struct wait *wait, int64_t now_s,
               struct wait_texts *texts, struct wait_row *ret)
{
    const struct gs_pod *pod = &wait->waiting->pod;
    const struct verdict_group *near = &wait->group;
    *ret = (struct wait_row){
        .ns = pod->ns,
        .name = pod->name,
        .owner = pod->owner[0] ? pod->owner : NULL,
        .uid = pod->uid,
        .scheduler = snapshot_scheduler_of(pod),
        .said = pod->said[0] ? pod->said : NULL,
        .label = pod->gated ? "gated" : verdict_label(wait->obstacle, wait->reason),
        .reason = texts->reason,
        .asks = texts->asks,
        .since = texts->since,
        .both = texts->both,
        .pods = 1,
        .units = wait->ask.units,
        .gpus = wait->ask.gpu_count,
        .cores_pct = wait->ask.cores_pct ? wait->ask.cores_pct : COLUMN_UNKNOWN,
        .created_s = pod->created_s > 0 ? (uint64_t)pod->created_s : COLUMN_UNKNOWN,
        .never = wait->never,
        .fits = wait->fits,
        .near_node = near->nearest,
        .near_gpu = near->nearest ? near->nearest_gpu : COLUMN_UNKNOWN,
        .near_free = near->nearest ? near->nearest_free_units : COLUMN_UNKNOWN,
        .near_missing = near->missing_units ? near->missing_units : COLUMN_UNKNOWN,
    };
    put_reason(waits, wait, texts->reason);
    verdict_closest(&wait->group, texts->nearest);
    snprintf(texts->both, sizeof(texts->both), "%s%s%s", texts->reason,
             texts->nearest[0] ? "; closest: " : "", texts->nearest);
    waits_asks(pod, texts->asks);
    waits_since(pod->created_s, now_s, texts->since);
}

void waits_sum(const struct waits *waits, char to[WAIT_TEXT_BYTES])
{
    char memory[AMOUNT_TEXT_BYTES];
    int len = snprintf(to, WAIT_TEXT_BYTES, "%zu pending %s, %s requested", waits->count,
                       waits->count == 1 ? "pod" : "pods",
                       amount_of_memory(waits->units, waits->unit, memory));
    if (waits->never)
        snprintf(to + len, WAIT_TEXT_BYTES - (size_t)len,
                 "; %" PRIu32 " of them %s on no GPU of this cluster", waits->never,
                 waits->never == 1 ? "fits" : "fit");
}

/* ---- tables and documents ---- */

#define AT(member) offsetof(struct wait_row, member)

static const struct column columns[] = {
    {"NAMESPACE", "namespace", COLUMN_TEXT, AT(ns), 1},
    {"POD", "name", COLUMN_TEXT, AT(name), 1},
    {"OWNER", "owner", COLUMN_TEXT, AT(owner), 1, COLUMN_WIDE},
    {"UID", "uid", COLUMN_TEXT, AT(uid), 1, COLUMN_DOCUMENT},
    {"PODS", NULL, COLUMN_NUMBER, AT(pods), 1},
    {"REQUEST()", NULL, COLUMN_PROSE, AT(asks), 1},
    {"UNITS", "requestedGPU", COLUMN_NUMBER, AT(units), 1, COLUMN_DOCUMENT},
    {"COMPUTE", "requestedCorePercentage", COLUMN_NUMBER, AT(cores_pct), 1, COLUMN_DOCUMENT},
    {"GPUS", "gpuCount", COLUMN_NUMBER, AT(gpus), 1, COLUMN_DOCUMENT},
    {"CREATED", "createdUnix", COLUMN_NUMBER, AT(created_s), 1, COLUMN_DOCUMENT},
    {"AGE", NULL, COLUMN_TEXT, AT(since), 1},
    {"SCHEDULER", "schedulerName", COLUMN_TEXT, AT(scheduler), 1, COLUMN_WIDE},
    {"REASON", NULL, COLUMN_PROSE, AT(both), 1},
    {"MESSAGE", "message", COLUMN_PROSE, AT(reason), 1, COLUMN_DOCUMENT},
    {"LABEL", "reason", COLUMN_TEXT, AT(label), 1, COLUMN_DOCUMENT},
    {"SCHEDULER-MESSAGE", "schedulerMessage", COLUMN_PROSE, AT(said), 1, COLUMN_DOCUMENT},
    {"UNRESOLVABLE", "unresolvable", COLUMN_BOOL, AT(never), 1, COLUMN_DOCUMENT},
    {"FITTING-NODES", "fittingNodeCount", COLUMN_NUMBER, AT(fits), 1, COLUMN_DOCUMENT},
    {"CLOSEST", "closest.node", COLUMN_TEXT, AT(near_node), 1, COLUMN_DOCUMENT},
    {"CLOSEST-GPU", "closest.gpu", COLUMN_NUMBER, AT(near_gpu), 1, COLUMN_DOCUMENT},
    {"CLOSEST-FREE", "closest.freeGPU", COLUMN_NUMBER, AT(near_free), 1, COLUMN_DOCUMENT},
    {"MISSING", "closest.missingGPU", COLUMN_NUMBER, AT(near_missing), 1, COLUMN_DOCUMENT},
};

static const struct rows form = ROWS_OF(columns, struct wait_row);

static struct rows rows_of(const struct waits *waits)
{
    struct rows rows = form;
    rows.unit = waits->unit;
    return rows;
}

void waits_check(const char *command, const struct output *output)
{
    rows_check(&form, command, output);
}

/* Rows and their texts, which *caller frees*: pods of one owner that are alike, or each, at most so
 * many. *ret_count: how many there are. -1: out of memory. */
static int make_rows(const struct waits *waits, bool all, size_t most, int64_t now_s,
                     struct rows *rows, struct wait_texts **ret_texts, size_t *ret_count)
{
    struct wait_groups groups;
    int result = waits_group(waits, &groups);
    const size_t count = all ? waits->count : groups.count;
    *rows = rows_of(waits);
    rows->count = count < most ? count : most;
    struct wait_row *to = rows->all = calloc(rows->count + 1, sizeof(*to));
    struct wait_texts *texts = *ret_texts = calloc(rows->count + 1, sizeof(*texts));
    *ret_count = count;
    if (!to || !texts)
        result = -1;
    for (size_t i = 0; result == 0 && i < rows->count; i++) {
        const struct wait *wait = all ? &waits->all[i] : groups.all[i].pods[0];
        waits_row(waits, wait, now_s, &texts[i], &to[i]);
        to[i].pods = all ? 1 : groups.all[i].count;
        if (to[i].pods > 1)
            to[i].name = to[i].owner;
    }
    wait_groups_release(&groups);
    return result;
}

void waits_table(struct doc *doc, const struct table *table, const struct waits *waits, bool all,
                 int64_t now_s)
{
    _cleanup_free_ struct wait_texts *texts = NULL;
    struct rows rows;
    size_t count;
    if (make_rows(waits, all, table->most, now_s, &rows, &texts, &count) == 0)
        rows_table(doc, table, &rows, count);
    else
        doc->failed = true;
    free(rows.all);
}

int waits_print(const struct waits *waits, const struct output *output, bool all,
                const struct terminal *terminal, int64_t now_s)
{
    _cleanup_free_ struct wait_texts *texts = NULL;
    char sum[WAIT_TEXT_BYTES];
    struct rows rows;
    size_t count;
    if (!waits->count)
        return 0;
    all |= output->format == OUTPUT_CSV;
    int result = make_rows(waits, all, SIZE_MAX, now_s, &rows, &texts, &count);
    if (result == 0 && output->sort) /* else the oldest first */
        rows_sort(&rows, output, NULL);
    if (result == 0)
        result = rows_print(&rows, output, terminal);
    free(rows.all);
    if (result < 0)
        return -1;
    waits_sum(waits, sum);
    if (output->format != OUTPUT_CSV)
        puts(sum);
    return 0;
}

void waits_document(struct doc *doc, const struct waits *waits, const struct output *output)
{
    const struct rows rows = rows_of(waits);
    struct wait_texts texts;
    struct wait_row row;
    doc_object(doc, "pending");
    doc_number(doc, "podCount", waits->count);
    doc_number(doc, "requestedGPU", waits->units);
    doc_number(doc, "unresolvablePodCount", waits->never);
    doc_list(doc, "items");
    GS_EACH_OF (wait, waits->all, waits->count) {
        waits_row(waits, wait, 0, &texts, &row);
        doc_object(doc, NULL);
        rows_members(doc, &rows, output, &row);
        doc_end(doc);
    }
    doc_end(doc);
    doc_end(doc);
}
