/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/cgroup_watch.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

/* Whose containers' cgroups are waited for. */
struct watched_pod {
    int wd;
    enum gs_qos qos;
    char uid[GS_POD_UID_BYTES];
};

struct gs_cgroup_watch {
    gs_cgroup_watch_fn *fn;
    void *ctx;
    int inotify;
    struct gs_pod_tree tree;
    /* Of the folders in which pods' folders appear; -1: not there. One whose folder went is stale:
     * the kernel does not give its number out again for long. */
    int wds[GS_POD_TREE_ROOTS_MAX][GS_QOS_COUNT];
    struct watched_pod pods[GS_CGROUP_WATCH_PODS_MAX];
    size_t pod_count;
};

int gs_cgroup_watch_new(gs_cgroup_watch_fn *fn, void *ctx, struct gs_cgroup_watch **ret,
                        struct gs_error *err)
{
    struct gs_cgroup_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return gs_fail_nomem(err);
    watch->fn = fn;
    watch->ctx = ctx;
    watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch->inotify < 0) {
        free(watch);
        return gs_fail_errno(err, GS_EIO, errno, "cannot watch the pods' cgroups");
    }
    *ret = watch;
    return 0;
}

void gs_cgroup_watch_free(struct gs_cgroup_watch *watch)
{
    close(watch->inotify);
    free(watch);
}

int gs_cgroup_watch_fd(const struct gs_cgroup_watch *watch)
{
    return watch->inotify;
}

static void tell(struct gs_cgroup_watch *watch, size_t root, enum gs_qos qos, const char *name)
{
    char uid[GS_POD_UID_BYTES];
    if (gs_pod_tree_uid(watch->tree.roots[root], qos, name, uid))
        watch->fn(watch->ctx, uid, qos);
}

static void tell_all(struct gs_cgroup_watch *watch, size_t root, enum gs_qos qos, const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        tell(watch, root, qos, entry->d_name);
    if (dir)
        closedir(dir);
}

/* Read after it is watched, so that nothing is made in between unseen. */
static void attach(struct gs_cgroup_watch *watch, size_t root, enum gs_qos qos)
{
    char path[GS_CGROUP_PATH_BYTES];
    int *wd = &watch->wds[root][qos];
    *wd = -1;
    if (!gs_pod_tree_folder(watch->tree.roots[root], qos, path))
        return;
    *wd = inotify_add_watch(watch->inotify, path, IN_CREATE | IN_ONLYDIR);
    if (*wd >= 0)
        tell_all(watch, root, qos, path);
}

static void attach_all(struct gs_cgroup_watch *watch)
{
    for (size_t root = 0; root < watch->tree.root_count; root++)
        for (enum gs_qos qos = 0; qos < GS_QOS_COUNT; qos++)
            attach(watch, root, qos);
}

void gs_cgroup_watch_follow(struct gs_cgroup_watch *watch, const struct gs_pod_tree *tree)
{
    watch->tree = *tree;
    attach_all(watch);
}

/* The folder of a class that has just been made in a root. */
static bool is_class_folder(const struct gs_cgroup_watch *watch, size_t root, enum gs_qos qos,
                            const char *name)
{
    char path[GS_CGROUP_PATH_BYTES];
    if (!gs_pod_tree_folder(watch->tree.roots[root], qos, path))
        return false;
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

static void made_in(struct gs_cgroup_watch *watch, size_t root, enum gs_qos qos, const char *name)
{
    for (enum gs_qos other = GS_QOS_BURSTABLE; qos == GS_QOS_GUARANTEED && other < GS_QOS_COUNT;
         other++)
        if (is_class_folder(watch, root, other, name))
            attach(watch, root, other);
    tell(watch, root, qos, name);
}

/* Not every kernel ends the watch of a cgroup that is removed (kernfs sends no IN_IGNORED), and
 * such a watch keeps its inode. */
static void forget_gone_pods(struct gs_cgroup_watch *watch)
{
    char paths[GS_POD_TREE_PLACES_MAX][GS_CGROUP_PATH_BYTES];
    size_t kept = 0;
    for (size_t i = 0; i < watch->pod_count; i++) {
        const struct watched_pod *pod = &watch->pods[i];
        if (gs_pod_tree_find(&watch->tree, pod->uid, paths))
            watch->pods[kept++] = *pod;
        else
            inotify_rm_watch(watch->inotify, pod->wd);
    }
    watch->pod_count = kept;
}

/* inotify gives out the number that it gave before for a folder that is watched already. */
void gs_cgroup_watch_containers(struct gs_cgroup_watch *watch, const char *uid, enum gs_qos qos)
{
    char paths[GS_POD_TREE_PLACES_MAX][GS_CGROUP_PATH_BYTES];
    forget_gone_pods(watch);
    if (watch->pod_count == GS_CGROUP_WATCH_PODS_MAX ||
        gs_pod_tree_find(&watch->tree, uid, paths) != 1)
        return;
    int wd = inotify_add_watch(watch->inotify, paths[0], IN_CREATE | IN_ONLYDIR);
    for (size_t i = 0; i < watch->pod_count; i++)
        if (watch->pods[i].wd == wd)
            return;
    if (wd < 0)
        return;
    struct watched_pod *pod = &watch->pods[watch->pod_count++];
    *pod = (struct watched_pod){.wd = wd, .qos = qos};
    memcpy(pod->uid, uid, strlen(uid) + 1);
}

static void look_at_pods(struct gs_cgroup_watch *watch, const struct inotify_event *event)
{
    for (size_t i = 0; i < watch->pod_count && (event->mask & IN_ISDIR); i++) {
        const struct watched_pod *pod = &watch->pods[i];
        if (pod->wd == event->wd)
            watch->fn(watch->ctx, pod->uid, pod->qos);
    }
}

static void look_at(struct gs_cgroup_watch *watch, const struct inotify_event *event)
{
    look_at_pods(watch, event);
    for (size_t root = 0; root < watch->tree.root_count && event->len > 0; root++)
        for (enum gs_qos qos = 0; qos < GS_QOS_COUNT; qos++)
            if (watch->wds[root][qos] == event->wd)
                made_in(watch, root, qos, event->name);
}

void gs_cgroup_watch_read(struct gs_cgroup_watch *watch)
{
    _Alignas(struct inotify_event) char buf[16384];
    bool missed = false;
    ssize_t got;
    while ((got = read(watch->inotify, buf, sizeof(buf))) > 0)
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(buf + at);
            missed |= (event->mask & IN_Q_OVERFLOW) != 0;
            look_at(watch, event);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    if (missed)
        attach_all(watch);
}
