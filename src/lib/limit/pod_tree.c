/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/pod_tree.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SLICE      ".slice"
#define SLICE_LEN  (sizeof(SLICE) - 1)
#define FOLDER     "kubepods"
#define FOLDER_LEN (sizeof(FOLDER) - 1)

static bool ends_in(const char *text, size_t len, const char *end)
{
    size_t end_len = strlen(end);
    return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* "kubepods", "kubepods.slice", "kubelet-kubepods.slice" */
static bool is_pods_folder(const char *name)
{
    size_t len = strlen(name);
    if (!ends_in(name, len, SLICE))
        return strcmp(name, FOLDER) == 0;
    len -= SLICE_LEN;
    return ends_in(name, len, FOLDER) && (len == FOLDER_LEN || name[len - FOLDER_LEN - 1] == '-');
}

static bool is_systemd(const char *root)
{
    return ends_in(root, strlen(root), SLICE);
}

/* The last component without ".slice": what systemd's names below it begin with. Its length; 0: the
 * driver is cgroupfs. */
static int systemd_stem(const char *root, const char **ret)
{
    const char *slash = strrchr(root, '/');
    *ret = slash ? slash + 1 : root;
    return is_systemd(root) ? (int)(strlen(*ret) - SLICE_LEN) : 0;
}

static const char *const classes[GS_QOS_COUNT] = {[GS_QOS_GUARANTEED] = "",
                                                  [GS_QOS_BURSTABLE] = "burstable",
                                                  [GS_QOS_BEST_EFFORT] = "besteffort"};

static bool fits(int written)
{
    return written >= 0 && written < GS_CGROUP_PATH_BYTES;
}

bool gs_pod_tree_folder(const char *root, enum gs_qos qos, char ret[GS_CGROUP_PATH_BYTES])
{
    const char *stem;
    int len = systemd_stem(root, &stem);
    if (qos == GS_QOS_GUARANTEED)
        return fits(snprintf(ret, GS_CGROUP_PATH_BYTES, "%s", root));
    return fits(snprintf(ret, GS_CGROUP_PATH_BYTES, "%s/%.*s%s%s%s", root, len, stem,
                         len ? "-" : "", classes[qos], len ? SLICE : ""));
}

static bool is_uid(const char *uid)
{
    size_t len = strspn(uid, "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    return len > 0 && len < GS_POD_UID_BYTES && uid[len] == '\0';
}

/* What the name of a pod's folder begins with: "kubepods-burstable-pod", or "pod". */
static int name_prefix(const char *root, enum gs_qos qos, char *out, size_t size)
{
    const char *stem;
    int len = systemd_stem(root, &stem);
    if (!len)
        return snprintf(out, size, "pod");
    return snprintf(out, size, "%.*s%s%s-pod", len, stem, *classes[qos] ? "-" : "", classes[qos]);
}

static void swap_chars(char *text, char from, char to)
{
    for (; *text; text++)
        if (*text == from)
            *text = to;
}

int gs_pod_tree_path(const char *root, const char *uid, enum gs_qos qos,
                     char ret[GS_CGROUP_PATH_BYTES], struct gs_error *err)
{
    char folder[GS_CGROUP_PATH_BYTES], prefix[GS_CGROUP_PATH_BYTES], name[GS_POD_UID_BYTES];
    if (!is_uid(uid))
        return gs_fail(err, GS_EINVAL, "\"%.64s\" is not the UID of a pod", uid);
    snprintf(name, sizeof(name), "%s", uid);
    if (is_systemd(root))
        swap_chars(name, '-', '_');
    if (!gs_pod_tree_folder(root, qos, folder) ||
        !fits(name_prefix(root, qos, prefix, sizeof(prefix))) ||
        !fits(snprintf(ret, GS_CGROUP_PATH_BYTES, "%s/%s%s%s", folder, prefix, name,
                       is_systemd(root) ? SLICE : "")))
        return gs_fail(err, GS_ETOOBIG, "the path of a pod's cgroup below %.160s is too long",
                       root);
    return 0;
}

bool gs_pod_tree_uid(const char *root, enum gs_qos qos, const char *name,
                     char ret_uid[GS_POD_UID_BYTES])
{
    char prefix[GS_CGROUP_PATH_BYTES], uid[GS_POD_UID_BYTES];
    size_t len = strlen(name);
    int prefix_len = name_prefix(root, qos, prefix, sizeof(prefix));
    if (!fits(prefix_len) || strncmp(name, prefix, (size_t)prefix_len) != 0)
        return false;
    size_t tail = is_systemd(root) ? SLICE_LEN : 0;
    if (tail && !ends_in(name, len, SLICE))
        return false;
    if (len < (size_t)prefix_len + tail || len - (size_t)prefix_len - tail >= sizeof(uid))
        return false;
    snprintf(uid, sizeof(uid), "%.*s", (int)(len - (size_t)prefix_len - tail), name + prefix_len);
    if (is_systemd(root))
        swap_chars(uid, '_', '-');
    if (!is_uid(uid))
        return false;
    memcpy(ret_uid, uid, sizeof(uid));
    return true;
}

/* Under the root that a name as systemd has it begins with: "kubelet-kubepods-burstable-pod…" lies
 * below "kubelet-kubepods.slice". */
static bool uid_of_slice(const char *name, char ret_uid[GS_POD_UID_BYTES])
{
    char root[GS_CGROUP_PATH_BYTES];
    for (const char *at = strstr(name, FOLDER); at; at = strstr(at + 1, FOLDER)) {
        int len = (int)(at - name) + (int)FOLDER_LEN;
        if ((at != name && at[-1] != '-') ||
            !fits(snprintf(root, sizeof(root), "%.*s" SLICE, len, name)))
            continue;
        for (enum gs_qos qos = 0; qos < GS_QOS_COUNT; qos++)
            if (gs_pod_tree_uid(root, qos, name, ret_uid))
                return true;
    }
    return false;
}

/* cgroupfs' names are short: only below a folder that holds pods, or where the paths part. */
static bool holds_pods(struct gs_slice parent)
{
    return gs_slice_eq(parent, GS_SLICE("..")) || gs_slice_eq(parent, GS_SLICE(FOLDER)) ||
           gs_slice_eq(parent, gs_slice_of(classes[GS_QOS_BURSTABLE])) ||
           gs_slice_eq(parent, gs_slice_of(classes[GS_QOS_BEST_EFFORT]));
}

static bool uid_of_folder(struct gs_slice parent, struct gs_slice folder,
                          char ret_uid[GS_POD_UID_BYTES])
{
    char name[GS_CGROUP_PATH_BYTES];
    if (folder.len >= sizeof(name) || memchr(folder.at, '\0', folder.len))
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)folder.len, folder.at);
    if (ends_in(name, folder.len, SLICE))
        return uid_of_slice(name, ret_uid);
    return holds_pods(parent) && gs_pod_tree_uid(FOLDER, GS_QOS_GUARANTEED, name, ret_uid);
}

bool gs_pod_tree_uid_of_path(struct gs_slice path, char ret_uid[GS_POD_UID_BYTES])
{
    struct gs_slice parent = {"", 0};
    while (path.len > 0) {
        struct gs_slice folder = gs_slice_cut(&path, '/');
        if (uid_of_folder(parent, folder, ret_uid))
            return true;
        parent = folder;
    }
    return false;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

size_t gs_pod_tree_find(const struct gs_pod_tree *tree, const char *uid,
                        char ret[GS_POD_TREE_PLACES_MAX][GS_CGROUP_PATH_BYTES])
{
    size_t count = 0;
    for (size_t i = 0; i < tree->root_count; i++)
        for (enum gs_qos qos = 0; qos < GS_QOS_COUNT && count < GS_POD_TREE_PLACES_MAX; qos++)
            if (gs_pod_tree_path(tree->roots[i], uid, qos, ret[count], NULL) == 0)
                count += is_folder(ret[count]);
    return count;
}

/* ---- the search ---- */

struct search {
    struct gs_pod_tree tree;
    int depths[GS_POD_TREE_ROOTS_MAX];
    size_t folders; /* looked into so far */
};

static bool search_full(const struct search *search)
{
    return search->folders >= GS_POD_TREE_FOLDERS_MAX;
}

static void add_root(struct search *search, const char *path, int depth)
{
    size_t at = search->tree.root_count;
    if (at == GS_POD_TREE_ROOTS_MAX) {
        at = 0;
        for (size_t i = 1; i < GS_POD_TREE_ROOTS_MAX; i++)
            if (search->depths[i] > search->depths[at])
                at = i;
        if (search->depths[at] <= depth)
            return;
    } else {
        search->tree.root_count++;
    }
    memcpy(search->tree.roots[at], path, strlen(path) + 1);
    search->depths[at] = depth;
}

static void search_below(struct search *search, const char *path, int depth);

static void search_entry(struct search *search, const char *path, const struct dirent *entry,
                         int depth)
{
    char child[GS_CGROUP_PATH_BYTES];
    bool folder = entry->d_type == DT_DIR;
    if (entry->d_name[0] == '.' ||
        !fits(snprintf(child, sizeof(child), "%s/%s", path, entry->d_name)))
        return;
    if (!folder && (entry->d_type != DT_UNKNOWN || !is_folder(child)))
        return;
    if (is_pods_folder(entry->d_name))
        add_root(search, child, depth);
    else
        search_below(search, child, depth + 1);
}

/* Not into the pods' folders: a pod may hold the cgroups of a whole cluster of its own. */
static void search_below(struct search *search, const char *path, int depth)
{
    if (depth >= GS_POD_TREE_DEPTH_MAX || search_full(search))
        return;
    search->folders++;
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && !search_full(search) && (entry = readdir(dir)))
        search_entry(search, path, entry, depth);
    if (dir)
        closedir(dir);
}

int gs_pod_tree_learn(const char *mount, struct gs_pod_tree *ret, struct gs_error *err)
{
    struct search search = {0};
    if (!is_folder(mount))
        return gs_fail(err, GS_EIO, "%.160s is not a folder", mount);
    search_below(&search, mount, 0);
    *ret = search.tree;
    return 0;
}
