/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/limit/process_pods.h"
#include "gpushare/port/gpu_source.h"

/*
 * What pods use of GPUs by the driver's account (--pod-usage-from=nvml|auto), for drivers and
 * kernels without dmem: the processes that the driver lists on each GPU, and whose pods they are
 * (limit/process_pods.h). The GPUs' thread reads; the loop keeps, with the most that was ever read.
 *
 *   not counted   at first: nothing is reported. Left by a reading that lists the GPU and has the
 *                 bytes of each of the pod's processes
 *   counted       use, 0 without a process, and peak. Left by a reading that does not, or by half a
 *                 minute without one
 *
 * Memory of processes that are no pod's, of pods elsewhere, and of those of which it is not known,
 * is others'. What all pods use of a GPU is at most what is in use of it: where processes took some
 * between the two questions, what is beyond is taken off all of them in proportion.
 */
struct driver_usage_entry {
    char uid[GS_POD_UID_BYTES]; /* as in its cgroup's name */
    uint32_t gpu;               /* its place in the reading */
    uint64_t bytes;
    bool unknown; /* a process of it does not tell */
};

/* From one thread to the other. */
struct driver_reading {
    int64_t at_ns; /* by the loop's clock */
    char uuids[GS_GPUS_MAX][GS_UUID_BYTES];
    uint32_t gpu_count; /* whose processes were listed */
    struct driver_usage_entry *entries;
    uint32_t count, cap;
    struct gs_error err; /* why GPUs are missing, of the first; GS_OK: none */
};

/* On the GPUs' thread, after set was read. next: before each GPU's list the time by CLOCK_BOOTTIME;
 * 0 ends the reading. NULL: that, or out of memory. *caller frees* with driver_reading_free(). */
struct driver_reading *driver_usage_read(const struct gs_gpu_source *source,
                                         const struct gs_gpu_set *set, struct gs_process_pods *pods,
                                         int64_t (*next)(void *ctx), void *ctx);
void driver_reading_free(struct driver_reading *reading);

/* What is known of a pod's use, by GPU index. */
struct pod_use {
    gs_gpu_mask counted;
    uint64_t used_on[GS_GPUS_MAX], peak_on[GS_GPUS_MAX]; /* of these */
};

struct driver_usage_pod {
    char uid[GS_POD_UID_BYTES];
    bool placed;         /* asked for since the last pass began */
    bool read;           /* in the last reading */
    gs_gpu_mask unknown; /* by the last reading */
    struct pod_use use;  /* counted: of these something was ever read */
    uint64_t over_bytes; /* the most over its request, in this pass */
    int64_t told_ns;     /* when people were told of that; 0: never */
};

/* The loop's. A zeroed one is valid. */
struct driver_usage {
    int64_t read_ns;  /* of the last reading; 0: none */
    gs_gpu_mask told; /* GPUs whose processes it lists */
    struct driver_usage_pod *pods;
    uint32_t count, cap;
    enum gs_code failure; /* that was logged */
};

void driver_usage_release(struct driver_usage *usage);

/* reading is *taken*. set: the GPUs by their indices of today. */
void driver_usage_take(struct driver_usage *usage, struct driver_reading *reading,
                       const struct gs_gpu_set *set);

/* A pass over all pods with GPU memory, each of which is asked for; others are forgotten, but for
 * those of the last reading: at the start the driver may answer before the API server does. */
void driver_usage_pass_begin(struct driver_usage *usage);
void driver_usage_pass_end(struct driver_usage *usage);
/* Adds to ret what the driver knows of the pod on those of the GPUs on which it is counted. */
void driver_usage_find(struct driver_usage *usage, const char *uid, gs_gpu_mask gpus,
                       int64_t now_ns, struct pod_use *ret);

/* The pod uses so much more of a GPU than its share. */
void driver_usage_over(struct driver_usage *usage, const char *uid, uint64_t bytes);
/* After a pass, those that were not reported within the hour that an API server keeps Events
 * (kube-apiserver --event-ttl): a UID, until the next call. NULL: no more. */
const char *driver_usage_next_over(struct driver_usage *usage, int64_t now_ns, uint64_t *ret_bytes);
