/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "device_plugin/allocate/allocator.h"
#include "device_plugin/usage.h"
#include "gpushare/base/buf.h"
#include "gpushare/kube/client.h"
#include "gpushare/limit/keeper.h"
#include "gpushare/port/gpu_source.h"

/*
 * What the HTTP thread shows of the loop's state: the loop puts it here after every change, the
 * handlers read it, under one lock.
 */
struct pages_calls { /* the kubelet's Allocate */
    uint64_t answered;
    uint64_t answered_ns; /* time that these took together */
    uint64_t failed;      /* for another reason than lack of room */
};

struct pages_state {
    char gpu_error[256];  /* "" while the GPUs are known */
    char node_error[320]; /* "" unless this node is nobody's */
    bool pods_listed;
    bool linked;          /* the kubelet listens to us */
    bool checkpoint_read; /* the kubelet's checkpoint, when it was last tried */
    int64_t beat_ns;      /* when the loop was last seen to turn */
    uint32_t registrations;
    size_t foreign_ids; /* listed in place of ours */
    bool unit_waits;    /* --memory-unit is not in force yet */
    struct gs_gpu_set set;
    enum gs_unit unit;
    struct gs_allocator_stats stats;
    struct pages_calls calls;
    enum gs_enforce enforce;
    struct gs_keeper_stats kept;
    uint32_t hook_trash; /* folders */
    struct usage usage;  /* of pods */
};

struct pages {
    pthread_mutex_t lock;
    struct pages_state state;      /* guarded by lock */
    struct gs_kube_client *client; /* borrowed; for its counters */
};

void pages_init(struct pages *pages, struct gs_kube_client *client);
void pages_release(struct pages *pages);
void pages_set_gpu_error(struct pages *pages, const char *why);
void pages_set_node_error(struct pages *pages, const char *why);

/* On the loop's thread, *with the lock held*, as what else the loop knows by then is put here: what
 * pods use. *Taken*. */
void pages_set_usage(struct pages *pages, const struct usage *usage);

struct gs_http_server;

/* Serves /healthz, /readyz, /metrics, /usage and /version. *ret_server: *caller frees* with
 * gs_http_server_free(). */
int pages_serve(struct pages *pages, const char *listen, struct gs_http_server **ret_server,
                struct gs_error *err);

/* For tests: 200 or 503, and the words. */
unsigned pages_ready(const struct pages_state *state, const char **ret_why);
void pages_metrics(const struct pages_state *state, struct gs_buf *out);
void pages_usage(const struct pages_state *state, struct gs_buf *out);
