/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_source [LIBRARY [READS]]: the device plugin's source of GPUs (src/lib/nvml) on this machine's
 * driver: what it sees, which processes hold memory and of which pods they are, whether it hears
 * events, and what a thousand reads (or so many) leave behind. A line each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpushare/base/clock.h"
#include "gpushare/limit/process_pods.h"
#include "nvml/driver.h"

enum { READS = 1000 };

static long resident_kib(void)
{
    char line[128];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return kib;
}

static void tell(const struct gs_gpu_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        printf(
            "gpu idx=%u uuid=%s mib=%u used_mib=%llu pci=%s minor=%d numa=%d clients=%u model=%s\n",
            gpu->idx, gpu->uuid, gpu->mem_mib,
            (unsigned long long)(set->used_bytes[gpu->idx] >> 20), gpu->pci, gpu->node - 1,
            gpu->numa, gpu->max_pods, gpu->model);
    }
    if (set->refused[0])
        printf("refused %s\n", set->refused);
    printf("events %s\n", set->deaf ? "not heard" : "heard");
}

static void tell_processes(const struct gs_gpu_source *source, uint32_t idx,
                           struct gs_process_pods *pods)
{
    struct gs_gpu_process processes[GS_GPU_PROCESSES_MAX];
    struct gs_error err = {0};
    size_t count = 0;
    if (source->ops->processes(source->ctx, idx, processes, &count, &err) < 0)
        printf("processes gpu=%u: %s\n", idx, err.msg);
    for (size_t i = 0; i < count; i++) {
        char uid[GS_POD_UID_BYTES] = "-";
        gs_process_pods_find(pods, idx, INT64_MAX, processes[i].pid, uid);
        if (processes[i].bytes == GS_GPU_BYTES_UNKNOWN)
            printf("process gpu=%u pid=%u mib=- pod=%s\n", idx, processes[i].pid, uid);
        else
            printf("process gpu=%u pid=%u mib=%llu pod=%s\n", idx, processes[i].pid,
                   (unsigned long long)(processes[i].bytes >> 20), uid);
    }
}

/* As the plugin does, --pod-usage-from. */
static void tell_pods(const struct gs_gpu_source *source, const struct gs_gpu_set *set)
{
    struct gs_process_pods *pods = gs_process_pods_new("/proc");
    if (!pods)
        return;
    gs_process_pods_begin(pods);
    for (uint32_t i = 0; i < set->count; i++)
        tell_processes(source, set->gpus[i].idx, pods);
    gs_process_pods_end(pods);
    gs_process_pods_free(pods);
}

int main(int argc, char **argv)
{
    const struct gs_nvml_config config = {.library = argc > 1 ? argv[1] : NULL,
                                          .clock = gs_clock_system()};
    static struct gs_gpu_set set;
    struct gs_gpu_source source;
    struct gs_error err = {0};
    long before_kib = 0;
    const long reads = argc > 2 ? strtol(argv[2], NULL, 10) : READS;
    int failed = gs_gpus_from_driver(&config, &source, &err) < 0;
    for (long i = 0; !failed && i < reads; i++) {
        failed = source.ops->read(source.ctx, &set, &err) < 0;
        if (i == 0 && !failed) {
            tell(&set);
            tell_pods(&source, &set);
        }
        if (i == reads / 10)
            before_kib = resident_kib();
    }
    if (failed) {
        fprintf(stderr, "gpu_source: %s\n", err.msg);
        return 1;
    }
    printf("left_kib %ld\n", resident_kib() - before_kib);
    source.ops->close(source.ctx);
    return 0;
}
