/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/keeper.h"
#include "gpushare/base/array.h"

#include <stdlib.h>
#include <string.h>

#include "gpushare/base/invariant.h"

struct pod {
    char uid[GS_POD_UID_BYTES];
    gs_gpu_mask gpus;
    uint64_t bytes;
    bool required;
    bool one_user;
    bool adopted; /* it ran before it was limited here */
    bool awaited; /* one of its containers starts or runs, so it has to have a cgroup */
    bool seen;    /* it had one */
    bool was_held;
    bool listed;    /* in the list under way */
    unsigned ticks; /* of gs_keeper_show_again() since a start; 0: over */
    unsigned told;  /* verdicts, as bits */
    /* as last seen */
    bool has_cgroup, held;
    enum gs_limit_outcome outcome;
    enum gs_verdict verdict;
    const char *reason;
    uint64_t used_bytes;
    gs_gpu_mask counted;
    uint64_t used_on[GS_GPUS_MAX], peak_on[GS_GPUS_MAX]; /* by GPU index */
    uint64_t
        caps[GS_GPUS_MAX]; /* while it is adopted: its limit there, never raised; 0: none yet */
};

struct gs_keeper {
    struct gs_keeper_options options;
    enum gs_enforced host;
    struct gs_region gpus[GS_GPUS_MAX];
    size_t gpu_count;
    struct pod *pods;
    uint32_t pod_count, pod_cap;
    uint64_t repairs, writes;
};

static const char *const modes[] = {"off", "observe", "preferred", "required"};

enum { LAST_TICK = 128 }; /* after a start it is looked 1, 2, 4 … ticks later */

static const char used_before[] = "the pod used more before it was limited";
static const char not_started[] = "not started";

const char *gs_enforce_name(enum gs_enforce mode)
{
    return modes[mode];
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

void gs_keeper_gpus(struct gs_keeper *keeper, enum gs_enforced host, const struct gs_region *gpus,
                    size_t count)
{
    keeper->host = host;
    keeper->gpu_count = count < GS_GPUS_MAX ? count : GS_GPUS_MAX;
    if (keeper->gpu_count)
        memcpy(keeper->gpus, gpus, keeper->gpu_count * sizeof(*gpus));
}

static bool has_region(const struct gs_keeper *keeper, uint32_t gpu)
{
    return gpu < keeper->gpu_count && gs_enforced_holds(keeper->gpus[gpu].state);
}

/* What host and driver allow, whatever the mode. */
static enum gs_enforced allowed_on(const struct gs_keeper *keeper, uint32_t gpu)
{
    if (!gs_enforced_holds(keeper->host))
        return keeper->host;
    if (gpu >= keeper->gpu_count)
        return GS_ENFORCED_ABSENT;
    return keeper->gpus[gpu].state;
}

/* Of a pod that is over its request the limit stands. */
static enum gs_enforced word_of_outcome(enum gs_enforced held, enum gs_limit_outcome outcome)
{
    switch (outcome) {
    case GS_LIMIT_HELD:
    case GS_LIMIT_OTHER:
        return held;
    case GS_LIMIT_READ_ONLY:
        return GS_ENFORCED_READ_ONLY;
    case GS_LIMIT_DENIED:
        return GS_ENFORCED_DENIED;
    default:
        return GS_ENFORCED_NOT_HELD;
    }
}

/* What was read back of the pods there when it was last looked. */
static enum gs_enforced verified_on(const struct gs_keeper *keeper, uint32_t gpu)
{
    const enum gs_enforced held = keeper->gpus[gpu].state;
    enum gs_enforced word = held;
    for (size_t i = 0; i < keeper->pod_count && word == held; i++) {
        const struct pod *pod = &keeper->pods[i];
        if (pod->verdict == GS_VERDICT_NOT_HELD && (pod->gpus & GS_GPU_BIT(gpu)))
            word = word_of_outcome(held, pod->outcome);
    }
    return word;
}

enum gs_enforced gs_keeper_enforces(const struct gs_keeper *keeper, uint32_t gpu)
{
    enum gs_enforced allowed = allowed_on(keeper, gpu);
    bool on = keeper->options.mode >= GS_ENFORCE_PREFERRED;
    if (!gs_enforced_holds(allowed))
        return allowed;
    return on ? verified_on(keeper, gpu) : GS_ENFORCED_NOT_ON;
}

/* ---- one pod ---- */

static struct pod *find(const struct gs_keeper *keeper, const char *uid)
{
    for (size_t i = 0; i < keeper->pod_count; i++)
        if (strcmp(keeper->pods[i].uid, uid) == 0)
            return &keeper->pods[i];
    return NULL;
}

static bool requires_limit(const struct gs_keeper *keeper, const struct pod *pod)
{
    return keeper->options.mode == GS_ENFORCE_REQUIRED || pod->required;
}

static bool writes(const struct gs_keeper *keeper, const struct pod *pod)
{
    return keeper->options.mode >= GS_ENFORCE_PREFERRED || requires_limit(keeper, pod);
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
}

/* What it uses of its GPUs, and whether it has a cgroup at all. */
static void look_at_use(struct gs_keeper *keeper, struct pod *pod)
{
    struct gs_limiter *limiter = keeper->options.limiter;
    const char *regions[GS_GPUS_MAX] = {NULL};
    uint64_t used[GS_GPUS_MAX], peak[GS_GPUS_MAX];
    uint32_t gpus[GS_GPUS_MAX], gpu;
    size_t count = 0;
    GS_FOR_EACH_GPU (gpu, pod->gpus)
        if (has_region(keeper, gpu)) {
            gpus[count] = gpu;
            regions[count++] = keeper->gpus[gpu].name;
        }
    enum gs_limit_outcome outcome = gs_limiter_use(limiter, pod->uid, regions, count, used);
    pod->has_cgroup = outcome != GS_LIMIT_NO_POD;
    pod->used_bytes = pod->counted = 0;
    memset(pod->used_on, 0, sizeof(pod->used_on));
    if (outcome != GS_LIMIT_HELD)
        return;
    bool has_peak = gs_limiter_peak(limiter, pod->uid, regions, count, peak) == GS_LIMIT_HELD;
    for (size_t i = 0; i < count; i++)
        note_use(pod, gpus[i], used[i], has_peak ? &peak[i] : NULL);
}

/* Its share; of a pod that ran above it before it was limited what it used then, or the least that
 * it used since: nothing is taken from it, and it gets no more. */
static uint64_t limit_on(const struct pod *pod, uint32_t gpu)
{
    return pod->adopted && pod->caps[gpu] > pod->bytes ? pod->caps[gpu] : pod->bytes;
}

static void lower_caps(struct pod *pod)
{
    uint32_t gpu;
    GS_FOR_EACH_GPU (gpu, pod->counted) {
        uint64_t used = pod->used_on[gpu] ? pod->used_on[gpu] : 1, old = pod->caps[gpu];
        if (!old || used < old)
            pod->caps[gpu] = used;
        GS_INVARIANT(pod->caps[gpu] && (!old || pod->caps[gpu] <= old),
                     "the limit of a pod over its request only falls");
    }
}

static size_t limits_of(const struct gs_keeper *keeper, const struct pod *pod,
                        struct gs_limit limits[GS_GPUS_MAX])
{
    size_t count = 0;
    for (uint32_t gpu = 0; gpu < keeper->gpu_count; gpu++) {
        bool own = (pod->gpus & GS_GPU_BIT(gpu)) != 0;
        if (has_region(keeper, gpu) && (own || keeper->options.deny_foreign))
            limits[count++] =
                (struct gs_limit){keeper->gpus[gpu].name, own ? limit_on(pod, gpu) : 0};
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

/* A kernel before 7.3 keeps its limit when more is in use than the new one allows: then what is in
 * use by the next look is the limit. */
static const char *limit(struct gs_keeper *keeper, struct pod *pod)
{
    struct gs_limit limits[GS_GPUS_MAX];
    struct gs_limit_result results[GS_GPUS_MAX];
    if (pod->adopted)
        lower_caps(pod);
    size_t count = limits_of(keeper, pod, limits);
    pod->outcome = gs_limiter_hold(keeper->options.limiter, pod->uid, limits, count, results);
    count_writes(keeper, pod, results, count);
    for (size_t i = 0; i < count; i++)
        for (uint32_t gpu = 0; results[i].apart_bytes && gpu < keeper->gpu_count; gpu++)
            if (limits[i].region == keeper->gpus[gpu].name)
                note_use(pod, gpu, pod->used_on[gpu] + results[i].apart_bytes, NULL);
    if (pod->outcome == GS_LIMIT_OTHER) {
        pod->adopted = true;
        memset(pod->caps, 0, sizeof(pod->caps));
        return used_before;
    }
    pod->was_held |= pod->outcome == GS_LIMIT_HELD;
    if (pod->outcome == GS_LIMIT_HELD && pod->used_bytes > pod->bytes)
        return used_before;
    return gs_limit_outcome_reason(pod->outcome);
}

/* The kernel counts the memory of all its GPUs: that limits may not be written is no excuse. */
static bool could_be_held(const struct gs_keeper *keeper, const struct pod *pod)
{
    bool could = gs_enforced_holds(keeper->host) || keeper->host == GS_ENFORCED_READ_ONLY ||
                 keeper->host == GS_ENFORCED_DENIED;
    uint32_t gpu;
    GS_FOR_EACH_GPU (gpu, pod->gpus)
        could = could && has_region(keeper, gpu);
    return could;
}

static enum gs_verdict judge(const struct gs_keeper *keeper, const struct pod *pod)
{
    if (pod->held || (!pod->has_cgroup && !pod->awaited))
        return GS_VERDICT_FINE;
    if (writes(keeper, pod) && (could_be_held(keeper, pod) || requires_limit(keeper, pod)))
        return GS_VERDICT_NOT_HELD;
    return pod->used_bytes > pod->bytes ? GS_VERDICT_WOULD_BE_REFUSED : GS_VERDICT_FINE;
}

static void settle_without_cgroup(struct pod *pod)
{
    pod->was_held = false;
    pod->outcome = GS_LIMIT_NO_POD;
    pod->reason = pod->awaited ? gs_limit_outcome_reason(GS_LIMIT_NO_POD) : not_started;
}

/* Whether the pod is held now, and if not why; with what it uses. awaited: it has to have a cgroup.
 */
static void settle(struct gs_keeper *keeper, struct pod *pod, bool awaited)
{
    look_at_use(keeper, pod);
    pod->seen |= pod->has_cgroup;
    pod->awaited = !pod->has_cgroup && (pod->awaited || awaited);
    pod->reason = reason_of_pod(keeper, pod);
    pod->outcome = GS_LIMIT_HELD;
    if (!pod->has_cgroup) {
        settle_without_cgroup(pod);
    } else if (writes(keeper, pod)) {
        if (*pod->reason == '\0')
            pod->reason = limit(keeper, pod);
    } else if (*pod->reason == '\0') {
        pod->reason = gs_enforced_reason(GS_ENFORCED_NOT_ON);
    }
    pod->held = *pod->reason == '\0';
    GS_INVARIANT(!pod->held || (pod->has_cgroup && !pod->awaited), "a limited pod has one cgroup");
    pod->verdict = judge(keeper, pod);
}

/* ---- events ---- */

/* Of more than there is room for, those that never ran make room. */
static struct pod *add(struct gs_keeper *keeper, const char *uid, struct gs_error *err)
{
    uint32_t at = 0;
    if (keeper->pod_count < GS_KEEPER_PODS_MAX)
        at = keeper->pod_count;
    else
        while (at < keeper->pod_count && keeper->pods[at].seen)
            at++;
    if (at == GS_KEEPER_PODS_MAX) {
        gs_fail(err, GS_ETOOBIG, "more than %d pods on this node", GS_KEEPER_PODS_MAX);
        return NULL;
    }
    if (!gs_array_reach(&keeper->pods, &keeper->pod_cap, at, sizeof(*keeper->pods))) {
        gs_fail_nomem(err);
        return NULL;
    }
    keeper->pod_count += at == keeper->pod_count;
    struct pod *pod = &keeper->pods[at];
    *pod = (struct pod){.reason = not_started};
    memcpy(pod->uid, uid, strlen(uid) + 1);
    return pod;
}

/* Its first share has GPUs. That it runs is news only of a pod that is new. */
static bool is_known(const struct pod *pod, const struct gs_share *share)
{
    return pod->gpus && pod->gpus == share->gpus && pod->bytes == share->bytes &&
           pod->required == share->required && pod->one_user == share->one_user;
}

int gs_keeper_share(struct gs_keeper *keeper, const struct gs_share *share, struct gs_error *err)
{
    char path[GS_CGROUP_PATH_BYTES];
    if (gs_pod_tree_path("", share->uid, GS_QOS_GUARANTEED, path, err) < 0)
        return -1;
    struct pod *pod = find(keeper, share->uid);
    if (!pod)
        pod = add(keeper, share->uid, err);
    if (!pod)
        return -1;
    bool was_awaited = pod->awaited;
    pod->listed = true;
    pod->awaited = was_awaited && (share->given || share->runs);
    if (is_known(pod, share) && pod->awaited == was_awaited)
        return 0;
    bool is_new = !pod->gpus;
    pod->gpus = share->gpus;
    pod->bytes = share->bytes;
    pod->required = share->required;
    pod->one_user = share->one_user;
    pod->adopted = pod->adopted || (is_new && share->runs);
    if (keeper->options.mode != GS_ENFORCE_OFF)
        settle(keeper, pod, false);
    return 0;
}

void gs_keeper_list_begin(struct gs_keeper *keeper)
{
    for (size_t i = 0; i < keeper->pod_count; i++)
        keeper->pods[i].listed = false;
}

void gs_keeper_list_end(struct gs_keeper *keeper)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < keeper->pod_count; i++)
        if (keeper->pods[i].listed)
            keeper->pods[kept++] = keeper->pods[i];
    keeper->pod_count = kept;
}

static void show(struct gs_keeper *keeper, const struct pod *pod)
{
    struct gs_limit limits[GS_GPUS_MAX];
    size_t count = limits_of(keeper, pod, limits);
    gs_limiter_show(keeper->options.limiter, pod->uid, limits, count);
}

void gs_keeper_appeared(struct gs_keeper *keeper, const char *uid)
{
    struct pod *pod = find(keeper, uid);
    if (!pod || keeper->options.mode == GS_ENFORCE_OFF)
        return;
    settle(keeper, pod, false);
    if (pod->held && pod->one_user)
        show(keeper, pod);
    pod->ticks = pod->ticks ? 1 : 0;
}

bool gs_keeper_show_again(struct gs_keeper *keeper)
{
    bool more = false;
    for (size_t i = 0; i < keeper->pod_count; i++) {
        struct pod *pod = &keeper->pods[i];
        bool doubled = pod->ticks && (pod->ticks & (pod->ticks - 1)) == 0;
        if (doubled && pod->held && pod->one_user)
            show(keeper, pod);
        pod->ticks = pod->ticks ? (pod->ticks + 1) % (LAST_TICK + 1) : 0;
        more |= pod->ticks > 0;
    }
    return more;
}

bool gs_keeper_may_start(struct gs_keeper *keeper, const char *uid, const char **ret_reason)
{
    struct pod *pod = find(keeper, uid);
    *ret_reason = "";
    if (!pod || keeper->options.mode == GS_ENFORCE_OFF)
        return true;
    settle(keeper, pod, true);
    pod->ticks = pod->one_user ? 1 : 0;
    *ret_reason = pod->reason;
    return pod->held || !requires_limit(keeper, pod);
}

void gs_keeper_pass(struct gs_keeper *keeper)
{
    for (size_t i = 0; i < keeper->pod_count && keeper->options.mode != GS_ENFORCE_OFF; i++) {
        struct pod *pod = &keeper->pods[i];
        settle(keeper, pod, pod->adopted && !pod->seen);
    }
}

static struct gs_kept describe(const struct gs_keeper *keeper, const struct pod *pod)
{
    const uint32_t first = pod->gpus ? (uint32_t)__builtin_ctzll(pod->gpus) : 0;
    return (struct gs_kept){.uid = pod->uid,
                            .outcome = pod->outcome,
                            .by = allowed_on(keeper, first),
                            .held = pod->held,
                            .reason = pod->reason,
                            .bytes = pod->bytes,
                            .used_bytes = pod->used_bytes,
                            .counted = pod->counted,
                            .used_on = pod->used_on,
                            .peak_on = pod->peak_on};
}

bool gs_keeper_find(const struct gs_keeper *keeper, const char *uid, struct gs_kept *ret)
{
    const struct pod *pod = find(keeper, uid);
    if (pod)
        *ret = describe(keeper, pod);
    return pod != NULL;
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
        *ret = describe(keeper, pod);
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
        ret->held += pod->held;
        ret->unheld += pod->verdict == GS_VERDICT_NOT_HELD;
        ret->over += pod->has_cgroup && pod->used_bytes > pod->bytes;
    }
}
