/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/limiter.h"
#include "gpushare/base/num.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

enum { MOUNT_MAX_BYTES = 256 };

struct gs_limiter {
    const struct gs_limit_host *host;
    char mount[MOUNT_MAX_BYTES];
    bool writes;
    struct gs_memory_limits driver;
    bool by_driver; /* it sets and reads, not the kernel's files */
    struct gs_pod_tree tree;
    struct limit_text text; /* of the file that was read last */
};

/* Where a pod's cgroups are. */
struct places {
    size_t count;
    char paths[GS_POD_TREE_PLACES_MAX][GS_CGROUP_PATH_BYTES];
};

int gs_limiter_new(const struct gs_limiter_options *options, struct gs_limiter **ret,
                   struct gs_error *err)
{
    size_t len = strlen(options->mount);
    if (len == 0 || len >= MOUNT_MAX_BYTES || options->mount[len - 1] == '/')
        return gs_fail(err, GS_EINVAL, "\"%.128s\" is not valid as the path of a cgroup mount",
                       options->mount);
    struct gs_limiter *limiter = calloc(1, sizeof(*limiter));
    if (!limiter)
        return gs_fail_nomem(err);
    limiter->host = options->host ? options->host : &gs_limit_host_kernel;
    limiter->writes = options->writes;
    limiter->driver = options->driver;
    memcpy(limiter->mount, options->mount, len);
    *ret = limiter;
    return 0;
}

void gs_limiter_free(struct gs_limiter *limiter)
{
    free(limiter);
}

const struct gs_pod_tree *gs_limiter_tree(const struct gs_limiter *limiter)
{
    return &limiter->tree;
}

/* ---- the host ---- */

static enum gs_enforced look_at_mount(struct gs_limiter *limiter)
{
    int error = limiter->host->check(limiter->host->ctx, limiter->mount);
    if (!error)
        return GS_ENFORCED_DMEM;
    return error == EMEDIUMTYPE ? GS_ENFORCED_NO_CGROUP2 : GS_ENFORCED_NO_MOUNT;
}

/* dmem.capacity may be missing where the controller is there: the root's files of the controller
 * appear with the first write to the root's cgroup.subtree_control. So this file decides. */
static enum gs_enforced look_at_host(struct gs_limiter *limiter)
{
    enum gs_enforced mount = look_at_mount(limiter);
    if (mount != GS_ENFORCED_DMEM)
        return mount;
    if (limit_read(limiter->mount, "cgroup.controllers", &limiter->text) != 0)
        return GS_ENFORCED_NO_MOUNT;
    return limit_has_word(&limiter->text, "dmem") ? GS_ENFORCED_DMEM : GS_ENFORCED_NO_CONTROLLER;
}

static size_t read_lines(struct gs_limiter *limiter, const char *folder, const char *file,
                         struct gs_dmem_line *lines, int *ret_error)
{
    size_t count = 0;
    *ret_error = limit_read(folder, file, &limiter->text);
    if (*ret_error == 0 && gs_dmem_parse((struct gs_slice){limiter->text.data, limiter->text.len},
                                         lines, &count, NULL) < 0)
        *ret_error = EBADMSG;
    return count;
}

/* A security module refuses at open(2) what access(2) lets through: so a line that sets no limit is
 * written as it is. 0 or an errno; ENOENT: there is no such line. */
static int rewrite(struct gs_limiter *limiter, const char *root)
{
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    char path[GS_CGROUP_PATH_BYTES + 32], text[GS_DMEM_WRITE_BYTES], region[GS_DMEM_REGION_BYTES];
    int error;
    size_t count = read_lines(limiter, root, "dmem.max", lines, &error);
    for (size_t i = 0; i < count && !error; i++) {
        if (lines[i].bytes != GS_DMEM_NO_LIMIT)
            continue;
        snprintf(region, sizeof(region), "%.*s", (int)lines[i].region.len, lines[i].region.at);
        gs_dmem_format(region, GS_DMEM_NO_LIMIT, text);
        snprintf(path, sizeof(path), "%s/dmem.max", root);
        return limiter->host->put(limiter->host->ctx, path, text, strlen(text));
    }
    return ENOENT;
}

/* A limit would be a write to a file beside this one. */
static int try_to_write(struct gs_limiter *limiter, const char *root)
{
    char path[GS_CGROUP_PATH_BYTES + 32];
    int error = limiter->writes ? rewrite(limiter, root) : ENOENT;
    if (error != ENOENT)
        return error;
    snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
    return limiter->host->may_put(limiter->host->ctx, path);
}

/* An earlier cgroup driver may have left a tree behind that is not ours to write. */
static enum gs_enforced look_at_pods(struct gs_limiter *limiter)
{
    enum gs_enforced state = GS_ENFORCED_NO_PODS;
    gs_pod_tree_learn(limiter->mount, &limiter->tree, NULL);
    for (size_t i = 0; i < limiter->tree.root_count && state != GS_ENFORCED_DMEM; i++) {
        int error = try_to_write(limiter, limiter->tree.roots[i]);
        state = error == EROFS ? GS_ENFORCED_READ_ONLY
                               : (error ? GS_ENFORCED_DENIED : GS_ENFORCED_DMEM);
    }
    return state;
}

enum gs_enforced gs_limiter_look(struct gs_limiter *limiter, const char *const *addresses,
                                 size_t count, struct gs_region *ret)
{
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    size_t line_count = 0;
    int error;
    enum gs_enforced state = look_at_host(limiter);
    limiter->by_driver = false;
    if (state == GS_ENFORCED_DMEM) {
        state = look_at_pods(limiter);
        line_count = read_lines(limiter, limiter->mount, "dmem.capacity", lines, &error);
    }
    for (size_t i = 0; i < count; i++)
        ret[i] = gs_region_of(addresses, count, i, lines, line_count);
    return state;
}

/* ---- the driver's own limits ---- */

/* Where the kernel's controller is there, the driver writes its files, and says that there are none
 * where it is off. */
static int set_by_driver(struct gs_limiter *limiter, const char *gpu, const char *path,
                         uint64_t bytes)
{
    const struct gs_memory_limits *driver = &limiter->driver;
    int error = driver->set(driver->ctx, gpu, path, bytes);
    if (error == ENOENT && limit_enable(limiter->host, limiter->mount, path, &limiter->text) == 0)
        error = driver->set(driver->ctx, gpu, path, bytes);
    return error;
}

/* No limit where none was ever set. */
static int get_by_driver(struct gs_limiter *limiter, const char *gpu, const char *path,
                         uint64_t *ret_bytes, uint64_t *ret_used)
{
    const struct gs_memory_limits *driver = &limiter->driver;
    *ret_bytes = GS_DMEM_NO_LIMIT;
    *ret_used = 0;
    int error = driver->get(driver->ctx, gpu, path, ret_bytes, ret_used);
    return error == EOPNOTSUPP || error == ENOENT ? 0 : error;
}

/* That the library has the functions proves nothing. */
static enum gs_enforced try_driver(struct gs_limiter *limiter, const char *gpu)
{
    const uint64_t bytes = UINT64_C(1) << 30;
    char path[GS_CGROUP_PATH_BYTES + 32];
    uint64_t found, used;
    snprintf(path, sizeof(path), "%s/gpushare-limit-test", limiter->tree.roots[0]);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return errno == EROFS ? GS_ENFORCED_READ_ONLY : GS_ENFORCED_DENIED;
    int error = set_by_driver(limiter, gpu, path, bytes);
    bool same = !error && get_by_driver(limiter, gpu, path, &found, &used) == 0 && found == bytes;
    if (!error)
        set_by_driver(limiter, gpu, path, GS_DMEM_NO_LIMIT);
    rmdir(path);
    if (same)
        return GS_ENFORCED_DRIVER;
    return error == EPERM ? GS_ENFORCED_NO_ADMIN : GS_ENFORCED_NO_DRIVER;
}

enum gs_enforced gs_limiter_look_at_driver(struct gs_limiter *limiter, const char *const *uuids,
                                           size_t count, struct gs_region *ret)
{
    enum gs_enforced state = look_at_mount(limiter);
    limiter->by_driver = false;
    if (!limiter->driver.set || state != GS_ENFORCED_DMEM)
        return state == GS_ENFORCED_DMEM ? GS_ENFORCED_NO_DRIVER : state;
    gs_pod_tree_learn(limiter->mount, &limiter->tree, NULL);
    if (limiter->tree.root_count == 0)
        return GS_ENFORCED_NO_PODS;
    state = GS_ENFORCED_NO_DRIVER;
    for (size_t i = 0; i < count; i++) {
        const char *uuid = uuids[i] ? uuids[i] : "";
        struct gs_region gpu = {.state = GS_ENFORCED_DRIVER};
        snprintf(gpu.name, sizeof(gpu.name), "%s", uuid);
        if (ret[i].state != GS_ENFORCED_DRIVER || strcmp(ret[i].name, gpu.name) != 0)
            gpu.state = *uuid ? try_driver(limiter, uuid) : GS_ENFORCED_ABSENT;
        if (*uuid && state != GS_ENFORCED_DRIVER)
            state = gpu.state;
        ret[i] = gpu;
    }
    limiter->by_driver = state == GS_ENFORCED_DRIVER;
    return state;
}

/* ---- a pod ---- */

static enum gs_limit_outcome outcome_of(int error)
{
    switch (error) {
    case EROFS:
        return GS_LIMIT_READ_ONLY;
    case EACCES:
    case EPERM:
        return GS_LIMIT_DENIED;
    case EINVAL: /* the text is right: only the region can be wrong */
        return GS_LIMIT_NO_REGION;
    case ENOENT:
        return GS_LIMIT_NO_FILES;
    case ENODEV: /* a cgroup that was removed between open(2) and read(2) */
        return GS_LIMIT_NO_POD;
    default:
        return GS_LIMIT_FAILED;
    }
}

/* What "+dmem" on the way to a pod came to: EBUSY is a folder that holds processes itself. */
static enum gs_limit_outcome outcome_of_enabling(int error)
{
    enum gs_limit_outcome outcome = outcome_of(error);
    return outcome == GS_LIMIT_READ_ONLY || outcome == GS_LIMIT_DENIED ? outcome
                                                                       : GS_LIMIT_NO_FILES;
}

/* A kubelet that is new on its host may have made its tree after the last look. */
static bool find_pod(struct gs_limiter *limiter, const char *uid, struct places *ret)
{
    if (limiter->tree.root_count == 0)
        gs_pod_tree_learn(limiter->mount, &limiter->tree, NULL);
    ret->count = gs_pod_tree_find(&limiter->tree, uid, ret->paths);
    return ret->count > 0;
}

/* Files of the pod that are missing: either the pod has gone meanwhile, or nobody passes dmem on.
 */
static enum gs_limit_outcome missing_files(struct gs_limiter *limiter, const char *path)
{
    return limit_read(path, "cgroup.controllers", &limiter->text) == ENOENT ? GS_LIMIT_NO_POD
                                                                            : GS_LIMIT_NO_FILES;
}

static void judge(const struct gs_dmem_line *lines, size_t line_count, const struct gs_limit *limit,
                  struct gs_limit_result *result)
{
    const struct gs_dmem_line *line = gs_dmem_find(lines, line_count, limit->region);
    if (!line) {
        result->outcome = GS_LIMIT_NO_REGION;
        return;
    }
    result->found_bytes = line->bytes;
    result->outcome = line->bytes == limit->bytes ? GS_LIMIT_HELD : GS_LIMIT_OTHER;
}

static enum gs_limit_outcome judge_by_driver(struct gs_limiter *limiter, const char *path,
                                             const struct gs_limit *limits, size_t count,
                                             struct gs_limit_result *results)
{
    if (access(path, F_OK) < 0)
        return GS_LIMIT_NO_POD;
    for (size_t i = 0; i < count; i++) {
        struct gs_dmem_line line = {.region = gs_slice_of(limits[i].region)};
        uint64_t used;
        int error = get_by_driver(limiter, limits[i].region, path, &line.bytes, &used);
        if (error)
            return outcome_of(error);
        judge(&line, 1, &limits[i], &results[i]);
    }
    return GS_LIMIT_HELD;
}

static enum gs_limit_outcome judge_all(struct gs_limiter *limiter, const char *path,
                                       const struct gs_limit *limits, size_t count,
                                       struct gs_limit_result *results)
{
    if (limiter->by_driver)
        return judge_by_driver(limiter, path, limits, count, results);
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    int error;
    size_t line_count = read_lines(limiter, path, "dmem.max", lines, &error);
    if (error)
        return error == ENOENT ? missing_files(limiter, path) : outcome_of(error);
    for (size_t i = 0; i < count; i++)
        judge(lines, line_count, &limits[i], &results[i]);
    return GS_LIMIT_HELD;
}

static void write_one(struct gs_limiter *limiter, const char *path, const struct gs_limit *limit,
                      struct gs_limit_result *result, int *ret_error)
{
    char text[GS_DMEM_WRITE_BYTES], file[GS_CGROUP_PATH_BYTES + 16];
    gs_dmem_format(limit->region, limit->bytes, text);
    snprintf(file, sizeof(file), "%s/dmem.max", path);
    *ret_error = limiter->by_driver
                     ? set_by_driver(limiter, limit->region, path, limit->bytes)
                     : limiter->host->put(limiter->host->ctx, file, text, strlen(text));
    result->written = *ret_error == 0;
    /* more is in use: the old one, if any, stands */
    if (limiter->by_driver && *ret_error == EINVAL)
        *ret_error = result->found_bytes == GS_DMEM_NO_LIMIT ? EIO : 0;
}

/* Writes what differs and reads back: that a write succeeds proves nothing. */
static enum gs_limit_outcome write_all(struct gs_limiter *limiter, const char *path,
                                       const struct gs_limit *limits, size_t count,
                                       struct gs_limit_result *results)
{
    int errors[GS_LIMITS_MAX] = {0};
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (results[i].outcome != GS_LIMIT_OTHER)
            continue;
        write_one(limiter, path, &limits[i], &results[i], &errors[i]);
        any = true;
    }
    enum gs_limit_outcome read =
        any ? judge_all(limiter, path, limits, count, results) : GS_LIMIT_HELD;
    for (size_t i = 0; i < count; i++)
        if (errors[i] && read == GS_LIMIT_HELD)
            results[i].outcome = outcome_of(errors[i]);
    return read;
}

static enum gs_limit_outcome worst(const struct gs_limit_result *results, size_t count)
{
    enum gs_limit_outcome found = GS_LIMIT_HELD;
    for (size_t i = 0; i < count; i++)
        if (results[i].outcome > found)
            found = results[i].outcome;
    return found;
}

static enum gs_limit_outcome all_alike(enum gs_limit_outcome outcome, size_t count,
                                       struct gs_limit_result *results)
{
    for (size_t i = 0; i < count; i++)
        results[i] = (struct gs_limit_result){.outcome = outcome};
    return outcome;
}

static enum gs_limit_outcome work_at(struct gs_limiter *limiter, const char *path,
                                     const struct gs_limit *limits, size_t count,
                                     struct gs_limit_result *results, bool may_write)
{
    all_alike(GS_LIMIT_HELD, count, results);
    enum gs_limit_outcome read = judge_all(limiter, path, limits, count, results);
    if (read == GS_LIMIT_NO_FILES && may_write) {
        int error = limit_enable(limiter->host, limiter->mount, path, &limiter->text);
        read =
            error ? outcome_of_enabling(error) : judge_all(limiter, path, limits, count, results);
    }
    if (read == GS_LIMIT_HELD && may_write)
        read = write_all(limiter, path, limits, count, results);
    return read == GS_LIMIT_HELD ? worst(results, count) : all_alike(read, count, results);
}

enum { PAGE_BYTES = 4096 };

/* What is done in the cgroups of a pod's containers. */
struct leaves {
    struct gs_limiter *limiter;
    const struct gs_limit *limits;
    size_t count;
    struct gs_limit_result *results;
    uint64_t above[GS_LIMITS_MAX]; /* the limit of the folder above */
};

static void each_container(const char *pod, void (*each)(struct leaves *leaves, const char *path),
                           struct leaves *leaves)
{
    static const char *const below[2] = {"", "/container"}; /* crun's, where programs are then */
    char leaf[GS_CGROUP_PATH_BYTES];
    DIR *dir = opendir(pod);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        for (size_t i = 0; i < leaves->count; i++)
            leaves->above[i] = leaves->results[i].found_bytes;
        for (size_t i = 0; i < 2; i++) {
            int len = snprintf(leaf, sizeof(leaf), "%s/%s%s", pod, entry->d_name, below[i]);
            if (len > 0 && (size_t)len < sizeof(leaf))
                each(leaves, leaf);
        }
    }
    if (dir)
        closedir(dir);
}

/* The kernel's limits do, and the driver's do not. */
static bool nests(const char *path)
{
    char file[GS_CGROUP_PATH_BYTES + 16];
    snprintf(file, sizeof(file), "%s/dmem.max", path);
    return access(file, F_OK) == 0;
}

/* Where limits do not nest a container has its pod's as long as it has none of its own. */
static void show_leaf(struct leaves *leaves, const char *path)
{
    if (leaves->limiter->by_driver && !nests(path))
        return;
    work_at(leaves->limiter, path, leaves->limits, leaves->count, leaves->results, true);
}

/* One without a limit of its own reads as its pod does, and what has another limit has its own: one
 * that is lowered has less than the pod. What it uses is not in the pod's use. */
static void lower_leaf(struct leaves *leaves, const char *path)
{
    const struct gs_memory_limits *driver = &leaves->limiter->driver;
    if (access(path, F_OK) < 0 || nests(path))
        return;
    for (size_t i = 0; i < leaves->count; i++) {
        const struct gs_limit *limit = &leaves->limits[i];
        struct gs_limit_result *result = &leaves->results[i];
        uint64_t bytes, used;
        int error = driver->get(driver->ctx, limit->region, path, &bytes, &used);
        if (error && error != ENOENT && error != EOPNOTSUPP)
            result->outcome = outcome_of(error);
        if (error || bytes == leaves->above[i])
            continue;
        leaves->above[i] = bytes;
        result->apart_bytes += used;
        if (bytes <= limit->bytes)
            continue;
        const uint64_t below = limit->bytes ? limit->bytes - PAGE_BYTES : 0;
        if (set_by_driver(leaves->limiter, limit->region, path, below) == 0)
            leaves->above[i] = below;
        result->outcome = GS_LIMIT_CONTAINER;
    }
}

static enum gs_limit_outcome work(struct gs_limiter *limiter, const char *uid,
                                  const struct gs_limit *limits, size_t count,
                                  struct gs_limit_result *results, bool writing)
{
    struct places at;
    enum gs_limit_outcome outcome = GS_LIMIT_NO_POD;
    if (count > GS_LIMITS_MAX)
        return all_alike(GS_LIMIT_FAILED, count, results);
    if (!find_pod(limiter, uid, &at))
        return all_alike(GS_LIMIT_NO_POD, count, results);
    for (size_t i = 0; i < at.count; i++)
        outcome = work_at(limiter, at.paths[i], limits, count, results, writing);
    if (limiter->by_driver && writing && outcome == GS_LIMIT_HELD) {
        each_container(at.paths[0], lower_leaf,
                       &(struct leaves){limiter, limits, count, results, {0}});
        outcome = worst(results, count);
    }
    return at.count == 1 ? outcome : all_alike(GS_LIMIT_TWICE, count, results);
}

enum gs_limit_outcome gs_limiter_hold(struct gs_limiter *limiter, const char *uid,
                                      const struct gs_limit *limits, size_t count,
                                      struct gs_limit_result *results)
{
    return work(limiter, uid, limits, count, results, true);
}

enum gs_limit_outcome gs_limiter_verify(struct gs_limiter *limiter, const char *uid,
                                        const struct gs_limit *limits, size_t count,
                                        struct gs_limit_result *results)
{
    return work(limiter, uid, limits, count, results, false);
}

void gs_limiter_show(struct gs_limiter *limiter, const char *uid, const struct gs_limit *limits,
                     size_t count)
{
    struct gs_limit_result results[GS_LIMITS_MAX];
    struct leaves leaves = {limiter, limits, count, results, {0}};
    struct places at;
    if (count <= GS_LIMITS_MAX && find_pod(limiter, uid, &at) && at.count == 1)
        each_container(at.paths[0], show_leaf, &leaves);
}

/* Where no limit was ever set the driver counts nothing; the kernel does. */
static enum gs_limit_outcome add_by_driver(struct gs_limiter *limiter, const char *path,
                                           const char *const *regions, size_t count, uint64_t *sums)
{
    const struct gs_memory_limits *driver = &limiter->driver;
    uint64_t bytes, used;
    for (size_t i = 0; i < count; i++) {
        int error = driver->get(driver->ctx, regions[i], path, &bytes, &used);
        if (error)
            return error == EOPNOTSUPP ? GS_LIMIT_NO_FILES : outcome_of(error);
        sums[i] = gs_sat_add_u64(sums[i], used);
    }
    return GS_LIMIT_HELD;
}

/* Of a file with one line for each region, added to what is there. */
static enum gs_limit_outcome add_bytes(struct gs_limiter *limiter, const char *path,
                                       const char *file, const char *const *regions, size_t count,
                                       uint64_t *sums)
{
    struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
    int error;
    if (limiter->by_driver)
        return add_by_driver(limiter, path, regions, count, sums);
    size_t line_count = read_lines(limiter, path, file, lines, &error);
    if (error)
        return error == ENOENT ? missing_files(limiter, path) : outcome_of(error);
    for (size_t i = 0; i < count; i++) {
        const struct gs_dmem_line *line = gs_dmem_find(lines, line_count, regions[i]);
        if (line)
            sums[i] = gs_sat_add_u64(sums[i], line->bytes);
    }
    return GS_LIMIT_HELD;
}

static enum gs_limit_outcome read_bytes(struct gs_limiter *limiter, const char *uid,
                                        const char *file, const char *const *regions, size_t count,
                                        uint64_t *ret_bytes)
{
    uint64_t sums[GS_LIMITS_MAX] = {0};
    struct places at;
    enum gs_limit_outcome outcome = GS_LIMIT_HELD;
    if (!find_pod(limiter, uid, &at))
        return GS_LIMIT_NO_POD;
    if (count > GS_LIMITS_MAX)
        return GS_LIMIT_FAILED;
    for (size_t i = 0; i < at.count && outcome == GS_LIMIT_HELD; i++)
        outcome = add_bytes(limiter, at.paths[i], file, regions, count, sums);
    if (outcome == GS_LIMIT_HELD && count)
        memcpy(ret_bytes, sums, count * sizeof(*sums));
    return outcome;
}

enum gs_limit_outcome gs_limiter_use(struct gs_limiter *limiter, const char *uid,
                                     const char *const *regions, size_t count, uint64_t *ret_bytes)
{
    return read_bytes(limiter, uid, "dmem.current", regions, count, ret_bytes);
}

enum gs_limit_outcome gs_limiter_peak(struct gs_limiter *limiter, const char *uid,
                                      const char *const *regions, size_t count, uint64_t *ret_bytes)
{
    if (limiter->by_driver)
        return GS_LIMIT_NO_FILES;
    return read_bytes(limiter, uid, "dmem.peak", regions, count, ret_bytes);
}
