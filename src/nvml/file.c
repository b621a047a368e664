/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "gpushare/base/clock.h"
#include "gpushare/base/file.h"
#include "gpushare/codec/inventory.h"
#include "gpushare/nvml/listed.h"

enum { FILE_MAX_BYTES = 1 << 20 };
#define LOOK_EVERY_NS (200 * GS_NS_PER_MS)

struct listed_file {
    char *path;
    struct stat seen; /* of the file that was read last */
};

static int load(const char *path, struct gs_buf *out, struct stat *ret_stat, struct gs_error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return gs_fail_errno(err, errno == ENOENT ? GS_ENOENT : GS_EIO, errno, "%.160s", path);
    int failed = !gs_buf_read_stream(out, file) || fstat(fileno(file), ret_stat) < 0;
    fclose(file);
    if (gs_buf_failed(out))
        return gs_fail(err, GS_ETOOBIG, "%.160s is larger than %d bytes", path, FILE_MAX_BYTES);
    return failed ? gs_fail(err, GS_EIO, "%.160s cannot be read", path) : 0;
}

static int read_file(void *ctx, struct gs_gpu_set *ret, struct gs_error *err)
{
    struct listed_file *file = ctx;
    struct gs_buf text = GS_BUF(FILE_MAX_BYTES);
    struct gs_arena arena = {0};
    struct gs_inventory inventory;
    struct stat seen;
    int result = load(file->path, &text, &seen, err);
    if (result == 0) {
        file->seen = seen; /* a broken file is not read again until it changes */
        result = gs_codec_inventory_decode((struct gs_slice){text.data, text.len}, &arena,
                                           &inventory, err);
        if (result < 0)
            gs_error_prefix(err, "%.160s", file->path);
    }
    if (result == 0) {
        struct gs_gpu_set set = {.count = inventory.gpu_count, .fresh = true};
        for (uint32_t i = 0; i < inventory.gpu_count; i++) {
            set.gpus[i] = inventory.gpus[i];
            if (!set.gpus[i].mem_mib)
                set.gpus[i].mem_mib = set.gpus[i].mem_units * gs_unit_mib(inventory.unit);
            set.gpus[i].mem_units = 0;
        }
        *ret = set;
    }
    gs_arena_release(&arena);
    gs_buf_release(&text);
    return result;
}

static bool changed(const struct listed_file *file)
{
    struct stat now;
    if (stat(file->path, &now) < 0)
        return false; /* being replaced; a file that stays away keeps what was known */
    return now.st_ino != file->seen.st_ino || now.st_size != file->seen.st_size ||
           now.st_mtim.tv_sec != file->seen.st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != file->seen.st_mtim.tv_nsec;
}

static int wait_file(void *ctx, int64_t timeout_ns, struct gs_error *err)
{
    const struct timespec pause = {0, LOOK_EVERY_NS};
    for (int64_t waited_ns = 0; waited_ns < timeout_ns; waited_ns += LOOK_EVERY_NS) {
        if (changed(ctx))
            return 1;
        nanosleep(&pause, NULL);
    }
    return changed(ctx);
}

static void close_file(void *ctx)
{
    struct listed_file *file = ctx;
    free(file->path);
    free(file);
}

int gs_gpus_from_file(const char *path, struct gs_gpu_source *ret, struct gs_error *err)
{
    static const struct gs_gpu_source_ops ops = {
        .read = read_file, .wait = wait_file, .close = close_file};
    struct listed_file *file = calloc(1, sizeof(*file));
    if (file)
        file->path = strdup(path);
    if (!file || !file->path) {
        free(file);
        return gs_fail_nomem(err);
    }
    *ret = (struct gs_gpu_source){&ops, file};
    return 0;
}
