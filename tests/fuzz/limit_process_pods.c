/* SPDX-License-Identifier: Apache-2.0 */
/* A process' stat and cgroup, NUL between them: each GPU's list gets the same answer, and a UID is
 * one word. */
#include "fuzz.h"
#include "gpushare/limit/process_pods.h"

#include <sys/stat.h>
#include <unistd.h>

#define UID_CHARS "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum { PID = 7 };
static char proc[] = "/tmp/gs-fuzz-proc-XXXXXX", folder[64], stat_path[72], cgroup_path[72];

static void remove_proc(void)
{
    unlink(stat_path);
    unlink(cgroup_path);
    rmdir(folder);
    rmdir(proc);
}

static void make_proc(void)
{
    FUZZ_CHECK(mkdtemp(proc));
    snprintf(folder, sizeof(folder), "%s/%d", proc, PID);
    snprintf(stat_path, sizeof(stat_path), "%s/stat", folder);
    snprintf(cgroup_path, sizeof(cgroup_path), "%s/cgroup", folder);
    FUZZ_CHECK(mkdir(folder, 0700) == 0);
    atexit(remove_proc);
}

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *out = fopen(path, "we");
    FUZZ_CHECK(out);
    fwrite(data, 1, size, out);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char uid[GS_POD_UID_BYTES], again[GS_POD_UID_BYTES];
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    if (!end)
        return 0;
    if (!folder[0])
        make_proc();
    write_file(stat_path, data, (size_t)(end - data));
    write_file(cgroup_path, end + 1, size - (size_t)(end - data) - 1);
    struct gs_process_pods *pods = gs_process_pods_new(proc);
    gs_process_pods_begin(pods);
    const bool found = gs_process_pods_find(pods, 0, INT64_MAX / 2, PID, uid);
    FUZZ_CHECK(gs_process_pods_find(pods, 1, INT64_MAX / 2, PID, again) == found);
    FUZZ_CHECK(!found || (uid[0] && strcmp(uid, again) == 0));
    FUZZ_CHECK(!found || !uid[strspn(uid, UID_CHARS)]);
    gs_process_pods_end(pods);
    gs_process_pods_free(pods);
    return 0;
}
