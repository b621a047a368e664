/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "gpushare/base/cleanup.h"

/* With hybrid cgroups /sys/fs/cgroup is a tmpfs, and cgroup v2 somewhere below: without the
 * kubelet's pods, which are in v1 hierarchies then. */
static int check_kernel(void *ctx, const char *path)
{
    (void)ctx;
    struct statfs meta;
    if (statfs(path, &meta) < 0)
        return errno;
    return meta.f_type == CGROUP2_SUPER_MAGIC ? 0 : EMEDIUMTYPE;
}

/* O_NONBLOCK: since 7.3 a driver may reclaim memory inside the write otherwise, and take its time.
 */
static int put_kernel(void *ctx, const char *path, const char *text, size_t len)
{
    (void)ctx;
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    ssize_t written = write(fd, text, len);
    if (written < 0)
        return errno;
    return (size_t)written == len ? 0 : EIO;
}

static int may_put_kernel(void *ctx, const char *path)
{
    (void)ctx;
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

const struct gs_limit_host gs_limit_host_kernel = {NULL, check_kernel, put_kernel, may_put_kernel};
