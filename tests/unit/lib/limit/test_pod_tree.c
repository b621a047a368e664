/* SPDX-License-Identifier: Apache-2.0 */
#include "cgroup_tree.h"

#include "gpushare/limit/pod_tree.h"

#define UID_A   "0a1b2c3d-0000-4000-8000-00000000000a"
#define UID_A_  "0a1b2c3d_0000_4000_8000_00000000000a"
#define SLICE_A "kubepods-burstable-pod" UID_A_ ".slice"
#define HASH    "5f1e5b3c9a6b4b1f8f0e8f5d3c2b1a09"

static void a_pod_lies_where_its_kubelet_puts_it(void **state)
{
    static const struct {
        const char *row, *root, *uid;
        enum gs_qos qos;
        const char *path; /* NULL: refused */
    } rows[] = {
        {"systemd, Guaranteed", "/c/kubepods.slice", UID_A, GS_QOS_GUARANTEED,
         "/c/kubepods.slice/kubepods-pod" UID_A_ ".slice"},
        {"systemd, Burstable", "/c/kubepods.slice", UID_A, GS_QOS_BURSTABLE,
         "/c/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_A_ ".slice"},
        {"systemd, BestEffort", "/c/kubepods.slice", UID_A, GS_QOS_BEST_EFFORT,
         "/c/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_A_ ".slice"},
        {"cgroupfs, Guaranteed", "/c/kubepods", UID_A, GS_QOS_GUARANTEED, "/c/kubepods/pod" UID_A},
        {"cgroupfs, Burstable", "/c/kubepods", UID_A, GS_QOS_BURSTABLE,
         "/c/kubepods/burstable/pod" UID_A},
        {"cgroupfs, BestEffort", "/c/kubepods", UID_A, GS_QOS_BEST_EFFORT,
         "/c/kubepods/besteffort/pod" UID_A},
        {"kind", "/c/kubelet.slice/kubelet-kubepods.slice", UID_A, GS_QOS_BURSTABLE,
         "/c/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
         "kubelet-kubepods-burstable-pod" UID_A_ ".slice"},
        {"kind, cgroupfs", "/c/kubelet/kubepods", UID_A, GS_QOS_GUARANTEED,
         "/c/kubelet/kubepods/pod" UID_A},
        {"static pod", "/c/kubepods.slice", HASH, GS_QOS_BURSTABLE,
         "/c/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" HASH ".slice"},
        {"no UID", "/c/kubepods", "", GS_QOS_BURSTABLE, NULL},
        {"a way out", "/c/kubepods", "/../../system.slice", GS_QOS_BURSTABLE, NULL},
        {"dots", "/c/kubepods", "..", GS_QOS_BURSTABLE, NULL},
        {"an underscore", "/c/kubepods", "a_b", GS_QOS_BURSTABLE, NULL},
        {"the longest", "/c/kubepods",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", GS_QOS_GUARANTEED,
         "/c/kubepods/podaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"too long", "/c/kubepods",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", GS_QOS_GUARANTEED,
         NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char path[GS_CGROUP_PATH_BYTES] = "untouched", uid[GS_POD_UID_BYTES] = "";
        struct gs_error err = {0};
        int result = gs_pod_tree_path(r->root, r->uid, r->qos, path, &err);
        row_equal(r->row, result, r->path ? 0 : -1);
        if (!r->path) {
            row_equal(r->row, err.code, GS_EINVAL);
            row_text(r->row, path, "untouched");
            continue;
        }
        row_text(r->row, path, r->path);
        /* and back */
        row_true(r->row, gs_pod_tree_uid(r->root, r->qos, strrchr(path, '/') + 1, uid));
        row_text(r->row, uid, r->uid);
    }
}

static void a_path_of_a_process_says_whose_it_is(void **state)
{
    static const struct {
        const char *row, *path, *uid; /* NULL: no pod's */
    } rows[] = {
        {"systemd, v2",
         "/kubepods.slice/kubepods-burstable.slice/" SLICE_A "/cri-containerd-c.scope", UID_A},
        {"systemd, Guaranteed", "/kubepods.slice/kubepods-pod" UID_A_ ".slice/c.scope", UID_A},
        {"systemd, BestEffort",
         "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_A_ ".slice/c",
         UID_A},
        {"cgroupfs", "/kubepods/burstable/pod" UID_A "/c", UID_A},
        {"cgroupfs, Guaranteed", "/kubepods/pod" UID_A "/c", UID_A},
        {"kind", "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_A_ ".slice/c",
         UID_A},
        {"kind, seen from the host", "/docker/77/kubelet/kubepods/besteffort/pod" UID_A "/c",
         UID_A},
        {"static pod", "/kubepods/burstable/pod" HASH "/c", HASH},
        {"from a namespace of one's own", "/../../../kubepods-burstable.slice/" SLICE_A "/c.scope",
         UID_A},
        {"of the same class", "/../../" SLICE_A "/c.scope", UID_A},
        {"of the same class, cgroupfs", "/../../pod" UID_A "/c", UID_A},
        {"of another class, cgroupfs", "/../../../burstable/pod" UID_A "/c", UID_A},
        {"the pod's own folder", "/kubepods/pod" UID_A, UID_A},
        {"its cgroup is removed", "/kubepods/pod" UID_A "/c (deleted)", UID_A},
        {"a name that a container made below its own",
         "/kubepods/pod" UID_A "/c/kubepods/podb/kubepods.slice/kubepods-podc.slice", UID_A},
        {"the like, systemd", "/kubepods.slice/kubepods-pod" UID_A_ ".slice/c/kubepods-podb.slice",
         UID_A},
        {"another container of one's own pod", "/../c", NULL},
        {"the root", "/", NULL},
        {"nothing", "", NULL},
        {"a daemon", "/system.slice/containerd.service", NULL},
        {"a pod's name elsewhere", "/machine/pod" UID_A "/c", NULL},
        {"a class", "/kubepods.slice/kubepods-burstable.slice", NULL},
        {"no UID", "/kubepods/pod/c", NULL},
        {"no UID, systemd", "/kubepods.slice/kubepods-pod.slice", NULL},
        {"letters that no UID has", "/kubepods/pod../c", NULL},
        {"a name that ends like it", "/xkubepods-pod" UID_A_ ".slice/c", NULL},
        {"longer than a UID",
         "/kubepods/podaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/c", NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        char uid[GS_POD_UID_BYTES] = "untouched";
        row_equal(r->row, gs_pod_tree_uid_of_path(gs_slice_of(r->path), uid), r->uid != NULL);
        row_text(r->row, uid, r->uid ? r->uid : "untouched");
    }
}

static void the_folder_of_pods_is_found_wherever_it_is(void **state)
{
    static const struct {
        const char *row;
        const char *folders[4];
        size_t count;
        const char *first;
    } rows[] = {
        {"nothing yet", {"/system.slice/containerd.service"}, 0, ""},
        {"systemd", {"/kubepods.slice", "/system.slice"}, 1, "/kubepods.slice"},
        {"kind",
         {"/kubelet.slice/kubelet-kubepods.slice"},
         1,
         "/kubelet.slice/kubelet-kubepods.slice"},
        {"--cgroup-root", {"/a/b/c/d/kubepods"}, 1, "/a/b/c/d/kubepods"},
        {"deeper than is searched", {"/a/b/c/d/e/kubepods"}, 0, ""},
        {"the driver was changed", {"/kubepods", "/kubepods.slice"}, 2, NULL},
        {"a cluster inside a pod is not this kubelet's",
         {"/kubepods/burstable/podx/kubepods"},
         1,
         "/kubepods"},
        {"names that look alike",
         {"/xkubepods", "/kubepods.scope", "/xkubepods.slice", "/kubepods-burstable.slice"},
         0,
         ""},
        {"several", {"/a/kubepods", "/b/kubepods", "/kubepods/x", "/kubepods.slice"}, 4, NULL},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct cgroup_tree tree;
        struct gs_pod_tree found = {.root_count = 77};
        tree_make(&tree);
        for (size_t i = 0; i < 4 && r->folders[i]; i++)
            tree_mkdirs(&tree, r->folders[i], false);
        row_equal(r->row, gs_pod_tree_learn(tree.mount, &found, NULL), 0);
        row_equal(r->row, found.root_count, r->count);
        if (found.root_count == 1)
            row_text(r->row, found.roots[0] + strlen(tree.mount), r->first);
        tree_rmdir(&tree, "");
    }
    struct gs_pod_tree found = {.root_count = 77};
    struct gs_error err = {0};
    assert_int_equal(gs_pod_tree_learn("/nonexistent/cgroup", &found, &err), -1);
    assert_int_equal(err.code, GS_EIO);
    assert_int_equal(found.root_count, 77);
}

/* As with many nodes of kind on one host, whose folders come first or last. */
static void the_nodes_own_folder_is_among_those_that_are_kept(void **state)
{
    struct cgroup_tree tree;
    struct gs_pod_tree found;
    char folder[64];
    int own = 0, owns = 8; /* one of them comes behind the others, whatever the order */
    tree_make(&tree);
    for (int i = 0; i < 2 * GS_POD_TREE_ROOTS_MAX; i++) {
        snprintf(folder, sizeof(folder), "/other-%d/a/kubelet/kubepods", i);
        tree_mkdirs(&tree, folder, false);
    }
    for (int i = 0; i < owns; i++) {
        snprintf(folder, sizeof(folder), "/own-%d/kubepods", i);
        tree_mkdirs(&tree, folder, false);
    }
    assert_int_equal(gs_pod_tree_learn(tree.mount, &found, NULL), 0);
    assert_int_equal(found.root_count, GS_POD_TREE_ROOTS_MAX);
    for (size_t i = 0; i < found.root_count; i++)
        own += strstr(found.roots[i], "/own-") != NULL;
    assert_int_equal(own, owns);
    tree_rmdir(&tree, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_lies_where_its_kubelet_puts_it),
        cmocka_unit_test(a_path_of_a_process_says_whose_it_is),
        cmocka_unit_test(the_folder_of_pods_is_found_wherever_it_is),
        cmocka_unit_test(the_nodes_own_folder_is_among_those_that_are_kept),
    };
    return GS_RUN(tests);
}
