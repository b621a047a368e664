/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs, on 8 GPUs: facts, never promises. */
#include "checks.h"

#include <stdio.h>

enum { GPUS = 8, PODS = 250, ROUNDS = 20 };

static const char *const regions[GPUS] = {
    "nvidia/0000:41:00/vidmem", "nvidia/0000:c1:00/vidmem", "nvidia/0000:01:00/vidmem",
    "nvidia/0000:21:00/vidmem", "nvidia/0000:61:00/vidmem", "nvidia/0000:81:00/vidmem",
    "nvidia/0000:a1:00/vidmem", "nvidia/0000:e1:00/vidmem",
};

static struct gs_limit limits[GPUS];
static struct gs_limit_result results[GPUS];

static void name(int pod, char uid[GS_POD_UID_BYTES])
{
    snprintf(uid, GS_POD_UID_BYTES, "0a1b2c3d-0000-4000-8000-%012d", pod);
}

static enum gs_limit_outcome do_pod(struct gs_limiter *limiter, int pod, size_t count)
{
    char uid[GS_POD_UID_BYTES];
    name(pod, uid);
    return gs_limiter_hold(limiter, uid, limits, count, results);
}

static bool all_pods(struct gs_limiter *limiter, size_t count, double *ret_ms)
{
    bool held = true;
    int64_t started_ns = now_ns();
    for (int pod = 0; pod < PODS; pod++)
        held = do_pod(limiter, pod, count) == GS_LIMIT_HELD && held;
    *ret_ms = (double)(now_ns() - started_ns) / 1e6;
    return held;
}

static void one_pod_on_eight_gpus(struct gs_limiter *limiter)
{
    bool held = true;
    int64_t started_ns = now_ns();
    for (int round = 0; round < ROUNDS; round++) {
        for (int gpu = 0; gpu < GPUS; gpu++)
            limits[gpu] = (struct gs_limit){regions[gpu], (uint64_t)(round + 1) << 30};
        held = do_pod(limiter, 0, GPUS) == GS_LIMIT_HELD && held;
    }
    check(held, "set and verify 8 GPUs of a pod: %.3f ms",
          (double)(now_ns() - started_ns) / 1e6 / ROUNDS);
    started_ns = now_ns();
    for (int round = 0; round < ROUNDS; round++)
        held = do_pod(limiter, 0, GPUS) == GS_LIMIT_HELD && !results[0].written && held;
    check(held, "verify them again, nothing to write: %.3f ms",
          (double)(now_ns() - started_ns) / 1e6 / ROUNDS);
}

static void all_pods_of_a_node(struct gs_limiter *limiter)
{
    double ms;
    bool held = all_pods(limiter, 1, &ms);
    check(held, "first limits of 250 pods, 1 GPU each: %.2f ms", ms);
    held = all_pods(limiter, 1, &ms);
    check(held, "a pass over 250 pods, 1 GPU each, nothing to repair: %.2f ms", ms);
    all_pods(limiter, GPUS, &ms);
    held = all_pods(limiter, GPUS, &ms);
    check(held, "a pass over 250 pods, 8 GPUs each, nothing to repair: %.2f ms", ms);
}

static void use_of_all_pods(struct gs_limiter *limiter)
{
    uint64_t used[GPUS];
    char uid[GS_POD_UID_BYTES];
    bool read = true;
    int64_t started_ns = now_ns();
    for (int pod = 0; pod < PODS; pod++) {
        name(pod, uid);
        read = gs_limiter_use(limiter, uid, regions, GPUS, used) == GS_LIMIT_HELD && read;
        gs_limiter_peak(limiter, uid, regions, GPUS, used); /* since 7.3 */
    }
    check(read, "what 250 pods use of 8 GPUs and ever used: %.2f ms",
          (double)(now_ns() - started_ns) / 1e6);
}

void check_cost(void)
{
    struct gs_limiter *limiter = NULL;
    const struct gs_limiter_options options = {.mount = MOUNT};
    char uid[GS_POD_UID_BYTES];
    chapter("cost");
    for (int pod = 0; pod < PODS; pod++) {
        name(pod, uid);
        pod_make(uid, GS_QOS_BURSTABLE);
    }
    gs_limiter_new(&options, &limiter, NULL);
    one_pod_on_eight_gpus(limiter);
    for (int gpu = 0; gpu < GPUS; gpu++)
        limits[gpu].bytes = 3 * GIB;
    all_pods_of_a_node(limiter);
    use_of_all_pods(limiter);
    gs_limiter_free(limiter);
}
