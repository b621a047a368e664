/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes hold memory of a GPU (NVML API reference, nvmlDeviceGetComputeRunningProcesses
 * and its two siblings). */
#include "driver_internal.h"

struct list {
    struct gs_gpu_process *to;
    size_t count;
};

static const struct card *card_at(const struct driver *driver, uint32_t idx)
{
    for (uint32_t i = 0; i < driver->count; i++) {
        const struct card *card = &driver->cards[i];
        if (card->device && card->gpu.idx == idx)
            return card;
    }
    return NULL;
}

/* One that computes and draws stands in two lists, with the same sum of both. False: no room. */
static bool take(struct list *list, const struct nvml_process *process)
{
    uint64_t bytes = process->used_bytes == NVML_VALUE_NOT_AVAILABLE ? GS_GPU_BYTES_UNKNOWN
                                                                     : process->used_bytes;
    size_t at = 0;
    while (at < list->count && list->to[at].pid != process->pid)
        at++;
    if (at == GS_GPU_PROCESSES_MAX)
        return false;
    if (at == list->count)
        list->to[list->count++] = (struct gs_gpu_process){process->pid, bytes};
    else if (list->to[at].bytes == GS_GPU_BYTES_UNKNOWN ||
             (bytes != GS_GPU_BYTES_UNKNOWN && bytes > list->to[at].bytes))
        list->to[at].bytes = bytes;
    return true;
}

/* An NVML code. A list of a card with MIG may have other instances' as well. */
static int add_list(nvml_processes processes, const struct card *card, struct list *list)
{
    struct nvml_process found[GS_GPU_PROCESSES_MAX];
    unsigned int count = GS_GPU_PROCESSES_MAX;
    int code = processes(card->device, &count, found);
    if (code != NVML_SUCCESS)
        return code;
    for (unsigned int i = 0; i < count && i < GS_GPU_PROCESSES_MAX; i++) {
        bool another = found[i].gpu_instance != NVML_NO_INSTANCE &&
                       card->instance != NVML_NO_INSTANCE &&
                       found[i].gpu_instance != card->instance;
        if (!another && !take(list, &found[i]))
            return NVML_INSUFFICIENT_SIZE;
    }
    return NVML_SUCCESS;
}

int gs_driver_processes(void *ctx, uint32_t idx, struct gs_gpu_process ret[GS_GPU_PROCESSES_MAX],
                        size_t *ret_count, struct gs_error *err)
{
    struct driver *driver = ctx;
    const struct nvml *nvml = &driver->nvml;
    const nvml_processes lists[3] = {nvml->compute, nvml->graphics, nvml->mps_clients};
    const struct card *card = nvml->handle ? card_at(driver, idx) : NULL;
    struct list list = {.to = ret};
    if (!card)
        return gs_fail(err, GS_ENOENT, "GPU %u not found", idx);
    if (!nvml->compute)
        return gs_fail(err, GS_EIO, "this driver's library does not list processes");
    for (size_t i = 0; i < 3; i++) {
        int code = lists[i] ? add_list(lists[i], card, &list) : NVML_SUCCESS;
        if (code == NVML_INSUFFICIENT_SIZE)
            return gs_fail(err, GS_ETOOBIG, "GPU %u has more than %d processes", idx,
                           GS_GPU_PROCESSES_MAX);
        /* cards that cannot draw have no such list; that of what computes all have */
        if (code != NVML_SUCCESS && (i == 0 || code != NVML_NOT_SUPPORTED))
            return nvml_fail(nvml, code, "cannot list the processes on a GPU", err);
    }
    *ret_count = list.count;
    return 0;
}
