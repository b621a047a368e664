/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpushare/base/error.h"
#include "gpushare/base/slice.h"
#include "gpushare/model/pod.h"

/*
 * Where the kubelet puts a pod's cgroup, below a mount of cgroup v2:
 *
 *   driver systemd   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
 *                    with each "-" of the UID written "_"
 *   driver cgroupfs  /kubepods/burstable/pod<uid>
 *
 * A Guaranteed pod lies directly in the first folder. The kubelet's --cgroup-root (and kind) puts
 * more in front: /kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/… So the
 * first folder is looked for, once, and everything else follows from its path. A static pod's
 * cgroup has the hash of its manifest in place of a UID (annotation kubernetes.io/config.hash).
 *
 * Source: Kubernetes, pkg/kubelet/cm: pod_container_manager_linux.go (GetPodContainerName),
 * cgroup_manager_linux.go (ToSystemd, ToCgroupfs). Used by one thread; reads folders, writes none.
 */

enum {
    GS_CGROUP_PATH_BYTES = 768, /* of a path below the mount, its NUL included */
    /* A kubelet whose driver was changed leaves its old tree behind; each node of kind has one */
    GS_POD_TREE_ROOTS_MAX = 16,
    GS_POD_TREE_PLACES_MAX = 4, /* of one pod */
    GS_POD_TREE_DEPTH_MAX = 5,  /* folders above the pods' that are searched */
    GS_POD_TREE_FOLDERS_MAX = 4096
};

struct gs_pod_tree {
    size_t root_count;
    /* Paths of the folders "kubepods", absolute, as opened here; each begins with the mount. */
    char roots[GS_POD_TREE_ROOTS_MAX][GS_CGROUP_PATH_BYTES];
};

/* Looks for the pods' folders below the mount (a path without "/" at its end, copied), at most
 * GS_POD_TREE_DEPTH_MAX deep and through GS_POD_TREE_FOLDERS_MAX folders. Of more than there is
 * room for those that lie deepest are left out: the node's own kubelet is not below others'
 * containers. None found is no error: the kubelet has not made them yet. GS_EIO: the mount cannot
 * be read. *ret is untouched then. */
int gs_pod_tree_learn(const char *mount, struct gs_pod_tree *ret, struct gs_error *err);

/* The path of a pod's cgroup below one of the roots, whether it is there or not. GS_EINVAL: a UID
 * that cannot be one (it comes from the API, and becomes part of a path); GS_ETOOBIG. */
int gs_pod_tree_path(const char *root, const char *uid, enum gs_qos qos,
                     char ret[GS_CGROUP_PATH_BYTES], struct gs_error *err);

/* The folder in which pods of this class lie; for Guaranteed the root itself. False: too long. */
bool gs_pod_tree_folder(const char *root, enum gs_qos qos, char ret[GS_CGROUP_PATH_BYTES]);

/* The UID in the name of a pod's folder that lies in that root's folder of this class; false for
 * every other name. "kubepods-burstable-pod0a1b_2c.slice" → "0a1b-2c". */
bool gs_pod_tree_uid(const char *root, enum gs_qos qos, const char *name,
                     char ret_uid[GS_POD_UID_BYTES]);

/* The UID of the pod whose process it is, by its cgroup's path in /proc/PID/cgroup (cgroups(7)), of
 * either driver and any root. The outermost folder that can be a pod's counts: what lies below it
 * is named by the pod. From a cgroup namespace of one's own, as a container has it, such a path
 * begins where the two part: "/../../pod<uid>/<container>". False: no pod's; *ret_uid is untouched.
 */
bool gs_pod_tree_uid_of_path(struct gs_slice path, char ret_uid[GS_POD_UID_BYTES]);

/* The paths of the pod's cgroups that are there: in every root, under every class. An API server
 * and a kubelet of another version may not agree on the class, and a kubelet whose driver was
 * changed makes a second one for a pod that runs. Returns how many; 0: none (yet, or any more), or
 * a UID that cannot be one. */
size_t gs_pod_tree_find(const struct gs_pod_tree *tree, const char *uid,
                        char ret[GS_POD_TREE_PLACES_MAX][GS_CGROUP_PATH_BYTES]);
