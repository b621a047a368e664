/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wrap.h"
#include "inspect/amount.h"
#include "inspect/grid.h"

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
    for (size_t i = 0; i < ret->count; i++) {
        struct wait *wait = &ret->all[i];
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
    COMPARE(x->group.nearest, y->group.nearest);
    COMPARE(x->group.nearest_gpu, y->group.nearest_gpu);
    return 0;
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
    if (wait->other_scheduler && wait->obstacle == GS_OBSTACLE_NONE)
        snprintf(to, WAIT_TEXT_BYTES,
                 "its schedulerName is %.200s; pods with GPU memory are placed by %.200s",
                 scheduler, waits->scheduler);
    else if (wait->obstacle == GS_OBSTACLE_NONE)
        snprintf(to, WAIT_TEXT_BYTES,
                 "GPU memory and CPU would do on %" PRIu32
                 " %s: taints, affinity, quota, or no scheduler of the name %.200s",
                 wait->fits, wait->fits == 1 ? "node" : "nodes", scheduler);
    else
        snprintf(to, WAIT_TEXT_BYTES, "%s%s",
                 wait->never && !wait->broken ? "fits no GPU of this cluster: " : "",
                 verdict_text(wait->obstacle, wait->reason));
}

static void put_nearest(const struct wait *wait, char to[WAIT_TEXT_BYTES])
{
    const struct verdict_group *group = &wait->group;
    if (group->missing_units)
        snprintf(to, WAIT_TEXT_BYTES, "%s GPU%" PRIu32 ": %" PRIu32 " free, %" PRIu32 " missing",
                 group->nearest, group->nearest_gpu, group->nearest_free_units,
                 group->missing_units);
    else
        snprintf(to, WAIT_TEXT_BYTES, "%s", group->nearest ? group->nearest : "");
}

void waits_asks(const struct gs_pod *pod, char to[WAIT_SHORT_BYTES])
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, pod);
    if (ask.broken && !pod->node_name[0])
        snprintf(to, WAIT_SHORT_BYTES, "%" PRIu32 " in all", gs_pod_total_units(pod));
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
               struct wait_row *ret)
{
    const struct gs_pod *pod = &wait->waiting->pod;
    ret->label = verdict_label(wait->obstacle, wait->reason);
    put_reason(waits, wait, ret->reason);
    put_nearest(wait, ret->nearest);
    waits_asks(pod, ret->asks);
    waits_since(pod->created_s, now_s, ret->since);
}

void waits_sum(const struct waits *waits, char to[WAIT_TEXT_BYTES])
{
    char memory[AMOUNT_TEXT_BYTES];
    int len = snprintf(to, WAIT_TEXT_BYTES, "%zu %s for %s", waits->count,
                       waits->count == 1 ? "pod waits" : "pods wait",
                       amount_of_memory(waits->units, waits->unit, memory));
    if (waits->never)
        snprintf(to + len, WAIT_TEXT_BYTES - (size_t)len,
                 "; %" PRIu32 " of them %s no GPU of this cluster", waits->never,
                 waits->never == 1 ? "fits" : "fit");
}

/* ---- the table ---- */

/* Columns of a name in a narrow table; a terminal without room for the least breaks the lines
 * itself. */
enum { NAME_LEAST = 10, NAME_MOST = 253 };

/* A row for each; narrow: why is told below it, and names have at most cap columns. */
struct shape {
    const struct waits *waits;
    int64_t now_s;
    bool colour, narrow;
    size_t cap;
};

static void put_name(struct grid *grid, const struct shape *shape, const char *name)
{
    char text[NAME_MOST + 1];
    wrap_shorten(name, text, shape->cap + 1);
    grid_cell(grid, GRID_PLAIN, "%s", text);
}

static void put_row(struct grid *grid, const struct shape *shape, const struct wait *wait)
{
    struct wait_row row;
    waits_row(shape->waits, wait, shape->now_s, &row);
    grid_row(grid);
    put_name(grid, shape, wait->waiting->pod.ns);
    put_name(grid, shape, wait->waiting->pod.name);
    grid_cell(grid, GRID_PLAIN, "%s", row.asks);
    grid_cell(grid, GRID_PLAIN, "%s", row.since);
    if (shape->narrow)
        return;
    grid_cell(grid, GRID_PLAIN, "%s", row.nearest[0] ? row.nearest : "-");
    grid_cell(grid, wait->never ? GRID_BAD : GRID_PLAIN, "%s", row.reason);
}

/* *caller frees*; NULL: out of memory. */
static char *table_of(const struct shape *shape)
{
    struct grid grid;
    grid_open(&grid, shape->colour);
    grid_column(&grid, false, "NAMESPACE");
    grid_column(&grid, false, "POD");
    grid_column(&grid, true, "ASKS(%s)", shape->waits->unit);
    grid_column(&grid, true, "SINCE");
    if (!shape->narrow) {
        grid_column(&grid, false, "NEAREST MISS");
        grid_column(&grid, false, "REASON");
    }
    for (size_t i = 0; i < shape->waits->count; i++)
        put_row(&grid, shape, &shape->waits->all[i]);
    char *text = grid_text(&grid);
    grid_close(&grid);
    return text;
}

static void put_why(const struct shape *shape, const struct wait *wait, uint32_t width)
{
    struct wait_row row;
    char text[sizeof(row.reason) + sizeof(row.nearest) + 16];
    waits_row(shape->waits, wait, shape->now_s, &row);
    snprintf(text, sizeof(text), "%s%s%s", row.reason, row.nearest[0] ? "; nearest: " : "",
             row.nearest);
    put_words(shape->colour && wait->never ? GRID_BAD : GRID_PLAIN, 4, width, text);
}

/* Each line of the table is one pod, behind its head. */
static int print_narrow(struct shape *shape, uint32_t width)
{
    _cleanup_free_ char *table = NULL;
    shape->narrow = true;
    for (shape->cap = NAME_MOST;; shape->cap -= shape->cap / 8) {
        table = table_of(shape);
        if (!table)
            return -1;
        if (text_width(table) <= width || shape->cap <= NAME_LEAST)
            break;
        free(table);
    }
    const char *line = table;
    for (size_t i = 0; line; i++) {
        const char *end = strchrnul(line, '\n');
        printf("%.*s\n", (int)(end - line), line);
        if (i)
            put_why(shape, &shape->waits->all[i - 1], width);
        line = end[0] && end[1] ? end + 1 : NULL;
    }
    return 0;
}

int waits_print(const struct waits *waits, const struct terminal *terminal, int64_t now_s)
{
    struct shape shape = {
        .waits = waits, .now_s = now_s, .colour = terminal->colour, .cap = NAME_MOST};
    char sum[WAIT_TEXT_BYTES];
    if (!waits->count)
        return 0;
    _cleanup_free_ char *text = table_of(&shape);
    if (!text)
        return -1;
    if (!terminal->screen || !terminal->width || text_width(text) <= terminal->width)
        fputs(text, stdout);
    else if (print_narrow(&shape, terminal->width) < 0)
        return -1;
    waits_sum(waits, sum);
    puts(sum);
    return 0;
}

/* ---- the document ---- */

static void document_nearest(struct doc *doc, const struct wait *wait)
{
    const struct verdict_group *group = &wait->group;
    if (!group->nearest)
        return;
    doc_object(doc, "nearest");
    doc_text(doc, "node", group->nearest);
    doc_number(doc, "id", group->nearest_gpu);
    doc_number(doc, "freeGPU", group->nearest_free_units);
    if (group->missing_units)
        doc_number(doc, "missingGPU", group->missing_units);
    doc_end(doc);
}

static void document_wait(struct doc *doc, const struct waits *waits, const struct wait *wait)
{
    const struct gs_pod *pod = &wait->waiting->pod;
    struct wait_row row;
    waits_row(waits, wait, 0, &row);
    doc_object(doc, NULL);
    doc_text(doc, "name", pod->name);
    doc_text(doc, "namespace", pod->ns);
    doc_text(doc, "uid", pod->uid);
    if (pod->owner[0])
        doc_text(doc, "owner", pod->owner);
    verdict_ask_document(doc, &wait->ask);
    if (pod->created_s > 0)
        doc_number(doc, "createdUnix", (uint64_t)pod->created_s);
    doc_text(doc, "schedulerName", snapshot_scheduler_of(pod));
    doc_text(doc, "reason", row.label);
    doc_text(doc, "message", row.reason);
    doc_bool(doc, "never", wait->never);
    doc_number(doc, "fittingNodes", wait->fits);
    document_nearest(doc, wait);
    doc_end(doc);
}

void waits_document(struct doc *doc, const struct waits *waits)
{
    doc_object(doc, "waiting");
    doc_number(doc, "pods", waits->count);
    doc_number(doc, "requestedGPU", waits->units);
    doc_number(doc, "never", waits->never);
    doc_list(doc, "items");
    for (size_t i = 0; i < waits->count; i++)
        document_wait(doc, waits, &waits->all[i]);
    doc_end(doc);
    doc_end(doc);
}
