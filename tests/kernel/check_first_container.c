/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet calls PreStartContainer only for containers that name the resource. A container of
 * the pod that does not (an init container, a sidecar, one that is declared before) runs by then,
 * and may have taken memory of a GPU that it was not given: its environment is its own. So the
 * limit is written as soon as the pod's cgroup appears.
 */
#include "checks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpushare/limit/cgroup_watch.h"

struct agent {
    struct gs_limiter *limiter;
    struct gs_cgroup_watch *watch;
    int told;
};

/* The claim is known from the API's watch before the kubelet makes anything. */
static void on_pod(void *ctx, const char *uid, enum gs_qos qos)
{
    struct agent *agent = ctx;
    const struct gs_limit limit = {REGION_0, 4 * GIB};
    struct gs_limit_result result;
    agent->told++;
    gs_limiter_hold(agent->limiter, uid, &limit, 1, &result);
}

static void agent_open(struct agent *agent)
{
    const struct gs_limiter_options options = {.mount = MOUNT};
    *agent = (struct agent){0};
    gs_limiter_new(&options, &agent->limiter, NULL);
    gs_limiter_look(agent->limiter, NULL, 0, NULL);
    gs_cgroup_watch_new(on_pod, agent, &agent->watch, NULL);
    gs_cgroup_watch_follow(agent->watch, gs_limiter_tree(agent->limiter));
}

static void agent_close(struct agent *agent)
{
    gs_cgroup_watch_free(agent->watch);
    gs_limiter_free(agent->limiter);
}

/* A process of its own, as the device plugin is; returns when it watches. */
static pid_t agent_start(void)
{
    struct agent agent;
    int ready[2];
    char byte = 0;
    if (pipe(ready) < 0)
        check(false, "pipe");
    pid_t pid = fork();
    if (pid != 0) {
        check(read(ready[0], &byte, 1) == 1, "the agent watches");
        close(ready[0]);
        close(ready[1]);
        return pid;
    }
    agent_open(&agent);
    if (write(ready[1], &byte, 1) != 1)
        _exit(1);
    for (;;) {
        struct pollfd fd = {gs_cgroup_watch_fd(agent.watch), POLLIN, 0};
        if (poll(&fd, 1, -1) == 1)
            gs_cgroup_watch_read(agent.watch);
    }
}

static void agent_kill(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static bool limited(const char *pod)
{
    return file_has(pod, "dmem.max", REGION_0 " 4294967296\n");
}

/* The kubelet gives it the time that a sandbox's network and start take. How long that is on a busy
 * machine is nobody's promise: only that it is limited by then. */
#define LATEST_NS 20000000000LL

static bool gets_limited(const char *pod)
{
    int64_t started_ns = now_ns();
    while (!limited(pod) && now_ns() - started_ns < LATEST_NS)
        usleep(100);
    return limited(pod);
}

static void before_its_first_process(enum gs_qos qos, const char *class)
{
    char uid[32];
    snprintf(uid, sizeof(uid), "first-%s", class);
    int64_t started_ns = now_ns();
    const char *pod = pod_make(uid, qos);
    check(gets_limited(pod), "%s: limited before any process of the pod", class);
    fact("%s: %.1f ms after the kubelet began to make its cgroup", class,
         (double)(now_ns() - started_ns) / 1e6);
    struct user first = user_start(container_make(pod, "init", true), 0);
    check(user_take(&first, 5 * GIB) == EAGAIN,
          "%s: a first container without gpu-mem is refused 5 of 4 GiB", class);
    user_end(&first);
    folder_remove(pod);
}

/* Shows that the checks above can fail. */
static void limited_in_prestart_only(void)
{
    struct agent agent;
    const char *pod = pod_make("late", GS_QOS_BURSTABLE);
    struct user first = user_start(container_make(pod, "init", true), 0);
    check(user_take(&first, 5 * GIB) == 0,
          "without an agent that watches, the first container has 5 GiB before PreStartContainer");
    /* Tells the pods that are there, its own and this: what PreStartContainer alone would do. */
    agent_open(&agent);
    const char *const regions[] = {REGION_0};
    uint64_t used = 0;
    gs_limiter_use(agent.limiter, "late", regions, 1, &used);
    check(agent.told == 2 && used == 5 * GIB, "and verifying by reading shows it: 5 GiB in use");
    user_end(&first);
    agent_close(&agent);
    folder_remove(pod);
}

static void an_agent_that_dies(void)
{
    pid_t agent = agent_start();
    const char *pod = pod_make("kept", GS_QOS_BURSTABLE);
    check(gets_limited(pod), "a pod is limited");
    agent_kill(agent);
    struct user user = user_start(container_make(pod, "k1", true), 0);
    check(user_take(&user, 5 * GIB) == EAGAIN, "after SIGKILL of the agent the limit stands");
    user_end(&user);
    folder_remove(pod);
    pod = pod_make("missed", GS_QOS_BURSTABLE);
    agent = agent_start();
    check(gets_limited(pod), "a pod made while there was no agent is limited when one starts");
    agent_kill(agent);
    folder_remove(pod);
}

void check_first_container(void)
{
    chapter("the first container of a pod");
    pod_make("agent", GS_QOS_BEST_EFFORT); /* the agent's own: there is a tree when it starts */
    pid_t agent = agent_start();
    before_its_first_process(GS_QOS_GUARANTEED, "Guaranteed");
    before_its_first_process(GS_QOS_BURSTABLE, "Burstable");
    before_its_first_process(GS_QOS_BEST_EFFORT, "BestEffort");
    before_its_first_process(GS_QOS_BURSTABLE, "Burstable"); /* made again */
    agent_kill(agent);
    limited_in_prestart_only();
    an_agent_that_dies();
}
