/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/keeper.h"

#include <stdlib.h>
#include <string.h>

struct pod {
    char uid[GS_POD_UID_BYTES];
    enum gs_qos qos;
    gs_gpu_mask gpus;
    uint64_t bytes;
    bool required;
    bool one_user;
    bool adopted; /* it ran before it was limited here */
    bool was_held;
    bool listed;   /* in the list under way */
    unsigned told; /* verdicts, as bits */
    /* as last seen */
    bool has_cgroup, held;
    enum gs_verdict verdict;
    const char *reason;
    uint64_t used_bytes, peak_bytes;
    gs_gpu_mask counted;
    uint64_t used_on[GS_GPUS_MAX], peak_on[GS_GPUS_MAX]; /* by GPU index */
};

struct gs_keeper {
    struct gs_keeper_options options;
    enum gs_limit_host_state host;
    struct gs_limit_gpu gpus[GS_GPUS_MAX];
    size_t gpu_count;
    struct pod *pods;
    size_t pod_count, pod_cap;
    uint64_t repairs, writes;
};

static const char *const modes[] = {"off", "observe", "preferred", "required"};

static const char used_before[] = "used before limited";
static const char not_started[] = "not started";

const char *gs_enforce_name(enum gs_enforce mode)
{
    return modes[mode];
}

bool gs_enforce_parse(const char *text, size_t len, enum gs_enforce *ret)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (gs_slice_eq((struct gs_slice){text, len}, gs_slice_of(modes[i]))) {
            *ret = (enum gs_enforce)i;
            return true;
        }
    return false;
}

struct gs_keeper *gs_keeper_new(const struct gs_keeper_options *options)
{
    struct gs_keeper *keeper = calloc(1, sizeof(*keeper));
    if (keeper)
        keeper->options = *options;
    return keeper;
}

void gs_keeper_free(struct gs_keeper *keeper)
{
    free(keeper->pods);
    free(keeper);
}

void gs_keeper_gpus(struct gs_keeper *keeper, enum gs_limit_host_state host,
                    const struct gs_limit_gpu *gpus, size_t count)
{
    keeper->host = host;
    keeper->gpu_count = count < GS_GPUS_MAX ? count : GS_GPUS_MAX;
    if (keeper->gpu_count)
        memcpy(keeper->gpus, gpus, keeper->gpu_count * sizeof(*gpus));
}

static bool has_region(const struct gs_keeper *keeper, uint32_t gpu)
{
    return gpu < keeper->gpu_count && keeper->gpus[gpu].region.state == GS_REGION_USABLE;
}

/* What host and driver allow, whatever the mode. */
static enum gs_enforced allowed_on(const struct gs_keeper *keeper, uint32_t gpu)
{
    if (keeper->host != GS_LIMIT_HOST_READY)
        return gs_limit_host_enforced(keeper->host);
    if (gpu >= keeper->gpu_count)
        return GS_ENFORCED_ABSENT;
    return gs_region_state_enforced(keeper->gpus[gpu].region.state);
}

enum gs_enforced gs_keeper_enforces(const struct gs_keeper *keeper, uint32_t gpu)
{
    enum gs_enforced allowed = allowed_on(keeper, gpu);
    bool on = keeper->options.mode >= GS_ENFORCE_PREFERRED;
    return allowed == GS_ENFORCED_DMEM && !on ? GS_ENFORCED_NOT_ON : allowed;
}

/* ---- one pod ---- */

static struct pod *find(const struct gs_keeper *keeper, const char *uid)
{
    for (size_t i = 0; i < keeper->pod_count; i++)
        if (strcmp(keeper->pods[i].uid, uid) == 0)
            return &keeper->pods[i];
    return NULL;
}

static bool insists(const struct gs_keeper *keeper, const struct pod *pod)
{
    return keeper->options.mode == GS_ENFORCE_REQUIRED || pod->required;
}

static bool writes(const struct gs_keeper *keeper, const struct pod *pod)
{
    return keeper->options.mode >= GS_ENFORCE_PREFERRED || insists(keeper, pod);
}

static void raise(uint64_t *most, uint64_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

/* peak: NULL where the kernel does not remember it. Then it is the most of all looks. */
static void note_use(struct pod *pod, uint32_t gpu, uint64_t used, const uint64_t *peak)
{
    pod->counted |= GS_GPU_BIT(gpu);
    pod->used_on[gpu] = used;
    raise(&pod->peak_on[gpu], used);
    if (peak)
        raise(&pod->peak_on[gpu], *peak);
    raise(&pod->used_bytes, used);
    raise(&pod->peak_bytes, pod->peak_on[gpu]);
}

/* What it uses of its GPUs, and whether it has a cgroup at all. */
static void look_at_use(struct gs_keeper *keeper, struct pod *pod)
{
    struct gs_limiter *limiter = keeper->options.limiter;
    const char *regions[GS_GPUS_MAX] = {NULL};
    uint64_t used[GS_GPUS_MAX], peak[GS_GPUS_MAX];
    uint32_t gpus[GS_GPUS_MAX], gpu;
    size_t count = 0;
    const struct gs_limit_pod of = {pod->uid, pod->qos};
    GS_FOR_EACH_GPU (gpu, pod->gpus)
        if (has_region(keeper, gpu)) {
            gpus[count] = gpu;
            regions[count++] = keeper->gpus[gpu].region.name;
        }
    enum gs_limit_outcome outcome = gs_limiter_use(limiter, &of, regions, count, used);
    pod->has_cgroup = outcome != GS_LIMIT_NO_POD;
    pod->used_bytes = pod->counted = 0;
    if (outcome != GS_LIMIT_HELD)
        return;
    bool has_peak = gs_limiter_peak(limiter, &of, regions, count, peak) == GS_LIMIT_HELD;
    for (size_t i = 0; i < count; i++)
        note_use(pod, gpus[i], used[i], has_peak ? &peak[i] : NULL);
}

static size_t limits_of(const struct gs_keeper *keeper, const struct pod *pod,
                        struct gs_limit limits[GS_GPUS_MAX])
{
    size_t count = 0;
    for (uint32_t gpu = 0; gpu < keeper->gpu_count; gpu++) {
        bool own = (pod->gpus & GS_GPU_BIT(gpu)) != 0;
        if (has_region(keeper, gpu) && (own || keeper->options.deny_foreign))
            limits[count++] =
                (struct gs_limit){keeper->gpus[gpu].region.name, own ? pod->bytes : 0};
    }
    return count;
}

/* Why one of its GPUs cannot be limited; "" when all can. */
static const char *reason_of_pod(const struct gs_keeper *keeper, const struct pod *pod)
{
    uint32_t gpu;
    GS_FOR_EACH_GPU (gpu, pod->gpus) {
        const char *reason = gs_enforced_reason(allowed_on(keeper, gpu));
        if (*reason)
            return reason;
    }
    return "";
}

static void count_writes(struct gs_keeper *keeper, const struct pod *pod,
                         const struct gs_limit_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool held = results[i].written && results[i].outcome == GS_LIMIT_HELD;
        keeper->repairs += held && pod->was_held;
        keeper->writes += held && !pod->was_held;
    }
}

/* A pod that ran before is limited only where that takes nothing away from it; one that is above
 * its share by then must not be cut off in the middle of its work. */
static bool may_limit(const struct gs_keeper *keeper, const struct pod *pod)
{
    uint64_t wanted;
    return !pod->adopted || pod->was_held || !pod->used_bytes ||
           (!__builtin_add_overflow(pod->used_bytes, keeper->options.margin_bytes, &wanted) &&
            wanted <= pod->bytes);
}

static const char *limit(struct gs_keeper *keeper, struct pod *pod)
{
    struct gs_limit limits[GS_GPUS_MAX];
    struct gs_limit_result results[GS_GPUS_MAX];
    const struct gs_limit_pod of = {pod->uid, pod->qos};
    size_t count = limits_of(keeper, pod, limits);
    enum gs_limit_outcome outcome =
        may_limit(keeper, pod)
            ? gs_limiter_hold(keeper->options.limiter, &of, limits, count, results)
            : gs_limiter_verify(keeper->options.limiter, &of, limits, count, results);
    count_writes(keeper, pod, results, count);
    if (outcome == GS_LIMIT_OTHER)
        return used_before;
    pod->was_held |= outcome == GS_LIMIT_HELD;
    if (outcome == GS_LIMIT_HELD && pod->used_bytes > pod->bytes)
        return used_before;
    return gs_limit_outcome_reason(outcome);
}

static enum gs_verdict judge(const struct gs_keeper *keeper, const struct pod *pod)
{
    if (!pod->has_cgroup || pod->held)
        return GS_VERDICT_FINE;
    bool possible = *reason_of_pod(keeper, pod) == '\0';
    if (writes(keeper, pod) && (possible || insists(keeper, pod)))
        return GS_VERDICT_NOT_HELD;
    return pod->used_bytes > pod->bytes ? GS_VERDICT_WOULD_BE_REFUSED : GS_VERDICT_FINE;
}

/* Whether the pod is held now, and if not why; with what it uses. */
static void settle(struct gs_keeper *keeper, struct pod *pod)
{
    look_at_use(keeper, pod);
    pod->reason = reason_of_pod(keeper, pod);
    if (!pod->has_cgroup) {
        pod->was_held = false;
        pod->reason = not_started;
    } else if (writes(keeper, pod)) {
        if (*pod->reason == '\0')
            pod->reason = limit(keeper, pod);
    } else if (*pod->reason == '\0') {
        pod->reason = gs_enforced_reason(GS_ENFORCED_NOT_ON);
    }
    pod->held = *pod->reason == '\0';
    pod->verdict = judge(keeper, pod);
}

/* ---- events ---- */

static struct pod *add(struct gs_keeper *keeper, const char *uid, struct gs_error *err)
{
    if (keeper->pod_count == GS_KEEPER_PODS_MAX) {
        gs_fail(err, GS_ETOOBIG, "more than %d pods", GS_KEEPER_PODS_MAX);
        return NULL;
    }
    if (keeper->pod_count == keeper->pod_cap) {
        size_t cap = keeper->pod_cap ? 2 * keeper->pod_cap : 32;
        struct pod *pods = reallocarray(keeper->pods, cap, sizeof(*pods));
        if (!pods) {
            gs_fail_nomem(err);
            return NULL;
        }
        keeper->pods = pods;
        keeper->pod_cap = cap;
    }
    struct pod *pod = &keeper->pods[keeper->pod_count++];
    *pod = (struct pod){.reason = not_started};
    memcpy(pod->uid, uid, strlen(uid) + 1);
    return pod;
}

/* Its first share has GPUs. That it runs is news only of a pod that is new. */
static bool is_known(const struct pod *pod, const struct gs_share *share)
{
    return pod->gpus && pod->qos == share->qos && pod->gpus == share->gpus &&
           pod->bytes == share->bytes && pod->required == share->required &&
           pod->one_user == share->one_user;
}

int gs_keeper_share(struct gs_keeper *keeper, const struct gs_share *share, struct gs_error *err)
{
    char path[GS_CGROUP_PATH_BYTES];
    if (gs_pod_tree_path("", share->uid, share->qos, path, err) < 0)
        return -1;
    struct pod *pod = find(keeper, share->uid);
    if (!pod)
        pod = add(keeper, share->uid, err);
    if (!pod)
        return -1;
    pod->listed = true;
    if (is_known(pod, share))
        return 0;
    bool is_new = !pod->gpus;
    pod->qos = share->qos;
    pod->gpus = share->gpus;
    pod->bytes = share->bytes;
    pod->required = share->required;
    pod->one_user = share->one_user;
    pod->adopted = pod->adopted || (is_new && share->runs);
    if (keeper->options.mode != GS_ENFORCE_OFF)
        settle(keeper, pod);
    return 0;
}

void gs_keeper_list_begin(struct gs_keeper *keeper)
{
    for (size_t i = 0; i < keeper->pod_count; i++)
        keeper->pods[i].listed = false;
}

void gs_keeper_list_end(struct gs_keeper *keeper)
{
    size_t kept = 0;
    for (size_t i = 0; i < keeper->pod_count; i++)
        if (keeper->pods[i].listed)
            keeper->pods[kept++] = keeper->pods[i];
    keeper->pod_count = kept;
}

static void show(struct gs_keeper *keeper, const struct pod *pod)
{
    struct gs_limit limits[GS_GPUS_MAX];
    const struct gs_limit_pod of = {pod->uid, pod->qos};
    size_t count = limits_of(keeper, pod, limits);
    gs_limiter_show(keeper->options.limiter, &of, limits, count);
}

void gs_keeper_appeared(struct gs_keeper *keeper, const char *uid)
{
    struct pod *pod = find(keeper, uid);
    if (!pod || keeper->options.mode == GS_ENFORCE_OFF)
        return;
    settle(keeper, pod);
    if (pod->held && pod->one_user)
        show(keeper, pod);
}

bool gs_keeper_may_start(struct gs_keeper *keeper, const char *uid, const char **ret_reason)
{
    struct pod *pod = find(keeper, uid);
    *ret_reason = "";
    if (!pod || keeper->options.mode == GS_ENFORCE_OFF)
        return true;
    settle(keeper, pod);
    *ret_reason = pod->has_cgroup ? pod->reason : gs_limit_outcome_reason(GS_LIMIT_NO_POD);
    return pod->held || !insists(keeper, pod);
}

void gs_keeper_pass(struct gs_keeper *keeper)
{
    for (size_t i = 0; i < keeper->pod_count && keeper->options.mode != GS_ENFORCE_OFF; i++)
        settle(keeper, &keeper->pods[i]);
}

static struct gs_kept describe(const struct pod *pod)
{
    return (struct gs_kept){.uid = pod->uid,
                            .gpus = pod->gpus,
                            .has_cgroup = pod->has_cgroup,
                            .held = pod->held,
                            .reason = pod->reason,
                            .bytes = pod->bytes,
                            .used_bytes = pod->used_bytes,
                            .peak_bytes = pod->peak_bytes,
                            .counted = pod->counted,
                            .used_on = pod->used_on,
                            .peak_on = pod->peak_on};
}

bool gs_keeper_find(const struct gs_keeper *keeper, const char *uid, struct gs_kept *ret)
{
    const struct pod *pod = find(keeper, uid);
    if (pod)
        *ret = describe(pod);
    return pod != NULL;
}

bool gs_keeper_pod(const struct gs_keeper *keeper, size_t number, struct gs_kept *ret)
{
    if (number >= keeper->pod_count)
        return false;
    *ret = describe(&keeper->pods[number]);
    return true;
}

bool gs_keeper_next_news(struct gs_keeper *keeper, struct gs_kept *ret,
                         enum gs_verdict *ret_verdict)
{
    for (size_t i = 0; i < keeper->pod_count; i++) {
        struct pod *pod = &keeper->pods[i];
        unsigned bit = 1U << pod->verdict;
        if (pod->verdict == GS_VERDICT_FINE || (pod->told & bit))
            continue;
        pod->told |= bit;
        *ret = describe(pod);
        *ret_verdict = pod->verdict;
        return true;
    }
    return false;
}

void gs_keeper_stats(const struct gs_keeper *keeper, struct gs_keeper_stats *ret)
{
    *ret = (struct gs_keeper_stats){.repairs = keeper->repairs, .writes = keeper->writes};
    for (size_t i = 0; i < keeper->pod_count; i++) {
        const struct pod *pod = &keeper->pods[i];
        ret->pods += pod->has_cgroup;
        ret->held += pod->held;
        ret->unheld += pod->verdict == GS_VERDICT_NOT_HELD;
        ret->over += pod->has_cgroup && pod->used_bytes > pod->bytes;
    }
}
