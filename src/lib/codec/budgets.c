/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/budgets.h"

#include "pod_reader.h"

static void read_selector(struct gs_reader *reader, void *to)
{
    gs_read_label_selector((struct gs_pod_reader *)reader, &((struct gs_budget *)to)->selector);
}

static void read_disrupted(struct gs_reader *reader, void *to)
{
    struct gs_budget *budget = to;
    struct gs_scan_text key;
    if (!gs_read_object(reader))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        const char **name = gs_read_append(reader, &budget->disrupted, &budget->disrupted_count,
                                           sizeof(*name), UINT32_MAX);
        if (name)
            *name = gs_read_dup(reader, key);
        gs_scan_skip(&reader->scan);
    }
}

#define MEMBER(key, field) GS_MEMBER(struct gs_budget, key, field)

static const struct gs_member name_members[] = {
    GS_OBJECT("metadata", GS_MEMBERS(MEMBER("namespace", ns))),
    {0},
};

static const struct gs_member budget_members[] = {
    GS_OBJECT("spec", GS_MEMBERS(GS_CALL("selector", read_selector))),
    GS_OBJECT("status", GS_MEMBERS(MEMBER("disruptionsAllowed", allowed),
                                   GS_CALL("disruptedPods", read_disrupted))),
    {0},
};

/* Whether both are of the same namespace. */
static bool follows(const struct gs_budget *budget, const struct gs_budget *last)
{
    return last && strcmp(last->ns, budget->ns) == 0;
}

/* last: the previous budget. If it exceeds its namespace's limit, the rest of that namespace is
 * skipped. */
static void read_budget(struct gs_pod_reader *pr, struct gs_budget *budget,
                        const struct gs_budget *last)
{
    const struct gs_scan here = pr->reader.scan;
    gs_read_entry(&pr->reader, "[]", name_members, budget);
    if (pr->reader.scan.failed || (follows(budget, last) && last->excess))
        return;
    pr->reader.scan = here;
    gs_read_entry(&pr->reader, "[]", budget_members, budget);
}

/* The cost of matching a pod against the budget, in comparisons. */
static uint32_t work_of(const struct gs_budget *budget)
{
    uint32_t work = 8 + budget->disrupted_count + budget->selector.count;
    for (uint32_t i = 0; i < budget->selector.count; i++)
        work += budget->selector.all[i].value_count;
    return work;
}

int gs_codec_budget_take(struct gs_scan *from, struct gs_arena *arena, struct gs_budget **all,
                         uint32_t *count, struct gs_error *err)
{
    struct gs_pod_reader pr = {.reader.arena = arena};
    struct gs_budget one = {.ns = ""};
    const struct gs_budget *last = *count ? &(*all)[*count - 1] : NULL;
    gs_reader_enter(&pr.reader, from);
    read_budget(&pr, &one, last);
    const bool same = follows(&one, last);
    one.work = work_of(&one) + (same ? last->work : 0);
    one.excess = one.work > GS_BUDGETS_WORK_MAX || gs_arena_bytes(arena) > GS_BUDGETS_BYTES_MAX;
    one.allowed = one.excess ? 0 : one.allowed;
    if (gs_reader_leave(&pr.reader, from, err) < 0)
        return -1;
    if (same && last->excess)
        return 0;
    while (one.excess && *count && follows(&one, &(*all)[*count - 1]))
        --*count;
    struct gs_budget *kept = gs_read_append(&pr.reader, all, count, sizeof(*kept), UINT32_MAX);
    if (!kept)
        return gs_fail_nomem(err);
    *kept = one;
    return one.excess;
}
