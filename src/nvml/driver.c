/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/driver.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/backoff.h"
#include "gpushare/base/num.h"
#include "library.h"

/* What is waited before events that broke off are asked for again. */
#define FIRST_DEAF_NS (10 * GS_NS_PER_S)
#define LAST_DEAF_NS  (300 * GS_NS_PER_S)

/* What is remembered of a GPU between two reads. */
struct card {
    struct gs_gpu gpu;
    uint64_t used_bytes;
    nvml_device device; /* NULL: gone */
    bool met;           /* in this read */
    int64_t hurt_ns;    /* time of the last critical event, 0: none */
    int64_t doubted_ns; /* since when it answers badly, 0: it does not */
    bool watched;       /* its events are registered */
};

struct driver {
    struct gs_nvml_config config;
    struct nvml nvml;
    nvml_event_set events;
    struct card cards[GS_GPUS_MAX];
    uint32_t count;
    bool lost;             /* the last wait ended because a GPU is lost */
    bool eventless;        /* it offers no events, or not to us */
    bool reloaded;         /* it was away since we began, or we let go of it */
    int64_t deaf_until_ns; /* events are not asked for before */
    uint32_t deaf_times;   /* they broke off, in a row */
};

static bool is_among(unsigned long long xid, const unsigned short *xids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (xids[i] == xid)
            return true;
    }
    return false;
}

/* XIDs that a faulty application causes, not a faulty GPU (NVIDIA's XID catalogue; the list of
 * NVIDIA's own device plugin, internal/rm/health.go). */
static bool is_applications_fault(unsigned long long xid)
{
    static const unsigned short harmless[] = {13, 31, 43, 45, 68, 109};
    return is_among(xid, harmless, sizeof(harmless) / sizeof(harmless[0]));
}

/* XIDs after which a GPU works again only once it, or the node, was reset: those whose immediate
 * action in NVIDIA's XID catalogue is one of the two, or leads there (docs.nvidia.com/deploy/
 * xid-errors, gpu-debug-guidelines). */
static bool needs_reset(unsigned long long xid)
{
    static const unsigned short broken[] = {46,  48,  62,  64,  74,  79, 95,
                                            110, 119, 120, 136, 140, 143};
    return is_among(xid, broken, sizeof(broken) / sizeof(broken[0]));
}

static void drop_events(struct driver *driver)
{
    if (driver->events)
        driver->nvml.event_set_free(driver->events);
    driver->events = NULL;
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].watched = false;
}

static void unload(struct driver *driver)
{
    drop_events(driver);
    nvml_close(&driver->nvml);
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].device = NULL;
}

/* "00000000:3B:00.0" → "0000:3b:00.0" */
static void read_pci(const struct driver *driver, nvml_device device, char out[GS_PCI_BYTES])
{
    struct nvml_pci pci = {0};
    out[0] = '\0';
    if (!driver->nvml.pci || driver->nvml.pci(device, &pci) != NVML_SUCCESS)
        return;
    pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
    for (char *c = pci.bus_id; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *id = strlen(pci.bus_id) > 12 ? pci.bus_id + strlen(pci.bus_id) - 12 : pci.bus_id;
    snprintf(out, GS_PCI_BYTES, "%.19s", id);
}

/* /sys/bus/pci/devices/0000:3b:00.0/numa_node */
static int16_t numa_of(const struct driver *driver, const char *pci)
{
    char path[256], text[16] = "";
    int64_t node;
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node",
             driver->config.sysfs ? driver->config.sysfs : "/sys", pci);
    FILE *file = pci[0] ? fopen(path, "re") : NULL;
    if (!file)
        return GS_NUMA_NONE;
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return gs_parse_i64(text, len, &node) && node >= 0 && node <= INT16_MAX ? (int16_t)node
                                                                            : GS_NUMA_NONE;
}

static struct card *card_of(struct driver *driver, const char *uuid)
{
    for (uint32_t i = 0; i < driver->count; i++) {
        if (strcmp(driver->cards[i].gpu.uuid, uuid) == 0)
            return &driver->cards[i];
    }
    if (driver->count == GS_GPUS_MAX)
        return NULL;
    struct card *card = &driver->cards[driver->count++];
    *card = (struct card){0};
    snprintf(card->gpu.uuid, sizeof(card->gpu.uuid), "%s", uuid);
    return card;
}

static void watch_events(struct driver *driver, struct card *card)
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
    if (nvml->register_events(card->device, types, driver->events) == NVML_SUCCESS ||
        nvml->register_events(card->device, NVML_EVENT_XID, driver->events) == NVML_SUCCESS)
        card->watched = true;
}

/* True when MIG is on: such a card has no memory of its own to share. */
static bool mig_enabled(const struct driver *driver, nvml_device device)
{
    unsigned int current = 0, pending = 0;
    return driver->nvml.mig && driver->nvml.mig(device, &current, &pending) == NVML_SUCCESS &&
           current;
}

static void note_refusal(struct gs_gpu_set *set, uint32_t idx, const char *why)
{
    size_t len = strlen(set->refused);
    snprintf(set->refused + len, sizeof(set->refused) - len, "%sGPU %u %s", len ? "; " : "", idx,
             why);
}

/* How one card answered: a code below is what it says, and whether it is left out for it. */
struct answer {
    nvml_device device; /* NULL: not even that */
    const char *failed; /* "does not answer" */
    int code;
};

/* Looks at one device; fills its card unless it is to be left out. */
static struct answer read_card(struct driver *driver, uint32_t idx, struct gs_gpu_set *set)
{
    struct nvml *nvml = &driver->nvml;
    struct answer answer = {.failed = "does not answer"};
    struct nvml_memory memory = {0};
    char uuid[NVML_UUID_BYTES] = "", name[NVML_NAME_BYTES] = "";
    answer.code = nvml->by_index(idx, &answer.device);
    if (answer.code != NVML_SUCCESS)
        answer.device = NULL;
    else
        answer.code = nvml->uuid(answer.device, uuid, sizeof(uuid));
    if (answer.code != NVML_SUCCESS)
        return answer;
    if (mig_enabled(driver, answer.device)) {
        note_refusal(set, idx, "has MIG enabled, which is not shared by memory");
        return answer;
    }
    struct card *card = card_of(driver, uuid);
    if (!card || idx >= GS_GPUS_MAX) {
        note_refusal(set, idx, "is one more than can be counted");
        return answer;
    }
    answer.failed = "does not tell its memory";
    answer.code = nvml->memory(answer.device, &memory);
    if (answer.code != NVML_SUCCESS)
        return answer;
    nvml->name(answer.device, name, sizeof(name));
    card->device = answer.device;
    card->met = true;
    card->doubted_ns = 0;
    card->gpu.idx = idx;
    card->gpu.mem_mib = (uint32_t)(memory.total_bytes >> 20);
    card->used_bytes = memory.used_bytes;
    read_pci(driver, answer.device, card->gpu.pci);
    card->gpu.numa = numa_of(driver, card->gpu.pci);
    snprintf(card->gpu.model, sizeof(card->gpu.model), "%.*s", GS_MODEL_BYTES - 1, name);
    watch_events(driver, card);
    return answer;
}

/* Codes of the driver as a whole. */
static bool is_drivers(int code)
{
    return code == NVML_UNINITIALIZED || code == NVML_DRIVER_NOT_LOADED ||
           code == NVML_LIB_RM_VERSION_MISMATCH;
}

/* One bad answer is not a lost card: who was there stays as it was for a while. */
static bool is_doubted(struct driver *driver, uint32_t idx, const struct answer *answer)
{
    int64_t now_ns = gs_clock_now_ns(driver->config.clock);
    if (answer->code == NVML_GPU_IS_LOST || is_drivers(answer->code))
        return false;
    for (uint32_t i = 0; i < driver->count; i++) {
        struct card *card = &driver->cards[i];
        bool same = answer->device ? card->device == answer->device : card->gpu.idx == idx;
        if (!same || card->met || !card->device)
            continue;
        card->doubted_ns = card->doubted_ns ? card->doubted_ns : now_ns;
        card->met = now_ns - card->doubted_ns < GS_NVML_DOUBT_NS;
        return card->met;
    }
    return false;
}

/* Every card by itself: a sick one takes no other with it. When all of them fail, and not because
 * they are lost, it is the driver that does. */
static int read_cards(struct driver *driver, uint32_t count, struct gs_gpu_set *set,
                      struct gs_error *err)
{
    uint32_t answered = 0;
    int failure = NVML_SUCCESS;
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].met = false;
    for (uint32_t idx = 0; idx < count; idx++) {
        struct answer answer = read_card(driver, idx, set);
        bool failed = answer.code != NVML_SUCCESS && !is_doubted(driver, idx, &answer);
        answered += !failed || answer.code == NVML_GPU_IS_LOST;
        if (!failed)
            continue;
        char why[120];
        failure = answer.code;
        snprintf(why, sizeof(why), "%s: %.80s", answer.failed,
                 driver->nvml.error_string(answer.code));
        note_refusal(set, idx, why);
    }
    if (count && !answered)
        return nvml_fail(&driver->nvml, failure, set->refused, err);
    for (uint32_t i = 0; i < driver->count; i++) {
        struct card *card = &driver->cards[i];
        card->device = card->met ? card->device : NULL;
        card->watched &= card->met;
    }
    return 0;
}

static void fill_set(struct driver *driver, struct gs_gpu_set *set)
{
    int64_t now_ns = gs_clock_now_ns(driver->config.clock);
    for (uint32_t i = 0; i < driver->count; i++) {
        struct card *card = &driver->cards[i];
        if (!card->device)
            continue;
        if (card->hurt_ns && now_ns - card->hurt_ns >= GS_NVML_QUIET_NS)
            card->hurt_ns = 0;
        card->gpu.schedulable = true;
        card->gpu.healthy = !card->hurt_ns && !card->gpu.xid;
        set->deaf |= !card->watched;
        set->measured |= GS_GPU_BIT(card->gpu.idx);
        set->used_bytes[card->gpu.idx] = card->used_bytes;
        set->gpus[set->count++] = card->gpu;
    }
    gs_gpus_sort(set->gpus, set->count);
}

/* A driver that was away has reset its GPUs when it is back. */
static void note_reload(struct driver *driver)
{
    driver->reloaded = true;
    driver->eventless = false;
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].gpu.xid = 0;
}

static int open_driver(struct driver *driver, struct gs_error *err)
{
    const char *library = driver->config.library ? driver->config.library : "libnvidia-ml.so.1";
    int code = NVML_SUCCESS;
    if (driver->nvml.handle)
        return 0;
    int result = nvml_open(&driver->nvml, library, &code, err);
    if (code == NVML_DRIVER_NOT_LOADED)
        note_reload(driver);
    return result;
}

static int read_driver(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    struct driver *driver = ctx;
    struct gs_gpu_set set = {0};
    unsigned int count = 0;
    if (open_driver(driver, err) < 0)
        return -1;
    int code = driver->nvml.count(&count);
    if (code != NVML_SUCCESS) {
        nvml_fail(&driver->nvml, code, "the NVIDIA driver does not count its GPUs", err);
        unload(driver);
        return -1;
    }
    if (read_cards(driver, count, &set, err) < 0) {
        unload(driver);
        return -1;
    }
    fill_set(driver, &set);
    set.fresh = driver->reloaded;
    *ret = set;
    return 0;
}

static void hurt(struct driver *driver, struct card *card, unsigned long long xid)
{
    card->hurt_ns = gs_clock_now_ns(driver->config.clock);
    if (needs_reset(xid))
        card->gpu.xid = (uint32_t)xid;
}

static int note_event(struct driver *driver, const struct nvml_event *event)
{
    /* A double-bit ECC error comes as an XID, too, which says whether it was contained. */
    unsigned long long xid = event->type == NVML_EVENT_XID ? event->data : 0;
    if (is_applications_fault(xid))
        return 0;
    for (uint32_t i = 0; i < driver->count; i++) {
        if (driver->cards[i].device == event->device || !event->device)
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
    unload(driver);
}

static int wait_driver(void *ctx, int64_t timeout_ns, struct gs_error *err)
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
    nvml_fail(&driver->nvml, code, "the NVIDIA driver's events broke off", err);
    go_deaf(driver, code);
    return -1;
}

static void release_driver(void *ctx)
{
    unload(ctx);
    note_reload(ctx);
}

static void close_driver(void *ctx)
{
    unload(ctx);
    free(ctx);
}

int gs_gpus_from_driver(const struct gs_nvml_config *config, struct gs_gpu_source *ret,
                        struct gs_error *err)
{
    static const struct gs_gpu_source_ops ops = {read_driver, wait_driver, release_driver,
                                                 close_driver};
    struct driver *driver = calloc(1, sizeof(*driver));
    if (!driver)
        return gs_fail_nomem(err);
    driver->config = *config;
    *ret = (struct gs_gpu_source){&ops, driver};
    return 0;
}
