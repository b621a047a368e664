/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1: mounts, the driver, and the chapters that the kernel's command line names. */
#include "checks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int passed, failed;

void promise(bool holds, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf(holds ? "PASS  " : "FAIL  ");
    vprintf(format, args);
    putchar('\n');
    va_end(args);
    holds ? passed++ : failed++;
}

void fact(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FACT  ");
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

void chapter(const char *title)
{
    printf("\n== %s\n", title);
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void put_mount(const char *what, const char *where, const char *type, const char *options)
{
    mkdir(where, 0755);
    if (mount(what, where, type, 0, options) < 0)
        check(false, "mount %s: %s", where, strerror(errno));
}

static void load_driver(void)
{
    int ko = open("/fakegpu.ko", O_RDONLY | O_CLOEXEC);
    if (ko < 0)
        return; /* a kernel of somebody else's */
    if (syscall(SYS_finit_module, ko, "", 0) < 0)
        check(false, "fakegpu.ko: %s", strerror(errno));
    close(ko);
}

/* cgroup v1 and v2 side by side, as older hosts have it. */
static void mount_hybrid(void)
{
    put_mount("tmpfs", MOUNT, "tmpfs", "mode=755");
    put_mount("cgroup", MOUNT "/systemd", "cgroup", "none,name=systemd");
    put_mount("cgroup2", MOUNT "/unified", "cgroup2", "");
}

static void run(const char *checks)
{
    if (!strcmp(checks, "hybrid")) {
        mount_hybrid();
        check_host_without(GS_ENFORCED_NO_CGROUP2);
        return;
    }
    put_mount("cgroup2", MOUNT, "cgroup2", "nsdelegate");
    load_driver();
    if (!strcmp(checks, "none")) {
        check_host_without(GS_ENFORCED_NO_CONTROLLER);
        check_watch();
    } else {
        check_limits();
        check_watch();
        check_first_container();
        check_losses();
        check_rights();
    }
}

/* The kernel hands process 1 the words of its command line that it does not know itself. */
int main(int argc, char **argv)
{
    struct utsname name;
    put_mount("devtmpfs", "/dev", "devtmpfs", "");
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    setvbuf(stdout, NULL, _IOLBF, 0);
    put_mount("proc", "/proc", "proc", "");
    put_mount("sysfs", "/sys", "sysfs", "");
    uname(&name);
    printf("\nLinux %s\n", name.release);
    run(argc > 1 ? argv[argc - 1] : "all");
    printf("\nRESULT %s: %d passed, %d failed\n", failed || !passed ? "FAIL" : "PASS", passed,
           failed);
    fflush(stdout);
    sync();
    reboot(RB_AUTOBOOT);
    return 0;
}
