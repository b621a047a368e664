/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/driver.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpushare/base/num.h"
#include "library.h"

/* A driver whose events fail so often in a row is only read. */
enum { UNHEARD_MAX = 3 };

/* What is remembered of a GPU between two reads. */
struct card {
    struct gs_gpu gpu;
    uint64_t used_bytes;
    nvml_device device; /* NULL: gone */
    int64_t hurt_ns;    /* time of the last critical event, 0: none */
    bool watched;       /* its events are registered */
};

struct driver {
    struct gs_nvml_config config;
    struct nvml nvml;
    nvml_event_set events;
    struct card cards[GS_GPUS_MAX];
    uint32_t count;
    bool lost;        /* the last wait ended because a GPU is lost */
    uint32_t unheard; /* waits that failed, in a row */
};

/* XIDs that a faulty application causes, not a faulty GPU (NVIDIA's XID catalogue; the list of
 * NVIDIA's own device plugin, internal/rm/health.go). */
static bool is_applications_fault(unsigned long long xid)
{
    static const unsigned short harmless[] = {13, 31, 43, 45, 68, 109};
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (harmless[i] == xid)
            return true;
    }
    return false;
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

/* "00000000:3B:00.0" → /sys/bus/pci/devices/0000:3b:00.0/numa_node */
static int16_t numa_of(const struct driver *driver, nvml_device device)
{
    struct nvml_pci pci = {0};
    char path[256], text[16] = "";
    int64_t node;
    if (!driver->nvml.pci || driver->nvml.pci(device, &pci) != NVML_SUCCESS)
        return GS_NUMA_NONE;
    pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
    for (char *c = pci.bus_id; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    const char *id = strlen(pci.bus_id) > 12 ? pci.bus_id + strlen(pci.bus_id) - 12 : pci.bus_id;
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node",
             driver->config.sysfs ? driver->config.sysfs : "/sys", id);
    FILE *file = fopen(path, "re");
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
    if (driver->unheard >= UNHEARD_MAX)
        return;
    if (card->watched || !nvml->event_set_create || !nvml->register_events || !nvml->event_wait)
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

/* Why the driver's answer leaves one card out. */
static int refuse(const struct driver *driver, struct gs_gpu_set *set, uint32_t idx,
                  const char *what, int code)
{
    char why[120];
    snprintf(why, sizeof(why), "%s: %.80s", what, driver->nvml.error_string(code));
    note_refusal(set, idx, why);
    return code;
}

/* Looks at one device; fills its card unless it is to be left out. The driver's code when it does
 * not tell enough about that one. */
static int read_card(struct driver *driver, uint32_t idx, struct gs_gpu_set *set)
{
    struct nvml *nvml = &driver->nvml;
    nvml_device device;
    struct nvml_memory memory = {0};
    char uuid[NVML_UUID_BYTES] = "", name[NVML_NAME_BYTES] = "";
    int code = nvml->by_index(idx, &device);
    if (code == NVML_SUCCESS)
        code = nvml->uuid(device, uuid, sizeof(uuid));
    if (code != NVML_SUCCESS)
        return refuse(driver, set, idx, "does not answer", code);
    if (mig_enabled(driver, device)) {
        note_refusal(set, idx, "has MIG enabled, which is not shared by memory");
        return NVML_SUCCESS;
    }
    struct card *card = card_of(driver, uuid);
    if (!card || idx >= GS_GPUS_MAX) {
        note_refusal(set, idx, "is one more than can be counted");
        return NVML_SUCCESS;
    }
    code = nvml->memory(device, &memory);
    if (code != NVML_SUCCESS)
        return refuse(driver, set, idx, "does not tell its memory", code);
    nvml->name(device, name, sizeof(name));
    card->device = device;
    card->gpu.idx = idx;
    card->gpu.mem_mib = (uint32_t)(memory.total_bytes >> 20);
    card->used_bytes = memory.used_bytes;
    card->gpu.numa = numa_of(driver, device);
    snprintf(card->gpu.model, sizeof(card->gpu.model), "%.*s", GS_MODEL_BYTES - 1, name);
    watch_events(driver, card);
    return NVML_SUCCESS;
}

/* Every card by itself: a sick one takes no other with it, it is gone. When all of them fail, and
 * not because they are lost, it is the driver that does. */
static int read_cards(struct driver *driver, uint32_t count, struct gs_gpu_set *set,
                      struct gs_error *err)
{
    uint32_t answered = 0;
    int failure = NVML_SUCCESS;
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].device = NULL; /* whoever is not met below is gone */
    for (uint32_t idx = 0; idx < count; idx++) {
        int code = read_card(driver, idx, set);
        answered += code == NVML_SUCCESS || code == NVML_GPU_IS_LOST;
        failure = code == NVML_SUCCESS ? failure : code;
    }
    if (count && !answered)
        return gs_fail(err, GS_EIO, "%s (NVML code %d)", set->refused, failure);
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].watched &= driver->cards[i].device != NULL;
    return 0;
}

static int by_idx(const void *a, const void *b)
{
    const struct gs_gpu *left = a, *right = b;
    return left->idx < right->idx ? -1 : left->idx > right->idx;
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
        card->gpu.healthy = !card->hurt_ns;
        set->measured |= GS_GPU_BIT(card->gpu.idx);
        set->used_bytes[card->gpu.idx] = card->used_bytes;
        set->gpus[set->count++] = card->gpu;
    }
    qsort(set->gpus, set->count, sizeof(set->gpus[0]), by_idx);
}

static int read_driver(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    struct driver *driver = ctx;
    const char *library = driver->config.library ? driver->config.library : "libnvidia-ml.so.1";
    struct gs_gpu_set set = {0};
    unsigned int count = 0;
    if (!driver->nvml.handle && nvml_open(&driver->nvml, library, err) < 0)
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
    *ret = set;
    return 0;
}

static int note_event(struct driver *driver, const struct nvml_event *event)
{
    if (event->type == NVML_EVENT_XID && is_applications_fault(event->data))
        return 0;
    for (uint32_t i = 0; i < driver->count; i++) {
        if (driver->cards[i].device == event->device || !event->device)
            driver->cards[i].hurt_ns = gs_clock_now_ns(driver->config.clock);
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
    driver->unheard = code == NVML_TIMEOUT || code == NVML_SUCCESS ? 0 : driver->unheard + 1;
    if (code == NVML_TIMEOUT)
        return 0;
    if (code == NVML_SUCCESS)
        return note_event(driver, &event);
    nvml_fail(&driver->nvml, code, "the NVIDIA driver's events broke off", err);
    unload(driver);
    return -1;
}

static void close_driver(void *ctx)
{
    unload(ctx);
    free(ctx);
}

int gs_gpus_from_driver(const struct gs_nvml_config *config, struct gs_gpu_source *ret,
                        struct gs_error *err)
{
    static const struct gs_gpu_source_ops ops = {read_driver, wait_driver, close_driver};
    struct driver *driver = calloc(1, sizeof(*driver));
    if (!driver)
        return gs_fail_nomem(err);
    driver->config = *config;
    *ret = (struct gs_gpu_source){&ops, driver};
    return 0;
}
