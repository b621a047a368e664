/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"

enum { CHANCE_MAX = 1000, STALL_MS_MAX = 600000, BIG_MIB_MAX = 256 };

struct plan {
    char agent[64];
    uint32_t chance[GS_SIM_FAULTS];
    uint32_t stall_ms;
    uint32_t big_mib;
};

struct gs_sim_faults {
    pthread_mutex_t lock; /* guards everything below */
    uint64_t random;
    struct plan plan;
    uint64_t counts[GS_SIM_FAULTS];
};

static const char *const fault_names[GS_SIM_FAULTS] = {
    [GS_SIM_DELAY] = "delay",
    [GS_SIM_STALL] = "stall",
    [GS_SIM_DROP] = "drop",
    [GS_SIM_CONFLICT] = "conflict",
    [GS_SIM_GONE] = "gone",
    [GS_SIM_THROTTLE] = "throttle",
    [GS_SIM_INTERNAL] = "internal",
    [GS_SIM_UNAVAILABLE] = "unavailable",
    [GS_SIM_LOST_ANSWER] = "lost_answer",
    [GS_SIM_LATE_TIMEOUT] = "late_timeout",
    [GS_SIM_TRUNCATED] = "truncated",
    [GS_SIM_OVERSIZED] = "oversized",
    [GS_SIM_OLD_LIST] = "old_list",
    [GS_SIM_WATCH_DELAY] = "watch_delay",
    [GS_SIM_WATCH_STALL] = "watch_stall",
    [GS_SIM_WATCH_CUT] = "watch_cut",
    [GS_SIM_WATCH_END] = "watch_end",
    [GS_SIM_WATCH_GONE] = "watch_gone",
    [GS_SIM_WATCH_ERROR] = "watch_error",
    [GS_SIM_WATCH_GARBAGE] = "watch_garbage",
    [GS_SIM_WATCH_BIG] = "watch_big",
    [GS_SIM_WATCH_BACK] = "watch_back",
    [GS_SIM_WATCH_TWICE] = "watch_twice",
    [GS_SIM_WATCH_SWAP] = "watch_swap",
    [GS_SIM_WATCH_LOSE] = "watch_lose",
};

static const struct plan no_faults = {.stall_ms = 2000, .big_mib = 17};

struct gs_sim_faults *gs_sim_faults_new(uint64_t seed)
{
    struct gs_sim_faults *faults = calloc(1, sizeof(*faults));
    if (!faults)
        return NULL;
    pthread_mutex_init(&faults->lock, NULL);
    faults->random = seed;
    faults->plan = no_faults;
    return faults;
}

void gs_sim_faults_free(struct gs_sim_faults *faults)
{
    if (!faults)
        return;
    pthread_mutex_destroy(&faults->lock);
    free(faults);
}

/* ---- the plan ---- */

static int bad_item(struct gs_slice item, struct gs_error *err)
{
    return gs_fail(err, GS_EINVAL, "\"%.*s\" is no part of a fault plan", (int)item.len, item.at);
}

static int set_agent(struct plan *plan, struct gs_slice value, struct gs_error *err)
{
    if (value.len >= sizeof(plan->agent))
        return gs_fail(err, GS_EINVAL, "the agent of a fault plan is too long");
    memcpy(plan->agent, value.at, value.len);
    plan->agent[value.len] = '\0';
    return 0;
}

/* Where the number of an item goes and the largest it may be; NULL: no such name. */
static uint32_t *find_number(struct plan *plan, struct gs_slice name, uint32_t *ret_max)
{
    *ret_max = CHANCE_MAX;
    for (int i = 0; i < GS_SIM_FAULTS; i++) {
        if (gs_slice_eq(name, gs_slice_of(fault_names[i])))
            return &plan->chance[i];
    }
    if (gs_slice_eq(name, gs_slice_of("stall_ms"))) {
        *ret_max = STALL_MS_MAX;
        return &plan->stall_ms;
    }
    *ret_max = BIG_MIB_MAX;
    return gs_slice_eq(name, gs_slice_of("big_mib")) ? &plan->big_mib : NULL;
}

static int set_all(struct plan *plan, struct gs_slice item, struct gs_slice value,
                   struct gs_error *err)
{
    uint32_t chance;
    if (!gs_parse_u32(value.at, value.len, &chance) || chance > CHANCE_MAX)
        return bad_item(item, err);
    for (int i = 0; i < GS_SIM_WATCH_LOSE; i++)
        plan->chance[i] = chance;
    return 0;
}

static int set_item(struct plan *plan, struct gs_slice item, struct gs_error *err)
{
    const char *equals = memchr(item.at, '=', item.len);
    if (!equals)
        return bad_item(item, err);
    struct gs_slice name = {item.at, (size_t)(equals - item.at)};
    struct gs_slice value = {equals + 1, item.len - name.len - 1};
    if (gs_slice_eq(name, gs_slice_of("agent")))
        return set_agent(plan, value, err);
    if (gs_slice_eq(name, gs_slice_of("all")))
        return set_all(plan, item, value, err);
    uint32_t max, number;
    uint32_t *to = find_number(plan, name, &max);
    if (!to || !gs_parse_u32(value.at, value.len, &number) || number > max)
        return bad_item(item, err);
    *to = number;
    return 0;
}

int gs_sim_faults_plan(struct gs_sim_faults *faults, struct gs_slice text, struct gs_error *err)
{
    struct plan plan = no_faults;
    while (text.len > 0) {
        const char *comma = memchr(text.at, ',', text.len);
        struct gs_slice item = {text.at, comma ? (size_t)(comma - text.at) : text.len};
        if (set_item(&plan, item, err) < 0)
            return -1;
        size_t used = item.len + (comma != NULL);
        text = (struct gs_slice){text.at + used, text.len - used};
    }
    pthread_mutex_lock(&faults->lock);
    faults->plan = plan;
    pthread_mutex_unlock(&faults->lock);
    return 0;
}

/* ---- the dice ---- */

/* Lock held. */
static uint32_t draw(struct gs_sim_faults *faults, uint32_t below)
{
    return (uint32_t)(gs_splitmix_next(&faults->random) % below);
}

bool gs_sim_faults_hit(struct gs_sim_faults *faults, enum gs_sim_fault fault, const char *agent)
{
    pthread_mutex_lock(&faults->lock);
    const struct plan *plan = &faults->plan;
    bool hit = plan->chance[fault] > 0 &&
               strncmp(agent ? agent : "", plan->agent, strlen(plan->agent)) == 0 &&
               draw(faults, CHANCE_MAX) < plan->chance[fault];
    faults->counts[fault] += hit;
    pthread_mutex_unlock(&faults->lock);
    return hit;
}

uint32_t gs_sim_faults_random(struct gs_sim_faults *faults, uint32_t below)
{
    pthread_mutex_lock(&faults->lock);
    uint32_t number = draw(faults, below);
    pthread_mutex_unlock(&faults->lock);
    return number;
}

int64_t gs_sim_faults_stall_ns(struct gs_sim_faults *faults)
{
    pthread_mutex_lock(&faults->lock);
    int64_t ns = faults->plan.stall_ms * GS_NS_PER_MS;
    pthread_mutex_unlock(&faults->lock);
    return ns;
}

size_t gs_sim_faults_big_bytes(struct gs_sim_faults *faults)
{
    pthread_mutex_lock(&faults->lock);
    size_t bytes = (size_t)faults->plan.big_mib << 20;
    pthread_mutex_unlock(&faults->lock);
    return bytes;
}

uint64_t gs_sim_faults_count(struct gs_sim_faults *faults, enum gs_sim_fault fault)
{
    pthread_mutex_lock(&faults->lock);
    uint64_t count = faults->counts[fault];
    pthread_mutex_unlock(&faults->lock);
    return count;
}

void gs_sim_faults_print(struct gs_sim_faults *faults, struct gs_buf *out)
{
    for (int i = 0; i < GS_SIM_FAULTS; i++)
        gs_buf_printf(out, "%s\"%s\":%llu", i ? "," : "{", fault_names[i],
                      (unsigned long long)gs_sim_faults_count(faults, (enum gs_sim_fault)i));
    gs_buf_puts(out, "}\n");
}
