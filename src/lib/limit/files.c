/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "gpushare/base/cleanup.h"

#include "internal.h"

/* The kernel gives such a file out in pieces of a page. */
static int read_whole(int fd, struct limit_text *ret)
{
    for (ret->len = 0; ret->len < sizeof(ret->data);) {
        ssize_t got = read(fd, ret->data + ret->len, sizeof(ret->data) - ret->len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            return 0;
        ret->len += (size_t)got;
    }
    return EFBIG;
}

int limit_read_at(int folder, const char *path, struct limit_text *ret)
{
    _cleanup_close_ int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? errno : read_whole(fd, ret);
}

int limit_read(const char *folder, const char *file, struct limit_text *ret)
{
    char path[GS_CGROUP_PATH_BYTES + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return limit_read_at(AT_FDCWD, path, ret);
}

static bool is_gap(char c)
{
    return c == ' ' || c == '\n';
}

bool limit_has_word(const struct limit_text *text, const char *word)
{
    size_t len = strlen(word), start = 0;
    for (size_t i = 0; i <= text->len; i++) {
        if (i < text->len && !is_gap(text->data[i]))
            continue;
        if (i - start == len && memcmp(text->data + start, word, len) == 0)
            return true;
        start = i + 1;
    }
    return false;
}

static int enable_one(const struct gs_limit_host *host, const char *folder, struct limit_text *text)
{
    static const char file[] = "cgroup.subtree_control", word[] = "+dmem";
    char path[GS_CGROUP_PATH_BYTES + 32];
    int error = limit_read(folder, file, text);
    if (error || limit_has_word(text, word + 1))
        return error;
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return host->put(host->ctx, path, word, sizeof(word) - 1);
}

int limit_enable(const struct gs_limit_host *host, const char *mount, const char *path,
                 struct limit_text *text)
{
    char folder[GS_CGROUP_PATH_BYTES];
    int error = enable_one(host, mount, text);
    for (const char *at = strchr(path + strlen(mount) + 1, '/'); at && !error;
         at = strchr(at + 1, '/')) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
        error = enable_one(host, folder, text);
    }
    return error;
}
