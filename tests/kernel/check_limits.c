/* SPDX-License-Identifier: Apache-2.0 */
/* A limit holds, for the pod it is meant for and nobody else. */
#include "checks.h"

#include <errno.h>
#include <string.h>

static const char *const addresses[] = {"00000000:41:00.0", "00000000:C1:00.0"};

static struct gs_limiter *limiter_new(void)
{
    struct gs_limiter *limiter = NULL;
    const struct gs_limiter_options options = {.mount = MOUNT};
    gs_limiter_new(&options, &limiter, NULL);
    return limiter;
}

static enum gs_limit_outcome hold(struct gs_limiter *limiter, const char *uid, const char *region,
                                  uint64_t bytes)
{
    const struct gs_limit limit = {region, bytes};
    struct gs_limit_result result;
    return gs_limiter_hold(limiter, uid, &limit, 1, &result);
}

static void the_host_can_limit(struct gs_limiter *limiter)
{
    struct gs_region gpus[2];
    enum gs_enforced host = gs_limiter_look(limiter, addresses, 2, gpus);
    check(host == GS_ENFORCED_NO_PODS, "a host without a kubelet: %s", gs_enforced_reason(host));
    fact("before anybody wrote to the root's cgroup.subtree_control, GPU 0 is: %s",
         gs_enforced_reason(gpus[0].state));
    check(gs_limiter_tree(limiter)->root_count == 0, "no folder of pods yet");
    pod_make("a", GS_QOS_BURSTABLE);
    host = gs_limiter_look(limiter, addresses, 2, gpus);
    check(host == GS_ENFORCED_DMEM, "the host is %s", gs_enforced_reason(host));
    check(gpus[0].state == GS_ENFORCED_DMEM && gpus[1].state == GS_ENFORCED_DMEM,
          "%s is \"%s\", %s is \"%s\"", addresses[0], gpus[0].name, addresses[1], gpus[1].name);
    check(gs_limiter_tree(limiter)->root_count == 1, "the pods' folder is found: %s",
          gs_limiter_tree(limiter)->roots[0]);
}

static void above_the_limit_the_driver_refuses(struct gs_limiter *limiter, bool runc)
{
    const char *pod = pod_make("a", GS_QOS_BURSTABLE), *other = pod_make("b", GS_QOS_BURSTABLE);
    const char *with = runc ? "with dmem.* of their own (runc)" : "without dmem.* (crun)";
    check(hold(limiter, "a", REGION_0, 4 * GIB) == GS_LIMIT_HELD,
          "4 GiB for pod a, containers %s: held, read back", with);
    struct user one = user_start(container_make(pod, "a1", runc), 0);
    struct user two = user_start(container_make(pod, "a2", runc), 0);
    struct user neighbour = user_start(container_make(other, "b1", runc), 0);
    check(user_take(&one, 3 * GIB) == 0, "container a1 takes 3 GiB");
    check(user_take(&two, 2 * GIB) == EAGAIN, "container a2 is refused 2 GiB: one limit for both");
    check(user_take(&two, GIB) == 0 && user_take(&two, 1) == EAGAIN,
          "it takes 1 GiB, and not a byte more");
    check(user_take(&neighbour, 10 * GIB) == 0, "the neighbour takes 10 GiB on the same GPU");
    const char *const regions[] = {REGION_0, REGION_1};
    uint64_t a[2] = {0}, b[2] = {0};
    gs_limiter_use(limiter, "a", regions, 2, a);
    gs_limiter_use(limiter, "b", regions, 2, b);
    check(a[0] == 4 * GIB && a[1] == 0 && b[0] == 10 * GIB, "what each uses is told: 4 and 10 GiB");
    check(user_give_back(&one) == 0 && user_take(&two, 3 * GIB) == 0,
          "what a1 gives back, a2 may take");
    user_end(&one);
    user_end(&two);
    user_end(&neighbour);
    gs_limiter_use(limiter, "a", regions, 2, a);
    check(a[0] == 0, "killed processes leave nothing behind");
    folder_remove(pod);
    folder_remove(other);
}

static void the_other_gpu_can_be_closed(struct gs_limiter *limiter)
{
    const char *pod = pod_make("c", GS_QOS_BURSTABLE);
    const struct gs_limit limits[] = {{REGION_0, 2 * GIB}, {REGION_1, 0}};
    struct gs_limit_result results[2];
    check(gs_limiter_hold(limiter, "c", limits, 2, results) == GS_LIMIT_HELD,
          "2 GiB of its GPU and 0 of the other");
    const char *container = container_make(pod, "c1", true);
    struct user own = user_start(container, 0), foreign = user_start(container, 1);
    check(user_take(&foreign, 1) == EAGAIN, "not a byte of the GPU that is not its own");
    check(user_take(&own, 2 * GIB) == 0, "all of its share of its own");
    user_end(&own);
    user_end(&foreign);
    folder_remove(pod);
}

static void a_limit_can_grow_while_the_pod_runs(struct gs_limiter *limiter)
{
    const char *pod = pod_make("d", GS_QOS_BURSTABLE);
    hold(limiter, "d", REGION_0, GIB);
    struct user user = user_start(container_make(pod, "d1", true), 0);
    check(user_take(&user, 2 * GIB) == EAGAIN, "2 of 1 GiB are refused");
    check(hold(limiter, "d", REGION_0, 2 * GIB) == GS_LIMIT_HELD && user_take(&user, 2 * GIB) == 0,
          "with 2 GiB they are given, at once");
    check(hold(limiter, "d", REGION_0, GS_DMEM_NO_LIMIT) == GS_LIMIT_HELD &&
              user_take(&user, 8 * GIB) == 0,
          "the way back: without a limit everything is given");
    user_end(&user);
    folder_remove(pod);
}

/* Kernels differ here; neither may claim what it does not hold. */
static void lowered_below_use(struct gs_limiter *limiter)
{
    const char *pod = pod_make("e", GS_QOS_BURSTABLE);
    hold(limiter, "e", REGION_0, 4 * GIB);
    struct user user = user_start(container_make(pod, "e1", true), 0);
    user_take(&user, 3 * GIB);
    const struct gs_limit limit = {REGION_0, 2 * GIB};
    struct gs_limit_result result;
    enum gs_limit_outcome outcome = gs_limiter_hold(limiter, "e", &limit, 1, &result);
    int refused = user_take(&user, GIB / 2);
    fact("2 GiB for a pod that uses 3: %s, 512 MiB more: %s",
         outcome == GS_LIMIT_HELD ? "held" : gs_limit_outcome_reason(outcome),
         refused ? strerrorname_np(refused) : "given");
    if (outcome == GS_LIMIT_HELD)
        check(refused == EAGAIN, "held: nothing more is given");
    else
        check(outcome == GS_LIMIT_OTHER && result.written && result.found_bytes == 4 * GIB &&
                  refused == 0,
              "the old limit stays, and that is what is told");
    user_give_back(&user);
    user_give_back(&user);
    check(hold(limiter, "e", REGION_0, 2 * GIB) == GS_LIMIT_HELD &&
              user_take(&user, 3 * GIB) == EAGAIN,
          "once it uses less, the limit is held");
    user_end(&user);
    folder_remove(pod);
}

void check_limits(void)
{
    struct gs_limiter *limiter = limiter_new();
    chapter("what this host can do");
    the_host_can_limit(limiter);
    chapter("a limit holds for its pod");
    above_the_limit_the_driver_refuses(limiter, false);
    above_the_limit_the_driver_refuses(limiter, true);
    the_other_gpu_can_be_closed(limiter);
    chapter("a limit changes");
    a_limit_can_grow_while_the_pod_runs(limiter);
    lowered_below_use(limiter);
    gs_limiter_free(limiter);
}
