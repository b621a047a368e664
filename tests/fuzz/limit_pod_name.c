/* SPDX-License-Identifier: Apache-2.0 */
/* A folder's name that has a pod's UID in it is the one that this pod's folder has. */
#include "fuzz.h"
#include "gpushare/limit/pod_tree.h"

static void it_is_the_pods_name(const char *root, enum gs_qos qos, const char *name)
{
    char uid[GS_POD_UID_BYTES], path[GS_CGROUP_PATH_BYTES], again[GS_POD_UID_BYTES];
    if (!gs_pod_tree_uid(root, qos, name, uid))
        return;
    FUZZ_CHECK(gs_pod_tree_path(root, uid, qos, path, NULL) == 0);
    FUZZ_CHECK(gs_pod_tree_uid(root, qos, strrchr(path, '/') + 1, again));
    FUZZ_CHECK(strcmp(uid, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const roots[] = {"/c/kubepods", "/c/kubepods.slice",
                                        "/c/kubelet.slice/kubelet-kubepods.slice"};
    char name[256], path[GS_CGROUP_PATH_BYTES];
    if (size >= sizeof(name))
        return 0;
    memcpy(name, data, size);
    name[size] = '\0';
    for (size_t root = 0; root < 3; root++)
        for (enum gs_qos qos = 0; qos < GS_QOS_COUNT; qos++) {
            it_is_the_pods_name(roots[root], qos, name);
            /* as a UID: it adds no component of its own */
            if (gs_pod_tree_path(roots[root], name, qos, path, NULL) == 0)
                FUZZ_CHECK(!strchr(name, '/') && !strchr(name, '.'));
        }
    return 0;
}
