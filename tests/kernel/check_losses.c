/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which the kernel forgets a limit without a word, and what a pass over the pods does.
 */
#include "checks.h"

#include <errno.h>
#include <string.h>

static const char pod_a[] = "lost";
static const struct gs_limit limits[] = {{REGION_0, 4 * GIB}, {REGION_1, 5 * GIB}};

static enum gs_limit_outcome hold(struct gs_limiter *limiter, struct gs_limit_result results[2])
{
    return gs_limiter_hold(limiter, pod_a, limits, 2, results);
}

static enum gs_limit_outcome verify(struct gs_limiter *limiter, struct gs_limit_result results[2])
{
    return gs_limiter_verify(limiter, pod_a, limits, 2, results);
}

static void held_again(struct gs_limiter *limiter, const char *pod)
{
    struct gs_limit_result results[2];
    check(hold(limiter, results) == GS_LIMIT_HELD, "the next pass repairs it");
    struct user user = user_start(container_make(pod, "x", true), 0);
    check(user_take(&user, 5 * GIB) == EAGAIN && user_take(&user, 4 * GIB) == 0,
          "and it holds: 4 GiB are given, 5 are not");
    user_end(&user);
    check(hold(limiter, results) == GS_LIMIT_HELD && !results[0].written && !results[1].written,
          "a pass with nothing to repair writes nothing");
}

static void the_driver_registers_its_region_anew(struct gs_limiter *limiter, const char *pod)
{
    struct gs_limit_result results[2];
    check(driver_do(0, "unregister") == 0, "the driver lets go of GPU 0");
    check(hold(limiter, results) == GS_LIMIT_NO_REGION && results[1].outcome == GS_LIMIT_HELD,
          "its limit cannot be: %s; the other GPU's is held",
          gs_limit_outcome_reason(results[0].outcome));
    check(driver_do(0, "register") == 0, "the driver takes it again");
    check(verify(limiter, results) == GS_LIMIT_OTHER &&
              results[0].found_bytes == GS_DMEM_NO_LIMIT && results[1].outcome == GS_LIMIT_HELD,
          "the limit is gone, the other GPU's is not");
    held_again(limiter, pod);
}

static void the_pod_is_made_again(struct gs_limiter *limiter)
{
    struct gs_limit_result results[2];
    const char *pod = pod_make(pod_a, GS_QOS_GUARANTEED);
    folder_remove(pod);
    check(verify(limiter, results) == GS_LIMIT_NO_POD, "without its cgroup: %s",
          gs_limit_outcome_reason(results[0].outcome));
    pod = pod_make(pod_a, GS_QOS_GUARANTEED);
    check(verify(limiter, results) == GS_LIMIT_OTHER, "made again it has no limit");
    held_again(limiter, pod);
}

static void dmem_is_switched_on_the_way(struct gs_limiter *limiter, const char *pod)
{
    struct gs_limit_result results[2];
    file_put(pod, "cgroup.subtree_control", "-dmem");
    check(file_put(MOUNT "/kubepods.slice", "cgroup.subtree_control", "-dmem") == 0 &&
              verify(limiter, results) == GS_LIMIT_NO_FILES,
          "somebody writes -dmem above the pod: %s", gs_limit_outcome_reason(results[0].outcome));
    check(hold(limiter, results) == GS_LIMIT_HELD && results[0].written,
          "the next pass writes +dmem on the way down, and the limit");
    file_put(MOUNT "/kubepods.slice", "cgroup.subtree_control", "-dmem");
    file_put(MOUNT "/kubepods.slice", "cgroup.subtree_control", "+dmem");
    check(verify(limiter, results) == GS_LIMIT_OTHER, "-dmem and +dmem: the limit is gone");
    held_again(limiter, pod);
}

void check_losses(void)
{
    struct gs_limiter *limiter = NULL;
    struct gs_limit_result results[2];
    const struct gs_limiter_options options = {.mount = MOUNT};
    chapter("limits that are lost");
    folder_remove(MOUNT "/kubepods.slice"); /* whose classes would keep dmem switched on */
    const char *pod = pod_make(pod_a, GS_QOS_GUARANTEED);
    gs_limiter_new(&options, &limiter, NULL);
    check(hold(limiter, results) == GS_LIMIT_HELD, "4 and 5 GiB of two GPUs");
    the_driver_registers_its_region_anew(limiter, pod);
    folder_remove(pod);
    pod_make(pod_a, GS_QOS_GUARANTEED);
    hold(limiter, results);
    the_pod_is_made_again(limiter);
    folder_remove(pod);
    pod = pod_make(pod_a, GS_QOS_GUARANTEED);
    hold(limiter, results);
    dmem_is_switched_on_the_way(limiter, pod);
    folder_remove(pod);
    gs_limiter_free(limiter);
}
