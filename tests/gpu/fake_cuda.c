/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 for tests of cuda_probe and scripts/gpu.sh: one GPU of 16 GiB and 100 processors.
 * A process whose CUDA_MPS_PIPE_DIRECTORY has a daemon's socket is its client (the stand-in's of
 * tests/support/mps), and is held to CUDA_MPS_PINNED_DEVICE_MEM_LIMIT and
 * CUDA_MPS_ACTIVE_THREAD_PERCENTAGE as NVIDIA's documents say: an entry for a GPU that is not there
 * drops them all. What it holds stands in the other stand-in's list, $GS_FAKE_NVML. $GS_FAKE_CUDA
 * lists what is not so: "no-limit", "keeps-limit" (with such an entry), "no-threads", "no-device",
 * "no-list".
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OK = 0, OUT_OF_MEMORY = 2, UNKNOWN = 999, SM_COUNT = 16, PROCESSORS = 100 };
#define TOTAL_BYTES   ((size_t)16 << 30)
#define CONTEXT_BYTES ((size_t)300 << 20)

static int connection = -1; /* to the daemon, until the process ends */
static size_t used;

#define EXPORT __attribute__((visibility("default")))

static int lies(const char *word)
{
    const char *words = getenv("GS_FAKE_CUDA");
    return words && strstr(words, word);
}

static void become_client(void)
{
    const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char line[32];
    snprintf(to.sun_path, sizeof(to.sun_path), "%s/control", pipe ? pipe : "/nonexistent");
    connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&to, sizeof(to)) < 0) {
        close(connection);
        connection = -1;
        return;
    }
    int len = snprintf(line, sizeof(line), "client %d\n", getpid());
    if (write(connection, line, (size_t)len) != len || read(connection, line, sizeof(line)) <= 0)
        abort();
}

/* "0=1024M,1=…": of GPU 0; TOTAL_BYTES when there is none that counts. */
static size_t limit(void)
{
    const char *at = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    size_t found = TOTAL_BYTES;
    if (connection < 0 || !at || lies("no-limit"))
        return TOTAL_BYTES;
    for (; *at; at += strcspn(at, ","), at += *at == ',') {
        char *end;
        unsigned long device = strtoul(at, &end, 10);
        if ((device != 0 || *end != '=') && !lies("keeps-limit"))
            return TOTAL_BYTES;
        if (device == 0 && *end == '=')
            found = (size_t)strtoull(end + 1, NULL, 10) << 20;
    }
    return found;
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuInit(unsigned flags)
{
    become_client();
    return OK;
}

EXPORT int cuDriverGetVersion(int *ret);
EXPORT int cuDriverGetVersion(int *ret)
{
    *ret = 13010;
    return OK;
}

EXPORT int cuDeviceGetCount(int *ret);
EXPORT int cuDeviceGetCount(int *ret)
{
    *ret = !lies("no-device");
    return OK;
}

EXPORT int cuDeviceGet(int *ret, int at);
EXPORT int cuDeviceGet(int *ret, int at)
{
    *ret = at;
    return OK;
}

EXPORT int cuDeviceGetName(char *ret, int size, int device);
EXPORT int cuDeviceGetName(char *ret, int size, int device)
{
    snprintf(ret, (size_t)size, "Fake A0");
    return OK;
}

EXPORT int cuDeviceGetAttribute(int *ret, int which, int device);
EXPORT int cuDeviceGetAttribute(int *ret, int which, int device)
{
    const char *share = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    bool counts = connection >= 0 && share && !lies("no-threads");
    *ret = which == SM_COUNT ? (counts ? atoi(share) * PROCESSORS / 100 : PROCESSORS) : 0;
    return OK;
}

EXPORT int cuDevicePrimaryCtxRetain(void **ret, int device);
EXPORT int cuDevicePrimaryCtxRetain(void **ret, int device)
{
    *ret = &connection;
    if (CONTEXT_BYTES > limit())
        return OUT_OF_MEMORY;
    used = CONTEXT_BYTES;
    return OK;
}

EXPORT int cuCtxSetCurrent(void *context);
EXPORT int cuCtxSetCurrent(void *context)
{
    return context == &connection ? OK : UNKNOWN;
}

EXPORT int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
EXPORT int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    *ret_free = limit() - used;
    *ret_total = TOTAL_BYTES;
    return OK;
}

static void list_process(void)
{
    const char *path = getenv("GS_FAKE_NVML");
    FILE *file = path && !lies("no-list") ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "live compute %d %zu -1\n", getpid(), used);
    fclose(file);
}

EXPORT int cuMemAlloc_v2(uint64_t *ret, size_t bytes);
EXPORT int cuMemAlloc_v2(uint64_t *ret, size_t bytes)
{
    if (bytes > limit() - used)
        return OUT_OF_MEMORY;
    used += bytes;
    *ret = used;
    list_process();
    return OK;
}

EXPORT int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes);
EXPORT int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes)
{
    return at ? OK : UNKNOWN;
}

EXPORT int cuCtxSynchronize(void);
EXPORT int cuCtxSynchronize(void)
{
    return OK;
}

EXPORT int cuGetErrorName(int code, const char **ret);
EXPORT int cuGetErrorName(int code, const char **ret)
{
    *ret = code == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
    return OK;
}
