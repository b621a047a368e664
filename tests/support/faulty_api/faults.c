/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/num.h"
#include "gpushare/base/splitmix.h"

enum { CHANCE_OF = 1000 };

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

bool gs_sim_next_item(struct gs_slice *text, struct gs_slice *ret_key, struct gs_slice *ret_value)
{
    if (text->len == 0)
        return false;
    const char *comma = memchr(text->at, ',', text->len);
    const size_t len = comma ? (size_t)(comma - text->at) : text->len;
    const char *equals = memchr(text->at, '=', len);
    const size_t key_len = equals ? (size_t)(equals - text->at) : len;
    *ret_key = (struct gs_slice){text->at, key_len};
    *ret_value = (struct gs_slice){text->at + key_len + 1, equals ? len - key_len - 1 : 0};
    const size_t used = len + (comma != NULL);
    *text = (struct gs_slice){text->at + used, text->len - used};
    return true;
}

/* Where the number of an item goes; NULL: no such name. */
static uint32_t *find_number(struct plan *plan, struct gs_slice name)
{
    for (int i = 0; i < GS_SIM_FAULTS; i++) {
        if (gs_slice_eq(name, gs_slice_of(fault_names[i])))
            return &plan->chance[i];
    }
    if (gs_slice_eq(name, gs_slice_of("stall_ms")))
        return &plan->stall_ms;
    return gs_slice_eq(name, gs_slice_of("big_mib")) ? &plan->big_mib : NULL;
}

static bool set_item(struct plan *plan, struct gs_slice name, struct gs_slice value)
{
    uint32_t number;
    if (gs_slice_eq(name, gs_slice_of("agent"))) {
        snprintf(plan->agent, sizeof(plan->agent), "%.*s", (int)value.len, value.at);
        return true;
    }
    if (!gs_parse_u32(value.at, value.len, &number))
        return false;
    if (gs_slice_eq(name, gs_slice_of("all"))) {
        for (int i = 0; i < GS_SIM_WATCH_LOSE; i++)
            plan->chance[i] = number;
        return true;
    }
    uint32_t *to = find_number(plan, name);
    if (to)
        *to = number;
    return to != NULL;
}

int gs_sim_faults_plan(struct gs_sim_faults *faults, struct gs_slice text, struct gs_error *err)
{
    struct plan plan = no_faults;
    struct gs_slice name, value;
    while (gs_sim_next_item(&text, &name, &value)) {
        if (!set_item(&plan, name, value))
            return gs_fail(err, GS_EINVAL, "\"%.*s\" is no part of a fault plan", (int)name.len,
                           name.at);
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
               draw(faults, CHANCE_OF) < plan->chance[fault];
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

static struct plan plan_of(struct gs_sim_faults *faults)
{
    pthread_mutex_lock(&faults->lock);
    struct plan plan = faults->plan;
    pthread_mutex_unlock(&faults->lock);
    return plan;
}

int64_t gs_sim_faults_stall_ns(struct gs_sim_faults *faults)
{
    return plan_of(faults).stall_ms * GS_NS_PER_MS;
}

size_t gs_sim_faults_big_bytes(struct gs_sim_faults *faults)
{
    return (size_t)plan_of(faults).big_mib << 20;
}

void gs_sim_faults_print(struct gs_sim_faults *faults, struct gs_buf *out)
{
    pthread_mutex_lock(&faults->lock);
    for (int i = 0; i < GS_SIM_FAULTS; i++)
        gs_buf_printf(out, "%s\"%s\":%llu", i ? "," : "{", fault_names[i],
                      (unsigned long long)faults->counts[i]);
    pthread_mutex_unlock(&faults->lock);
    gs_buf_puts(out, "}\n");
}
