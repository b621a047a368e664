/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/budgets.h"

#include "pod_reader.h"

static void read_selector(struct gs_reader *reader, const char *what, void *to)
{
    gs_read_label_selector((struct gs_pod_reader *)reader, &((struct gs_budget *)to)->selector);
}

static void read_disrupted(struct gs_reader *reader, const char *what, void *to)
{
    struct gs_budget *budget = to;
    struct gs_scan_text key;
    if (!gs_read_object(reader, what))
        return;
    while (gs_scan_key(&reader->scan, &key)) {
        const char **name = gs_read_append(reader, &budget->disrupted, &budget->disrupted_count,
                                           sizeof(*name), what, UINT32_MAX);
        if (!name)
            return;
        *name = gs_scan_string_dup(reader->arena, key);
        if (!*name)
            gs_reader_stop(reader, GS_ENOMEM, what, "");
        gs_scan_skip(&reader->scan);
    }
}

#define MEMBER(key, what, field) GS_MEMBER(struct gs_budget, key, what, field)

static const struct gs_member name_members[] = {
    GS_OBJECT("metadata", "metadata", GS_MEMBERS(MEMBER("namespace", "metadata.namespace", ns))),
    {0},
};

static const struct gs_member budget_members[] = {
    GS_OBJECT("spec", "spec", GS_MEMBERS(GS_CALL("selector", "selector", read_selector))),
    GS_OBJECT("status", "status",
              GS_MEMBERS(MEMBER("disruptionsAllowed", "status.disruptionsAllowed", allowed),
                         GS_CALL("disruptedPods", "status.disruptedPods", read_disrupted))),
    {0},
};

/* Of the same namespace as the one before. */
static bool follows(const struct gs_budget *budget, const struct gs_budget *last)
{
    return last && strcmp(last->ns, budget->ns) == 0;
}

/* last: the one before; where that is an excess, nothing more is kept of its namespace. */
static void read_budget(struct gs_pod_reader *pr, struct gs_budget *budget,
                        const struct gs_budget *last)
{
    static const char what[] = "PodDisruptionBudget";
    const struct gs_scan here = pr->reader.scan;
    gs_read_entry(&pr->reader, what, name_members, budget);
    if (pr->reader.scan.failed || (follows(budget, last) && last->excess))
        return;
    pr->reader.scan = here;
    gs_read_entry(&pr->reader, what, budget_members, budget);
}

/* What asking whether it covers a pod takes. */
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
    struct gs_budget *wider =
        same && last->excess
            ? NULL
            : gs_read_grow(&pr.reader, *all, *count, sizeof(*wider), "items", UINT32_MAX);
    if (gs_reader_leave(&pr.reader, from, err) < 0)
        return -1;
    if (!wider)
        return 0;
    while (one.excess && *count && follows(&one, &wider[*count - 1]))
        --*count;
    wider[*count] = one;
    *all = wider;
    ++*count;
    return one.excess;
}
