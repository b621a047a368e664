/* SPDX-License-Identifier: Apache-2.0 */
/* Who may write limits, from where. */
#include "checks.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/capability.h>

static enum gs_limit_outcome hold_at(const char *mount_point)
{
    struct gs_limiter *limiter = NULL;
    const struct gs_limiter_options options = {.mount = mount_point};
    const struct gs_limit limit = {REGION_0, 3 * GIB};
    struct gs_limit_result result;
    gs_limiter_new(&options, &limiter, NULL);
    enum gs_limit_outcome outcome = gs_limiter_hold(limiter, "rights", &limit, 1, &result);
    gs_limiter_free(limiter);
    return outcome;
}

/* What comes of it in a process that has made itself smaller. */
static enum gs_limit_outcome held_by(void (*become)(void), const char *mount_point)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        become();
        _exit((int)hold_at(mount_point));
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? (enum gs_limit_outcome)WEXITSTATUS(status) : GS_LIMIT_FAILED;
}

static void nobody(void)
{
    if (setgid(65534) < 0 || setuid(65534) < 0)
        _exit(GS_LIMIT_FAILED);
}

static void without_capabilities(void)
{
    for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
        prctl(PR_CAPBSET_DROP, cap);
    /* an exec would take the rest; without one, by hand */
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    int capset(struct __user_cap_header_struct *, const struct __user_cap_data_struct *);
    if (capset(&header, none) < 0)
        _exit(GS_LIMIT_FAILED);
}

/* As a pod sees the host's tree through a hostPath volume. */
static void in_a_cgroup_namespace(void)
{
    char pid[16];
    const char *own = pod_make("agent", GS_QOS_BURSTABLE);
    snprintf(pid, sizeof(pid), "%d", getpid());
    if (file_put(container_make(own, "agent", true), "cgroup.procs", pid) != 0 ||
        unshare(CLONE_NEWCGROUP) < 0)
        _exit(GS_LIMIT_FAILED);
    without_capabilities();
}

static void take_away(const char *pod)
{
    file_put(pod, "dmem.max", REGION_0 " max\n");
}

void check_rights(void)
{
    chapter("who may limit");
    const char *pod = pod_make("rights", GS_QOS_BURSTABLE);
    check(held_by(nobody, MOUNT) == GS_LIMIT_DENIED, "another user than root: %s",
          gs_limit_outcome_reason(GS_LIMIT_DENIED));
    check(held_by(without_capabilities, MOUNT) == GS_LIMIT_HELD,
          "root without any capability: held");
    take_away(pod);
    check(held_by(in_a_cgroup_namespace, MOUNT) == GS_LIMIT_HELD,
          "root without any capability in a pod, in a cgroup namespace of its own: held");
    take_away(pod);
    mkdir("/mnt", 0755);
    check(mount(MOUNT, "/mnt", NULL, MS_BIND, NULL) == 0 &&
              mount(NULL, "/mnt", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0 &&
              hold_at("/mnt") == GS_LIMIT_READ_ONLY,
          "a read-only mount: %s", gs_limit_outcome_reason(GS_LIMIT_READ_ONLY));
    umount("/mnt");
    folder_remove(MOUNT "/kubepods.slice/kubepods-burstable.slice");
}
