/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pods use by the driver's list of processes, in random worlds: processes are born, end, and
 * leave their PIDs to those of other pods; the driver names them in any order, twice, without a
 * size, after they have ended, or refuses a list; pods name cgroups after others. What each pod
 * uses is computed here from who truly has which PID, and compared after each reading.
 *
 *   usage_world [--rounds N] [--seed S] [--steps N]
 */
#include <inttypes.h>
#include <stdlib.h>

#include "device_plugin/driver_usage.h"
#include "fake_proc.h"
#include "gpushare/base/log.h"
#include "gpushare/base/splitmix.h"

#define TICK_NS   (GS_NS_PER_S / 100)
#define IN_USE    (UINT64_C(1000) << 20)
#define OVER      (UINT64_C(1) << 30)
#define HOUR_NS   (3600 * GS_NS_PER_S)
#define READ_NS   (10 * GS_NS_PER_S)
#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
/* A second more than from one list to the next: some are younger than the list that names them. */
enum { LATEST_TICKS = 1100 };
enum { PIDS = 24, PODS = 5, GPUS = 3, ENTRIES = 30, NOBODY = -1 };

/* Who has a PID: a life has a number that no other has. */
struct process {
    int life; /* 0: nobody */
    int pod;
    uint64_t began;
};

struct entry {
    uint32_t pid, gpu;
    uint64_t bytes;
};

/* What may be known of a PID that the driver names: its life at the first list that named it. */
struct known {
    int life;
    bool listed, lost;
    bool on[GPUS]; /* as each said that last told its list */
};

struct world {
    uint64_t random;
    uint64_t seed;
    char dir[64];
    int64_t now_ns;
    int lives;
    struct process processes[PIDS];
    struct entry entries[ENTRIES];
    uint32_t count;
    struct known known[PIDS];
    bool refused[GPUS], there[PODS];
    uint64_t in_use[GPUS];
    uint64_t peak[PODS][GPUS], told_ns[PODS];
    struct gs_gpu_set set;
    struct gs_gpu_source source;
    struct gs_process_pods *pods;
    struct driver_usage usage;
    uint64_t compared, counted, reused, told;
};

static uint64_t below(struct world *world, uint64_t n)
{
    return gs_splitmix_below(&world->random, n);
}

static bool one_in(struct world *world, uint64_t n)
{
    return below(world, n) == 0;
}

static void uid_of(int pod, char uid[64])
{
    snprintf(uid, 64, "%08x-1111-4222-8333-444444444444", pod + 1);
}

/* ---- /proc ---- */

/* systemd's name has "_" for "-". */
static void slice_of(int pod, char text[128])
{
    char uid[64];
    uid_of(pod, uid);
    for (char *at = uid; *at; at++)
        *at = *at == '-' ? '_' : *at;
    snprintf(text, 128, "kubepods-besteffort-pod%s.slice", uid);
}

static void put_cgroup(struct world *world, uint32_t pid)
{
    static const char *const tails[] = {"", "/x y", "/a (deleted)", "/../b", "/\xff\xfe", "/0::"};
    char own[64], other[64], slice[128], text[1024];
    const int pod = world->processes[pid].pod;
    const char *tail = tails[below(world, sizeof(tails) / sizeof(tails[0]))];
    uid_of(pod < 0 ? 0 : pod, own);
    uid_of((int)below(world, PODS), other);
    slice_of(pod < 0 ? 0 : pod, slice);
    if (pod < 0)
        snprintf(text, sizeof(text), "0::/system.slice/%s.service%s\n", other, tail);
    else
        switch (below(world, 6)) {
        case 0: /* cgroupfs, v2 */
            snprintf(text, sizeof(text), "0::/kubepods/besteffort/pod%s/c%s\n", own, tail);
            break;
        case 1: /* systemd */
            snprintf(text, sizeof(text),
                     "0::/kubepods.slice/kubepods-besteffort.slice/%s/cri-containerd-1.scope%s\n",
                     slice, tail);
            break;
        case 2: /* from a cgroup namespace beside it */
            snprintf(text, sizeof(text), "0::/../../pod%s/c%s\n", own, tail);
            break;
        case 3: /* v1 */
            snprintf(text, sizeof(text),
                     "11:memory:/kubepods/burstable/pod%s/c%s\n2:cpu,cpuacct:/kubepods/burstable/"
                     "pod%s/c\n1:name=systemd:/kubepods/burstable/pod%s/c\n0::/\n",
                     own, tail, own, own);
            break;
        case 4: /* a folder of its own, named after another pod's */
            snprintf(text, sizeof(text), "0::/kubepods/besteffort/pod%s/c/kubepods/pod%s/c%s\n",
                     own, other, tail);
            break;
        default:
            snprintf(text, sizeof(text), "0::/../%s/cri-containerd-1.scope/pod%s%s\n", slice, other,
                     tail);
        }
    fake_proc_put(world->dir, pid + 1, "cgroup", text, strlen(text));
}

static void end_process(struct world *world, uint32_t pid)
{
    char path[128];
    if (!world->processes[pid].life)
        return;
    snprintf(path, sizeof(path), "%s/%u", world->dir, pid + 1);
    fake_proc_remove(path);
    world->processes[pid] = (struct process){0};
}

static void begin_process(struct world *world, uint32_t pid)
{
    static const char *const names[] = {"python3", "a) S 1 1 1 0 -1 1 1 9 9 9", "((", ")"};
    char text[256];
    end_process(world, pid);
    world->processes[pid] =
        (struct process){.life = ++world->lives,
                         .pod = (int)below(world, PODS + 1) - 1,
                         .began = (uint64_t)(world->now_ns / TICK_NS) + below(world, LATEST_TICKS)};
    int len = snprintf(text, sizeof(text),
                       "%u (%s) S 1 1 1 0 -1 1 1 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64 " 1 1 1\n",
                       pid + 1, names[below(world, 4)], world->processes[pid].began);
    fake_proc_put(world->dir, pid + 1, "stat", text, (size_t)len);
    put_cgroup(world, pid);
}

/* ---- the driver ---- */

static int list(void *ctx, uint32_t idx, struct gs_gpu_process ret[GS_GPU_PROCESSES_MAX],
                size_t *ret_count, struct gs_error *err)
{
    const struct world *world = ctx;
    *ret_count = 0;
    if (world->refused[idx])
        return gs_fail(err, GS_EIO, "it does not tell");
    for (uint32_t i = 0; i < world->count; i++)
        if (world->entries[i].gpu == idx)
            ret[(*ret_count)++] =
                (struct gs_gpu_process){world->entries[i].pid + 1, world->entries[i].bytes};
    return 0;
}

static void drop_entry(struct world *world, uint32_t at)
{
    world->entries[at] = world->entries[--world->count];
}

/* The driver names a PID once a list. */
static void add_entry(struct world *world)
{
    const struct entry entry = {
        .pid = (uint32_t)below(world, PIDS),
        .gpu = (uint32_t)below(world, GPUS),
        .bytes = one_in(world, 12)   ? GS_GPU_BYTES_UNKNOWN
                 : one_in(world, 40) ? UINT64_MAX - 1
                                     : (1 + below(world, 700)) << 20,
    };
    for (uint32_t i = 0; i < world->count; i++)
        if (world->entries[i].pid == entry.pid && world->entries[i].gpu == entry.gpu)
            return;
    if (world->count < ENTRIES)
        world->entries[world->count++] = entry;
}

static void step(struct world *world)
{
    const uint32_t pid = (uint32_t)below(world, PIDS);
    switch (below(world, 14)) {
    case 0:
        end_process(world, pid);
        break;
    case 1:
    case 2:
        world->reused += world->processes[pid].life && world->known[pid].listed;
        begin_process(world, pid);
        break;
    case 3: /* it goes into another pod's cgroup */
        if (world->processes[pid].life) {
            world->processes[pid].pod = (int)below(world, PODS + 1) - 1;
            put_cgroup(world, pid);
        }
        break;
    case 4:
        if (world->count)
            drop_entry(world, (uint32_t)below(world, world->count));
        break;
    case 5:
        world->refused[below(world, GPUS)] = one_in(world, 6);
        break;
    case 6:
        world->there[below(world, PODS)] = !one_in(world, 6);
        break;
    case 7:
        world->in_use[below(world, GPUS)] = IN_USE + (below(world, 8000) << 20);
        break;
    default:
        add_entry(world);
    }
}

/* ---- the oracle ---- */

/* Whose memory an entry is, after this list; NOBODY: it must not be told. */
static void know(struct world *world)
{
    bool named[PIDS] = {false};
    for (uint32_t pid = 0; pid < PIDS; pid++)
        for (uint32_t gpu = 0; gpu < GPUS; gpu++)
            world->known[pid].on[gpu] &= world->refused[gpu];
    for (uint32_t i = 0; i < world->count; i++) {
        const struct entry *entry = &world->entries[i];
        named[entry->pid] |= !world->refused[entry->gpu];
        world->known[entry->pid].on[entry->gpu] |= !world->refused[entry->gpu];
    }
    for (uint32_t pid = 0; pid < PIDS; pid++) {
        struct known *known = &world->known[pid];
        const struct process *process = &world->processes[pid];
        bool listed = false;
        for (uint32_t gpu = 0; gpu < GPUS; gpu++)
            listed |= known->on[gpu];
        if (!listed)
            *known = (struct known){0};
        if (!named[pid])
            continue;
        if (!known->listed)
            known->life = process->life;
        known->listed = true;
        known->lost |= !process->life || process->life != known->life ||
                       process->began > (uint64_t)(world->now_ns / TICK_NS);
    }
}

/* False: it is not known. */
static bool truth(const struct world *world, int pod, uint32_t gpu, uint64_t *ret)
{
    unsigned __int128 all = 0, own = 0;
    bool known[PODS];
    unsigned __int128 of_pod[PODS] = {0};
    for (int i = 0; i < PODS; i++)
        known[i] = true;
    for (uint32_t i = 0; i < world->count; i++) {
        const struct entry *entry = &world->entries[i];
        const int whose = world->processes[entry->pid].pod;
        if (entry->gpu != gpu || world->known[entry->pid].lost || whose == NOBODY)
            continue;
        known[whose] &= entry->bytes != GS_GPU_BYTES_UNKNOWN;
        of_pod[whose] += entry->bytes;
        known[whose] &= of_pod[whose] <= UINT64_MAX;
    }
    for (int i = 0; i < PODS; i++)
        all += known[i] ? of_pod[i] : 0;
    own = of_pod[pod];
    if (all > world->in_use[gpu])
        own = own * world->in_use[gpu] / all;
    *ret = (uint64_t)own;
    return known[pod] && !world->refused[gpu];
}

static void compare_pod(struct world *world, int pod, uint64_t sums[GPUS])
{
    struct pod_use use = {0};
    char uid[64];
    uid_of(pod, uid);
    driver_usage_find(&world->usage, uid, GS_GPU_BIT(GPUS) - 1, world->now_ns, &use);
    for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
        uint64_t expected;
        const bool counted = (use.counted & GS_GPU_BIT(gpu)) != 0;
        const bool known = truth(world, pod, gpu, &expected);
        if (counted != known || (known && use.used_on[gpu] != expected))
            FAIL("seed %" PRIu64 ": pod %d GPU %u: told %d %" PRIu64 ", is %d %" PRIu64,
                 world->seed, pod, gpu, counted, use.used_on[gpu], known, expected);
        world->compared++;
        world->counted += known && expected > 0;
        if (!known)
            continue;
        sums[gpu] += expected;
        if (expected > world->peak[pod][gpu])
            world->peak[pod][gpu] = expected;
        if (use.peak_on[gpu] != world->peak[pod][gpu])
            FAIL("seed %" PRIu64 ": pod %d GPU %u: peak %" PRIu64 ", is %" PRIu64, world->seed, pod,
                 gpu, use.peak_on[gpu], world->peak[pod][gpu]);
        driver_usage_over(&world->usage, uid, expected); /* of a share of nothing */
    }
}

/* Exactly those who use more than a context, and were not told in this hour. */
static void compare_told(struct world *world)
{
    bool told[PODS] = {false};
    uint64_t bytes;
    const char *uid;
    while ((uid = driver_usage_next_over(&world->usage, world->now_ns, &bytes)) != NULL) {
        const int pod = (int)strtol(uid, NULL, 16) - 1;
        if (told[pod])
            FAIL("seed %" PRIu64 ": pod %d is told twice", world->seed, pod);
        told[pod] = true;
    }
    for (int pod = 0; pod < PODS; pod++) {
        bool over = false;
        for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
            uint64_t used;
            over |= world->there[pod] && truth(world, pod, gpu, &used) && used > OVER;
        }
        const bool due = over && (!world->told_ns[pod] ||
                                  (uint64_t)world->now_ns - world->told_ns[pod] >= HOUR_NS);
        if (told[pod] != due)
            FAIL("seed %" PRIu64 ": pod %d is told %d, should be %d", world->seed, pod, told[pod],
                 due);
        if (due)
            world->told_ns[pod] = (uint64_t)world->now_ns;
        world->told += due;
    }
}

static bool is_read(const struct world *world, int pod)
{
    for (uint32_t i = 0; i < world->count; i++) {
        const struct entry *entry = &world->entries[i];
        if (world->processes[entry->pid].pod == pod && !world->known[entry->pid].lost &&
            !world->refused[entry->gpu])
            return true;
    }
    return false;
}

/* A pod that is not there is asked for by nobody, and may come before the next list. */
static void look_away(struct world *world, int pod)
{
    for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
        uint64_t used;
        if (truth(world, pod, gpu, &used) && used > world->peak[pod][gpu])
            world->peak[pod][gpu] = used;
    }
}

/* A pod of which a list named a process is remembered until it is not there in a pass, nor in the
 * last list. */
static void forget(struct world *world)
{
    for (int pod = 0; pod < PODS; pod++)
        if (!world->there[pod] && !is_read(world, pod)) {
            memset(world->peak[pod], 0, sizeof(world->peak[pod]));
            world->told_ns[pod] = 0;
        }
}

static void read_and_compare(struct world *world)
{
    uint64_t sums[GPUS] = {0};
    for (uint32_t gpu = 0; gpu < GPUS; gpu++)
        world->set.used_bytes[gpu] = world->in_use[gpu];
    world->now_ns += one_in(world, 20) ? HOUR_NS : READ_NS;
    struct driver_reading *reading =
        driver_usage_read(&world->source, &world->set, world->pods, world->now_ns);
    if (!reading)
        FAIL("out of memory");
    driver_usage_take(&world->usage, reading, &world->set);
    know(world);
    driver_usage_pass_begin(&world->usage);
    for (int pod = 0; pod < PODS; pod++)
        if (world->there[pod])
            compare_pod(world, pod, sums);
        else
            look_away(world, pod);
    driver_usage_pass_end(&world->usage);
    for (uint32_t gpu = 0; gpu < GPUS; gpu++)
        if (sums[gpu] > world->in_use[gpu])
            FAIL("seed %" PRIu64 ": pods use more of GPU %u than is in use", world->seed, gpu);
    compare_told(world);
    forget(world);
}

static void play(struct world *world, uint64_t seed, uint64_t steps)
{
    static const struct gs_gpu_source_ops ops = {.processes = list};
    *world = (struct world){.random = seed,
                            .seed = seed,
                            .dir = "/tmp/gs-usage-world-XXXXXX",
                            .now_ns = 1000 * GS_NS_PER_S,
                            .set = {.count = GPUS, .measured = GS_GPU_BIT(GPUS) - 1}};
    if (!mkdtemp(world->dir))
        FAIL("no folder");
    for (uint32_t i = 0; i < GPUS; i++) {
        world->set.gpus[i].idx = i;
        snprintf(world->set.gpus[i].uuid, sizeof(world->set.gpus[i].uuid), "GPU-%u", i);
        world->in_use[i] = IN_USE;
    }
    world->source = (struct gs_gpu_source){&ops, world};
    world->pods = gs_process_pods_new(world->dir);
    for (uint64_t i = 0; i < steps; i++) {
        for (uint64_t more = 1 + below(world, 6); more > 0; more--)
            step(world);
        read_and_compare(world);
        if (one_in(world, 50)) { /* the plugin starts anew */
            driver_usage_release(&world->usage);
            gs_process_pods_free(world->pods);
            world->pods = gs_process_pods_new(world->dir);
            memset(world->known, 0, sizeof(world->known));
            memset(world->peak, 0, sizeof(world->peak));
            memset(world->told_ns, 0, sizeof(world->told_ns));
        }
    }
    driver_usage_release(&world->usage);
    gs_process_pods_free(world->pods);
    fake_proc_remove(world->dir);
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    return otherwise;
}

int main(int argc, char **argv)
{
    const uint64_t rounds = number(argc, argv, "--rounds", 20);
    const uint64_t seed = number(argc, argv, "--seed", 1);
    uint64_t compared = 0, counted = 0, reused = 0, told = 0;
    static struct world world;
    gs_log_init(GS_LOG_ERROR, GS_LOG_TEXT);
    for (uint64_t i = 0; i < rounds; i++) {
        play(&world, seed + i, number(argc, argv, "--steps", 300));
        compared += world.compared;
        counted += world.counted;
        reused += world.reused;
        told += world.told;
    }
    printf("%" PRIu64 " worlds: %" PRIu64 " answers, %" PRIu64
           " of them of a pod that uses something, "
           "%" PRIu64 " PIDs taken while listed, %" PRIu64 " told, 0 wrong\n",
           rounds, compared, counted, reused, told);
    return 0;
}
