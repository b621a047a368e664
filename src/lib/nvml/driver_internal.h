/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver.h"
#include "library.h"

/* What is remembered of a GPU between two reads. */
struct card {
    struct gs_gpu gpu;
    uint64_t used_bytes;
    nvml_device device; /* NULL: gone, or not asked for since the library was opened */
    nvml_device parent; /* of a MIG instance: its card, where events come from; else the device */
    unsigned int instance; /* of a MIG instance: its GPU instance; else NVML_NO_INSTANCE */
    uint32_t slot;         /* the card's place in the driver's list */
    bool met;              /* in this read */
    bool known;            /* in the last one that succeeded */
    int64_t hurt_ns;       /* time of the last critical event, 0: none */
    int64_t doubted_ns;    /* since when it answers badly, 0: it does not */
    bool watched;          /* its events are registered */
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

/* Lets go of the library; what is remembered of the cards stays. */
void gs_driver_unload(struct driver *driver);

/* As gs_gpu_source_ops. */
int gs_driver_processes(void *ctx, uint32_t idx, struct gs_gpu_process ret[GS_GPU_PROCESSES_MAX],
                        size_t *ret_count, struct gs_error *err);

/* Critical events of a card come by gs_driver_wait() from now on, if the driver has any. */
void gs_driver_watch(struct driver *driver, struct card *card);
int gs_driver_wait(void *ctx, int64_t timeout_ns, struct gs_error *err);
