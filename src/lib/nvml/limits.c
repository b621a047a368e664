/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/nvml/limits.h"
#include "gpushare/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "library.h"

enum { CALL_S = 2, CGROUP_BYTES = 1024 };
/* Of these ten seconds it may have one: the caller has other work. */
#define SPAN_NS  (10 * GS_NS_PER_S)
#define SPENT_NS (1 * GS_NS_PER_S)

enum what { SET, GET, UNLOAD };

struct call {
    enum what what;
    char gpu[NVML_UUID_BYTES], cgroup[CGROUP_BYTES];
    uint64_t bytes, used;
    int error;
};

/* The driver is asked on a thread of its own, which stays where the driver does not answer. */
struct gs_nvml_limits {
    const char *library;
    struct nvml nvml; /* of that thread */
    bool released;    /* of the caller's */
    pthread_mutex_t lock;
    pthread_cond_t news;
    /* guarded: */
    struct call call;
    bool started, asked, ends;
    int64_t span_ns, spent_ns; /* when it began, and what calls took since */
};

static int error_of(int code)
{
    switch (code) {
    case NVML_SUCCESS:
        return 0;
    case NVML_INVALID_ARGUMENT:
        return EINVAL;
    case NVML_NOT_SUPPORTED:
        return EOPNOTSUPP;
    case NVML_NO_PERMISSION:
        return EPERM;
    case NVML_NOT_FOUND:
        return ENOENT;
    default:
        return EIO;
    }
}

/* 0 or an errno. */
static int find(struct gs_nvml_limits *limits, const char *gpu, nvml_device *ret)
{
    int code;
    if (!limits->nvml.handle && nvml_open(&limits->nvml, limits->library, &code, NULL) < 0)
        return EOPNOTSUPP;
    const struct nvml *nvml = &limits->nvml;
    if (!nvml->set_limits || !nvml->get_limits || !nvml->by_uuid)
        return EOPNOTSUPP;
    code = error_of(nvml->by_uuid(gpu, ret));
    return code == ENOENT ? EIO : code; /* the GPU is lost; the cgroup is not what is missing */
}

static int ask_driver(struct gs_nvml_limits *limits, struct call *call)
{
    struct nvml_limits_used found = {.limits = {.cgroup = call->cgroup, .hard_bytes = call->bytes}};
    nvml_device device;
    if (call->what == UNLOAD) {
        nvml_close(&limits->nvml);
        return 0;
    }
    int error = find(limits, call->gpu, &device);
    if (!error)
        error = error_of(call->what == SET ? limits->nvml.set_limits(device, &found.limits)
                                           : limits->nvml.get_limits(device, &found));
    if (error == EIO) /* it may answer once everybody has shut it down */
        nvml_close(&limits->nvml);
    call->bytes = found.limits.hard_bytes;
    call->used = found.used_bytes;
    return error;
}

static void forget(struct gs_nvml_limits *limits)
{
    pthread_cond_destroy(&limits->news);
    pthread_mutex_destroy(&limits->lock);
    free(limits);
}

static void *run(void *arg)
{
    struct gs_nvml_limits *limits = arg;
    pthread_mutex_lock(&limits->lock);
    while (!limits->ends) {
        if (!limits->asked) {
            pthread_cond_wait(&limits->news, &limits->lock);
            continue;
        }
        struct call call = limits->call;
        pthread_mutex_unlock(&limits->lock);
        call.error = ask_driver(limits, &call);
        pthread_mutex_lock(&limits->lock);
        limits->call = call;
        limits->asked = false;
        pthread_cond_broadcast(&limits->news);
    }
    pthread_mutex_unlock(&limits->lock);
    nvml_close(&limits->nvml);
    forget(limits);
    return NULL;
}

static bool start(struct gs_nvml_limits *limits)
{
    pthread_t thread;
    if (!limits->started && pthread_create(&thread, NULL, run, limits) == 0) {
        limits->started = true;
        pthread_detach(thread); /* nobody waits for a driver that does not answer */
    }
    return limits->started;
}

static bool await(struct gs_nvml_limits *limits)
{
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CALL_S;
    while (limits->asked && !error)
        error = pthread_cond_timedwait(&limits->news, &limits->lock, &until);
    return !limits->asked;
}

static bool has_time(struct gs_nvml_limits *limits, int64_t now_ns)
{
    if (now_ns - limits->span_ns >= SPAN_NS) {
        limits->span_ns = now_ns;
        limits->spent_ns = 0;
    }
    return limits->spent_ns < SPENT_NS;
}

/* ETIMEDOUT: the driver does not answer this call, or an earlier one, or is too slow. */
static int ask(struct gs_nvml_limits *limits, struct call *call)
{
    const int64_t begun_ns = gs_clock_now_ns(gs_clock_system());
    int error = ETIMEDOUT;
    pthread_mutex_lock(&limits->lock);
    if (!limits->asked && has_time(limits, begun_ns) && start(limits)) {
        limits->call = *call;
        limits->asked = true;
        pthread_cond_broadcast(&limits->news);
        if (await(limits)) {
            *call = limits->call;
            error = call->error;
        }
        limits->spent_ns += gs_clock_now_ns(gs_clock_system()) - begun_ns;
    }
    pthread_mutex_unlock(&limits->lock);
    return error;
}

struct gs_nvml_limits *gs_nvml_limits_new(const char *library)
{
    pthread_condattr_t monotonic;
    struct gs_nvml_limits *limits = calloc(1, sizeof(*limits));
    if (!limits)
        return NULL;
    limits->library = library;
    pthread_mutex_init(&limits->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&limits->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return limits;
}

void gs_nvml_limits_release(struct gs_nvml_limits *limits, bool released)
{
    struct call call = {.what = UNLOAD};
    limits->released = released;
    if (released && limits->started)
        ask(limits, &call);
}

void gs_nvml_limits_free(struct gs_nvml_limits *limits)
{
    if (!limits)
        return;
    if (!limits->started) {
        forget(limits);
        return;
    }
    pthread_mutex_lock(&limits->lock);
    limits->ends = true; /* the thread frees what it uses */
    pthread_cond_broadcast(&limits->news);
    pthread_mutex_unlock(&limits->lock);
}

static int call(struct gs_nvml_limits *limits, enum what what, const char *gpu, const char *cgroup,
                uint64_t *bytes, uint64_t *ret_used)
{
    struct call call = {.what = what, .bytes = *bytes};
    snprintf(call.gpu, sizeof(call.gpu), "%s", gpu);
    if ((size_t)snprintf(call.cgroup, sizeof(call.cgroup), "%s", cgroup) >= sizeof(call.cgroup))
        return ENAMETOOLONG;
    const int error = limits->released ? ETIMEDOUT : ask(limits, &call);
    if (!error && what == GET) {
        *bytes = call.bytes;
        *ret_used = call.used;
    }
    return error;
}

static int set(void *ctx, const char *gpu, const char *cgroup, uint64_t bytes)
{
    return call(ctx, SET, gpu, cgroup, &bytes, NULL);
}

static int get(void *ctx, const char *gpu, const char *cgroup, uint64_t *ret_bytes,
               uint64_t *ret_used)
{
    return call(ctx, GET, gpu, cgroup, ret_bytes, ret_used);
}

struct gs_memory_limits gs_nvml_limits_port(struct gs_nvml_limits *limits)
{
    return (struct gs_memory_limits){limits, set, get};
}
