/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which pods ---- */

static int order_keys(const void *left, const void *right)
{
    return strcmp(((const struct wait *)left)->key, ((const struct wait *)right)->key);
}

int waits_order(const struct gs_pod *a, const struct gs_pod *b)
{
    if (a->created_s != b->created_s)
        return a->created_s < b->created_s ? -1 : 1;
    int order = strcmp(a->ns, b->ns);
    return order ? order : strverscmp(a->name, b->name);
}

static int order_since(const void *left, const void *right)
{
    return waits_order(((const struct wait *)left)->pod, ((const struct wait *)right)->pod);
}

/* ---- why ---- */

static void judge(const struct snapshot *snapshot, struct wait *wait)
{
    struct verdict verdict;
    verdict_of(snapshot, &wait->ask, &verdict);
    wait->fits = verdict.groups[GS_OBSTACLE_NONE].nodes;
    wait->group = *verdict_nearest(&verdict);
    wait->never = gs_reason_unresolvable(wait->group.reason);
}

static void judge_all(const struct snapshot *snapshot, struct waits *waits)
{
    for (size_t i = 0; i < waits->count; i++) {
        struct wait *wait = &waits->all[i];
        const struct wait *before = wait - 1;
        if (i && order_keys(wait, before) == 0) {
            struct wait same = *before;
            same.pod = wait->pod;
            same.ask = wait->ask;
            *wait = same;
        } else {
            judge(snapshot, wait);
            wait->broken = wait->ask.broken && wait->ask.broken != GS_REASON_GPU_TOO_SMALL;
            if (wait->broken)
                wait->group = (struct verdict_group){wait->group.obstacle, wait->group.reason,
                                                     wait->group.nodes};
        }
    }
}

/* ---- in words ---- */

static const char *reason_of(struct gs_arena *texts, const struct waits *waits,
                             const struct wait *wait)
{
    const struct gs_pod *pod = wait->pod;
    const char *scheduler = snapshot_scheduler_of(pod), *own = verdict_own(pod);
    const char *has = wait->fits == 1 ? "node has" : "nodes have";
    if (own)
        return own;
    if (wait->group.obstacle != GS_OBSTACLE_NONE)
        return gs_arena_printf(
            texts, "%s%s", wait->never && !wait->broken ? "fits on no GPU of this cluster: " : "",
            verdict_reason(texts, &wait->group));
    if (wait->other_scheduler)
        return gs_arena_printf(texts,
                               "its schedulerName is %s; pods with GPU memory are scheduled by %s",
                               scheduler, waits->scheduler);
    if (pod->said[0])
        return gs_arena_printf(
            texts, "%" PRIu32 " %s enough GPU memory and CPU; kube-scheduler reports: %s",
            wait->fits, has, pod->said);
    return gs_arena_printf(texts,
                           "%" PRIu32 " %s enough GPU memory and CPU; check taints, affinity, "
                           "quota, and whether scheduler %s is running",
                           wait->fits, has, scheduler);
}

static void word(struct waits *waits, struct wait *wait)
{
    const char *closest = verdict_closest(&waits->texts, &wait->group);
    wait->request = waits_request(&waits->texts, wait->pod);
    wait->message = wait->words = reason_of(&waits->texts, waits, wait);
    if (closest)
        wait->words = gs_arena_printf(&waits->texts, "%s; closest: %s", wait->message, closest);
}

const char *waits_request(struct gs_arena *arena, const struct gs_pod *pod)
{
    struct gs_ask ask;
    gs_ask_of_pod(&ask, pod);
    if (pod->gpu_units_overflow)
        return "too many";
    if (ask.broken && !pod->node_name[0])
        return gs_arena_printf(arena, "%" PRIu32 " total", gs_pod_total_units(pod));
    if (ask.gpu_count > 1)
        return gs_arena_printf(arena, "%" PRIu32 " x%" PRIu32, ask.units, ask.gpu_count);
    if (ask.cores_pct)
        return gs_arena_printf(arena, "%" PRIu32 ", %" PRIu32 "%%", ask.units, ask.cores_pct);
    return gs_arena_printf(arena, "%" PRIu32, ask.units);
}

const char *waits_age(struct gs_arena *arena, int64_t from_s, int64_t now_s)
{
    static const struct {
        int64_t below_s, of_s;
        char letter;
    } steps[] = {{120, 1, 's'}, {3 * 3600, 60, 'm'}, {48 * 3600, 3600, 'h'}, {0, 86400, 'd'}};
    int64_t age_s = now_s > from_s ? now_s - from_s : 0;
    size_t i = 0;
    while (steps[i].below_s && age_s >= steps[i].below_s)
        i++;
    return from_s ? gs_arena_printf(arena, "%" PRId64 "%c", age_s / steps[i].of_s, steps[i].letter)
                  : NULL;
}

void waits_sum(const struct waits *waits, char to[WAIT_TEXT_BYTES])
{
    int len = snprintf(to, WAIT_TEXT_BYTES, "%zu pending %s, %" PRIu64 " %s requested",
                       waits->count, waits->count == 1 ? "pod" : "pods", waits->units, waits->unit);
    if (waits->never)
        snprintf(to + len, WAIT_TEXT_BYTES - (size_t)len,
                 "; %" PRIu32 " of them %s on no GPU of this cluster", waits->never,
                 waits->never == 1 ? "fits" : "fit");
}

/* ---- pods that are alike ---- */

static const char *maker_of(const struct wait *wait)
{
    const struct gs_pod *pod = wait->pod;
    return pod->owner[0] ? pod->owner : pod->name;
}

static int order_alike(const struct wait *x, const struct wait *y)
{
    int order = strcmp(x->pod->ns, y->pod->ns);
    if (order == 0)
        order = strcmp(maker_of(x), maker_of(y));
    if (order == 0)
        order = strcmp(x->request, y->request);
    return order ? order : strcmp(x->words, y->words);
}

static int order_members(const void *left, const void *right)
{
    int order = order_alike(left, right);
    return order ? order : order_since(left, right);
}

/* Counts pods of one owner, request and reason at the oldest of them. */
static void count_groups(struct waits *waits)
{
    struct wait *first = NULL;
    qsort(waits->all, waits->count, sizeof(*waits->all), order_members);
    GS_EACH_OF (wait, waits->all, waits->count) {
        first = first && order_alike(first, wait) == 0 ? first : wait;
        wait->pods = 0;
        first->pods++;
    }
    qsort(waits->all, waits->count, sizeof(*waits->all), order_since);
}

/* ---- all of them, or some ---- */

static void add(struct waits *waits, const struct wait *wait)
{
    struct gs_charge charge;
    gs_pod_charge(wait->pod, &charge);
    if (waits->all)
        waits->all[waits->count] = *wait;
    waits->count++;
    waits->never += wait->never;
    if (!wait->pod->gpu_units_overflow)
        waits->units += (uint64_t)charge.units * charge.gpu_count;
}

void waits_count(const struct snapshot *snapshot, const char *ns, const char *unit,
                 struct waits *ret)
{
    ret->unit = unit;
    EACH_POD (pod, snapshot->waiting) {
        if (!ns || strcmp(pod->pod->ns, ns) == 0)
            add(ret, &(struct wait){.pod = pod->pod});
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
    GS_EACH_OF (wait, ret->all, ret->count) {
        const struct gs_pod *pod = wait->pod;
        gs_ask_of_pod(&wait->ask, pod);
        wait->key = verdict_key(&ret->texts, &wait->ask, pod);
        if (!wait->key)
            return gs_fail_nomem(err);
    }
    qsort(ret->all, ret->count, sizeof(*ret->all), order_keys);
    judge_all(snapshot, ret);
    GS_EACH_OF (wait, ret->all, ret->count) {
        wait->other_scheduler = snapshot_is_elsewhere(snapshot, wait->pod);
        ret->never += wait->never;
        word(ret, wait);
        if (!wait->request || !wait->message || !wait->words)
            return gs_fail_nomem(err);
    }
    count_groups(ret);
    return 0;
}

void waits_release(struct waits *waits)
{
    free(waits->all);
    gs_arena_release(&waits->texts);
    *waits = (struct waits){0};
}

int waits_narrow(const struct waits *waits, bool (*means)(const void *ctx, const struct wait *wait),
                 const void *ctx, struct waits *ret)
{
    *ret = (struct waits){.unit = waits->unit, .scheduler = waits->scheduler};
    ret->all = calloc(waits->count + 1, sizeof(*ret->all));
    if (!ret->all)
        return -1;
    GS_EACH_OF (wait, waits->all, waits->count) {
        if (means(ctx, wait))
            add(ret, wait);
    }
    count_groups(ret);
    return 0;
}

/* ---- rows ---- */

static void write_row(struct sheet *to, const struct wait *wait, uint64_t pods, int64_t now_s)
{
    const struct gs_pod *pod = wait->pod;
    const struct verdict_group *near = &wait->group;
    const uint64_t unknown = COLUMN_UNKNOWN;
    sheet_row(to);
    column_text(to, COLUMN_TEXT, "NAMESPACE", "namespace", COLUMN_ALWAYS, pod->ns);
    column_text(to, COLUMN_TEXT, "POD", "name", COLUMN_ALWAYS, pods > 1 ? pod->owner : pod->name);
    column_text(to, COLUMN_TEXT, "OWNER", "owner", COLUMN_WIDE, pod->owner);
    column_text(to, COLUMN_TEXT, "UID", "uid", COLUMN_DOCUMENT, pod->uid);
    column_number(to, COLUMN_NUMBER, "PODS", NULL, COLUMN_ALWAYS, pods);
    column_text(to, COLUMN_PROSE, "REQUEST()", NULL, COLUMN_ALWAYS, wait->request);
    column_number(to, COLUMN_NUMBER, "UNITS", "requestedGPU", COLUMN_DOCUMENT, wait->ask.units);
    column_number(to, COLUMN_NUMBER, "COMPUTE", "requestedCorePercentage", COLUMN_DOCUMENT,
                  wait->ask.cores_pct ? wait->ask.cores_pct : unknown);
    column_number(to, COLUMN_NUMBER, "GPUS", "gpuCount", COLUMN_DOCUMENT, wait->ask.gpu_count);
    column_number(to, COLUMN_NUMBER, "CREATED", "createdUnix", COLUMN_DOCUMENT,
                  pod->created_s > 0 ? (uint64_t)pod->created_s : unknown);
    column_text(to, COLUMN_TEXT, "AGE", NULL, COLUMN_ALWAYS,
                waits_age(&to->texts, pod->created_s, now_s));
    column_text(to, COLUMN_TEXT, "SCHEDULER", "schedulerName", COLUMN_WIDE,
                snapshot_scheduler_of(pod));
    column_text(to, COLUMN_PROSE, "REASON", NULL, COLUMN_ALWAYS, wait->words);
    column_text(to, COLUMN_PROSE, "MESSAGE", "message", COLUMN_DOCUMENT, wait->message);
    column_text(to, COLUMN_TEXT, "LABEL", "reason", COLUMN_DOCUMENT,
                pod->gated ? "gated" : verdict_label(&wait->group));
    column_text(to, COLUMN_PROSE, "SCHEDULER-MESSAGE", "schedulerMessage", COLUMN_DOCUMENT,
                pod->said);
    column_number(to, COLUMN_BOOL, "UNRESOLVABLE", "unresolvable", COLUMN_DOCUMENT, wait->never);
    column_number(to, COLUMN_NUMBER, "FITTING-NODES", "fittingNodeCount", COLUMN_DOCUMENT,
                  wait->fits);
    verdict_closest_columns(to, near);
}

/* Returns how many there are. */
static size_t write_rows(struct sheet *to, const struct waits *waits, bool all, size_t most,
                         int64_t now_s)
{
    size_t count = 0;
    to->unit = waits->unit;
    GS_EACH_OF (wait, waits->all, waits->count) {
        const uint64_t pods = all ? 1 : wait->pods;
        if (pods && count++ < most)
            write_row(to, wait, pods, now_s);
    }
    return count;
}

void waits_check(const char *command, const struct output *output)
{
    struct sheet sheet = {0};
    struct gs_pod none = {.priority = 0};
    gs_pod_reset(&none);
    write_row(&sheet, &(struct wait){.pod = &none}, 1, 0);
    sheet_check(&sheet, command, output);
}

void waits_table(struct doc *doc, const struct table *table, const struct waits *waits, bool all,
                 int64_t now_s)
{
    struct sheet sheet = {0};
    const size_t count = write_rows(&sheet, waits, all, table->most, now_s);
    sheet_table(doc, table, &sheet, count);
}

int waits_print(const struct waits *waits, const struct output *output, bool all,
                const struct terminal *terminal, int64_t now_s)
{
    struct sheet sheet = {0};
    char sum[WAIT_TEXT_BYTES];
    if (!waits->count)
        return 0;
    write_rows(&sheet, waits, all || output->format == OUTPUT_CSV, SIZE_MAX, now_s);
    if (output->sort) /* else the oldest first */
        sheet_sort(&sheet, output, NULL);
    if (sheet_print(stdout, &sheet, output, terminal) < 0)
        return -1;
    waits_sum(waits, sum);
    if (output->format != OUTPUT_CSV)
        puts(sum);
    return 0;
}

void waits_document(struct doc *doc, const struct waits *waits, const struct output *output)
{
    doc_object(doc, "pending");
    doc_number(doc, "podCount", waits->count);
    doc_number(doc, "requestedGPU", waits->units);
    doc_number(doc, "unresolvablePodCount", waits->never);
    doc_list(doc, "items");
    GS_EACH_OF (wait, waits->all, waits->count) {
        struct sheet sheet = {0};
        write_row(&sheet, wait, 1, 0);
        doc_object(doc, NULL);
        sheet_members(doc, &sheet, output);
        doc_end(doc);
    }
    doc_end(doc);
    doc_end(doc);
}
