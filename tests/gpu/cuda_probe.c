/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_probe [--library FILE] [--mib N] [--hold | --work]: a process that computes by CUDA, through
 * the driver's library alone (libcuda.so.1; docs.nvidia.com/cuda/cuda-driver-api). It makes a
 * context on the first GPU that it sees, allocates N MiB there, writes to all of them, and says in
 * one line what it saw. --hold: it stays until its input ends; --work: and keeps the GPU busy
 * meanwhile, of which it says a line each second.
 *
 * Exit status: 0 it has the memory; 2 it was refused memory; 3 something else failed; 77 there is
 * no library, or no GPU.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OUT_OF_MEMORY = 2, SM_COUNT = 16, REFUSED = 2, FAILED = 3, NOTHING = 77 };

static struct {
    int (*init)(unsigned flags);
    int (*version)(int *ret);
    int (*count)(int *ret);
    int (*device)(int *ret, int at);
    int (*name)(char *ret, int size, int device);
    int (*attribute)(int *ret, int which, int device);
    int (*retain)(void **ret, int device);
    int (*set_current)(void *context);
    int (*info)(size_t *ret_free, size_t *ret_total);
    int (*alloc)(uint64_t *ret, size_t bytes);
    int (*fill)(uint64_t at, unsigned char byte, size_t bytes);
    int (*wait)(void);
    int (*error_name)(int code, const char **ret);
} cuda;

static const struct {
    const char *symbol;
    void *to;
} symbols[] = {
    {"cuInit", &cuda.init},
    {"cuDriverGetVersion", &cuda.version},
    {"cuDeviceGetCount", &cuda.count},
    {"cuDeviceGet", &cuda.device},
    {"cuDeviceGetName", &cuda.name},
    {"cuDeviceGetAttribute", &cuda.attribute},
    {"cuDevicePrimaryCtxRetain", &cuda.retain},
    {"cuCtxSetCurrent", &cuda.set_current},
    {"cuMemGetInfo_v2", &cuda.info},
    {"cuMemAlloc_v2", &cuda.alloc},
    {"cuMemsetD8_v2", &cuda.fill},
    {"cuCtxSynchronize", &cuda.wait},
    {"cuGetErrorName", &cuda.error_name},
};

static void load(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "cuda_probe: %s\n", dlerror());
        exit(NOTHING);
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(handle, symbols[i].symbol);
        if (!address) {
            fprintf(stderr, "cuda_probe: %s has no %s\n", library, symbols[i].symbol);
            exit(NOTHING);
        }
        memcpy(symbols[i].to, &address, sizeof(address));
    }
}

static void must(int code, const char *what)
{
    const char *name = NULL;
    if (code == 0)
        return;
    cuda.error_name(code, &name);
    printf("%s: %s (%d)\n", what, name ? name : "an error without a name", code);
    exit(code == OUT_OF_MEMORY ? REFUSED : FAILED);
}

static int first_device(void)
{
    int count = 0, device;
    must(cuda.init(0), "cuInit");
    must(cuda.count(&count), "cuDeviceGetCount");
    if (count == 0) {
        fputs("cuda_probe: no GPU is visible\n", stderr);
        exit(NOTHING);
    }
    must(cuda.device(&device, 0), "cuDeviceGet");
    return device;
}

static void tell(int device, unsigned long mib)
{
    size_t bytes_free = 0, total = 0;
    char name[128] = "";
    int version = 0, processors = 0;
    must(cuda.name(name, sizeof(name), device), "cuDeviceGetName");
    must(cuda.version(&version), "cuDriverGetVersion");
    must(cuda.attribute(&processors, SM_COUNT, device), "cuDeviceGetAttribute");
    must(cuda.info(&bytes_free, &total), "cuMemGetInfo");
    printf("allocated_mib=%lu free_mib=%zu total_mib=%zu processors=%d cuda=%d device=%s\n", mib,
           bytes_free >> 20, total >> 20, processors, version, name);
    fflush(stdout);
}

static int stay(uint64_t at, size_t bytes, int works)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    time_t said = time(NULL);
    for (unsigned long rounds = 1;; rounds++) {
        int ready = poll(&input, 1, works ? 0 : -1);
        if (ready > 0 && read(STDIN_FILENO, &byte, 1) <= 0)
            return 0;
        if (works) {
            must(cuda.fill(at, 1, bytes), "cuMemsetD8");
            must(cuda.wait(), "cuCtxSynchronize");
            if (time(NULL) != said) {
                said = time(NULL);
                printf("rounds=%lu\n", rounds);
                fflush(stdout);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const char *library = "libcuda.so.1";
    unsigned long mib = 0;
    int holds = 0, works = 0;
    uint64_t at = 0;
    void *context;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--library") == 0 && i + 1 < argc)
            library = argv[++i];
        else if (strcmp(argv[i], "--mib") == 0 && i + 1 < argc)
            mib = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--hold") == 0)
            holds = 1;
        else if (strcmp(argv[i], "--work") == 0)
            holds = works = 1;
        else
            return FAILED;
    }
    load(library);
    int device = first_device();
    must(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuda.set_current(context), "cuCtxSetCurrent");
    if (mib) {
        must(cuda.alloc(&at, mib << 20), "cuMemAlloc");
        must(cuda.fill(at, 1, mib << 20), "cuMemsetD8");
        must(cuda.wait(), "cuCtxSynchronize");
    }
    tell(device, mib);
    return holds ? stay(at, mib << 20, works && mib) : 0;
}
