/* SPDX-License-Identifier: Apache-2.0 */
/* That pods' cgroups are told as they appear depends on inotify in the cgroup file system, whatever
 * controllers the kernel has. */
#include "checks.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/limit/cgroup_watch.h"

static char told[256];
static int64_t told_ns;

static void note(void *ctx, const char *uid, enum gs_qos qos)
{
    size_t len = strlen(told);
    told_ns = now_ns();
    snprintf(told + len, sizeof(told) - len, "%c:%s ", "gbe"[qos], uid);
}

/* Told since the last time; the kernel queues events before mkdir(2) returns. */
static bool news(struct gs_cgroup_watch *watch, const char *expected)
{
    struct pollfd fd = {gs_cgroup_watch_fd(watch), POLLIN, 0};
    if (poll(&fd, 1, 0) == 1)
        gs_cgroup_watch_read(watch);
    bool same = strcmp(told, expected) == 0;
    if (!same)
        fact("told \"%s\", not \"%s\"", told, expected);
    told[0] = '\0';
    return same;
}

void check_watch(void)
{
    struct gs_cgroup_watch *watch = NULL;
    struct gs_pod_tree tree;
    chapter("pods are told as their cgroups appear");
    pod_make("0-a", GS_QOS_GUARANTEED);
    gs_pod_tree_learn(MOUNT, &tree, NULL);
    gs_cgroup_watch_new(note, NULL, &watch, NULL);
    gs_cgroup_watch_follow(watch, &tree);
    check(news(watch, "g:0-a "), "one that is there already");
    const char *pod = pod_make("0-b", GS_QOS_GUARANTEED);
    int64_t made_ns = now_ns();
    check(news(watch, "g:0-b "), "a Guaranteed one, read %.2f ms after it was made",
          (double)(told_ns - made_ns) / 1e6);
    folder_remove(pod);
    check(news(watch, ""), "nothing when it goes");
    pod_make("0-b", GS_QOS_GUARANTEED);
    check(news(watch, "g:0-b "), "and again when it is made again");
    pod_make("0-c", GS_QOS_BURSTABLE);
    check(news(watch, "b:0-c "), "the first Burstable one, with the folder of its class");
    container_make(pod_make("0-d", GS_QOS_BURSTABLE), "x", false);
    check(news(watch, "b:0-d "), "the second, and none of its containers");
    folder_remove(MOUNT "/kubepods.slice/kubepods-burstable.slice");
    pod_make("0-e", GS_QOS_BURSTABLE);
    check(news(watch, "b:0-e "), "one in a folder of its class that was made again");
    gs_cgroup_watch_free(watch);
    folder_remove(MOUNT "/kubepods.slice");
}
