/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/enforce.h"

#include <poll.h>
#include <stdio.h>

#include "device_plugin/plugin.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/log.h"

enum { WHERE_BYTES = 256 };
/* The kernel tells nobody when a driver registers its memory, or drops it. */
#define LOOK_NS  (60 * GS_NS_PER_S)
#define AGAIN_NS (50 * GS_NS_PER_MS)

/* ---- the host and its GPUs ---- */

/* Whether a region can be its: a card that is gone, or divided, may have left its address to
 * another, and no driver limits an instance, also when it has the card's address for itself. */
static enum gs_enforced takes_part(const struct gs_gpu_set *set, const struct gs_gpu *gpu)
{
    if (set->gone & GS_GPU_BIT(gpu->idx))
        return GS_ENFORCED_ABSENT;
    return gs_gpu_is_instance(gpu) ? GS_ENFORCED_INSTANCE : GS_ENFORCED_DMEM;
}

/* By GPU index, as the keeper wants them. */
static size_t names_of(const struct gs_gpu_set *set, const char *addresses[GS_GPUS_MAX],
                       const char *uuids[GS_GPUS_MAX])
{
    size_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct gs_gpu *gpu = &set->gpus[i];
        if (takes_part(set, gpu) == GS_ENFORCED_DMEM) {
            addresses[gpu->idx] = gpu->pci;
            uuids[gpu->idx] = gpu->uuid;
        }
        if (gpu->idx >= count)
            count = gpu->idx + 1;
    }
    return count;
}

static void leave_out(const struct gs_gpu_set *set, struct gs_region gpus[GS_GPUS_MAX])
{
    for (uint32_t i = 0; i < set->count; i++) {
        enum gs_enforced state = takes_part(set, &set->gpus[i]);
        if (state != GS_ENFORCED_DMEM)
            gpus[set->gpus[i].idx] = (struct gs_region){.state = state};
    }
}

/* The driver's own limits where they work, else the kernel's. What is missing for the first is said
 * where the second are missing altogether. */
static enum gs_enforced look_at_host(struct enforce *enforce, enum enforce_by by,
                                     const struct gs_gpu_set *set)
{
    const char *addresses[GS_GPUS_MAX] = {NULL}, *uuids[GS_GPUS_MAX] = {NULL};
    size_t count = enforce->gpu_count = names_of(set, addresses, uuids);
    enum gs_enforced host =
        enforce->driver ? gs_limiter_look_at_driver(enforce->limiter, uuids, count, enforce->gpus)
                        : GS_ENFORCED_NO_DRIVER;
    /* with observe the driver is not asked: the kernel may count */
    if (gs_enforced_holds(host) || (by == ENFORCE_BY_DRIVER && enforce->driver))
        return host;
    enum gs_enforced kernel = gs_limiter_look(enforce->limiter, addresses, count, enforce->gpus);
    return kernel == GS_ENFORCED_NO_CONTROLLER && host == GS_ENFORCED_NO_ADMIN ? host : kernel;
}

static void look(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    enum gs_enforced host =
        look_at_host(enforce, plugin->settings.enforce_by, &plugin->devices.set);
    leave_out(&plugin->devices.set, enforce->gpus);
    gs_keeper_gpus(enforce->keeper, host, enforce->gpus, enforce->gpu_count);
    if (enforce->watch)
        gs_cgroup_watch_follow(enforce->watch, gs_limiter_tree(enforce->limiter));
    enforce->look_due = false;
    enforce->look_ns = plugin_now_ns(plugin) + LOOK_NS;
}

static void look_when_due(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    bool no_pods = gs_limiter_tree(enforce->limiter)->root_count == 0;
    if (enforce->look_due || (no_pods && enforce->pass_due) ||
        plugin_now_ns(plugin) >= enforce->look_ns)
        look(plugin);
}

enum gs_enforced enforce_word(const struct plugin *plugin, const struct gs_gpu *gpu, uint32_t pods)
{
    const struct gs_keeper *keeper = plugin->enforce.keeper;
    if (gs_gpu_is_instance(gpu))
        return GS_ENFORCED_INSTANCE;
    return keeper ? gs_keeper_enforces(keeper, gpu->idx) : GS_ENFORCED_NOT_ON;
}

/* ---- pods ---- */

/* Its share, and what a process needs before it has any use of that, a CUDA context. */
static uint64_t limit_of(const struct plugin *plugin, const struct gs_placed *pod)
{
    uint64_t mib = (uint64_t)pod->units * gs_unit_mib(plugin->devices.unit);
    return (mib + (uint64_t)pod->containers * plugin->settings.overhead_mib) << 20;
}

static int take_pod(struct plugin *plugin, const struct gs_placed *pod, struct gs_error *err)
{
    GS_INVARIANT(devices_known(&plugin->devices),
                 "limits are written only when the unit and the GPU indices are known");
    const struct gs_share share = {
        .uid = pod->cgroup_uid,
        .gpus = pod->gpus,
        .bytes = limit_of(plugin, pod),
        .required = pod->enforce_required,
        .one_user = pod->containers == 1,
        .given = pod->given,
        .runs = pod->runs,
    };
    return gs_keeper_share(plugin->enforce.keeper, &share, err);
}

static void take_listed(void *ctx, const struct gs_placed *pod)
{
    struct gs_error err = {0};
    if (take_pod(ctx, pod, &err) < 0)
        gs_log(GS_LOG_ERROR, "cannot limit the pod's GPU memory", GS_STR("namespace", pod->ns),
               GS_STR("pod", pod->name), GS_STR("error", err.msg));
}

static void take_pods(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    gs_keeper_list_begin(enforce->keeper);
    gs_allocator_each_placed(plugin->alloc, take_listed, plugin);
    gs_keeper_list_end(enforce->keeper);
}

static void on_pod(void *ctx, const char *uid, enum gs_qos qos)
{
    struct plugin *plugin = ctx;
    if (plugin_knows(plugin))
        gs_keeper_appeared(plugin->enforce.keeper, uid);
}

/* The kernel has some limit of the pod's on each of these GPUs: an earlier run wrote it. */
static bool is_limited(struct plugin *plugin, const char *uid, gs_gpu_mask gpus)
{
    const struct enforce *enforce = &plugin->enforce;
    struct gs_limit limits[GS_LIMITS_MAX] = {0};
    struct gs_limit_result results[GS_LIMITS_MAX];
    size_t count = 0;
    uint32_t idx;
    GS_FOR_EACH_GPU (idx, gpus) {
        if (idx >= enforce->gpu_count || !gs_enforced_holds(enforce->gpus[idx].state))
            return false;
        limits[count++] = (struct gs_limit){.region = enforce->gpus[idx].name};
    }
    gs_limiter_verify(enforce->limiter, uid, limits, count, results);
    for (size_t i = 0; i < count; i++) {
        if ((results[i].outcome != GS_LIMIT_HELD && results[i].outcome != GS_LIMIT_OTHER) ||
            results[i].found_bytes == GS_DMEM_NO_LIMIT)
            return false;
    }
    return count > 0;
}

/* In which folders a pod's cgroup was looked for, if that is the trouble. */
static const char *where(const struct plugin *plugin, const struct gs_kept *pod,
                         char text[WHERE_BYTES])
{
    const struct gs_pod_tree *tree = gs_limiter_tree(plugin->enforce.limiter);
    size_t len = 0;
    text[0] = '\0';
    if (pod->outcome != GS_LIMIT_NO_POD && pod->outcome != GS_LIMIT_TWICE)
        return text;
    for (size_t i = 0; i < tree->root_count && len < WHERE_BYTES; i++)
        len += (size_t)snprintf(text + len, WHERE_BYTES - len, "%s%s", i ? ", " : " (searched ",
                                tree->roots[i]);
    if (len > 0 && len < WHERE_BYTES)
        snprintf(text + len, WHERE_BYTES - len, ")");
    return text;
}

/* A kubelet that was changed may have made its folders since the last look. */
static bool may_start(struct plugin *plugin, const char *uid, struct gs_kept *ret)
{
    const char *reason;
    struct gs_keeper *keeper = plugin->enforce.keeper;
    bool may = gs_keeper_may_start(keeper, uid, &reason);
    *ret = (struct gs_kept){.reason = reason};
    if (gs_keeper_find(keeper, uid, ret) && ret->outcome == GS_LIMIT_NO_POD) {
        look(plugin);
        may = gs_keeper_may_start(keeper, uid, &reason);
        gs_keeper_find(keeper, uid, ret);
    }
    return may;
}

bool enforce_may_start(struct plugin *plugin, const struct gs_start_request *request,
                       const struct gs_placed *pod, struct gs_error *err)
{
    struct gs_kept kept;
    char text[WHERE_BYTES];
    if (!plugin->enforce.keeper || plugin->settings.enforce == GS_ENFORCE_OFF)
        return true;
    if (!pod->uid) {
        if (plugin->settings.enforce != GS_ENFORCE_REQUIRED ||
            is_limited(plugin, pod->cgroup_uid, pod->gpus)) /* by the kubelet's checkpoint */
            return true;
        gs_fail(err, GS_EBUSY,
                "start blocked by --enforce=required: the pod of this container is not known yet");
        return false;
    }
    if (take_pod(plugin, pod, err) < 0)
        return false;
    if (may_start(plugin, pod->cgroup_uid, &kept)) {
        if (plugin->enforce.watch && pod->containers == 1) /* the container's own comes next */
            gs_cgroup_watch_containers(plugin->enforce.watch, pod->cgroup_uid, pod->qos);
        if (plugin->enforce.again_ns == INT64_MAX)
            plugin->enforce.again_ns = plugin_now_ns(plugin) + AGAIN_NS;
        plugin_wake_at(plugin, plugin->enforce.again_ns);
        return true;
    }
    gs_fail(err, GS_EBUSY, "start blocked until the kernel limits this pod's GPU memory: %s%s",
            kept.reason, where(plugin, &kept, text));
    return false;
}

/* ---- what people are told ---- */

static double gib(uint64_t bytes)
{
    return (double)bytes / (double)(1ULL << 30);
}

/* Who uses more than its request is not the only one who wants to know. */
static void tell_people(struct plugin *plugin)
{
    struct gs_kept pod;
    enum gs_verdict verdict;
    char words[512], text[WHERE_BYTES];
    while (gs_keeper_next_news(plugin->enforce.keeper, &pod, &verdict)) {
        if (verdict == GS_VERDICT_WOULD_BE_REFUSED) {
            snprintf(words, sizeof(words),
                     "uses %.1f GiB of a GPU's memory and requested %.1f GiB: a limit (--enforce) "
                     "would block this; request more, or use less",
                     gib(pod.used_bytes), gib(pod.bytes));
            gs_allocator_warn(plugin->alloc, pod.uid, true, "GpuMemoryWouldBeBlocked", words);
            continue;
        }
        snprintf(words, sizeof(words), "this pod's GPU memory is not limited to %.1f GiB: %s%s",
                 gib(pod.bytes), pod.reason, where(plugin, &pod, text));
        gs_allocator_warn(plugin->alloc, pod.uid, false, "GpuMemoryLimitNotSet", words);
    }
}

static void show_again(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    int64_t now_ns = plugin_now_ns(plugin);
    if (now_ns >= enforce->again_ns)
        enforce->again_ns = gs_keeper_show_again(enforce->keeper) ? now_ns + AGAIN_NS : INT64_MAX;
    plugin_wake_at(plugin, enforce->again_ns);
}

static void keep(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    look_when_due(plugin);
    plugin_wake_at(plugin, enforce->look_ns);
    show_again(plugin);
    /* Until pods are known what stands in the kernel holds. From time to time all: a start may have
     * shown that a pod is elsewhere. */
    if (plugin->restored && (plugin->pods_changed || enforce->pass_due))
        take_pods(plugin);
    if (!plugin->restored)
        return;
    if (enforce->pass_due)
        gs_keeper_pass(enforce->keeper);
    enforce->pass_due = false;
    tell_people(plugin);
}

void enforce_round(struct plugin *plugin)
{
    struct gs_nvml_limits *driver = plugin->enforce.driver;
    const bool released = driver && plugin->node.upgrading;
    if (driver)
        gs_nvml_limits_release(driver, released);
    if (released || !plugin_knows(plugin)) {
        plugin->enforce.look_due = true; /* which tells of all pods that are there */
        if (released)                    /* the next one is another */
            memset(plugin->enforce.gpus, 0, sizeof(plugin->enforce.gpus));
        return;
    }
    if (plugin->enforce.keeper)
        keep(plugin);
}

void enforce_allocated(struct plugin *plugin)
{
    if (plugin->enforce.keeper && plugin->restored && plugin_knows(plugin))
        take_pods(plugin);
}

/* ---- start and end ---- */

static void on_appeared(void *ctx, short revents)
{
    const struct plugin *plugin = ctx;
    gs_cgroup_watch_read(plugin->enforce.watch);
}

/* Without it limits come with PreStartContainer and the next pass. */
static void start_watch(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    struct gs_error err = {0};
    if (gs_cgroup_watch_new(on_pod, plugin, &enforce->watch, &err) < 0) {
        gs_log(GS_LOG_ERROR, "cannot watch the pods' cgroups", GS_STR("error", err.msg));
        return;
    }
    enforce->fd = (struct gs_loop_fd){.fn = on_appeared, .ctx = plugin};
    if (gs_loop_fd_add(plugin->loop, &enforce->fd, gs_cgroup_watch_fd(enforce->watch), POLLIN,
                       &err) < 0)
        gs_log(GS_LOG_ERROR, "cannot watch the pods' cgroups", GS_STR("error", err.msg));
}

int enforce_start(struct plugin *plugin, struct gs_error *err)
{
    struct enforce *enforce = &plugin->enforce;
    const struct settings *settings = &plugin->settings;
    if (settings->enforce == GS_ENFORCE_OFF)
        return 0;
    struct gs_limiter_options options = {.mount = settings->cgroup_root,
                                         .writes = settings->enforce >= GS_ENFORCE_PREFERRED};
    /* to look already sets a limit */
    if (options.writes && settings->enforce_by != ENFORCE_BY_DMEM) {
        enforce->driver = gs_nvml_limits_new(settings->gpus.nvml_library);
        if (!enforce->driver)
            return gs_fail_nomem(err);
        options.driver = gs_nvml_limits_port(enforce->driver);
    }
    if (gs_limiter_new(&options, &enforce->limiter, err) < 0)
        return gs_error_prefix(err, "--cgroup-root");
    const struct gs_keeper_options rules = {.limiter = enforce->limiter,
                                            .mode = settings->enforce,
                                            .deny_foreign = settings->deny_foreign_gpus};
    enforce->keeper = gs_keeper_new(&rules);
    if (!enforce->keeper)
        return gs_fail_nomem(err);
    start_watch(plugin);
    return 0;
}

void enforce_release(struct plugin *plugin)
{
    struct enforce *enforce = &plugin->enforce;
    gs_loop_fd_remove(plugin->loop, &enforce->fd);
    if (enforce->watch)
        gs_cgroup_watch_free(enforce->watch);
    if (enforce->keeper)
        gs_keeper_free(enforce->keeper);
    gs_limiter_free(enforce->limiter);
    gs_nvml_limits_free(enforce->driver);
}
