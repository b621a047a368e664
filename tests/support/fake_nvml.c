/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so for tests. What it shows is in the file that $GS_FAKE_NVML names, read anew at
 * every call; one line each:
 *   init CODE                       nvmlInit fails
 *   gpu UUID MIB MIG(0|1) BUSID     the next card; MIB 0: its memory cannot be read
 *   lost                            the next card does not answer (NVML_ERROR_GPU_IS_LOST)
 *   mute CODE                       the next card has a handle, and answers CODE for its UUID
 *   cuda VERSION MAJOR              the driver's CUDA (13010 is 13.1), the cards' capability
 *   wait CODE                       nvmlEventSetWait fails at once, every time
 *   mig UUID MIB GI                 the next MIG instance of the last card; MIB 0: its memory
 * cannot be read; UUID "-": a hole in the list event IDX TYPE DATA GI          (GI -1: none named)
 * comes out of nvmlEventSetWait once, in order
 *   process LIST PID BYTES GI       on the last card, or the last instance of it; LIST compute,
 *                                   graphics or mps; BYTES -: not available; GI -1: none named
 *   live LIST PID BYTES GI          the same while there is a process of that PID
 *   counts                          in use on the last card is what its processes hold, and 512 MiB
 *   refuse LIST CODE                that list of the last card or instance is refused
 *   limits CODE BYTES               nvmlDeviceSetMemoryLimits_v1 works (CODE 0), as that of 615
 * without the kernel's controller; so much is in use of each cgroup
 *   dmem                            and with it: limits and use are those of the cgroup's files
 *   anew N                          it answers once all have shut it down and init came after that
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    CARDS = 8,
    INSTANCES = 7,
    OK = 0,
    UNKNOWN = 999,
    STUCK = -1, /* it does not answer in time */
    SLOW = -2,  /* it works, in 0.6 s a call */
    INVALID = 2,
    UNSUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    TIMED_OUT = 10,
    LOST = 15,
    LOOK_MS = 50
};

struct card {
    char uuid[96], bus[32];
    unsigned long long mib;
    unsigned mig, instance;
    int lost, mute, counts;
};

struct state {
    struct card cards[CARDS * (1 + INSTANCES)]; /* cards, then the instances of each */
    unsigned instances[CARDS];
    unsigned count;
    int init, wait, cuda, capability, limits, dmem, anew;
    unsigned long long in_use;
    struct {
        unsigned idx;
        unsigned long long type, data;
        int instance;
    } events[CARDS];
    unsigned events_count;
};

enum { PROCESSES = 4096, LISTS = 3 };

/* All of them, and the answers of lists; by look() */
static struct process {
    unsigned handle, list, pid;
    unsigned long long bytes;
    int instance;
} processes[PROCESSES];
static unsigned processes_count, last_handle;
static int refused[CARDS * (1 + INSTANCES)][LISTS];

static struct card *handles[CARDS * (1 + INSTANCES)]; /* a handle is an address of one of these */
static unsigned events_seen;
static _Atomic int users, met; /* of nvmlInit; what `anew` was at the first */

static unsigned list_of(const char *word)
{
    static const char *const words[LISTS] = {"compute", "graphics", "mps"};
    for (unsigned i = 0; i < LISTS; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    abort();
}

static void read_process(FILE *in)
{
    char list[16], bytes[32];
    struct process *process = &processes[processes_count++];
    if (processes_count == PROCESSES ||
        fscanf(in, "%15s %u %31s %d", list, &process->pid, bytes, &process->instance) != 4)
        abort();
    process->handle = last_handle;
    process->list = list_of(list);
    process->bytes = strcmp(bytes, "-") == 0 ? ~0ULL : strtoull(bytes, NULL, 10);
}

static void read_refusal(FILE *in)
{
    char list[16];
    int code;
    if (fscanf(in, "%15s %d", list, &code) != 2)
        abort();
    refused[last_handle][list_of(list)] = code;
}

static void read_line(struct state *state, FILE *in, const char *word)
{
    struct card *card = &state->cards[state->count];
    if (strcmp(word, "init") == 0) {
        if (fscanf(in, "%d", &state->init) != 1)
            abort();
    } else if (strcmp(word, "lost") == 0) {
        card->lost = 1;
        state->count++;
    } else if (strcmp(word, "mute") == 0) {
        if (fscanf(in, "%d", &card->mute) != 1)
            abort();
        state->count++;
    } else if (strcmp(word, "wait") == 0) {
        if (fscanf(in, "%d", &state->wait) != 1)
            abort();
    } else if (strcmp(word, "cuda") == 0) {
        if (fscanf(in, "%d %d", &state->cuda, &state->capability) != 2)
            abort();
    } else if (strcmp(word, "gpu") == 0) {
        if (fscanf(in, "%95s %llu %u %31s", card->uuid, &card->mib, &card->mig, card->bus) != 4)
            abort();
        last_handle = state->count++;
    } else if (strcmp(word, "mig") == 0) {
        unsigned parent = state->count - 1, number = state->instances[parent]++;
        card = &state->cards[CARDS + parent * INSTANCES + number];
        if (fscanf(in, "%95s %llu %u", card->uuid, &card->mib, &card->instance) != 3)
            abort();
        last_handle = CARDS + parent * INSTANCES + number;
    } else if (strcmp(word, "counts") == 0) {
        state->cards[last_handle].counts = 1;
    } else if (strcmp(word, "process") == 0) {
        read_process(in);
    } else if (strcmp(word, "live") == 0) {
        read_process(in);
        processes_count -= kill((pid_t)processes[processes_count - 1].pid, 0) < 0 && errno == ESRCH;
    } else if (strcmp(word, "refuse") == 0) {
        read_refusal(in);
    } else if (strcmp(word, "anew") == 0) {
        if (fscanf(in, "%d", &state->anew) != 1)
            abort();
    } else if (strcmp(word, "dmem") == 0) {
        state->dmem = 1;
    } else if (strcmp(word, "limits") == 0) {
        if (fscanf(in, "%d %llu", &state->limits, &state->in_use) != 2)
            abort();
    } else if (strcmp(word, "event") == 0) {
        if (fscanf(in, "%u %llu %llu %d", &state->events[state->events_count].idx,
                   &state->events[state->events_count].type,
                   &state->events[state->events_count].data,
                   &state->events[state->events_count].instance) != 4)
            abort();
        state->events_count++;
    } else {
        abort();
    }
}

static struct state look(void)
{
    struct state state = {.limits = UNSUPPORTED};
    char word[16];
    const char *path = getenv("GS_FAKE_NVML");
    FILE *file = path ? fopen(path, "re") : NULL;
    processes_count = 0;
    memset(refused, 0, sizeof(refused));
    while (file && fscanf(file, "%15s", word) == 1)
        read_line(&state, file, word);
    if (file)
        fclose(file);
    return state;
}

static unsigned index_of(struct card **handle)
{
    return (unsigned)(handle - handles);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
    const struct state state = look();
    if (!state.init && users++ == 0)
        met = state.anew;
    return state.init;
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void)
{
    users--;
    return OK;
}

EXPORT const char *nvmlErrorString(int code);
EXPORT const char *nvmlErrorString(int code)
{
    return code == 9 ? "Driver Not Loaded" : code == LOST ? "GPU is lost" : "Unknown Error";
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *ret);
EXPORT int nvmlDeviceGetCount_v2(unsigned *ret)
{
    const struct state state = look();
    *ret = state.count;
    return state.anew == met ? OK : UNKNOWN;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned idx, struct card ***ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned idx, struct card ***ret)
{
    struct state state = look();
    if (idx >= state.count)
        return NOT_FOUND;
    if (state.cards[idx].lost)
        return LOST;
    *ret = &handles[idx];
    return OK;
}

EXPORT int nvmlDeviceGetUUID(struct card **device, char *ret, unsigned size);
EXPORT int nvmlDeviceGetUUID(struct card **device, char *ret, unsigned size)
{
    struct state state = look();
    snprintf(ret, size, "%s", state.cards[index_of(device)].uuid);
    return state.cards[index_of(device)].mute;
}

EXPORT int nvmlDeviceGetName(struct card **device, char *ret, unsigned size);
EXPORT int nvmlDeviceGetName(struct card **device, char *ret, unsigned size)
{
    snprintf(ret, size, "Fake A%u", index_of(device));
    return OK;
}

#ifndef FAKE_NVML_OLD
EXPORT int nvmlDeviceGetMemoryInfo(struct card **device, unsigned long long ret[3]);
EXPORT int nvmlDeviceGetMemoryInfo(struct card **device, unsigned long long ret[3])
{
    const struct state state = look();
    const struct card *card = &state.cards[index_of(device)];
    ret[0] = card->mib << 20;
    ret[2] = card->counts ? 512ULL << 20 : ret[0] / 4; /* in use; [1] is what is free */
    for (unsigned i = 0; card->counts && i < processes_count; i++)
        ret[2] += processes[i].handle == index_of(device) ? processes[i].bytes : 0;
    ret[1] = ret[0] - ret[2];
    return ret[0] ? OK : UNKNOWN;
}
#endif

struct pci {
    char legacy[16];
    unsigned numbers[5];
    char bus[32];
};

EXPORT int nvmlDeviceGetPciInfo_v3(struct card **device, struct pci *ret);
EXPORT int nvmlDeviceGetPciInfo_v3(struct card **device, struct pci *ret)
{
    snprintf(ret->bus, sizeof(ret->bus), "%s", look().cards[index_of(device)].bus);
    return OK;
}

/* Not as the cards are counted, as with a real driver. */
EXPORT int nvmlDeviceGetMinorNumber(struct card **device, unsigned *ret);
EXPORT int nvmlDeviceGetMinorNumber(struct card **device, unsigned *ret)
{
    *ret = CARDS - index_of(device);
    return index_of(device) < CARDS ? OK : UNKNOWN;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *ret);
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
    *ret = look().cuda;
    return *ret ? OK : UNKNOWN;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(struct card **device, int *major, int *minor);
EXPORT int nvmlDeviceGetCudaComputeCapability(struct card **device, int *major, int *minor)
{
    *major = look().capability;
    *minor = 0;
    return *major ? OK : UNKNOWN;
}

EXPORT int nvmlDeviceGetMigMode(struct card **device, unsigned *ret, unsigned *pending);
EXPORT int nvmlDeviceGetMigMode(struct card **device, unsigned *ret, unsigned *pending)
{
    *ret = *pending = look().cards[index_of(device)].mig;
    return OK;
}

#ifndef FAKE_NVML_OLD
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct card **device, unsigned *ret);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct card **device, unsigned *ret)
{
    *ret = INSTANCES;
    return OK;
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct card **device, unsigned at,
                                               struct card ***ret);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct card **device, unsigned at,
                                               struct card ***ret)
{
    struct state state = look();
    unsigned parent = index_of(device), idx = CARDS + parent * INSTANCES + at;
    if (at >= state.instances[parent] || strcmp(state.cards[idx].uuid, "-") == 0)
        return NOT_FOUND;
    *ret = &handles[idx];
    return OK;
}

EXPORT int nvmlDeviceGetGpuInstanceId(struct card **device, unsigned *ret);
EXPORT int nvmlDeviceGetGpuInstanceId(struct card **device, unsigned *ret)
{
    *ret = look().cards[index_of(device)].instance;
    return OK;
}
#endif

#ifndef FAKE_NVML_OLD
struct process_info {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu, compute;
};

static int running(struct card **device, unsigned list, unsigned *count, struct process_info *ret)
{
    unsigned room = *count, found = 0;
    look();
    for (unsigned i = 0; i < processes_count; i++) {
        const struct process *one = &processes[i];
        if (one->handle != index_of(device) || one->list != list)
            continue;
        if (found < room)
            ret[found] = (struct process_info){one->pid, one->bytes, (unsigned)one->instance,
                                               (unsigned)one->instance};
        found++;
    }
    *count = found;
    if (refused[index_of(device)][list])
        return refused[index_of(device)][list];
    return found > room ? TOO_SMALL : OK;
}

#define LIST(name, number)                                                                         \
    EXPORT int name(struct card **device, unsigned *count, struct process_info *ret);              \
    EXPORT int name(struct card **device, unsigned *count, struct process_info *ret)               \
    {                                                                                              \
        return running(device, number, count, ret);                                                \
    }
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2)
#endif

#ifndef FAKE_NVML_OLD
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct card ***ret);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct card ***ret)
{
    struct state state = look();
    for (unsigned i = 0; i < CARDS * (1 + INSTANCES); i++) {
        if (strcmp(state.cards[i].uuid, uuid) != 0)
            continue;
        *ret = &handles[i];
        return state.anew == met ? OK : UNKNOWN;
    }
    return NOT_FOUND;
}

/* A cgroup's limit on a card, in an attribute of its folder; the nearest above it is its. */
static int read_limit(const struct card *card, const char *cgroup, unsigned long long *ret)
{
    char name[128], text[32] = "";
    snprintf(name, sizeof(name), "user.limit.%s", card->uuid);
    if (getxattr(cgroup, name, text, sizeof(text) - 1) <= 0)
        return UNSUPPORTED;
    *ret = strtoull(text, NULL, 10);
    return OK;
}

static int write_limit(const struct card *card, const char *cgroup, unsigned long long bytes)
{
    char name[128], text[32];
    snprintf(name, sizeof(name), "user.limit.%s", card->uuid);
    snprintf(text, sizeof(text), "%llu", bytes);
    return setxattr(cgroup, name, text, strlen(text), 0) == 0 ? OK : UNKNOWN;
}

/* A line "nvidia/0000:41:00/vidmem BYTES" of a file of the kernel's controller: the card's bytes.
 */
static int read_dmem(const struct card *card, const char *cgroup, const char *file,
                     unsigned long long *ret)
{
    char path[600], region[96], bytes[32], pci[32];
    int found = UNSUPPORTED;
    snprintf(pci, sizeof(pci), "/%.10s/", card->bus + 4);
    snprintf(path, sizeof(path), "%s/%s", cgroup, file);
    FILE *in = fopen(path, "re");
    while (in && fscanf(in, "%95s %31s", region, bytes) == 2) {
        if (!strstr(region, pci))
            continue;
        *ret = strcmp(bytes, "max") == 0 ? ~0ULL : strtoull(bytes, NULL, 10);
        found = OK;
    }
    if (in)
        fclose(in);
    return found;
}

static int write_dmem(const struct card *card, const char *cgroup, unsigned long long bytes)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/dmem.max", cgroup);
    FILE *out = fopen(path, "r+e");
    if (!out)
        return NOT_FOUND;
    fprintf(out, bytes == ~0ULL ? "nvidia/%.10s/vidmem max\n" : "nvidia/%.10s/vidmem %llu\n",
            card->bus + 4, bytes);
    return fclose(out) == 0 ? OK : INVALID;
}

struct set_limits {
    const char *cgroup;
    unsigned long long soft, hard;
};

EXPORT int nvmlDeviceSetMemoryLimits_v1(struct card **device, struct set_limits *to);
EXPORT int nvmlDeviceSetMemoryLimits_v1(struct card **device, struct set_limits *to)
{
    struct state state = look();
    if (state.limits == STUCK)
        sleep(4);
    if (state.limits == SLOW) {
        usleep(600000);
        state.limits = OK;
    }
    if (state.limits || index_of(device) >= CARDS)
        return state.limits ? state.limits : UNSUPPORTED;
    if (access(to->cgroup, F_OK) < 0)
        return NOT_FOUND;
    const struct card *card = &state.cards[index_of(device)];
    if (state.dmem)
        read_dmem(card, to->cgroup, "dmem.current", &state.in_use);
    if (to->soft > to->hard || to->hard < state.in_use || strcmp(to->cgroup, "/sys/fs/cgroup") == 0)
        return INVALID;
    return (state.dmem ? write_dmem : write_limit)(card, to->cgroup, to->hard);
}

struct get_limits {
    struct set_limits limits;
    unsigned long long used;
};

EXPORT int nvmlDeviceGetMemoryLimits_v1(struct card **device, struct get_limits *ret);
EXPORT int nvmlDeviceGetMemoryLimits_v1(struct card **device, struct get_limits *ret)
{
    char path[512];
    const struct state state = look();
    const struct card *card = &state.cards[index_of(device)];
    if (state.dmem && read_dmem(card, ret->limits.cgroup, "dmem.max", &ret->limits.hard) != OK)
        return UNSUPPORTED;
    if (state.dmem)
        return read_dmem(card, ret->limits.cgroup, "dmem.current", &ret->used);
    snprintf(path, sizeof(path), "%s", ret->limits.cgroup);
    for (; path[0]; *strrchr(path, '/') = '\0') {
        if (read_limit(card, path, &ret->limits.hard) != OK)
            continue;
        ret->used = state.in_use;
        return OK;
    }
    return UNSUPPORTED;
}
#endif

EXPORT int nvmlEventSetCreate(void **ret);
EXPORT int nvmlEventSetCreate(void **ret)
{
    *ret = &events_seen;
    return OK;
}

EXPORT int nvmlEventSetFree(void *set);
EXPORT int nvmlEventSetFree(void *set)
{
    return OK;
}

EXPORT int nvmlDeviceRegisterEvents(struct card **device, unsigned long long types, void *set);
EXPORT int nvmlDeviceRegisterEvents(struct card **device, unsigned long long types, void *set)
{
    return OK;
}

struct event {
    struct card **device;
    unsigned long long type, data;
    unsigned gpu, compute;
};

EXPORT int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned timeout_ms);
EXPORT int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned timeout_ms)
{
    struct state state = look();
    if (state.wait)
        return state.wait;
    if (events_seen >= state.events_count) { /* not the whole time, so that the next one is seen */
        poll(NULL, 0, timeout_ms < LOOK_MS ? (int)timeout_ms : LOOK_MS);
        return TIMED_OUT;
    }
    *ret = (struct event){.device = &handles[state.events[events_seen].idx],
                          .type = state.events[events_seen].type,
                          .data = state.events[events_seen].data,
                          .gpu = (unsigned)state.events[events_seen].instance,
                          .compute = (unsigned)state.events[events_seen].instance};
    events_seen++;
    return OK;
}
