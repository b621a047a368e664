/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which pods ---- */

static int compare_text(struct gs_slice a, struct gs_slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.at, b.at, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

#define COMPARE(a, b)                                                                              \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

/* Equal: the verdict about one is that about the other. Replicas of a Deployment are, and so are
 * most pods of a cluster. A pod with a hold is alone: its own does not stand in its way. */
static int order_asks(const void *left, const void *right)
{
    const struct wait *x = left, *y = right;
    const struct gs_ask *a = &x->ask, *b = &y->ask;
    COMPARE(a->units, b->units);
    COMPARE(a->gpu_count, b->gpu_count);
    COMPARE(a->cores_pct, b->cores_pct);
    COMPARE(a->cpu_milli, b->cpu_milli);
    COMPARE(a->priority, b->priority);
    COMPARE(a->broken, b->broken);
    COMPARE(x->rules, y->rules);
    const struct gs_slice pairs[][2] = {{a->model, b->model},
                                        {a->model_deny, b->model_deny},
                                        {a->uuid, b->uuid},
                                        {a->uuid_deny, b->uuid_deny}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        int order = compare_text(pairs[i][0], pairs[i][1]);
        if (order)
            return order;
    }
    if (x->waiting->pod.nominated_node[0] || y->waiting->pod.nominated_node[0])
        return strcmp(a->uid, b->uid);
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

/* Nodes where GPUs would do come nearer than any where they do not; CPU comes free by itself. */
static const enum gs_obstacle from_near_to_far[] = {GS_OBSTACLE_NONE, GS_OBSTACLE_CPU,
                                                    GS_OBSTACLE_CORDONED, GS_OBSTACLE_NOT_READY,
                                                    GS_OBSTACLE_NO_PLUGIN};
/* Where the GPUs were not looked at. */
static const enum gs_obstacle farthest[] = {GS_OBSTACLE_TAINT, GS_OBSTACLE_AFFINITY};

static void judge(const struct snapshot *snapshot, struct wait *wait)
{
    struct verdict verdict;
    verdict_of(snapshot, &wait->ask, &verdict);
    wait->fits = verdict.other[GS_OBSTACLE_NONE].nodes;
    for (size_t i = 0; i < sizeof(from_near_to_far) / sizeof(from_near_to_far[0]); i++) {
        wait->obstacle = from_near_to_far[i];
        wait->group = verdict.other[wait->obstacle];
        if (wait->group.nodes)
            return;
    }
    wait->obstacle = GS_OBSTACLE_GPU;
    wait->reason = GS_REASON_NO_GPUS;
    for (int r = GS_FITS + 1; r < GS_REASONS; r++) {
        if (verdict.gpu[r].nodes && gs_reason_nearer((enum gs_reason)r, wait->reason))
            wait->reason = (enum gs_reason)r;
    }
    wait->group = verdict.gpu[wait->reason];
    wait->never = gs_reason_unresolvable(wait->reason);
    for (size_t i = 0; i < sizeof(farthest) / sizeof(farthest[0]) && !wait->group.nodes; i++) {
        wait->obstacle = farthest[i];
        wait->reason = GS_FITS;
        wait->never = false;
        wait->group = verdict.other[farthest[i]];
    }
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
        wait->other_scheduler = ret->scheduler && strcmp(snapshot_scheduler_of(&wait->waiting->pod),
                                                         ret->scheduler) != 0;
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
