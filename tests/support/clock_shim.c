/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shared object to be preloaded: the program's clocks are shifted by what the file GS_CLOCK_FILE
 * says at that moment, three int64 in nanoseconds:
 *
 *   wall       CLOCK_REALTIME and what follows from it: somebody set the clock
 *   paused     every clock: the virtual machine stood still and its clocks were set right
 *   suspended  CLOCK_REALTIME and CLOCK_BOOTTIME: the machine slept, CLOCK_MONOTONIC with it
 *
 * Waits until a moment are translated back; relative waits and the kernel's own timers are not
 * touched. A moment below 500,000,000 s is one of CLOCK_MONOTONIC: nothing runs for 16 years.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct shift {
    atomic_llong wall_ns, paused_ns, suspended_ns;
};

static struct shift none;
static struct shift *shift = &none;
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("GS_CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map == MAP_FAILED)
        _exit(127); /* a test that jumps no clock shall not pass */
    shift = map;
    close(fd);
}

static int64_t shift_of(clockid_t id)
{
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return shift->wall_ns + shift->paused_ns + shift->suspended_ns;
    case CLOCK_BOOTTIME:
        return shift->paused_ns + shift->suspended_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        return shift->paused_ns;
    default:
        return 0; /* a thread's or process's own time */
    }
}

static struct timespec add(struct timespec at, int64_t ns)
{
    int64_t sum = at.tv_sec * 1000000000LL + at.tv_nsec + ns;
    sum = sum > 0 ? sum : 0;
    return (struct timespec){sum / 1000000000, sum % 1000000000};
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    if (syscall(SYS_clock_gettime, id, ret) < 0)
        return -1;
    *ret = add(*ret, shift_of(id));
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *ret, void *zone)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *at)
{
    clockid_t id = at->tv_sec < 500000000 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    const struct timespec real = add(*at, -shift_of(id));
    if (!real_timedwait)
        *(void **)&real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return real_timedwait(cond, lock, &real);
}
