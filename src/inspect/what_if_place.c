/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/cleanup.h"
#include "inspect/terminal.h"
#include "inspect/what_if.h"

/* Rounds of placing: each on the cluster as it is, with so many more nodes. */
struct round {
    struct placing *placing;
    struct gs_place on;
    uint32_t copies; /* in the snapshot now */
    bool *refused;   /* slots, by the order before and its kind */
    uint32_t slots;
    const struct order *before; /* NULL: refused is nobody's */
    bool last;                  /* verdicts are wanted */
};

/* ---- more nodes ---- */

enum { COPY_NAME_BYTES = 300 };

static void name_copy(const struct added *added, uint32_t number, char name[COPY_NAME_BYTES])
{
    snprintf(name, COPY_NAME_BYTES, "%.253s+%u", added->like, number); /* no node is called so */
}

static int have_copies(struct round *round, uint32_t count, struct gs_error *err)
{
    struct added *added = &round->placing->added;
    const struct gs_watch_sink to = snapshot_sink(&round->placing->snapshot);
    char name[COPY_NAME_BYTES];
    added->node.name = added->node.rules.name = name;
    while (round->copies < count) {
        name_copy(added, ++round->copies, name);
        if (to.node(to.ctx, &added->node) < 0)
            return gs_fail_nomem(err);
    }
    while (round->copies > count) {
        name_copy(added, round->copies--, name);
        to.node_gone(to.ctx, &added->node);
    }
    added->node.name = added->node.rules.name = added->like;
    return 0;
}

/* ---- one order ---- */

static int note_place(struct order *order, const char *node, gs_gpu_mask gpus, struct gs_error *err)
{
    for (uint32_t i = order->place_count; i-- > 0;) { /* mostly the one before */
        struct place *place = &order->places[i];
        if (place->gpus == gpus && strcmp(place->node, node) == 0) {
            place->replicas++;
            return 0;
        }
    }
    struct place *more = reallocarray(order->places, order->place_count + 1, sizeof(*more));
    if (!more)
        return gs_fail_nomem(err);
    order->places = more;
    order->places[order->place_count++] = (struct place){node, gpus, 1};
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strverscmp(x->node, y->node);
    return order ? order : (x->gpus > y->gpus) - (x->gpus < y->gpus);
}

/* Who refused one of them refuses the other. */
static bool alike(const struct order *a, const struct order *b)
{
    _cleanup_(gs_arena_release) struct gs_arena arena = {0};
    if (!a->ask.rules || !b->ask.rules || a->ask.placement != b->ask.placement)
        return false;
    const char *x = verdict_key(&arena, &a->ask, &a->pod);
    const char *y = verdict_key(&arena, &b->ask, &b->pod);
    return x && y && strcmp(x, y) == 0;
}

/* kube-scheduler tries the node where a pod is nominated first. Nobody refused a nominated pod
 * before: no other is alike. */
static bool choose(struct round *round, const struct order *order, uint32_t *ret_slot,
                   gs_gpu_mask *ret_gpus)
{
    const struct gs_hold *home = gs_ledger_find_hold(round->on.ledger, order->ask.uid);
    if (home) {
        memset(round->refused, true, round->slots);
        round->refused[home->slot] = false;
        if (gs_place_choose(&round->on, &order->ask, round->refused, ret_slot, ret_gpus))
            return true;
        memset(round->refused, false, round->slots);
    }
    return gs_place_choose(&round->on, &order->ask, round->refused, ret_slot, ret_gpus);
}

static int put(struct round *round, struct order *order, uint32_t slot, gs_gpu_mask gpus,
               struct gs_error *err)
{
    struct gs_ledger *ledger = round->on.ledger;
    if (gs_place_claim(&round->on, &order->ask, slot, gpus, err) < 0 ||
        note_place(order, gs_ledger_node_name(ledger, slot), gpus, err) < 0)
        return -1;
    order->placed++;
    gs_ledger_release_hold(ledger, order->ask.uid);
    return 0;
}

static int place(struct round *round, struct order *order, struct gs_error *err)
{
    const struct order *before = round->before;
    const bool same = before && alike(before, order);
    uint32_t slot;
    gs_gpu_mask gpus;
    if (!same)
        memset(round->refused, false, round->slots);
    round->before = order;
    while (order->placed < order->replicas && choose(round, order, &slot, &gpus)) {
        if (put(round, order, slot, gpus, err) < 0)
            return -1;
    }
    if (order->placed < order->replicas && round->last) {
        if (same && before->placed < before->replicas)
            order->verdict = before->verdict;
        else
            verdict_of(&round->placing->snapshot, &order->ask, &order->verdict);
    }
    if (order->place_count)
        qsort(order->places, order->place_count, sizeof(*order->places), by_place);
    return 0;
}

/* ---- all orders ---- */

static int start_over(struct round *round, struct gs_error *err)
{
    struct orders *orders = &round->placing->orders;
    gs_place_take_back(&round->on, 0);
    GS_EACH_OF (order, orders->all, orders->count) {
        const bool held = order->placed && order->kind == ORDER_WAITS;
        free(order->places);
        order->places = NULL;
        order->placed = order->place_count = 0;
        if (held &&
            gs_ledger_hold(round->on.ledger,
                           &(struct gs_hold){order->ask, order->pod.nominated_node}, err) < 0)
            return -1;
    }
    free(round->refused);
    round->slots = gs_ledger_slots(round->on.ledger);
    round->refused = calloc(round->slots + 1u, sizeof(*round->refused));
    round->before = NULL;
    return round->refused ? snapshot_learnt(&round->placing->snapshot, err) : gs_fail_nomem(err);
}

static int run(struct round *round, uint32_t copies, struct gs_error *err)
{
    struct orders *orders = &round->placing->orders;
    int result = have_copies(round, copies, err);
    if (result == 0)
        result = start_over(round, err);
    for (size_t i = 0; result == 0 && i < orders->count; i++)
        result = place(round, &orders->all[i], err);
    return result;
}

/* ---- the smallest number that does ---- */

static uint64_t count_unplaced(const struct orders *orders)
{
    uint64_t unplaced = 0;
    GS_EACH_OF (order, orders->all, orders->count)
        unplaced += order->replicas - order->placed;
    return unplaced;
}

/* A node for each pod is enough: what has no place then never has one on such a node. */
static int search(struct round *round, uint32_t *ret_count, uint64_t *ret_hopeless,
                  struct gs_error *err)
{
    const struct orders *orders = &round->placing->orders;
    uint64_t pods = 0, tried = 0;
    uint32_t few = 0, enough = 0;
    GS_EACH_OF (order, orders->all, orders->count)
        pods += order->replicas;
    for (int i = 0; i < 3; i++) { /* mostly one for each that has no place is enough */
        enough = tried < NODES_ADDED_MAX ? (uint32_t)tried : NODES_ADDED_MAX;
        if (run(round, enough, err) < 0)
            return -1;
        *ret_hopeless = count_unplaced(orders);
        if (!*ret_hopeless)
            break;
        tried = i ? pods : *ret_hopeless;
    }
    while (few < enough) {
        const uint32_t middle = few + (enough - few) / 2;
        if (run(round, middle, err) < 0)
            return -1;
        if (count_unplaced(orders) > *ret_hopeless)
            few = middle + 1;
        else
            enough = middle;
    }
    *ret_count = enough;
    return 0;
}

int placing_run(struct placing *placing, bool until_fit, struct gs_error *err)
{
    struct round round = {
        .placing = placing,
        .on = gs_cluster_place(&placing->snapshot.cluster, placing->policy),
    };
    struct added *added = &placing->added;
    orders_sort(&placing->orders);
    int result = until_fit ? search(&round, &added->count, &added->hopeless, err) : 0;
    round.last = true;
    if (result == 0)
        result = run(&round, added->count, err);
    free(round.refused);
    return result;
}
