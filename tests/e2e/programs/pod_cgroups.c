/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_cgroups MOUNT   says what src/lib/limit sees of a kubelet's pods, until it is killed:
 *
 *   told burstable UID 0 processes     its cgroup appeared; so many are in it, or below
 *   first burstable UID 512.3 ms       that long after it was told, the first process was in it
 */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpushare/limit/cgroup_watch.h"

enum { PODS_MAX = 256, LOOK_EVERY_MS = 2 };

static const char *const classes[] = {"guaranteed", "burstable", "besteffort"};

static struct seen {
    char uid[GS_POD_UID_BYTES];
    enum gs_qos qos;
    int64_t told_ns;
    bool begun;
} pods[PODS_MAX];
static size_t pod_count;
static struct gs_pod_tree tree;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int lines_of(const char *folder)
{
    char path[GS_CGROUP_PATH_BYTES + 64];
    int count = 0;
    snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
    FILE *file = fopen(path, "re");
    for (int c; file && (c = getc(file)) != EOF;)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

/* The pod's own folder and its containers': there are none below these. */
static int processes_in(const char *pod)
{
    char path[GS_CGROUP_PATH_BYTES + 300];
    int count = lines_of(pod);
    DIR *dir = opendir(pod);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", pod, entry->d_name);
            count += lines_of(path);
        }
    if (dir)
        closedir(dir);
    return count;
}

static int processes_of(const char *uid, enum gs_qos qos)
{
    char path[GS_CGROUP_PATH_BYTES];
    int count = 0;
    for (size_t i = 0; i < tree.root_count; i++)
        if (gs_pod_tree_path(tree.roots[i], uid, qos, path, NULL) == 0)
            count += processes_in(path);
    return count;
}

static void on_pod(void *ctx, const char *uid, enum gs_qos qos)
{
    printf("told %s %s %d processes\n", classes[qos], uid, processes_of(uid, qos));
    if (pod_count == PODS_MAX)
        return;
    struct seen *pod = &pods[pod_count++];
    *pod = (struct seen){.qos = qos, .told_ns = now_ns()};
    snprintf(pod->uid, sizeof(pod->uid), "%s", uid);
}

static void look_for_first_processes(void)
{
    for (struct seen *pod = pods; pod < pods + pod_count; pod++) {
        if (pod->begun || processes_of(pod->uid, pod->qos) == 0)
            continue;
        pod->begun = true;
        printf("first %s %s %.1f ms\n", classes[pod->qos], pod->uid,
               (double)(now_ns() - pod->told_ns) / 1e6);
    }
}

int main(int argc, char **argv)
{
    struct gs_cgroup_watch *watch;
    struct gs_error err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 2 || gs_pod_tree_learn(argv[1], &tree, &err) < 0 ||
        gs_cgroup_watch_new(on_pod, NULL, &watch, &err) < 0) {
        fprintf(stderr, "pod_cgroups MOUNT: %s\n", err.msg);
        return 2;
    }
    printf("roots %zu\n", tree.root_count);
    gs_cgroup_watch_follow(watch, &tree);
    for (;;) {
        struct pollfd fd = {gs_cgroup_watch_fd(watch), POLLIN, 0};
        if (poll(&fd, 1, LOOK_EVERY_MS) == 1)
            gs_cgroup_watch_read(watch);
        look_for_first_processes();
    }
}
