/* SPDX-License-Identifier: Apache-2.0 */
#include "driver_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/num.h"

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

/* As gs_gpu.node. */
static uint16_t node_of(const struct driver *driver, nvml_device device)
{
    unsigned int minor = 0;
    bool told = driver->nvml.minor && driver->nvml.minor(device, &minor) == NVML_SUCCESS;
    return told && minor < UINT16_MAX ? (uint16_t)(minor + 1) : 0;
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

/* How many clients an MPS server of the GPU has at most (docs.nvidia.com/deploy/mps, "Client-server
 * connection limits"): 16 before Volta, 48, and 60 from CUDA 13.1 on. 0: the driver does not say.
 */
static uint32_t mps_clients(const struct nvml *nvml, nvml_device device)
{
    int cuda = 0, major = 0, minor = 0;
    if (!nvml->cuda_version || !nvml->capability || nvml->cuda_version(&cuda) != NVML_SUCCESS ||
        nvml->capability(device, &major, &minor) != NVML_SUCCESS)
        return 0;
    if (major < 7)
        return 16;
    return cuda >= NVML_CUDA_13_1 ? 60 : 48;
}

/* One that can be forgotten: MIG instances that are made anew have new UUIDs. */
static struct card *gone(struct driver *driver)
{
    for (uint32_t i = 0; i < driver->count; i++) {
        if (!driver->cards[i].known && !driver->cards[i].met)
            return &driver->cards[i];
    }
    return NULL;
}

static struct card *card_of(struct driver *driver, const char *uuid)
{
    for (uint32_t i = 0; i < driver->count; i++) {
        if (strcmp(driver->cards[i].gpu.uuid, uuid) == 0)
            return &driver->cards[i];
    }
    struct card *card =
        driver->count < GS_GPUS_MAX ? &driver->cards[driver->count++] : gone(driver);
    if (!card)
        return NULL;
    *card = (struct card){0};
    snprintf(card->gpu.uuid, sizeof(card->gpu.uuid), "%.*s", GS_UUID_BYTES - 1, uuid);
    return card;
}

/* True when MIG is on: such a card has no memory of its own to share, its instances have. */
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

/* Takes in what answers: a whole card, or an instance of one. number: as the set counts. */
static struct answer read_gpu(struct driver *driver, const struct card *at, uint32_t number,
                              struct gs_gpu_set *set)
{
    struct nvml *nvml = &driver->nvml;
    bool whole = at->instance == NVML_NO_INSTANCE;
    struct answer answer = {.device = at->device,
                            .failed = whole ? "does not respond"
                                            : "has a MIG instance that does not respond"};
    struct nvml_memory memory = {0};
    char uuid[NVML_UUID_BYTES] = "", name[NVML_NAME_BYTES] = "";
    answer.code = nvml->uuid(at->device, uuid, sizeof(uuid));
    if (answer.code != NVML_SUCCESS)
        return answer;
    struct card *card = number < GS_GPUS_MAX ? card_of(driver, uuid) : NULL;
    if (!card) {
        note_refusal(set, number, "exceeds the maximum of 64 GPUs");
        return answer;
    }
    answer.failed = whole ? "does not report its memory (if it shares the host's, use --gpu-file)"
                          : "has a MIG instance that does not report its memory";
    answer.code = nvml->memory(at->device, &memory);
    if (answer.code != NVML_SUCCESS)
        return answer;
    nvml->name(at->device, name, sizeof(name));
    struct gs_gpu *gpu = &card->gpu;
    card->device = at->device;
    card->parent = at->parent;
    card->instance = at->instance;
    card->slot = at->slot;
    card->met = true;
    card->doubted_ns = 0;
    gpu->idx = number;
    gpu->mem_mib = (uint32_t)(memory.total_bytes >> 20);
    card->used_bytes = memory.used_bytes;
    gpu->max_pods = mps_clients(nvml, at->parent);
    read_pci(driver, at->parent, gpu->pci);
    gpu->numa = numa_of(driver, gpu->pci);
    if (whole || nvml->uuid(at->parent, gpu->card, sizeof(gpu->card)) != NVML_SUCCESS)
        gpu->card[0] = '\0';
    gpu->node = whole ? node_of(driver, at->device) : 0;
    snprintf(gpu->model, sizeof(gpu->model), "%.*s", GS_MODEL_BYTES - 1, name);
    gs_driver_watch(driver, card);
    return answer;
}

/* The instances of a card with MIG are numbered on after the cards: a card's own number stays free
 * for the day on which MIG is turned off. */
static struct answer read_instances(struct driver *driver, nvml_device parent, uint32_t slot,
                                    uint32_t *next, struct gs_gpu_set *set)
{
    struct nvml *nvml = &driver->nvml;
    struct answer answer = {.device = parent, .failed = "does not report its MIG instances"};
    unsigned int most = 0, found = 0;
    if (!nvml->mig_count || !nvml->mig_by_index || !nvml->gpu_instance) {
        note_refusal(set, slot,
                     "has MIG enabled, and this driver's library cannot list MIG instances");
        return answer;
    }
    answer.code = nvml->mig_count(parent, &most);
    for (unsigned int i = 0; i < most; i++) {
        struct card at = {.parent = parent, .slot = slot};
        int code = nvml->mig_by_index(parent, i, &at.device);
        if (code == NVML_NOT_FOUND)
            continue;
        found++;
        if (code == NVML_SUCCESS)
            code = nvml->gpu_instance(at.device, &at.instance);
        struct answer one = {.device = parent, .failed = answer.failed, .code = code};
        if (code == NVML_SUCCESS)
            one = read_gpu(driver, &at, (*next)++, set);
        if (one.code != NVML_SUCCESS)
            answer = one;
    }
    if (answer.code == NVML_SUCCESS && !found)
        note_refusal(set, slot, "has MIG enabled and no MIG instance");
    return answer;
}

/* Looks at one card of the driver's list. next: the next number of a MIG instance. */
static struct answer read_card(struct driver *driver, uint32_t slot, uint32_t *next,
                               struct gs_gpu_set *set)
{
    struct card at = {.instance = NVML_NO_INSTANCE, .slot = slot};
    struct answer answer = {.failed = "does not respond"};
    answer.code = driver->nvml.by_index(slot, &at.device);
    if (answer.code != NVML_SUCCESS)
        return answer;
    at.parent = at.device;
    return mig_enabled(driver, at.device) ? read_instances(driver, at.device, slot, next, set)
                                          : read_gpu(driver, &at, slot, set);
}

/* Codes of the driver as a whole. */
static bool is_drivers(int code)
{
    return code == NVML_UNINITIALIZED || code == NVML_DRIVER_NOT_LOADED ||
           code == NVML_LIB_RM_VERSION_MISMATCH;
}

/* One bad answer is not a lost card: who was there stays as it was for a while. */
static bool is_doubted(struct driver *driver, uint32_t slot, const struct answer *answer)
{
    int64_t now_ns = gs_clock_now_ns(driver->config.clock);
    bool kept = false;
    if (answer->code == NVML_GPU_IS_LOST || is_drivers(answer->code))
        return false;
    for (uint32_t i = 0; i < driver->count; i++) {
        struct card *card = &driver->cards[i];
        bool same = answer->device && card->device
                        ? card->device == answer->device || card->parent == answer->device
                        : card->slot == slot;
        if (!same || card->met || !card->known)
            continue;
        card->doubted_ns = card->doubted_ns ? card->doubted_ns : now_ns;
        card->met = now_ns - card->doubted_ns < GS_NVML_DOUBT_NS;
        kept |= card->met;
    }
    return kept;
}

static bool has_met(const struct driver *driver, uint32_t slot)
{
    for (uint32_t i = 0; i < driver->count; i++) {
        if (driver->cards[i].met && driver->cards[i].slot == slot)
            return true;
    }
    return false;
}

/* Every card by itself: a sick one takes no other with it. When all of them fail, and not because
 * they are lost, it is the driver that does. */
static int read_cards(struct driver *driver, uint32_t count, struct gs_gpu_set *set,
                      struct gs_error *err)
{
    uint32_t answered = 0, next = count;
    int failure = NVML_SUCCESS;
    for (uint32_t i = 0; i < driver->count; i++)
        driver->cards[i].met = false;
    for (uint32_t slot = 0; slot < count; slot++) {
        struct answer answer = read_card(driver, slot, &next, set);
        bool failed = answer.code != NVML_SUCCESS && !is_doubted(driver, slot, &answer);
        answered += !failed || answer.code == NVML_GPU_IS_LOST || has_met(driver, slot);
        if (!failed)
            continue;
        char why[120];
        failure = answer.code;
        snprintf(why, sizeof(why), "%s: %.80s", answer.failed,
                 driver->nvml.error_string(answer.code));
        note_refusal(set, slot, why);
    }
    if (count && !answered)
        return nvml_fail(&driver->nvml, failure, set->refused, err);
    for (uint32_t i = 0; i < driver->count; i++) {
        struct card *card = &driver->cards[i];
        card->device = card->met ? card->device : NULL;
        card->known = card->met;
        card->watched &= card->met;
    }
    return 0;
}

static void fill_set(struct driver *driver, struct gs_gpu_set *set)
{
    int64_t now_ns = gs_clock_now_ns(driver->config.clock);
    for (uint32_t i = 0; i < driver->count; i++) {
        struct card *card = &driver->cards[i];
        if (!card->known)
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
    int code = NVML_SUCCESS;
    if (driver->nvml.handle)
        return 0;
    int result = nvml_open(&driver->nvml, driver->config.library, &code, err);
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
        nvml_fail(&driver->nvml, code, "the NVIDIA driver does not report its GPUs", err);
        gs_driver_unload(driver);
        return -1;
    }
    if (read_cards(driver, count, &set, err) < 0) {
        gs_driver_unload(driver);
        return -1;
    }
    fill_set(driver, &set);
    set.fresh = driver->reloaded;
    *ret = set;
    return 0;
}

static void release_driver(void *ctx)
{
    gs_driver_unload(ctx);
    note_reload(ctx);
}

static void close_driver(void *ctx)
{
    gs_driver_unload(ctx);
    free(ctx);
}

int gs_gpus_from_driver(const struct gs_nvml_config *config, struct gs_gpu_source *ret,
                        struct gs_error *err)
{
    static const struct gs_gpu_source_ops ops = {read_driver, gs_driver_wait, release_driver,
                                                 gs_driver_processes, close_driver};
    struct driver *driver = calloc(1, sizeof(*driver));
    if (!driver)
        return gs_fail_nomem(err);
    driver->config = *config;
    *ret = (struct gs_gpu_source){&ops, driver};
    return 0;
}
