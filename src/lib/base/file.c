/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"

enum { CHUNK_BYTES = 4096 };

int gs_file_read_fd(int fd, const char *name, size_t max, char **ret, size_t *ret_len,
                    struct gs_error *err)
{
    _cleanup_(gs_buf_wipe) struct gs_buf buf = GS_BUF(max + CHUNK_BYTES);
    struct stat info;
    /* all at once: growing would leave copies of a key behind */
    if (fstat(fd, &info) == 0 && info.st_size > 0 && (size_t)info.st_size < max)
        gs_buf_reserve(&buf, (size_t)info.st_size + CHUNK_BYTES);
    for (char *to; (to = gs_buf_reserve(&buf, CHUNK_BYTES));) {
        ssize_t got = read(fd, to, CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return gs_fail_errno(err, GS_EIO, errno, "cannot read %s", name);
        gs_buf_advance(&buf, (size_t)got);
        if (buf.len > max)
            return gs_fail(err, GS_ETOOBIG, "%s is larger than %zu bytes", name, max);
        if (got == 0)
            break;
    }
    size_t len = buf.len;
    char *text = gs_buf_steal(&buf);
    if (!text)
        return gs_fail_nomem(err);
    *ret = text;
    *ret_len = len;
    return 0;
}

int gs_file_read(const char *path, size_t max, char **ret, size_t *ret_len, struct gs_error *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gs_fail_errno(err, errno == ENOENT || errno == ENOTDIR ? GS_ENOENT : GS_EIO, errno,
                             "cannot open %s", path);
    return gs_file_read_fd(fd, path, max, ret, ret_len, err);
}

int gs_file_replace(const char *path, const void *bytes, size_t len, mode_t mode, bool lasting,
                    struct gs_error *err)
{
    char draft[PATH_MAX];
    snprintf(draft, sizeof(draft), "%.4000s.new", path);
    FILE *file = fopen(draft, "we");
    if (!file)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", draft);
    bool written = fchmod(fileno(file), mode) == 0 && fwrite(bytes, 1, len, file) == len &&
                   fflush(file) == 0 && (!lasting || fsync(fileno(file)) == 0);
    bool closed = fclose(file) == 0;
    if (!written || !closed || rename(draft, path) < 0)
        return gs_fail_errno(err, GS_EIO, errno, "%.160s", path);
    return 0;
}

bool gs_file_mark(const char *path, struct gs_file_mark *ret)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    *ret = gs_file_mark_of(&st);
    return true;
}

struct gs_file_mark gs_file_mark_of(const struct stat *st)
{
    return (struct gs_file_mark){st->st_dev, st->st_ino, st->st_size, st->st_ctim};
}

bool gs_file_mark_eq(const struct gs_file_mark *a, const struct gs_file_mark *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

void gs_secret_free(char *text, size_t len)
{
    if (text)
        explicit_bzero(text, len);
    free(text);
}
