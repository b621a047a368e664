/* SPDX-License-Identifier: Apache-2.0 */
/* A program of the host, on this kernel: the host's files over 9p, read-only under a scratch layer.
 */
#include "checks.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void put(const char *what, const char *where, const char *type, const char *options)
{
    mkdir(where, 0755);
    if (mount(what, where, type, 0, options) < 0)
        check(false, "mount %s: %s", where, strerror(errno));
}

static void mount_host(void)
{
    put("scratch", "/scratch", "tmpfs", "");
    mkdir("/scratch/upper", 0755);
    mkdir("/scratch/work", 0755);
    put("host", "/host", "9p", "trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288");
    put("root", "/root", "overlay", "lowerdir=/host,upperdir=/scratch/upper,workdir=/scratch/work");
    put("proc", "/root/proc", "proc", "");
    put("sysfs", "/root/sys", "sysfs", "");
    put("cgroup2", "/root" MOUNT, "cgroup2", "nsdelegate");
    put("devtmpfs", "/root/dev", "devtmpfs", "");
    put("run", "/root/run", "tmpfs", "");
}

static void loopback_up(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        check(false, "loopback: %s", strerror(errno));
    close(fd);
}

/* Its own PASS and FAIL lines are for people; its exit status counts. */
void check_host_program(const char *script)
{
    int status = -1;
    mount_host();
    loopback_up();
    pid_t child = fork();
    if (child == 0) {
        if (chroot("/root") < 0 || chdir("/run") < 0)
            _exit(126);
        setsid();
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        setenv("HOME", "/run", 1);
        execl("/bin/bash", "bash", "-c", script, (char *)NULL);
        _exit(127);
    }
    for (pid_t ended; (ended = wait(&status)) != child;)
        if (ended < 0 && errno == ECHILD)
            break;
    check(status == 0, "the program's exit status is %d",
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
