/* SPDX-License-Identifier: Apache-2.0 */
#include "candidates.h"

#include "rating.h"
#include "service_internal.h"

/* In more zones than this nobody is left out. */
enum { ZONES_MAX = 32 };

struct zone {
    uint32_t id;
    uint32_t fitting;
    uint32_t named; /* how many of them are to be */
};

struct zones {
    struct zone of[ZONES_MAX];
    uint32_t count;
};

static bool must_name_all(struct gs_service *service, const struct gs_filter_args *args)
{
    return !args->has_names || args->pod.nominated_node[0] ||
           gs_preferences_concern(&service->preferences, &args->pod);
}

static uint32_t zone_index(struct zones *zones, uint32_t id)
{
    for (uint32_t i = 0; i < zones->count; i++) {
        if (zones->of[i].id == id)
            return i;
    }
    if (zones->count < ZONES_MAX)
        zones->of[zones->count] = (struct zone){.id = id};
    return zones->count++;
}

/* Counts the nodes of each zone that fit, and notes each one's zone. False: too many zones. */
static bool find_zones(const struct gs_preferences *said, struct gs_scratch *scratch,
                       struct zones *zones)
{
    uint32_t count = scratch->args.name_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!scratch->fits[i])
            continue;
        uint32_t zone = zone_index(zones, gs_preferences_zone(said, scratch->slots[i]));
        if (zone >= ZONES_MAX)
            return false;
        scratch->zones[i] = (uint8_t)zone;
        zones->of[zone].fitting++;
    }
    return true;
}

/* Evenly; what a small zone has not the others have more. */
static void share_out(struct zones *zones, uint32_t named)
{
    while (named) {
        uint32_t open = 0;
        for (uint32_t i = 0; i < zones->count; i++)
            open += zones->of[i].named < zones->of[i].fitting;
        if (!open)
            return;
        uint32_t share = named < open ? 1 : named / open;
        for (uint32_t i = 0; i < zones->count && named; i++) {
            struct zone *zone = &zones->of[i];
            uint32_t room = zone->fitting - zone->named;
            uint32_t part = share < room ? share : room;
            zone->named += part;
            named -= part;
        }
    }
}

/* The least loss that `want` of them at least do not exceed. Halving takes 64 looks at most, in any
 * order of the losses. */
static int64_t limit_of(const int64_t *losses, uint32_t count, uint32_t want)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        low = losses[i] < low ? losses[i] : low;
        high = losses[i] > high ? losses[i] : high;
    }
    while (low < high) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        uint32_t within = 0;
        for (uint32_t i = 0; i < count; i++)
            within += losses[i] <= middle;
        if (within >= want)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool is_in(const struct gs_scratch *scratch, uint32_t i, uint32_t zone)
{
    return scratch->fits[i] && scratch->zones[i] == zone;
}

/* Names zone->named nodes of a zone: all that are better than its limit, and of those at the limit
 * as many as are left, beginning with another one each time. */
static void choose_in(struct gs_scratch *scratch, const struct zone *zone, uint32_t index,
                      uint32_t turn)
{
    uint32_t count = scratch->args.name_count, gathered = 0, better = 0, equal = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (is_in(scratch, i, index))
            scratch->gathered[gathered++] = scratch->losses[i];
    }
    int64_t limit = limit_of(scratch->gathered, gathered, zone->named);
    for (uint32_t i = 0; i < gathered; i++) {
        better += scratch->gathered[i] < limit;
        equal += scratch->gathered[i] == limit;
    }
    uint32_t left = zone->named - better;
    uint32_t first = (uint32_t)((uint64_t)turn * left % equal), nth = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_in(scratch, i, index) || scratch->losses[i] < limit)
            continue;
        if (scratch->losses[i] > limit || (nth++ + equal - first) % equal >= left)
            scratch->verdicts[i] = GS_VERDICT_LEFT_OUT;
    }
}

uint32_t gs_candidates_choose(struct gs_service *service, struct gs_ask *ask,
                              struct gs_scratch *scratch, uint32_t fitting)
{
    uint32_t named = service->config.candidates;
    struct zones zones = {.count = 0};
    if (!named || fitting <= named)
        return fitting;
    gs_store_read(&service->store);
    bool all = must_name_all(service, &scratch->args);
    if (!all) {
        gs_ask_match(ask, service->store.ledger, &scratch->match);
        gs_rate(service, ask, scratch, scratch->verdicts);
        all = !find_zones(&service->preferences, scratch, &zones);
    }
    gs_store_unlock(&service->store);
    if (all)
        return fitting;
    uint32_t turn = atomic_fetch_add_explicit(&service->turns, 1, memory_order_relaxed);
    share_out(&zones, named);
    for (uint32_t i = 0; i < zones.count; i++)
        choose_in(scratch, &zones.of[i], i, turn);
    return named;
}
