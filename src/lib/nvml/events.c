/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs are hurt: critical events of the driver, and what to do when it tells none. */
#include "driver_internal.h"

#include <time.h>

#include "gpushare/base/backoff.h"

/* What is waited before events that broke off are asked for again. */
#define FIRST_DEAF_NS (10 * GS_NS_PER_S)
#define LAST_DEAF_NS  (300 * GS_NS_PER_S)

/* xids: ends in 0. */
static bool is_among(unsigned long long xid, const unsigned short *xids)
{
    while (*xids && *xids != xid)
        xids++;
    return *xids != 0;
}

/* XIDs that a faulty application causes, not a faulty GPU (NVIDIA's XID catalogue; the list of
 * NVIDIA's own device plugin, internal/rm/health.go). */
static bool is_applications_fault(unsigned long long xid)
{
    static const unsigned short harmless[] = {13, 31, 43, 45, 68, 109, 0};
    return is_among(xid, harmless);
}

/* XIDs after which a GPU works again only once it, or the node, was reset: those whose immediate
 * action in NVIDIA's XID catalogue is one of the two, or leads there (docs.nvidia.com/deploy/
 * xid-errors, gpu-debug-guidelines). */
static bool needs_reset(unsigned long long xid)
{
    static const unsigned short broken[] = {46,  48,  62,  64,  74,  79,  95,
                                            110, 119, 120, 136, 140, 143, 0};
    return is_among(xid, broken);
}

static void drop_events(struct driver *driver)
{
    if (driver->events)
        driver->nvml.event_set_free(driver->events);
    driver->events = NULL;
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].watched = false;
}

void gs_driver_unload(struct driver *driver)
{
    drop_events(driver);
    nvml_close(&driver->nvml);
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].device = NULL;
}

void gs_driver_watch(struct driver *driver, struct card *card)
{
    struct nvml *nvml = &driver->nvml;
    if (card->watched || driver->eventless ||
        gs_clock_now_ns(driver->config.clock) < driver->deaf_until_ns)
        return;
    if (!nvml->event_set_create || !nvml->register_events || !nvml->event_wait)
        return;
    if (!driver->events && nvml->event_set_create(&driver->events) != NVML_SUCCESS) {
        driver->events = NULL;
        return;
    }
    unsigned long long types = NVML_EVENT_XID | NVML_EVENT_DOUBLE_BIT_ECC;
    if (nvml->register_events(card->parent, types, driver->events) == NVML_SUCCESS ||
        nvml->register_events(card->parent, NVML_EVENT_XID, driver->events) == NVML_SUCCESS)
        card->watched = true;
}

static void hurt(struct driver *driver, struct card *card, unsigned long long xid)
{
    card->hurt_ns = gs_clock_now_ns(driver->config.clock);
    if (needs_reset(xid))
        card->gpu.xid = (uint32_t)xid;
}

/* Events come from whole cards; on one with MIG they may name the instance. */
static bool concerns(const struct nvml_event *event, const struct card *card)
{
    if (event->device && event->device != card->parent)
        return false;
    return !event->device || card->instance == NVML_NO_INSTANCE ||
           event->gpu_instance == NVML_NO_INSTANCE || event->gpu_instance == card->instance;
}

static int note_event(struct driver *driver, const struct nvml_event *event)
{
    /* A double-bit ECC error comes as an XID, too, which says whether it was contained. */
    unsigned long long xid = event->type == NVML_EVENT_XID ? event->data : 0;
    if (is_applications_fault(xid))
        return 0;
    for (uint32_t i = 0; i < driver->count; i++) {
        if (concerns(event, &driver->cards[i]))
            hurt(driver, &driver->cards[i], xid);
    }
    return 1;
}

static void rest(int64_t time_ns)
{
    const struct timespec time = {time_ns / GS_NS_PER_S, time_ns % GS_NS_PER_S};
    nanosleep(&time, NULL);
}

/* read() finds out which, and watches those that are left. Some drivers say it at once and for as
 * long as the GPU is away: from the second time on that takes as long as no news. */
static int note_lost(struct driver *driver, int64_t timeout_ns)
{
    if (driver->lost)
        rest(timeout_ns);
    driver->lost = true;
    drop_events(driver);
    return 1;
}

/* It is opened anew, and asked again later: it may be a GPU that is being reset. Some virtual GPUs
 * offer events and have none. */
static void go_deaf(struct driver *driver, int code)
{
    if (code == NVML_NOT_SUPPORTED) {
        driver->eventless = true;
        drop_events(driver);
        return;
    }
    driver->deaf_until_ns = gs_clock_now_ns(driver->config.clock) +
                            gs_pause_ns(driver->deaf_times++, FIRST_DEAF_NS, LAST_DEAF_NS);
    gs_driver_unload(driver);
}

int gs_driver_wait(void *ctx, int64_t timeout_ns, struct gs_error *err)
{
    struct driver *driver = ctx;
    struct nvml_event event = {0};
    unsigned int timeout_ms = (unsigned int)(timeout_ns / GS_NS_PER_MS);
    if (!driver->events) { /* no events from this driver: looking from time to time remains */
        rest(timeout_ns);
        return 0;
    }
    int code = driver->nvml.event_wait(driver->events, &event, timeout_ms);
    if (code == NVML_GPU_IS_LOST)
        return note_lost(driver, timeout_ns);
    driver->lost = false;
    if (code == NVML_TIMEOUT || code == NVML_SUCCESS)
        driver->deaf_times = 0;
    if (code == NVML_TIMEOUT)
        return 0;
    if (code == NVML_SUCCESS)
        return note_event(driver, &event);
    nvml_fail(&driver->nvml, code, "waiting for events of the NVIDIA driver failed", err);
    go_deaf(driver, code);
    return -1;
}
