/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "gpushare/base/cleanup.h"
#include "gpushare/base/error.h"
#include "gpushare/limit/pod_tree.h"

/*
 * Tells a pod's UID as soon as the kubelet has made its cgroup: before the sandbox, and so before
 * any process of the pod. That is the moment for a limit; the device plugin's PreStartContainer is
 * called only for containers that name the resource, when others of the pod may run already.
 * inotify(7) on the folders of the three QoS classes: three watches per root, none per pod but
 * those of gs_cgroup_watch_containers(). No thread of its own: a descriptor for the caller's poll
 * loop.
 *
 *   gs_cgroup_watch_new(on_pod, me, &watch, &err);
 *   gs_cgroup_watch_follow(watch, gs_limiter_tree(limiter));    tells all pods that are there
 *   poll: gs_cgroup_watch_fd(watch) is readable → gs_cgroup_watch_read(watch)
 *
 * Nothing that is made after follow() is missed: folders are read after they are watched, and again
 * when the kernel's queue overflowed. A pod may be told twice: act idempotently. Used by one
 * thread.
 */
struct gs_cgroup_watch;

/* uid: as the folder's name has it; of a static pod its config hash. *Borrowed* during the call.
 * Must not free the watch, nor call it. */
typedef void gs_cgroup_watch_fn(void *ctx, const char *uid, enum gs_qos qos);

/* GS_EIO: no inotify instance left (fs.inotify.max_user_instances); GS_ENOMEM. */
int gs_cgroup_watch_new(gs_cgroup_watch_fn *fn, void *ctx, struct gs_cgroup_watch **ret,
                        struct gs_error *err);
void gs_cgroup_watch_free(struct gs_cgroup_watch *watch);

/* For poll(2), POLLIN; non-blocking. Owned by the watch. */
int gs_cgroup_watch_fd(const struct gs_cgroup_watch *watch);

/* Watches these roots (copied) and no others, and tells every pod that is below them now. To be
 * called again from time to time, as a remedy for roots that were made anew. */
void gs_cgroup_watch_follow(struct gs_cgroup_watch *watch, const struct gs_pod_tree *tree);

/* From now on the pod is told again as cgroups of its containers appear, until its own is gone.
 * Nothing happens when it has none, or for more than GS_CGROUP_WATCH_PODS_MAX pods: who needs it
 * for more than to show something must not rely on it. */
enum { GS_CGROUP_WATCH_PODS_MAX = 512 };
void gs_cgroup_watch_containers(struct gs_cgroup_watch *watch, const char *uid, enum gs_qos qos);

/* Takes what the kernel has; tells the pods that are new. */
void gs_cgroup_watch_read(struct gs_cgroup_watch *watch);
