/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

#include "gpushare/model/names.h"
#include "sim/world.h"

/*
 * kube-scheduler's loop in miniature, for demonstrations and tests of the extender: one pod at a
 * time, highest priority first, then oldest; resources, taints, node selector and cordon by itself,
 * the rest by the extender, over HTTP, in kube-scheduler's own words. A pass looks at everything
 * once; single-threaded.
 */
struct sched_settings {
    const char *api;
    const char *extender; /* NULL: none */
    const char *pods;     /* comma list of files, may be NULL */
    const char *domain;
    const char *scheduler_name;
    uint32_t seed;
    int64_t settle_ns;
    int64_t backoff_ns;
    bool follow;
};

struct sched_use {
    int64_t cpu_milli, memory_bytes;
    uint64_t gpu_units, cores_pct;
};

struct sched {
    struct sched_settings set;
    struct gs_names names;
    struct gs_kube_client *api;
    struct gs_kube_client *extender;
    uint64_t random;
    struct world world;     /* of the pass */
    struct sched_use *used; /* by node of the world */
    json_t *tried;          /* UID of a pending pod → what came of its last try */
    json_t *running;        /* UIDs of the pods that used up something at the last pass */
    uint64_t nodes_hash;
    uint64_t room; /* counts what may make room */
    uint64_t bound, errors;
    size_t waiting;
};

/* Tries all pods that may be tried now. *ret_tries: how many; *ret_again_ns: when the first of the
 * others may be, INT64_MAX: none may until something happens. */
int sched_pass(struct sched *sched, size_t *ret_tries, int64_t *ret_again_ns, struct gs_error *err);
void sched_release(struct sched *sched);
