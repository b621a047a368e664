/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/process_pods.h"
#include "gpushare/base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/index.h"
#include "gpushare/base/invariant.h"
#include "gpushare/base/num.h"
#include "internal.h"

struct seen {
    uint32_t pid;
    bool asked; /* in this list */
    bool lost;
    bool of_pod;
    gs_gpu_mask gpus, gpus_before; /* whose lists have it, and had it the last time */
    uint64_t began;                /* clock ticks after the boot; 0: not known */
    char uid[GS_POD_UID_BYTES];
};

struct gs_process_pods {
    const char *proc;
    uint64_t ticks_per_s;
    gs_gpu_mask refused; /* whose lists are not told this time */
    struct seen *seen;
    struct gs_index by_pid;
    uint32_t count, cap;
    struct limit_text text;
};

struct gs_process_pods *gs_process_pods_new(const char *proc)
{
    struct gs_process_pods *pods = calloc(1, sizeof(*pods));
    long ticks = sysconf(_SC_CLK_TCK);
    if (!pods)
        return NULL;
    pods->proc = proc;
    pods->ticks_per_s = ticks > 0 ? (uint64_t)ticks : 100;
    return pods;
}

void gs_process_pods_free(struct gs_process_pods *pods)
{
    gs_index_release(&pods->by_pid);
    free(pods->seen);
    free(pods);
}

/* ---- one process ---- */

/* The text behind the name, which may hold blanks and brackets: "PID (NAME) STATE PPID …". */
static struct gs_slice behind_name(const struct limit_text *text)
{
    const char *end = text->len ? memrchr(text->data, ')', text->len) : NULL;
    return end ? (struct gs_slice){end + 1, text->len - (size_t)(end + 1 - text->data)}
               : (struct gs_slice){"", 0};
}

enum { FIELD_BEGAN = 22, FIELD_NAME = 2 };

static bool began_of(const struct limit_text *text, uint64_t *ret)
{
    struct gs_slice rest = behind_name(text);
    struct gs_slice word = {"", 0};
    for (int field = FIELD_NAME; field <= FIELD_BEGAN; field++)
        word = gs_slice_cut(&rest, ' ');
    return gs_parse_u64(word.at, word.len, ret);
}

/* Lines "HIERARCHY:CONTROLLERS:PATH"; of v2 "0::PATH". Of all hierarchies in which it lies in a
 * pod's cgroup; they must not name two. */
static bool pod_of(const struct limit_text *text, char ret_uid[GS_POD_UID_BYTES])
{
    char uid[GS_POD_UID_BYTES], first[GS_POD_UID_BYTES] = "";
    struct gs_slice rest = {text->data, text->len};
    while (rest.len > 0) {
        struct gs_slice path = gs_slice_cut(&rest, '\n');
        gs_slice_cut(&path, ':');
        gs_slice_cut(&path, ':');
        if (!gs_pod_tree_uid_of_path(path, uid))
            continue;
        if (first[0] && strcmp(first, uid) != 0)
            return false;
        memcpy(first, uid, sizeof(first));
    }
    if (first[0])
        memcpy(ret_uid, first, sizeof(first));
    return first[0] != '\0';
}

/* Of one process, although it may end meanwhile and another get its number: the folder is open. */
static int read_process(struct gs_process_pods *pods, uint32_t pid, uint64_t *ret_began,
                        struct seen *ret)
{
    char path[512];
    if (snprintf(path, sizeof(path), "%s/%" PRIu32, pods->proc, pid) >= (int)sizeof(path))
        return ENAMETOOLONG;
    _cleanup_close_ int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return errno;
    int error = limit_read_at(folder, "stat", &pods->text);
    if (!error && !began_of(&pods->text, ret_began))
        error = EBADMSG;
    if (!error)
        error = limit_read_at(folder, "cgroup", &pods->text);
    if (!error)
        ret->of_pod = pod_of(&pods->text, ret->uid);
    return error;
}

/* ---- a list ---- */

static bool same_pid(const void *ctx, uint32_t slot)
{
    const struct gs_process_pods *pods = ((const void *const *)ctx)[0];
    const uint32_t *pid = ((const void *const *)ctx)[1];
    return pods->seen[slot].pid == *pid;
}

static struct seen *find(struct gs_process_pods *pods, uint32_t pid)
{
    const void *const key[] = {pods, &pid};
    uint32_t slot = gs_index_find(&pods->by_pid, gs_hash_bytes(&pid, sizeof(pid)), same_pid, key);
    return slot == GS_INDEX_NONE ? NULL : &pods->seen[slot];
}

/* NULL: too many, or out of memory. */
static struct seen *add(struct gs_process_pods *pods, uint32_t pid)
{
    if (pods->count == GS_PROCESS_PODS_MAX || gs_index_reserve(&pods->by_pid) < 0)
        return NULL;
    if (!gs_array_reach(&pods->seen, &pods->cap, pods->count, sizeof(*pods->seen)))
        return NULL;
    gs_index_insert(&pods->by_pid, gs_hash_bytes(&pid, sizeof(pid)), pods->count);
    pods->seen[pods->count] = (struct seen){.pid = pid};
    return &pods->seen[pods->count++];
}

void gs_process_pods_begin(struct gs_process_pods *pods)
{
    pods->refused = 0;
    for (uint32_t i = 0; i < pods->count; i++) {
        pods->seen[i].asked = false;
        pods->seen[i].gpus_before = pods->seen[i].gpus;
        pods->seen[i].gpus = 0;
    }
}

/* A process that cannot be read, or is younger than this list, is asked about in the next. */
static void look(struct gs_process_pods *pods, struct seen *seen, int64_t boot_ns)
{
    const uint64_t ns = boot_ns > 0 ? (uint64_t)boot_ns : 0;
    uint64_t began = 0;
    seen->asked = true;
    seen->of_pod = false;
    if (seen->lost)
        return;
    int error = read_process(pods, seen->pid, &began, seen);
    bool gone = error == ENOENT || error == ESRCH;
    bool another = seen->began && began && seen->began != began;
    bool younger = began > ns / (GS_NS_PER_S / pods->ticks_per_s);
    seen->lost = gone || another;
    seen->of_pod = seen->of_pod && !error && !seen->lost && !younger;
    if (began) /* known also where the cgroup cannot be read */
        seen->began = began;
}

bool gs_process_pods_find(struct gs_process_pods *pods, uint32_t gpu, int64_t boot_ns, uint32_t pid,
                          char ret_uid[GS_POD_UID_BYTES])
{
    struct seen *seen = find(pods, pid);
    if (!seen)
        seen = add(pods, pid);
    if (!seen)
        return false;
    seen->gpus |= GS_GPU_BIT(gpu);
    if (!seen->asked)
        look(pods, seen, boot_ns);
    if (!seen->of_pod)
        return false;
    GS_INVARIANT(!seen->lost, "only the process that the driver listed is matched to a pod");
    memcpy(ret_uid, seen->uid, sizeof(seen->uid));
    return true;
}

void gs_process_pods_refused(struct gs_process_pods *pods, uint32_t gpu)
{
    pods->refused |= GS_GPU_BIT(gpu);
}

void gs_process_pods_end(struct gs_process_pods *pods)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pods->count; i++) {
        struct seen *seen = &pods->seen[i];
        uint64_t hash = gs_hash_bytes(&seen->pid, sizeof(seen->pid));
        gs_index_remove(&pods->by_pid, hash, i);
        seen->gpus |= seen->gpus_before & pods->refused;
        if (!seen->gpus)
            continue;
        pods->seen[kept] = *seen;
        gs_index_insert(&pods->by_pid, hash, kept++);
    }
    pods->count = kept;
}
